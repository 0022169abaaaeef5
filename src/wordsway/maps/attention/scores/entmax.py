"""Sparsemax and entmax: projections of the logits onto the simplex."""

import torch
from torch import Tensor

from wordsway.maps.attention.scores.base import Score


class Entmax(Score):
    """max((a - 1) l - tau, 0)^(1 / (a - 1)) with the tau that makes weights sum to 1: between softmax and sparsemax for
    a = 1.5. Which tokens get any weight depends on all of them, so none can be pooled."""

    a = 1.5

    def normalize(self, logits: Tensor) -> Tensor:
        scaled = (self.a - 1) * (logits - logits.amax(-1, keepdim=True))
        ordered = scaled.detach().sort(-1, descending=True).values
        ordered = torch.where(ordered.isneginf(), -1e9, ordered)  # not seen: a number that can be summed, far below
        count = torch.arange(1, logits.shape[-1] + 1, dtype=logits.dtype, device=logits.device)
        mean = ordered.cumsum(-1) / count
        if self.a == 2.0:
            tau = mean - 1 / count
        else:
            spread = count * (ordered.square().cumsum(-1) / count - mean.square())
            tau = mean - ((1 - spread) / count).clamp(min=0).sqrt()
        size = (tau <= ordered).sum(-1, keepdim=True)  # of the support: ordered logits above their own tau
        return self._weights(scaled, tau.gather(-1, size - 1))

    def _weights(self, scaled: Tensor, tau: Tensor) -> Tensor:
        """Compute weights; one Newton step on their sum, which is 1 already, puts the derivative of tau back."""
        power = 1 / (self.a - 1)
        above = torch.relu(scaled - tau)
        slope = (power * above.pow(power - 1) * (above > 0)).detach()
        total = above.pow(power).sum(-1, keepdim=True)
        tau = tau + (total - 1) / slope.sum(-1, keepdim=True)
        return torch.relu(scaled - tau).pow(power)


class Sparsemax(Entmax):
    """The projection of the logits onto the simplex: a = 2."""

    a = 2.0
