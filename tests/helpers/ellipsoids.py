"""Climbing in an ellipsoid: what its bounds are compared with."""

import torch
from torch import Tensor

from wordsway.certificates.ellipsoid_bound import Ellipsoid


def furthest_found(ellipsoid: Ellipsoid, matrix: Tensor, point: Tensor, rng: torch.Generator) -> tuple[float, Tensor]:
    """The largest |matrix y - point| over points y of the ellipsoid that fixed-point steps find, and the z of that y: a
    convex function has its maximum where its linear approximation has it."""

    def on(z: Tensor) -> Tensor:
        z = z - z.mean(-1, keepdim=True) if ellipsoid.centred else z
        return ellipsoid.reach * z / z.norm(dim=-1, keepdim=True).clamp(min=1e-300)

    z = on(torch.randn(64, len(ellipsoid.gamma), generator=rng, dtype=torch.float64))
    for _ in range(400):
        gone = (ellipsoid.gamma * z + ellipsoid.beta) @ matrix.T - point
        z = on(gone @ matrix * ellipsoid.gamma)
    sizes = ((ellipsoid.gamma * z + ellipsoid.beta) @ matrix.T - point).norm(dim=1)
    return float(sizes.max()), z[int(sizes.argmax())]
