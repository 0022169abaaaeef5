"""Make the landmarks that come with the package: starts for the search of the bundled models.

    python tools/make_landmarks.py [MODEL:OUTPUT ...]       about four minutes each on one core

Each sentence is searched at length, beginning with what the earlier ones found, so that later sentences add places that
the first ones missed. None of the sentences is used in tests or benchmarks.
"""

import json
import sys

import torch

import wordsway as ws
from wordsway.search.effort import Effort
from wordsway.search.landmarks import SHIPPED, compact, distinct, file_name, write_landmarks
from wordsway.search.places import Landmarks, PlaceSearch

OUTPUTS = ("minilm:last", "minilm:pooled", "sentiment:logits")
SENTENCES = (
    "The soup was wonderful and our waiter smiled all evening.",
    "I waited an hour for a dull film with a poor plot.",
    "Trains to the coast leave every half hour from platform nine.",
    "She fixed the old radio, and now it plays again.",
)
OF_A_SENTENCE = 6  # places: with four sentences as many as a search on a user's machine keeps of two
FIRST = Effort(scouts=24, rounds=6, polish=200, finish=128)
LATER = Effort(scouts=Effort.scouts + 1, rounds=6, polish=200, finish=128)  # more scouts than usual: beside landmarks


def make(name: str) -> None:
    """Search the sentences for one output of a model, and write what was found."""
    model, _, output = name.partition(":")
    phi = ws.PretrainedMap(model, output)
    rows: list[torch.Tensor] = []
    covariance = torch.zeros(0)
    for seed, text in enumerate(SENTENCES):
        tokens = phi.encode(text)
        X = tokens.X.double()
        words = [token for token in range(len(tokens)) if tokens.word_ids[token] is not None]
        landmarks = Landmarks(torch.stack(rows), covariance) if rows else None
        search = PlaceSearch(phi, X, X.norm(dim=1).tolist(), LATER if rows else FIRST, seed, landmarks=landmarks)
        search.scout(words)
        covariance = covariance + search.covariance if rows else search.covariance
        rows += distinct(search.left, OF_A_SENTENCE)
        best = max(place.value for place in search.places.values()) ** 0.5 / float(phi(X).norm())
        print(f"{name}: {text} change {best:.3g}, {len(rows)} places", flush=True)
    path = SHIPPED / file_name(json.dumps(phi.config(), sort_keys=True), 1.0)
    write_landmarks(path, compact(torch.stack(rows), covariance))
    print(f"{name}: written to {path.name}", flush=True)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or OUTPUTS:
        make(wanted)
