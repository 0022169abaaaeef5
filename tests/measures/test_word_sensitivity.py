"""Sensitivity of words: pieces alone or together, special tokens, raw rows, substitutions."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from wordsway.maps.base import moved

TEXT = "She sings uncharacteristically loud"
LONG = (3, 4, 5, 6, 7, 8)  # the pieces of the long word


@pytest.fixture(scope="module")
def tokens() -> ws.Tokens:
    return ws.encode(TEXT)


def attained(phi: Any, X: torch.Tensor, r: ws.Sensitivity) -> float:
    """The relative change that the result's delta makes, by the plain map."""
    X = X.double()
    delta = r.delta.reshape(len(r.tokens), -1)
    return float((phi(moved(X, r.tokens, delta)) - phi(X)).norm() / phi(X).norm())


@pytest.mark.parametrize("name", ["raf", "relu-raf", "rf"])
def test_words_are_the_best_of_their_pieces(tokens: ws.Tokens, name: str) -> None:
    phi = ws.named_map(name, len(tokens), 384, seed=1)
    r = ws.word_sensitivity(phi, tokens, random_draws=0)
    assert r.words is not None and [word.text for word in r.words] == TEXT.split()
    assert [entry.token for entry in r.per_token] == list(range(1, 10))  # neither [CLS] nor [SEP]
    by_token = {entry.token: entry for entry in r.per_token}
    long = r.words[2]
    assert long.lower == max(by_token[k].lower for k in LONG)
    assert long.upper == max(by_token[k].upper or math.nan for k in LONG)
    assert long.tokens == (max(LONG, key=lambda k: by_token[k].lower),)
    order = sorted(r.words, key=lambda word: -word.lower)
    assert all(word.rank <= k < word.rank + word.tied for k, word in enumerate(order, 1))
    assert r.top_word is not None and r.top_word.lower == r.lower and r.top_word.tokens == r.tokens


@pytest.mark.slow
@pytest.mark.parametrize("name", ["raf", "relu-raf", "rf"])
def test_joint_moves_hold_single_ones(tokens: ws.Tokens, name: str) -> None:
    def phi() -> ws.FeatureMap:
        return ws.named_map(name, len(tokens), 384, seed=1)

    alone = ws.word_sensitivity(phi(), tokens, random_draws=0)
    joint = ws.word_sensitivity(phi(), tokens, joint=True, random_draws=0)
    assert alone.words and joint.words
    assert joint.words[2].lower >= alone.words[2].lower * (1 - 1e-9 if name != "rf" else 0.98)
    for k in (0, 1, 3):
        assert joint.words[k].lower == pytest.approx(alone.words[k].lower, rel=1e-6 if name != "rf" else 0.05)
    (together,) = [entry for entry in joint.per_token if len(entry.tokens) > 1]
    assert together.tokens == LONG and together.radius == pytest.approx(math.sqrt(384))
    if name != "raf":
        assert joint.words[2].tokens == LONG  # and there it pays
        assert joint.delta.shape == (6, 384) and float(joint.delta.norm()) <= math.sqrt(384) * (1 + 1e-6)
    if name == "relu-raf":
        assert attained(phi(), tokens.X, joint) == pytest.approx(joint.lower, rel=1e-9)
    for word in joint.words:
        assert word.upper and word.lower <= word.upper < 2 * word.lower
    assert joint.words[2].upper == together.upper


def test_joint_against_a_dense_search(tokens: ws.Tokens) -> None:
    """Plain projected ascent over the concatenation, through the dense map, finds no more."""
    part = tokens[:9].first_dims(24)
    phi = ws.named_map("relu-raf", 9, 24, seed=2)
    r = ws.word_sensitivity(phi, part, joint=True, random_draws=0)
    assert r.words is not None
    X, pieces = part.X.double(), part.pieces[2]
    base = phi(X)
    best = 0.0
    for start in range(4):
        delta = torch.randn(len(pieces), 24, dtype=torch.float64, generator=torch.Generator().manual_seed(start))
        for _ in range(300):
            delta = (delta * (math.sqrt(24) / delta.norm()).clamp(max=1.0)).detach().requires_grad_(True)
            change = (phi(moved(X, pieces, delta)) - base).norm() / base.norm()
            best = max(best, float(change.detach()))
            (slope,) = torch.autograd.grad(change, delta)
            delta = delta + 0.5 * slope / slope.norm()
    assert r.words[2].lower >= best * 0.99


@pytest.mark.parametrize(
    ("text", "score", "seed", "word"),
    [
        ("unbelievably hi there", "softmax", 0, 0),
        ("I unfriended him", "softmax", 2, 1),
        ("unbelievably hi there", "relu", 1, 0),
    ],
)
def test_joint_is_no_worse_than_going_on_from_the_best_piece(text: str, score: str, seed: int, word: int) -> None:
    """What plain ascent finds in the joint ball when it starts near the optimum of a single piece."""
    tokens = ws.encode(text)
    phi = ws.RandomAttention(score).sample(d=384, seed=seed)
    r = ws.word_sensitivity(phi, tokens, joint=True, random_draws=0, certificate=False)
    alone = ws.word_sensitivity(phi, tokens, list(tokens.pieces[word]), random_draws=0, certificate=False)
    view = phi.view(tokens.X.double(), tokens.pieces[word])
    radius = math.sqrt(384)
    delta = 0.01 * torch.randn(len(view.tokens), 384, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    delta[view.tokens.index(alone.token)] += alone.delta
    best = 0.0
    for step in range(150):
        delta = (delta * (radius / delta.norm()).clamp(max=1.0)).detach().requires_grad_(True)
        value = view.sq_norm(delta)
        best = max(best, float(value.detach()))
        (slope,) = torch.autograd.grad(value, delta)
        delta = delta + 0.3 * 0.98**step * radius * slope / slope.norm()
    assert r.words is not None and r.words[word].lower >= 0.99 * math.sqrt(best) / view.base_norm
    assert r.words[word].lower > 1.01 * alone.lower


def test_special_tokens_on_request(tokens: ws.Tokens) -> None:
    phi = ws.named_map("raf", len(tokens), 384)
    r = ws.word_sensitivity(phi, tokens, special=True, random_draws=0, certificate=False)
    assert [entry.token for entry in r.per_token] == list(range(11))
    assert r.words and len(r.words) == 4
    one = ws.word_sensitivity(phi, tokens, 0, random_draws=0, certificate=False)
    assert one.words == () and one.token == 0
    with pytest.raises(ws.InputError, match="encoded text"):
        ws.word_sensitivity(phi, tokens.X, joint=True)
    with pytest.raises(ws.InputError, match="encoded text"):
        ws.word_sensitivity(phi, tokens.X, special=True)


class TestRaw:
    def test_each_token_has_its_own_radius(self) -> None:
        raw = ws.encode(TEXT, normalize=False)
        phi = ws.named_map("raf", len(raw), 384, seed=1)
        r = ws.word_sensitivity(phi, raw, random_draws=50)
        norms = raw.X.double().norm(dim=1).tolist()
        assert [entry.radius for entry in r.per_token] == pytest.approx(norms[1:-1])
        assert float(r.delta.norm()) <= r.radius * (1 + 1e-6)
        assert attained(phi, raw.X, r) == pytest.approx(r.lower, rel=1e-9)
        assert all(entry.upper and entry.upper >= entry.lower for entry in r.per_token)

    def test_side_by_side_is_one_by_one(self) -> None:
        """Searches with radii of their own that share a batch find what they find alone."""
        raw = ws.encode(TEXT, normalize=False)
        phi = ws.named_map("raf", len(raw), 384, seed=1)
        together = ws.word_sensitivity(phi, raw, random_draws=0, certificate=False)
        for entry in together.per_token[:3]:
            alone = ws.word_sensitivity(phi, raw, entry.token, random_draws=0, certificate=False)
            assert alone.lower == pytest.approx(entry.lower, rel=0.02)

    def test_radius_for_each_token(self, tokens: ws.Tokens) -> None:
        phi = ws.named_map("raf", len(tokens), 384)
        small = ws.word_sensitivity(phi, tokens, [1, 2], radius=[0.1] * 11, random_draws=0)
        assert small.per_token[0].radius == 0.1 and small.lower < 0.5
        with pytest.raises(ws.InputError, match="one for each of the 11 tokens"):
            ws.word_sensitivity(phi, tokens, [1], radius=[1.0, 2.0])
        with pytest.raises(ws.InputError, match="positive"):
            ws.word_sensitivity(phi, tokens, [1], radius=[0.0] * 11)


class TestSubstitution:
    def test_numbers_are_the_definitions(self) -> None:
        before, after = ws.encode("I love her much"), ws.encode("I love her smile")
        phi = ws.named_map("raf", 6, 384, seed=3)
        s = ws.substitution(phi, before, after, ws.random_words(before, 4, 40))
        assert (s.word, s.before, s.after) == (4, "much", "smile")
        assert s.change == ws.change(phi, before, after)
        assert s.size == pytest.approx(float((after.X - before.X)[4].norm()) / math.sqrt(384))
        worst = s.worst.words[0] if s.worst.words else None
        assert (
            worst and worst.upper and s.share == s.change / worst.lower and s.share_at_least == s.change / worst.upper
        )
        assert s.size > 1 and s.share_same_size < s.share
        assert s.random and s.random.draws == 40 and 0 <= (s.above_random or 0) <= 1
        assert s.random.quantiles["0.05"] < s.random.mean < s.random.quantiles["0.95"]

    def test_saved(self, tmp_path: Path) -> None:
        before, after = ws.encode("I love her much"), ws.encode("I love her smile")
        ws.substitution(ws.named_map("raf", 6, 384), before, after).save(tmp_path / "s.json")
        assert '"after": "smile"' in (tmp_path / "s.json").read_text()

    def test_deeper_layers_change_every_row(self) -> None:
        before, after = ws.encode("I love her much", layer=2), ws.encode("I love her smile", layer=2)
        phi = ws.named_map("raf", 6, 384)
        assert (before.X - after.X).norm(dim=1).min() > 0.01
        assert ws.substitution(phi, before, after).change == ws.change(phi, before, after)
        (other,) = ws.random_words(before, 4, 1)
        again = ws.encode(other.text, layer=2)
        assert again.tokens == other.tokens and torch.allclose(again.X, other.X, atol=1e-2)

    def test_random_words(self, tokens: ws.Tokens) -> None:
        others = ws.random_words(tokens, 2, 30, seed=4)
        assert [o.text for o in others] == [o.text for o in ws.random_words(tokens, 2, 30, seed=4)]
        assert [o.text for o in others] != [o.text for o in ws.random_words(tokens, 2, 30, seed=5)]
        for other in others:
            assert other.words[0] == "She" and other.words[2:] == tokens.words[2:]
            assert other.words[1].isalpha() and not other.tokens[2].startswith("##")
            assert torch.allclose(other.X[[0, 1, *range(3, 11)]], tokens.X[[0, 1, *range(3, 11)]], atol=1e-5)
        pieces = ws.random_words(tokens, 3, 3)
        assert all([t.startswith("##") for t in p.tokens[3:9]] == [False] + [True] * 5 for p in pieces)
        assert [o.text for o in others] == [o.text for o in ws.random_words(tokens, "sings", 30, seed=4)]
        for word in (0, 5, "him"):
            with pytest.raises(ws.InputError, match="#1 'She', #2 'sings'"):
                ws.random_words(tokens, word)
        with pytest.raises(ws.InputError, match="no vocabulary"):
            ws.random_words(tokens, 1, encoder=lambda text: torch.ones(1, 1))

    def test_synthetic_words(self) -> None:
        encoder = ws.SyntheticEncoder(d=32, correlation=0.3)
        before, after = ws.encode("a b c", encoder), ws.encode("a z c", encoder)
        s = ws.substitution(ws.named_map("rf", 3, 32), before, after, ws.random_words(before, 2, 20, encoder=encoder))
        assert s.random and s.change > 0

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ("I love her uncharacteristically", "as many pieces"),
            ("I love her", "as many pieces"),
            ("I love her much", "the same to the encoder"),
            ("You love her smile", "differ in 2 words"),
        ],
    )
    def test_what_is_no_substitution(self, other: str, message: str) -> None:
        with pytest.raises(ws.InputError, match=message):
            ws.substitution(ws.named_map("raf", 6, 384), ws.encode("I love her much"), ws.encode(other))


def test_results_with_words_come_back(tokens: ws.Tokens, tmp_path: Path) -> None:
    r = ws.word_sensitivity(ws.named_map("relu-raf", 11, 384), tokens, joint=True)
    r.save(tmp_path / "r.json")
    again = ws.load_result(tmp_path / "r.json")
    assert again.to_dict() == r.to_dict() and again.words == r.words and again.tokens == r.tokens
    assert again.text and again.text["text"] == TEXT and again.text["encoder"] == "minilm"
