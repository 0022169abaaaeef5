"""The search for the best delta of every move of a job, several moves side by side."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from wordsway.maps.base import View
from wordsway.measures.job import Job
from wordsway.measures.listener import Listener
from wordsway.search.ascent import Ascent, Found, maximize
from wordsway.search.effort import Effort
from wordsway.search.finish import finish
from wordsway.search.landmarks import landmarks_of
from wordsway.search.places import WORTH_IT, Landmarks, PlaceSearch
from wordsway.search.regions import FROM_THE_EDGE
from wordsway.support.errors import TooLargeError
from wordsway.support.names import BUDGETS
from wordsway.support.plain_checks import FEWEST

_LAST_STEPS = 32  # of a finish in float64: enough to agree with long searches to nine digits

BestDeltas = Mapping[tuple[int, ...], Tensor]


class MoveSearch:
    """The search of one job. Tokens of a deep model share places, which are found when the first is asked for."""

    def __init__(self, job: Job, listener: Listener) -> None:
        self.job, self.listener = job, listener
        self._places: PlaceSearch | None = None

    @property
    def scouted(self) -> int:
        """Evaluations that served all tokens together."""
        return 0 if self._places is None else math.ceil(self._places.scouted)

    def best(self, positions: Sequence[int], views: Sequence[View], best_deltas: BestDeltas) -> list[Found]:
        """Search some moves, given by their positions and views. `best_deltas` are those of earlier moves."""
        alone = len(views[0].tokens) == 1 and self.job.several is None
        if alone and views[0].shares_places:  # then tokens are searched from the places of others
            return self._shared_places().search([view.tokens[0] for view in views])
        return self._climb(positions, views, self._guesses(positions, best_deltas))

    def _climb(self, positions: Sequence[int], views: Sequence[View], guesses: Tensor | None) -> list[Found]:
        """Search in the job's precision and then, where the map allows, for the last digits in float64. The region is
        the first one's: every other view sees deltas in units of its own radius."""
        job, phi = self.job, self.job.phi
        region = job.searched_region(positions[0], views[0])
        scale = torch.tensor([job.reach(position) / job.reach(positions[0]) for position in positions])
        scale = scale.to(views[0].device, views[0].dtype)[:, None, None, None]
        coarse = self.listener.watched(phi.sq_norms(views))
        ascent = self._ascent(views[0], positions[0])
        reached = maximize(views, lambda delta: coarse(delta * scale), region, job.seed, ascent, guesses)
        if views[0].evaluations_left is not None or phi.remembers or job.device.type == "mps":
            pairs = zip(reached, scale, strict=True)
            return [Found(best.delta * by[0], best.value, best.evaluations) for best, by in pairs]
        exact = [job.view(k, torch.float64) for k in positions]
        fine, scale = self.listener.watched(phi.sq_norms(exact)), scale.double()
        before = torch.stack([best.delta for best in reached]).double()
        e = region.unit(before[:, None], FROM_THE_EDGE)
        e, values, steps = finish(lambda delta: fine(delta * scale), region, e, _LAST_STEPS)
        better = values[:, 0] > torch.tensor([best.value for best in reached], dtype=values.dtype, device=values.device)
        deltas = torch.where(better[:, None, None], (region.delta(e) * scale)[:, 0], before * scale[:, 0])
        return [
            Found(delta, max(best.value, value), best.evaluations + steps)
            for delta, best, value in zip(deltas, reached, values[:, 0].tolist(), strict=True)
        ]

    def _guesses(self, positions: Sequence[int], best_deltas: BestDeltas) -> Tensor | None:
        """Start several tokens that move together with what each does alone, and with all of that at once."""
        job = self.job
        if job.starts is not None:
            return job.starts[None]
        m = len(job.moves[positions[0]])
        if m == 1 or not all((token,) in best_deltas for k in positions for token in job.moves[k]):
            return None
        alone = torch.stack([torch.cat([best_deltas[token,] for token in job.moves[k]]) for k in positions])
        one_by_one = alone[:, None] * torch.eye(m, dtype=alone.dtype)[None, :, :, None]  # shape: (g, m, m, d)
        return torch.cat([alone[:, None], one_by_one], 1)

    def _ascent(self, view: View, position: int) -> Ascent:
        """Choose the search for one token, with its part of what a lazy map may still be asked."""
        job, ascent = self.job, view.ascent()
        if isinstance(job.budget, str):
            ascent = ascent.scaled(max(FEWEST, round(BUDGETS[job.budget] * ascent.budget)))
        elif job.budget is not None:
            ascent = ascent.scaled(job.budget)
        if view.evaluations_left is None:
            return ascent
        tokens_left = len(job.moves) - position
        left = (view.evaluations_left - job.draws) // tokens_left
        if left < FEWEST:
            raise TooLargeError(
                f"searching {tokens_left} tokens of a lazy map would reveal more weights than it may keep; "
                f"sample it with a larger memory_limit=, or ask for fewer tokens or random_draws"
            )
        return ascent if ascent.budget <= left else ascent.scaled(left)

    def _shared_places(self) -> PlaceSearch:
        """Return the common search of all tokens, with its first places."""
        if self._places is None:
            job = self.job
            tokens = [move[0] for move in job.moves if len(move) == 1]
            effort = self._effort(len(tokens))
            asked = min(len(tokens), effort.core)

            def told(share: float) -> None:
                self.listener.tell(int(share * asked), len(job.moves))

            landmarks: Landmarks | None = None
            if not isinstance(job.budget, int):  # finding landmarks is not worth it for a few words or rounds
                few = effort.rounds < WORTH_IT or len(tokens) < effort.core
                landmarks = landmarks_of(job.phi, job.text, job.radii, job.device, told, shipped_only=few)
            self._places = PlaceSearch(job.phi, job.text, job.radii, effort, job.seed, job.device, landmarks)
            self._places.scout(tokens, told)
        return self._places

    def _effort(self, tokens: int) -> Effort:
        """Choose what the search of so many tokens in places may spend."""
        effort, budget = Effort().for_few(tokens), self.job.budget
        if isinstance(budget, str):
            return effort.scaled(BUDGETS[budget])
        return effort if budget is None else effort.within(budget, tokens)
