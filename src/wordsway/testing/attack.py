"""An attack on a certificate that shares no code with the searches of the package: Adam, then L-BFGS."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import View

_STARTS = 4  # random starts that Adam climbs side by side


def attack(view: View, radius: float, gradients: int = 1000, seed: int = 0) -> float:
    """Find a large relative change over moves of norm at most `radius`, with so many gradients: half of them for Adam
    from random starts, half for L-BFGS from the best place that Adam saw. What is returned was evaluated again."""
    m, d = len(view.tokens), view.X.shape[1]
    rng = torch.Generator().manual_seed(seed)
    shape = torch.randn(_STARTS, m, d, generator=rng).to(view.device, view.dtype)
    best = _lbfgs(view, radius, _adam(view, radius, shape, gradients // (2 * _STARTS)), gradients // 2)
    return float(view.relative_changes(best[None].cpu())[0])


def _inside(delta: Float[Tensor, "b m d"], radius: float) -> Float[Tensor, "b m d"]:
    """Bring moves into the ball, with a little room for rounding in the model's precision."""
    sizes = delta.flatten(1).norm(dim=1).clamp(min=1e-30)
    room = radius * (1 - 2 * torch.finfo(delta.dtype).eps)
    return delta * (room / sizes).clamp(max=1.0)[:, None, None]


def _adam(view: View, radius: float, shape: Float[Tensor, "b m d"], steps: int) -> Float[Tensor, "m d"]:
    delta = _inside(shape * radius, radius).requires_grad_()
    # A step of Adam moves each coordinate by its rate: a tenth of the radius in all.
    climb = torch.optim.Adam([delta], lr=0.1 * radius / delta[0].numel() ** 0.5)
    best, top = delta.detach()[0].clone(), -1.0
    for _ in range(max(1, steps)):
        climb.zero_grad()
        values = view.sq_norm(delta)
        reached = values.detach()
        if float(reached.max()) > top:
            top, best = float(reached.max()), delta.detach()[int(reached.argmax())].clone()
        (-values.clamp(min=1e-30).log().sum()).backward()
        climb.step()
        with torch.no_grad():
            delta.copy_(_inside(delta, radius))
    return best


def _lbfgs(view: View, radius: float, start: Float[Tensor, "m d"], gradients: int) -> Float[Tensor, "m d"]:
    free = (start / radius).clone().requires_grad_()
    climb = torch.optim.LBFGS([free], max_iter=gradients, max_eval=gradients, line_search_fn="strong_wolfe")
    best, top = start, -1.0

    def downhill() -> Tensor:
        nonlocal best, top
        climb.zero_grad()
        delta = _inside(free[None] * radius, radius)
        value = view.sq_norm(delta)[0]
        if float(value.detach()) > top:
            top, best = float(value.detach()), delta.detach()[0].clone()
        loss = -value.clamp(min=1e-30).log()
        loss.backward()
        return loss

    climb.step(downhill)  # pyright: ignore[reportArgumentType]  # its type asks for a float, its docs for a tensor
    return best
