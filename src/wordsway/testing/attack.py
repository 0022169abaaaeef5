"""An attack on certificates that shares no code with the searches of the package: Adam, then L-BFGS.

Several tokens of a text and several radii are attacked side by side, so that a model runs them in common batches. Each
of them climbs on its own: what one finds changes nothing for the others.

Index conventions: moves are (v, r, s, m, d), for v views, r radii of each and s starts; flat rows are (b, p), p = m d.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap, View

_STARTS = 2  # random starts that Adam climbs from, at each radius
_MEMORY = 10  # steps that L-BFGS remembers
_ENOUGH = 1e-4  # of the descent that the slope promises: with less, L-BFGS takes a shorter step
_SHORTER = 0.3  # factor of a step that failed
_SHORTEST = 1e-6  # below, L-BFGS forgets what it knows and starts anew along the gradient
Values = Callable[[Tensor], Tensor]


def attack(view: View, radius: float, gradients: int = 1000, seed: int = 0) -> float:
    """Find a large relative change over moves of norm at most `radius`; see `attack_all`."""
    radii = torch.tensor([[radius]], dtype=torch.float64)
    return float(_attack(lambda delta: view.sq_norm(delta[0])[None], [view], radii, gradients, seed)[0, 0])


def attack_all(
    phi: FeatureMap, views: Sequence[View], radii: Float[Tensor, "v r"], gradients: int = 1000, seed: int = 0
) -> Float[Tensor, "v r"]:
    """Find a large relative change for each view of one text and each of its radii. A view gets so many gradients, an
    equal part of them for each radius: half of these for Adam from random starts, half for L-BFGS from the best place
    that Adam saw. What is returned was evaluated again."""
    return _attack(phi.sq_norms(views), views, radii, gradients, seed)


def _attack(
    values: Values, views: Sequence[View], radii: Float[Tensor, "v r"], gradients: int, seed: int
) -> Float[Tensor, "v r"]:
    v, r = radii.shape
    m, d, each = len(views[0].tokens), views[0].X.shape[1], gradients // r
    dtype = torch.promote_types(torch.float32, views[0].dtype)
    rng = torch.Generator().manual_seed(seed)
    room = radii.to(dtype) * (1 - 2 * torch.finfo(views[0].dtype).eps)  # for rounding in the model's precision
    shape = torch.randn(v, r, _STARTS, m, d, generator=rng).to(dtype)
    start = _adam(values, shape, room[:, :, None].expand(v, r, _STARTS), each // (2 * _STARTS))
    best = _lbfgs(values, start, room, each // 2)
    return torch.stack([view.relative_changes(moves.cpu()) for view, moves in zip(views, best, strict=True)]).double()


def _inside(moves: Float[Tensor, "*b m d"], room: Float[Tensor, "*b"]) -> Float[Tensor, "*b m d"]:
    """Bring moves into their balls."""
    sizes = moves.flatten(-2).norm(dim=-1).clamp(min=1e-30)
    return moves * (room / sizes).clamp(max=1.0)[..., None, None]


def _adam(
    values: Values, shape: Float[Tensor, "v r s m d"], room: Float[Tensor, "v r s"], steps: int
) -> Float[Tensor, "v r m d"]:
    free = _inside(shape, torch.ones_like(room)).requires_grad_()  # in units of the radius
    # A step of Adam moves each coordinate by its rate: a tenth of the radius in all.
    climb = torch.optim.Adam([free], lr=0.1 / shape[0, 0, 0].numel() ** 0.5)
    best, top = free.detach().clone(), torch.full_like(room, -1.0)
    for _ in range(max(1, steps)):
        climb.zero_grad()
        found = values(free * room[..., None, None])
        better = found.detach() > top
        top, best = torch.where(better, found.detach(), top), torch.where(better[..., None, None], free.detach(), best)
        (-found.clamp(min=1e-30).log().sum()).backward()
        climb.step()
        with torch.no_grad():
            free.copy_(_inside(free, torch.ones_like(room)))
    first = top.argmax(2)[:, :, None, None, None].expand(-1, -1, 1, *best.shape[3:])
    return best.gather(2, first)[:, :, 0]


def _lbfgs(
    values: Values, start: Float[Tensor, "v r m d"], room: Float[Tensor, "v r"], gradients: int
) -> Float[Tensor, "v r m d"]:
    """Climb from each start, in units of the radius, to moves; a free row outside of its ball counts as its nearest
    point there."""
    best, top = start.clone(), torch.full_like(room, -1.0)

    def downhill(flat: Float[Tensor, "b p"]) -> tuple[Float[Tensor, " b"], Float[Tensor, "b p"]]:
        nonlocal best, top
        free = flat.view_as(start).clone().requires_grad_()
        inner = _inside(free, torch.ones_like(room))
        found = values(inner * room[..., None, None])
        better = found.detach() > top
        top = torch.where(better, found.detach(), top)
        best = torch.where(better[..., None, None], inner.detach(), best)
        loss = -found.clamp(min=1e-30).log()
        loss.sum().backward()
        return loss.detach().flatten(), free.grad.view_as(flat) if free.grad is not None else torch.zeros_like(flat)

    lbfgs(downhill, start.flatten(2).flatten(0, 1), gradients)
    return best * room[..., None, None]


def lbfgs(
    loss: Callable[[Tensor], tuple[Tensor, Tensor]], start: Float[Tensor, "b p"], gradients: int
) -> Float[Tensor, "b p"]:
    """Minimise b functions side by side by L-BFGS with backtracking, each with its own steps and memory. `loss` gives
    their values and gradients; every row gets `gradients` of them."""
    at, (value, slope) = start, loss(start)
    steps = start.new_zeros(_MEMORY, *start.shape)
    turns = torch.zeros_like(steps)
    way, length = -slope, 1 / slope.norm(dim=1).clamp(min=1.0)
    for _ in range(gradients - 1):
        trial = at + length[:, None] * way
        after, new_slope = loss(trial)
        took = after <= value + _ENOUGH * length * (slope * way).sum(1)
        step, turn = trial - at, new_slope - slope
        curved = took & ((step * turn).sum(1) > 1e-10 * step.norm(dim=1) * turn.norm(dim=1))
        steps[:, curved] = torch.cat([steps[1:, curved], step[None, curved]])
        turns[:, curved] = torch.cat([turns[1:, curved], turn[None, curved]])
        lost = ~took & (length * _SHORTER < _SHORTEST)
        steps[:, lost], turns[:, lost] = 0.0, 0.0
        at, value = torch.where(took[:, None], trial, at), torch.where(took, after, value)
        slope = torch.where(took[:, None], new_slope, slope)
        anew = _direction(slope, steps, turns)
        downhill = (anew * slope).sum(1) < 0
        anew = torch.where(downhill[:, None], anew, -slope)
        fresh = took | lost
        way = torch.where(fresh[:, None], anew, way)
        plain = ~steps.any(2).any(0) | ~downhill  # nothing is known of the curvature: no longer than a radius
        first = torch.where(plain, 1 / slope.norm(dim=1).clamp(min=1.0), 1.0)
        length = torch.where(fresh, first, length * _SHORTER)
    return at


def _direction(
    slope: Float[Tensor, "b p"], steps: Float[Tensor, "h b p"], turns: Float[Tensor, "h b p"]
) -> Float[Tensor, "b p"]:
    """The quasi-Newton direction by the two loops over remembered steps; places of the memory that are empty are 0."""
    products = (steps * turns).sum(2)
    inverse = torch.where(products > 0, 1 / products.clamp(min=1e-300 if slope.dtype == torch.float64 else 1e-37), 0.0)
    way, parts = slope, []
    for step, turn, one in zip(steps.flip(0), turns.flip(0), inverse.flip(0), strict=True):
        part = one * (step * way).sum(1)
        way = way - part[:, None] * turn
        parts.append(part)
    newest = turns[-1].square().sum(1)
    way = way * torch.where(newest > 0, products[-1] / newest.clamp(min=1e-37), 1.0)[:, None]
    for step, turn, one, part in zip(steps, turns, inverse, reversed(parts), strict=True):
        way = way + (part - one * (turn * way).sum(1))[:, None] * step
    return -way
