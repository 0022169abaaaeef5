"""What a move does: attention, layers and real words, against their plain definitions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from wordsway.models.moving.attention_weights import all_weights

TEXT = "The food was good, but the waiter was rude."


@pytest.fixture(scope="module")
def tokens() -> ws.Tokens:
    return ws.encode(TEXT)


def measured(phi: Any, tokens: ws.Tokens, **options: Any) -> ws.Sensitivity:
    return ws.word_sensitivity(phi, tokens, budget="quick", certificate=False, random_draws=0, **options)


def explained(result: ws.Sensitivity) -> tuple[ws.WordExplanation, ...]:
    assert result.explained is not None
    return result.explained


class TestAttentionTo:
    """The weight that every token gives to some, against the matrix of weights."""

    @pytest.mark.parametrize("score", ["softmax", "relu", "sparsemax"])
    def test_one_layer(self, score: str, rng: torch.Generator) -> None:
        X = ws.normalize_rows(torch.randn(7, 12, generator=rng, dtype=torch.float64))
        phi = ws.RandomAttention(score=score).sample(12, seed=3)
        logits = X @ phi.W @ X.T / 12**0.5
        assert phi.score is not None
        weights = phi.score.normalize(logits)
        assert torch.allclose(weights.sum(1), torch.ones(7, dtype=torch.float64))
        assert torch.allclose(phi.attention_to(X, [2, 5]), weights[:, [2, 5]].sum(1))

    def test_heads_are_averaged_and_masks_are_kept(self, rng: torch.Generator) -> None:
        X = ws.normalize_rows(torch.randn(6, 8, generator=rng, dtype=torch.float64))
        phi = ws.RandomAttention(heads=2, causal=True).sample(8, seed=1)
        mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
        each = [(X @ W @ X.T / 8**0.5).masked_fill(mask, -torch.inf).softmax(1) for W in phi.Ws]
        found = phi.attention_to(X, [3])
        assert torch.allclose(found, torch.stack(each).mean(0)[:, 3])
        assert (found[:3] == 0).all()

    def test_linear_attention(self, rng: torch.Generator) -> None:
        X = ws.normalize_rows(torch.randn(6, 8, generator=rng, dtype=torch.float64))
        phi = ws.RandomAttention(score="linear").sample(8, seed=1)
        total = sum(phi.attention_to(X, [k]) for k in range(6))
        assert isinstance(total, torch.Tensor) and torch.allclose(total, torch.ones(6, dtype=torch.float64))
        # The map is the weighted mean of the rows, so the weights must give it back.
        weights = torch.stack([phi.attention_to(X, [k]) for k in range(6)], 1)
        assert torch.allclose(weights @ X, phi(X))

    def test_a_transformer(self, rng: torch.Generator) -> None:
        X = ws.normalize_rows(torch.randn(5, 8, generator=rng, dtype=torch.float64))
        phi = ws.RandomTransformer(depth=2, heads=2, norm="none", position="none").sample(8, seed=1)
        q, k = (part.unflatten(1, (2, 4)).transpose(0, 1) for part in (X @ phi.blocks[0].qkv)[:, :16].split(8, 1))
        weights = (q @ k.mT / 4**0.5).softmax(-1).mean(0)
        assert torch.allclose(phi.attention_to(X, [1]), weights[:, 1])
        states = phi.states_of(X)
        assert len(states) == 3 and torch.equal(states[0], X) and torch.allclose(states[-1], phi(X))

    def test_a_pretrained_model(self) -> None:
        phi = ws.PretrainedMap("minilm")
        text = phi.encode("I love her smile")
        weights = all_weights(phi.model, text.X)[0].mean(0).double()
        assert torch.allclose(phi.attention_to(text.X, [4]), weights[:, 4], atol=1e-6)
        assert torch.allclose(phi.states_of(text.X)[-1], phi(text.X).view(len(text), -1), atol=1e-5)

    def test_random_features_have_none(self) -> None:
        phi = ws.RandomFeatures().sample(n=3, d=4, seed=0)
        assert phi.attention_to(torch.ones(3, 4), [0]) is None and phi.states_of(torch.ones(3, 4)) is None


class TestExplain:
    def test_the_move_that_was_found_draws_attention(self, tokens: ws.Tokens) -> None:
        phi = ws.RandomAttention().sample(384, seed=0)
        result = measured(phi, tokens)
        (top,) = explained(ws.explain(phi, tokens, result, 1))
        assert result.top_word is not None and top.word == result.top_word.word
        assert top.attention_before is not None and top.attention_after is not None
        assert sum(top.attention_after) > 5 * sum(top.attention_before)

    def test_the_last_layer_changes_by_what_was_found(self, tokens: ws.Tokens) -> None:
        phi = ws.RandomTransformer(depth=2).sample(384, seed=0)
        result = measured(phi, tokens, token=[2, 4])
        found = explained(ws.explain(phi, tokens, result, 2, replacements=0))
        lowers = {word.word: word.lower for word in result.words or ()}
        assert [each.layers and each.layers[-1] for each in found] == pytest.approx(
            [lowers[each.word] for each in found], rel=1e-6
        )
        assert all(each.replacements == () for each in found)

    @pytest.mark.slow
    def test_a_real_model(self) -> None:
        phi = ws.PretrainedMap("sentiment", "logits")
        tokens = phi.encode(TEXT)
        result = ws.explain(phi, tokens, measured(phi, tokens, token=[4]), 1)
        (good,) = explained(result)
        assert good.word == 4 and good.layers is not None and len(good.layers) == 7
        assert len(good.replacements) == 5 and "200 words tried" in good.tried
        best = good.replacements[0]
        again = phi.encode(TEXT.replace("good", best.text))
        assert best.change == pytest.approx(ws.change(phi, tokens, again), rel=1e-3)
        assert best.prediction in ("positive", "negative") and best.size is not None
        size = float((again.X - tokens.X).double().norm()) / result.per_token[0].radius
        assert best.size == pytest.approx(size, rel=1e-4)


class TestRealWords:
    def test_the_best_word_of_the_whole_vocabulary(self, tokens: ws.Tokens) -> None:
        phi = ws.RandomAttention().sample(384, seed=0)
        result = ws.explain(phi, tokens, measured(phi, tokens, token=[4]), [4])
        (good,) = explained(result)
        assert "21,721 words tried, the whole vocabulary" in good.tried
        changes = [each.change for each in good.replacements]
        assert changes == sorted(changes, reverse=True) and len(changes) == 5
        for each in good.replacements:  # as a user would find out
            again = ws.encode(TEXT.replace("good", each.text))
            assert each.change == pytest.approx(ws.change(phi, tokens, again), rel=1e-4)
            assert each.size == pytest.approx(float((again.X - tokens.X).norm()) / 384**0.5, rel=1e-4)
        others = ws.random_words(tokens, 4, 60, seed=5)
        assert max(ws.change(phi, tokens, other) for other in others) <= changes[0] * (1 + 1e-5)

    def test_behind_the_embedding_layer(self) -> None:
        tokens = ws.encode("I love her smile", layer=2)
        phi = ws.RandomAttention().sample(384, seed=0)
        (smile,) = explained(ws.explain(phi, tokens, measured(phi, tokens, token=[4]), 1))
        best = smile.replacements[0]
        again = ws.encode(f"I love her {best.text}", layer=2)
        assert best.change == pytest.approx(ws.change(phi, tokens, again), rel=1e-4)
        assert "drawn from the vocabulary" in smile.tried

    def test_why_there_are_none(self) -> None:
        tokens = ws.encode("A waitress, unbelievably.")
        phi = ws.RandomAttention().sample(384, seed=0)
        result = ws.explain(phi, tokens, measured(phi, tokens), 5)
        why = {tokens.words[each.word - 1]: each.tried for each in result.explained or () if not each.replacements}
        assert "punctuation" in why[","] and "pieces" in why["unbelievably"]
        synthetic = ws.encode("no such words", "synthetic")
        phi = ws.RandomAttention().sample(768, seed=0)
        (none,) = explained(ws.explain(phi, synthetic, measured(phi, synthetic, token=[0]), 1))
        assert none.replacements == () and "no vocabulary" in none.tried

    def test_a_lazy_map_is_asked_little(self, tokens: ws.Tokens) -> None:
        phi = ws.RandomFeatures().sample(n=len(tokens), d=384, seed=0, lazy=True)
        (good,) = explained(ws.explain(phi, tokens, measured(phi, tokens, token=[4]), 1))
        assert good.replacements and "100 words tried, drawn from the 21,721" in good.tried


class TestWhatIsRefused:
    def test_each_error(self, tokens: ws.Tokens, tmp_path: Path) -> None:
        phi = ws.RandomAttention().sample(384, seed=0)
        result = measured(phi, tokens, token=[4])
        with pytest.raises(ws.InputError, match="word 7 was not measured"):
            ws.explain(phi, tokens, result, [7])
        with pytest.raises(ws.InputError, match="another text"):
            ws.explain(phi, ws.encode("Another text."), result)
        rows = ws.word_sensitivity(phi, tokens.X, 0, budget="quick")
        with pytest.raises(ws.InputError, match=r"encoded text.*ws\.encode"):
            ws.explain(phi, tokens, rows)
        result.save(tmp_path / "r.json")
        with pytest.raises(ws.InputError, match="before it is saved"):
            ws.explain(phi, tokens, ws.load_result(tmp_path / "r.json"))

    def test_what_was_explained_is_saved_and_read(self, tokens: ws.Tokens, tmp_path: Path) -> None:
        phi = ws.RandomAttention().sample(384, seed=0)
        result = ws.explain(phi, tokens, measured(phi, tokens, token=[2, 4]), [4])
        both = ws.explain(phi, tokens, result, [2])
        assert [each.word for each in both.explained or ()] == [2, 4]
        replace(both, made={"command": "wordsway measure"}).save(tmp_path / "r.json")
        again = ws.load_result(tmp_path / "r.json")
        assert again.explained == both.explained and again.made == {"command": "wordsway measure"}


def test_each_word_is_told_as_soon_as_it_is_known(tokens: ws.Tokens) -> None:
    phi, seen = ws.RandomAttention().sample(384, seed=0), []
    result = measured(phi, tokens, each=seen.append)
    assert tuple(seen) == result.per_token
    plain = measured(phi, tokens)
    assert [entry.lower for entry in plain.per_token] == pytest.approx([entry.lower for entry in seen], rel=1e-3)

    def stop(entry: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(phi, tokens, each=stop)
