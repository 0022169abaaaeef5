"""Landmarks: found once a model, kept, read again, and only ever starts of a search."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

import wordsway as ws
from wordsway.search import landmarks
from wordsway.search.effort import Effort
from wordsway.search.landmarks import SHIPPED, distinct, file_name, landmarks_of, read_landmarks
from wordsway.search.places import Landmarks, Place, PlaceSearch
from wordsway.support import cache_files

SENTENCE = "The food was good, but the waiter was rude."
SMALL = Effort(scouts=3, wide=4, core=3, rounds=1, tracks=1, race=4, finish=8, polish=8, last=8)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Landmarks that take a second, in a folder of their own."""
    monkeypatch.setattr(landmarks, "_EFFORT", SMALL)
    monkeypatch.setenv("WORDSWAY_CACHE", str(tmp_path))
    return tmp_path / "landmarks"


def asked(phi: ws.PretrainedMap, radius: float = 1.0) -> tuple[Tensor, list[float]]:
    X = phi.encode(SENTENCE).X.double()
    return X, (radius * X.norm(dim=1)).tolist()


def test_landmarks_are_found_once(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phi = ws.PretrainedMap("minilm", "layer:2")
    X, radii = asked(phi)
    first = landmarks_of(phi, X, radii, "cpu")
    assert first is not None and first.rows.shape[1] == X.shape[1] and 2 <= len(first.rows) <= 24
    (file,) = short.iterdir()

    def refuse(*_: object, **__: object) -> Landmarks:
        raise AssertionError("landmarks were looked for again")

    with monkeypatch.context() as patch:
        patch.setattr(landmarks, "find_landmarks", refuse)
        again = landmarks_of(ws.PretrainedMap("minilm", "layer:2"), X[:5], radii[:5], "cpu")
        assert again is not None
        assert torch.equal(again.rows, first.rows) and torch.equal(again.covariance, first.covariance)
        with pytest.raises(AssertionError, match="again"):  # other outputs and radii have landmarks of their own
            landmarks_of(ws.PretrainedMap("minilm", "layer:3"), X, radii, "cpu")
        with pytest.raises(AssertionError, match="again"):
            landmarks_of(phi, *asked(phi, 0.5), "cpu")

    content = bytearray(file.read_bytes())
    content[-100] ^= 1  # a bit of the data
    file.write_bytes(content)
    monkeypatch.setattr(cache_files, "_told", set())
    with pytest.warns(ws.TextWarning, match="made again.*damaged"):
        mended = landmarks_of(phi, X, radii, "cpu")
    assert mended is not None and torch.equal(mended.rows, first.rows) and file.read_bytes() != content
    file.write_bytes(b"not a file of tensors")
    assert landmarks_of(phi, X, radii, "cpu") is not None


def test_every_landmark_was_within_reach_of_a_word(short: Path) -> None:
    phi = ws.PretrainedMap("minilm", "layer:2")
    found = landmarks_of(phi, *asked(phi, 0.7), "cpu")
    named = phi.landmark_texts()
    assert found is not None and named is not None
    rows = torch.cat([text.X for text in named[1]]).double()
    gaps = torch.cdist(found.rows, rows) / rows.norm(dim=1)
    assert float(gaps.amin(1).max()) <= 0.7 * (1 + 1e-6)


def test_who_has_none(short: Path) -> None:
    named = ws.PretrainedMap("minilm", "layer:2")
    X, radii = asked(named)
    model = named.model
    live = ws.PretrainedMap(model.encoder.model, "layer:2", tokenizer=model.encoder.tokenizer)
    assert landmarks_of(live, X, radii, "cpu") is None  # it may be trained on, under the same name
    assert landmarks_of(named, X, [2 * radii[0], *radii[1:]], "cpu") is None
    assert landmarks_of(ws.RandomAttention().sample(d=X.shape[1]), X, radii, "cpu") is None
    ws.word_sensitivity(named, named.encode(SENTENCE), budget=12, certificate=False, random_draws=0)
    ws.word_sensitivity(named, named.encode(SENTENCE), [1, 2], budget="quick", certificate=False, random_draws=0)
    assert not short.exists()  # a number of evaluations is all that is spent, and two words are not worth it


def test_a_folder_that_cannot_be_written(short: Path) -> None:
    short.parent.mkdir(exist_ok=True)
    short.write_text("a file where the folder should be")
    phi = ws.PretrainedMap("minilm", "layer:2")
    with pytest.warns(ws.TextWarning, match="landmarks are not kept"):
        assert landmarks_of(phi, *asked(phi), "cpu") is not None


def test_a_search_begins_with_landmarks(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phi = ws.PretrainedMap("minilm", "layer:2")
    X, radii = asked(phi)
    found = landmarks_of(phi, X, radii, "cpu")
    assert found is not None
    scouted: list[int] = []
    monkeypatch.setattr(PlaceSearch, "_first_places", lambda self, chosen: scouted.extend(chosen))
    search = PlaceSearch(phi, X, radii, SMALL, 0, landmarks=found)
    search.scout(range(1, 12))
    assert not scouted and set(search.places) == set(search.core) and not search.brought
    region = torch.tensor(radii)
    for token, place in search.places.items():
        assert float((place.row - X[token]).norm()) <= region[token] * (1 + 1e-6)
        starts = torch.stack([radii[token] * search._start(token, row) for row in found.rows]).float()
        assert place.value >= 0.99 * float(phi.view(X, [token]).sq_norm(starts[:, None]).max())
    more = PlaceSearch(phi, X, radii, SMALL.scaled(20), 0, landmarks=found)
    monkeypatch.setattr(PlaceSearch, "_rounds", lambda *_: None)
    more.scout(range(1, 12))
    assert scouted and len(more.brought) == len(found.rows)  # a larger effort sends scouts as well


def test_distinct_places_are_the_highest_of_their_kind() -> None:
    a, b = torch.eye(4, dtype=torch.float64)[:2]
    places = [Place(a, 1.0), Place(a + 0.1 * b, 3.0), Place(b, 2.0), Place(b + 0.1 * a, 1.5)]
    assert [row.tolist() for row in distinct(places, 12)] == [(a + 0.1 * b).tolist(), b.tolist()]
    assert len(distinct(places, 1)) == 1


@pytest.mark.parametrize("name", ["minilm:last", "minilm:pooled", "sentiment:logits"])
def test_bundled_models_have_landmarks_from_the_start(name: str, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, output = name.partition(":")
    phi = ws.PretrainedMap(model, output)
    X, radii = asked(phi)
    monkeypatch.setattr(landmarks, "find_landmarks", lambda *_, **__: pytest.fail("landmarks were looked for"))
    shipped = landmarks_of(phi, X, radii, "cpu")
    assert shipped is not None and not short.exists()
    starts = PlaceSearch(phi, X, radii, SMALL, 0, landmarks=shipped)
    # They are good starts on a sentence that they were not made from: better than anything random.
    token = 5
    at_once = starts._worth([token], list(shipped.rows))[1].max()
    random = torch.nn.functional.normalize(
        torch.randn(64, X.shape[1], generator=torch.Generator().manual_seed(0)), dim=1
    )
    assert float(at_once) > float(phi.view(X, [token]).sq_norm(radii[token] * random[:, None]).max())


def test_every_shipped_file_belongs_to_a_bundled_model() -> None:
    names = [("minilm", "last"), ("minilm", "pooled"), ("sentiment", "logits")]
    maps = [ws.PretrainedMap(model, output) for model, output in names]
    known = {file_name(json.dumps(phi.config(), sort_keys=True), 1.0) for phi in maps}
    assert {path.name for path in SHIPPED.iterdir()} == known
    assert all(read_landmarks(SHIPPED / name, 384) is not None for name in known)
