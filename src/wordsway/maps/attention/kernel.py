"""Linear (kernel) attention: weights in proportion to f(q_j) . f(k_k), with f = elu + 1.

Index conventions as in `attention_view`. Sums over tokens are all that a row needs, z = sum_k f(k_k) and S = sum_k
f(k_k) x_k^T: a row is f(q_j)^T S / f(q_j) . z, at a cost that grows with n, not n^2. When tokens move, the masses that
rows give to them, f(q_j) . f(k_k), change in proportion to nothing simpler, but the rest is the capture of a row as
under any other score.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.attention.attention_view import CaptureView
from wordsway.support.devices import precise


def kernel_attention(
    X: Float[Tensor, "*b n d"], Q: Float[Tensor, "d r"], K: Float[Tensor, "d r"]
) -> Float[Tensor, "*b n d"]:
    """The plain map."""
    queries, keys = positive(X @ Q), positive(X @ K)
    return queries @ (keys.mT @ X) / (queries @ keys.sum(-2)[..., None])


def positive(x: Tensor) -> Tensor:
    """elu(x) + 1."""
    return torch.nn.functional.elu(x) + 1


class KernelView(CaptureView):
    """The change of one head when m tokens move; everything fixed is computed in float64."""

    terrain = "rugged"

    def __init__(
        self,
        X: Float[Tensor, "n d"],
        Q: Float[Tensor, "d r"],
        K: Float[Tensor, "d r"],
        tokens: tuple[int, ...],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.tokens, self.device, self.dtype = tokens, device, dtype
        self.X = X.detach().to("cpu", torch.float64)
        here = self.X.to(precise(device))
        Q, K, index = Q.to(here), K.to(here), list(tokens)
        stay = torch.ones(len(here), dtype=torch.bool, device=here.device)
        stay[index] = False
        self.x = here[index]
        queries, keys = positive(here @ Q), positive(here @ K)
        others, values = keys[stay], here[stay]
        total, sums = others.sum(0), others.T @ values  # of what stays: shapes (r), (r, d)
        mass = queries @ total
        self.rest = queries @ sums / mass[:, None] if len(others) else torch.zeros_like(here)
        own = queries @ keys[index].T  # shape: (j, k)
        self.old = own / (mass[:, None] + own.sum(1, keepdim=True))
        self.moved_rows = (self.rest + self.old @ self.x - self.old.sum(1, keepdim=True) * self.rest)[index]
        self.rest[index], self.old[index] = 0.0, 0.0

        def cast(tensor: Tensor) -> Tensor:
            return tensor.to(device, dtype)

        self._freeze(cast)
        self._stay, self._queries, self._mass = cast(stay), cast(queries), cast(mass)
        self._total, self._sums, self._moved_rows = cast(total), cast(sums), cast(self.moved_rows)
        self._Q, self._K = cast(Q), cast(K)
        self._direction = cast(Q @ K.T)

    def parts(self, delta: Tensor) -> tuple[Float[Tensor, "*batch m j"], Float[Tensor, "*batch m d"]]:
        new = self._x + delta
        keys, queries = positive(new @ self._K), positive(new @ self._Q)  # shape: (*batch, m, r)
        own = keys @ self._queries.T  # shape: (*batch, m, j)
        w = own / (self._mass + own.sum(-2, keepdim=True)) * self._stay
        among = queries @ keys.mT
        whole = queries @ self._total + among.sum(-1)
        fresh = (queries @ self._sums + among @ new) / whole[..., None] - self._moved_rows
        return w, fresh

    def starts(self) -> Float[Tensor, "s m d"]:
        """Along which all rows' masses for the token grow, alone and with the token's own direction."""
        pull = (self.X.to(self.device, self.dtype) @ self._direction).sum(0).expand_as(self._x)
        pull = pull / pull.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        own = self._x / self._x.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        return torch.stack([pull, pull + own, 2 * pull + own, own, -own])

    @property
    def bytes_per_evaluation(self) -> int:
        n, d = self.X.shape
        return 12 * self.dtype.itemsize * (n + 2 * self._Q.shape[1] + d) * len(self.tokens)
