"""Landmarks of a model: places that its own short texts led to, from which the search of any other text begins.

Where a word can do the most is a property of the model far more than of a text. So a model is searched once, on two
short texts (`FeatureMap.landmark_texts`), and the best places are kept on disk. A text of any length then needs no
scouts, which is most of the work for a short one. Landmarks are starts and nothing else: every value is found and
checked on the text itself.

They do not depend on the seed of a measurement: what seeds would change is mostly which maxima the scouts end in.

Landmarks of the bundled models come with the package (`shipped`, made by tools/make_landmarks.py), so that these models
are searched from the same starts on every machine, and at once.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from wordsway.maps.base import FeatureMap
from wordsway.search.effort import Effort
from wordsway.search.places import Landmarks, Place, PlaceSearch
from wordsway.support.cache_files import digest, tell_unused, usable, write_cached
from wordsway.support.errors import TextWarning
from wordsway.support.files import cache_folder, write_bytes
from wordsway.tokens import Tokens

SEED = 0  # fixed, so that landmarks do not depend on the seed of a measurement
SHIPPED = Path(__file__).parent / "shipped"  # made by tools/make_landmarks.py
_FORMAT = "wordsway.landmarks/2"
# Wide rather than high: a text climbs on from landmarks, but misses a maximum that no scout came to. With 12 scouts,
# one seed of two ended 15% lower on the text that followed; three rounds instead of one gained nothing there.
_EFFORT = Effort(scouts=30, rounds=1, polish=48, finish=64)
_OF_A_TEXT = 12  # places: enough for several maxima, few enough to look at them all for every token of the core
_ALIKE = 0.9  # cosine of two places that lead to the same maximum
_SAME_SHARE = 1e-3  # relative, for rounding: landmarks hold for radii that are one share of the tokens' norms


def landmarks_of(
    phi: FeatureMap,
    X: Float[Tensor, "n d"],
    radii: Sequence[float],
    device: torch.device | str,
    progress: Callable[[float], None] | None = None,
    shipped_only: bool = False,
) -> Landmarks | None:
    """Read the landmarks of a map for radii like these, or find and keep them. None where the map has no name to keep
    them by, or where radii are not one share of the tokens' norms. With `shipped_only`, none but those of the package:
    an answer must not depend on what happens to be kept."""
    home = _home(phi, X, radii)
    if home is None:
        return None
    path, texts, share = home
    kept = read_landmarks(SHIPPED / path.name, X.shape[1])
    if kept is not None or shipped_only:
        return kept
    kept = read_landmarks(path, X.shape[1])
    if kept is None:
        kept = find_landmarks(phi, texts, share, device, progress)
        try:
            write_landmarks(path, kept)
        except OSError as error:  # a full disk, or a folder that cannot be written: they are found anew next time
            reason = error.strerror or str(error)
            warnings.warn(f"landmarks are not kept in {path.parent}: {reason}", TextWarning, stacklevel=2)
    return kept


def landmarks_cost(phi: FeatureMap, X: Float[Tensor, "n d"], radii: Sequence[float]) -> float:
    """Count the evaluations that finding the landmarks of a map takes, about; none where they are kept already."""
    home = _home(phi, X, radii)
    kept = home is None or home[0].exists() or (SHIPPED / home[0].name).exists()
    return 0.0 if home is None or kept else len(home[1]) * _EFFORT.most(_EFFORT.core)


def _home(
    phi: FeatureMap, X: Float[Tensor, "n d"], radii: Sequence[float]
) -> tuple[Path, Sequence[Tokens], float] | None:
    """Return the file of a map's landmarks, the texts to find them on, and the share of norms that radii are."""
    named = phi.landmark_texts()
    shares = torch.tensor(radii, dtype=torch.float64) / X.double().norm(dim=1)
    if named is None or not bool(shares.isfinite().all()) or float(shares.max() / shares.min()) > 1 + _SAME_SHARE:
        return None
    name, texts = named
    share = float(f"{float(shares.mean()):.3g}")
    return cache_folder() / "landmarks" / file_name(name, share), texts, share


def file_name(name: str, share: float) -> str:
    """Name the file of a map's landmarks, for radii that are a share of the tokens' norms."""
    key = json.dumps([_FORMAT, name, share, SEED], sort_keys=True)
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.safetensors"


def find_landmarks(
    phi: FeatureMap,
    texts: Sequence[Tokens],
    share: float,
    device: torch.device | str,
    progress: Callable[[float], None] | None = None,
) -> Landmarks:
    """Search some texts, with radii that are a share of their tokens' norms, and take the best places of each."""
    rows: list[Tensor] = []
    covariance = torch.zeros(texts[0].X.shape[1], texts[0].X.shape[1])
    for done, text in enumerate(texts, 1):
        X = text.X.double()
        search = PlaceSearch(phi, X, (share * X.norm(dim=1)).tolist(), _EFFORT, SEED, device)
        words = [token for token in range(len(text)) if text.word_ids[token] is not None]
        search.scout(words or range(len(text)))
        rows += distinct(search.left, _OF_A_TEXT)
        covariance += search.covariance
        if progress:
            progress(0.5 * done / len(texts))  # about half of what a short text takes in all
    return compact(torch.stack(rows), covariance)


def compact(rows: Float[Tensor, "k d"], covariance: Float[Tensor, "d d"]) -> Landmarks:
    """Make landmarks in the precision that they are kept in, so that the first search begins like all later ones."""
    covariance = covariance / covariance.diagonal().max().clamp(min=1e-30)  # only its shape matters
    return Landmarks(rows.float().double(), covariance.half().float())


def distinct(places: Sequence[Place], count: int) -> list[Float[Tensor, " d"]]:
    """Choose the highest of some places, leaving out those that are much like a higher one."""
    chosen: list[Tensor] = []
    for place in sorted(places, key=lambda place: -place.value):
        if all(torch.cosine_similarity(place.row, other, dim=0) < _ALIKE for other in chosen):
            chosen.append(place.row)
    return chosen[:count]


def read_landmarks(path: Path, d: int) -> Landmarks | None:
    """Read what was kept; a file that is damaged, or not what it should be, is as good as none."""
    from safetensors import SafetensorError, safe_open

    shipped = path.parent == SHIPPED
    if not (path.is_file() if shipped else usable(path)):
        return None
    try:
        with safe_open(path, framework="pt") as file:
            total = (file.metadata() or {})["sum"]
            rows, covariance = file.get_tensor("rows"), file.get_tensor("covariance")
        right = rows.dtype == torch.float32 and rows.shape[1:] == (d,)
        right = right and covariance.dtype == torch.float16 and covariance.shape == (d, d)
        if right and total == _checksum(rows, covariance, path):
            return Landmarks(rows.double(), covariance.float())
    except (SafetensorError, OSError, KeyError):
        pass
    tell_unused(path, f"{path} is damaged, or was not written by this user's wordsway")
    return None


def write_landmarks(path: Path, landmarks: Landmarks) -> None:
    """Keep landmarks in a file."""
    from safetensors.torch import save

    rows, covariance = landmarks.rows.float().contiguous(), landmarks.covariance.half().contiguous()
    content = save({"rows": rows, "covariance": covariance}, {"sum": _checksum(rows, covariance, path)})
    (write_bytes if path.parent == SHIPPED else write_cached)(path, content)


def _checksum(rows: Tensor, covariance: Tensor, path: Path) -> str:
    """Digest landmarks; those that come with the package are as safe as its code, so they need no key."""
    return digest([rows.numpy().data, covariance.numpy().data], b"shipped" if path.parent == SHIPPED else None)
