"""Flip radii against foolbox: `python benchmarks/flip_radius.py [--gradients N] [--words N] [--seed S] [--tune]`.

The smallest L2 move of one word's embedding that changes the prediction of the bundled classifier, as wordsway and
three minimum-norm attacks of foolbox find it: DDN, DeepFool and Carlini-Wagner, on the same model and words, with as
many gradients for each word. (DeepFool stops by itself where it has crossed the boundary.) Peers run with the settings
that did best on the texts of `--tune`, which the reported texts share nothing with. Every move is checked by a plain
run. `--source FILE --texts N --seed S` takes texts of 12 to 20 tokens from a file instead, drawn by the seed, which is
that of our search, too. `--peers DDN` leaves out the others.

Needs the extra `bench`: foolbox.
"""

import argparse
import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import wordsway as ws
from wordsway.maps.base import moved
from wordsway.models.moving.map import add_rows

TEXTS = (
    "A clever script and two brilliant actors make this a joy from start to finish.",
    "The room smelled of smoke, the bed was broken and nobody at the desk cared.",
    "Her second novel is slower than the first, yet the final chapters are moving.",
)
TUNING = (
    "The movie was wonderful and I loved every minute of it.",
    "I waited an hour for cold food and the waiter was rude to us.",
)


class Words(torch.nn.Module):
    """The classifier as a function of one row for each word: row k of a batch takes the place of word k."""

    def __init__(self, phi: ws.PretrainedMap, X: Tensor, places: list[int]) -> None:
        super().__init__()
        self.phi, self.X, self.places, self.gradients = phi, X.float(), torch.tensor(places)[:, None], 0

    def forward(self, rows: Tensor) -> Tensor:
        self.gradients += 1
        moves = (rows - self.X[self.places[:, 0]])[:, None]
        return self.phi.model.logits(add_rows(self.X, self.places, moves), self.phi.at)


def settings(gradients: int) -> dict[str, list[tuple[dict[str, Any], Callable[[], Any]]]]:
    """The peers, each with settings to choose from. Their steps are in units of the rows, of norm about 10."""
    import foolbox.attacks as attacks  # pyright: ignore[reportMissingImports]

    ddn = [{"init_epsilon": e, "gamma": g} for e, g in itertools.product((1.0, 4.0), (0.05, 0.02))]
    wagner = [
        {"binary_search_steps": b, "stepsize": s, "initial_const": c}
        for b, s, c in itertools.product((1, 2), (0.003, 0.01), (5.0, 20.0))
    ]
    return {
        "DDN": [(o, lambda o=o: attacks.DDNAttack(steps=gradients, **o)) for o in ddn],
        "DeepFool": [
            ({"overshoot": o}, lambda o=o: attacks.L2DeepFoolAttack(steps=gradients, overshoot=o, candidates=2))
            for o in (0.02, 0.002)
        ],
        "Carlini-Wagner": [
            (
                o,
                lambda o=o: attacks.L2CarliniWagnerAttack(
                    steps=gradients // o["binary_search_steps"], abort_early=False, **o
                ),
            )
            for o in wagner
        ],
    }


BEST = {  # with 200 gradients, on the texts of --tune; Carlini-Wagner on the second of them alone, as it is slow
    "DDN": {"init_epsilon": 4.0, "gamma": 0.02},
    "DeepFool": {"overshoot": 0.002},
    "Carlini-Wagner": {"binary_search_steps": 1, "stepsize": 0.003, "initial_const": 20.0},
}


def attack(phi: ws.PretrainedMap, X: Tensor, places: list[int], make: Callable[[], Any]) -> tuple[list[float], int]:
    """Radii in units of each word's norm, infinite where an attack failed, and the gradients used for a word."""
    import foolbox  # pyright: ignore[reportMissingImports]

    words = Words(phi, X, places).eval()
    bound = 4 * float(X.abs().max())
    model = foolbox.PyTorchModel(words, bounds=(-bound, bound), device="cpu")
    rows = X[places].float()
    label = int(phi(X).argmax())
    moves = make().run(model, rows, torch.full((len(places),), label)) - rows
    found = []
    for place, move in zip(places, moves.double(), strict=True):
        after = phi(moved(X, (place,), move[None]))
        flips = int(after.argmax()) != label
        found.append(float(move.norm() / X[place].norm()) if flips else math.inf)
    return found, words.gradients


def words_of(phi: ws.PretrainedMap, text: str, most: int) -> tuple[ws.Tokens, list[int]]:
    tokens = phi.encode(text)
    places = [
        pieces[0]
        for name, pieces in zip(tokens.words, tokens.pieces, strict=True)
        if len(pieces) == 1 and name.isalpha()
    ]
    return tokens, places[:most]


def tune(phi: ws.PretrainedMap, gradients: int) -> None:
    """Print the mean radius of each peer under each of its settings."""
    texts = [words_of(phi, text, 10) for text in TUNING]
    for name, choices in settings(gradients).items():
        for options, make in choices:
            found = [r for tokens, places in texts for r in attack(phi, tokens.X.double(), places, make)[0]]
            mean = sum(min(r, 1.0) for r in found) / len(found)
            print(f"{name:15} {mean:.4f} {options}", flush=True)


def compare(
    phi: ws.PretrainedMap, texts: Sequence[str], gradients: int, most: int, seed: int, names: Sequence[str]
) -> None:
    """Print a table of words, and on how many wordsway is no larger."""
    peers = {
        name: next(make for options, make in choices if options == BEST[name])
        for name, choices in settings(gradients).items()
        if name in names
    }
    rows: list[tuple[float, ...]] = []
    print(f"| word | wordsway | {' | '.join(peers)} |\n|---|---|{'---|' * len(peers)}")
    for text in texts:
        tokens, places = words_of(phi, text, most)
        began = time.perf_counter()
        result = ws.flip_radius(phi, tokens, budget=gradients, real_words=0, seed=seed)
        own = {entry.token: entry for entry in result.words}
        took = {"wordsway": time.perf_counter() - began}
        used = {"wordsway": max(own[place].gradients for place in places)}
        found = []
        for name, make in peers.items():
            began = time.perf_counter()
            radii, used[name] = attack(phi, tokens.X.double(), places, make)
            took[name] = time.perf_counter() - began
            found.append(radii)
        for k, place in enumerate(places):
            radius = own[place].radius
            row = (math.inf if radius is None else radius, *(radii[k] for radii in found))
            rows.append(row)
            print(f"| {tokens.tokens[place]} | {' | '.join(f'{r:.4f}' for r in row)} |", flush=True)
        print(f"<!-- gradients a word: {used}; seconds: { {k: round(v, 1) for k, v in took.items()} } -->", flush=True)
    for k, name in enumerate(peers, start=1):
        no_larger = sum(row[0] <= row[k] for row in rows)
        ratio = math.exp(sum(math.log(row[k] / row[0]) for row in rows) / len(rows))
        print(f"no larger than {name} on {no_larger} of {len(rows)} words; {name} is {ratio:.3f} times as large")
    best = sum(row[0] <= min(row[1:]) for row in rows)
    print(f"no larger than the best of these on {best} of {len(rows)} words")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradients", type=int, default=200)
    parser.add_argument("--words", type=int, default=10, help="of each text, at most")
    parser.add_argument("--peers", nargs="+", choices=BEST, default=list(BEST), help="all of them unless given")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--source", help="of other texts: a file, or a name that load_texts knows")
    parser.add_argument("--texts", type=int, default=3, help="of the source")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    model = ws.PretrainedMap("sentiment", "logits")
    if asked.tune:
        tune(model, asked.gradients)
    else:
        drawn = asked.source and ws.load_texts(
            asked.source, count=asked.texts, at_least=12, shorter_than=21, balance=False, seed=asked.seed
        )
        compare(model, drawn.texts if drawn else TEXTS, asked.gradients, asked.words, asked.seed, asked.peers)
