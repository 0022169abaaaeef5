"""Real models as encoders: hidden states, words, special tokens, padding, limits."""

import copy
import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import wordsway as ws
from wordsway.models.loading.load import load_encoder
from wordsway.models.loading.locate import locate
from wordsway.models.running.checks import check_encoder
from wordsway.models.running.encoder import crop
from wordsway.models.running.hidden_states import PretrainedEncoder

TEXTS = ["I love her smile", "The waiter was uncharacteristically rude, and the soup cold!", "No."]


@pytest.fixture(scope="module")
def minilm() -> PretrainedEncoder:
    return load_encoder(locate("minilm"), "cpu")


def fresh(encoder: PretrainedEncoder) -> tuple[Any, Any]:
    """A model and a tokenizer that a test may change."""
    return copy.deepcopy(encoder.model), copy.deepcopy(encoder.tokenizer)


def reference(encoder: PretrainedEncoder, text: str) -> tuple[torch.Tensor, ...]:
    """Hidden states by a plain call of the model, as anybody would make it."""
    inputs = encoder.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        return encoder.model(**inputs, output_hidden_states=True).hidden_states


def check_every_layer(encoder: PretrainedEncoder, name: Any, layers: list[int]) -> None:
    for text in TEXTS:
        states = reference(encoder, text)
        assert len(states) == encoder.layers + 1
        for layer in layers:
            X = ws.encode(text, name, layer=layer, normalize=False).X
            gap = (X - states[layer][0]).norm(dim=1) / states[layer][0].norm(dim=1)
            assert float(gap.max()) < 1e-4


def check_batches(encoder: PretrainedEncoder, name: Any, layers: list[int]) -> None:
    for layer in layers:
        together = ws.encode(TEXTS, name, layer=layer, normalize=False, cache=False)
        for text, tokens in zip(TEXTS, together, strict=True):
            X = ws.encode(text, name, layer=layer, normalize=False).X
            assert float(((tokens.X - X).norm(dim=1) / X.norm(dim=1)).max()) < 1e-3
            assert tokens.text == text


class TestMinilm:
    def test_every_hidden_state_is_the_models(self, minilm: PretrainedEncoder) -> None:
        check_every_layer(minilm, "minilm", list(range(7)))

    def test_layer_0_is_the_embedding_layer(self, minilm: PretrainedEncoder) -> None:
        tokens = ws.encode(TEXTS[0], normalize=False)
        with torch.no_grad():
            expected = minilm.model.embeddings(torch.tensor([tokens.ids]))[0]
        assert torch.allclose(tokens.X, expected, atol=1e-6)

    def test_layers_after_the_one_asked_for_do_not_run(self, minilm: PretrainedEncoder) -> None:
        ran = []
        hooks = [block.register_forward_hook(lambda *_, k=k: ran.append(k)) for k, block in enumerate(minilm.blocks)]
        try:
            ws.encode(TEXTS[0], layer=0)
            assert ran == []
            ws.encode(TEXTS[0], layer=2)
            assert ran == [0, 1]
        finally:
            for hook in hooks:
                hook.remove()

    def test_a_batch_is_its_texts(self, minilm: PretrainedEncoder) -> None:
        check_batches(minilm, "minilm", [0, 1, 6])

    def test_rows_are_rescaled_unless_raw(self) -> None:
        tokens, raw = ws.encode(TEXTS[0]), ws.encode(TEXTS[0], normalize=False)
        assert torch.allclose(tokens.X.norm(dim=1), torch.tensor(math.sqrt(384)), rtol=1e-6)
        assert not torch.allclose(raw.X.norm(dim=1), raw.X.norm(dim=1)[:1], rtol=1e-2)
        assert torch.allclose(ws.normalize_rows(raw.X), tokens.X)
        assert tokens.normalized and not raw.normalized

    def test_words_pieces_and_special_tokens(self) -> None:
        tokens = ws.encode(TEXTS[1])
        assert tokens.tokens[0] == "[CLS]" and tokens.tokens[-1] == "[SEP]"
        assert tokens.special.tolist() == [True] + [False] * (len(tokens) - 2) + [True]
        assert tokens.words[:4] == ("The", "waiter", "was", "uncharacteristically")
        assert [tokens.tokens[k] for k in tokens.pieces[3]] == ["un", "##cha", "##rac", "##ter", "##istic", "##ally"]
        assert tokens.word_ids[0] is None and tokens.word_ids[-1] is None
        assert all(tokens.text[slice(*span)] == word for span, word in zip(tokens.spans, tokens.words, strict=True))

    def test_what_looks_like_a_special_token_is_text(self) -> None:
        tokens = ws.encode("stop [SEP] go [MASK]")
        assert tokens.tokens.count("[SEP]") == 1 and "[MASK]" not in tokens.tokens
        assert tokens.words == ("stop", "[", "SEP", "]", "go", "[", "MASK", "]")

    def test_limit_names_the_option_and_cropping_is_loud(self) -> None:
        long = "word " * 600
        with pytest.raises(ws.InputError, match=r"602 tokens.*at most 512.*--max-tokens 512"):
            ws.encode(long)
        with pytest.warns(ws.TextWarning, match="kept only 512 of the text's 602 tokens"):
            tokens = ws.encode(long, max_tokens=512)
        assert len(tokens) == 512 and tokens.tokens[-1] == "[SEP]"
        with pytest.raises(ws.InputError, match="at most 512"):
            ws.encode(long, max_tokens=600)
        with pytest.raises(ws.InputError, match="leaves no room"):
            ws.encode(long, max_tokens=2)
        assert len(ws.encode("word " * 510)) == 512

    def test_cropped_context_is_what_the_model_sees(self) -> None:
        with pytest.warns(ws.TextWarning):
            cropped = ws.encode("one two three four five", layer=3, max_tokens=5)
        assert torch.allclose(cropped.X, ws.encode("one two three", layer=3).X, atol=1e-4)

    def test_unknown_words_are_named(self) -> None:
        with pytest.warns(ws.TextWarning, match="does not know.*😀"):
            ws.encode("good 😀 day")

    @pytest.mark.parametrize(
        ("text", "message"),
        [("", "empty"), (" \n\t", "empty"), ("\x01\x02", "no words"), ("a\ud800b", "surrogate")],
    )
    def test_bad_texts(self, text: str, message: str) -> None:
        with pytest.raises(ws.InputError, match=message):
            ws.encode(text)
        with pytest.raises(ws.InputError, match=f"text 1 .*{message}"):
            ws.encode(["good", text])

    def test_bad_arguments(self) -> None:
        with pytest.raises(ws.InputError, match="hidden states 0 to 6"):
            ws.encode("a text", layer=7)
        with pytest.raises(ws.InputError, match="max_tokens"):
            ws.encode("a text", max_tokens=0)
        assert ws.encode([]) == []


class TestSmollm2:
    @pytest.mark.slow
    def test_every_hidden_state_is_the_models(self, smollm2: str) -> None:
        encoder = load_encoder(locate(smollm2), "cpu")
        check_every_layer(encoder, smollm2, [0, 1, 15, 29, 30])
        check_batches(encoder, smollm2, [0, 30])
        assert encoder.layers == 30 and encoder.limit == 8192

    @pytest.mark.slow
    def test_words(self, smollm2: str) -> None:
        tokens = ws.encode("I love her uncharacteristically big smile! 😀 你好 <|im_start|> مرحبا", smollm2)
        assert not tokens.special.any()
        assert tokens.words[:7] == ("I", "love", "her", "uncharacteristically", "big", "smile", "!")
        assert len(tokens.pieces[3]) == 3
        assert "😀" in tokens.words and "你好" in tokens.words and "مرحبا" in tokens.words
        assert "<|im_start|>" not in tokens.tokens

    @pytest.mark.slow
    def test_sensitivity_of_its_words(self, smollm2: str) -> None:
        tokens = ws.encode("I love her smile", smollm2)
        r = ws.word_sensitivity(ws.named_map("raf", 4, 576), tokens)
        assert r.words is not None and [word.text for word in r.words] == ["I", "love", "her", "smile"]
        others = ws.random_words(tokens, 4, 5, encoder=smollm2)
        assert all(other.tokens[3].startswith("Ġ") and other.tokens[:3] == tokens.tokens[:3] for other in others)


@pytest.mark.slow
def test_mpnet(mpnet: str) -> None:
    encoder = load_encoder(locate(mpnet), "cpu")
    check_every_layer(encoder, mpnet, [0, 1, 12])
    check_batches(encoder, mpnet, [0, 12])
    assert encoder.limit == 512 and ws.encode(TEXTS[0], mpnet).X.shape == (6, 768)
    assert len(ws.encode("word " * 510, mpnet)) == 512


@pytest.mark.slow
def test_tinyllama(tinyllama: str) -> None:
    encoder = load_encoder(locate(tinyllama), "cpu")
    check_every_layer(encoder, tinyllama, [0, 1, 22])
    tokens = ws.encode("I love her uncharacteristically big smile, 你好!", tinyllama)
    assert tokens.words[:6] == ("I", "love", "her", "uncharacteristically", "big", "smile")


class TestLiveModels:
    @pytest.mark.parametrize("side", ["left", "right"])
    def test_padding_on_either_side(self, minilm: PretrainedEncoder, side: str) -> None:
        model, tokenizer = fresh(minilm)
        tokenizer.padding_side = side
        encoded = ws.encode(TEXTS, model, tokenizer=tokenizer, layer=6, normalize=False)
        for text, tokens in zip(TEXTS, encoded, strict=True):
            assert torch.allclose(tokens.X, reference(minilm, text)[6][0], atol=1e-3)

    def test_a_pair_and_a_model_with_a_head(self, minilm: PretrainedEncoder) -> None:
        from transformers import BertForSequenceClassification

        model, tokenizer = fresh(minilm)
        classifier = BertForSequenceClassification(model.config).eval()
        classifier.bert.load_state_dict(model.state_dict(), strict=False)
        tokens = ws.encode(TEXTS[0], (classifier, tokenizer), layer=4)
        assert torch.allclose(tokens.X, ws.encode(TEXTS[0], layer=4).X, atol=1e-4)

    def test_a_model_is_checked_once_and_not_kept_alive(
        self, minilm: PretrainedEncoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model, tokenizer = fresh(minilm)
        first = ws.encode(TEXTS, model, tokenizer=tokenizer, layer=2)
        with monkeypatch.context() as patch:
            patch.setattr("wordsway.models.loading.load.check_encoder", lambda _: pytest.fail("checked again"))
            again = ws.encode(TEXTS, model, tokenizer=tokenizer, layer=2)
        assert all(torch.equal(a.X, b.X) for a, b in zip(first, again, strict=True))
        gone = weakref.ref(model)
        del model
        gc.collect()
        assert gone() is None

    def test_training_mode_is_refused(self, minilm: PretrainedEncoder) -> None:
        model, tokenizer = fresh(minilm)
        with pytest.raises(ws.InputError, match=r"model\.eval\(\)"):
            ws.encode("a text", model.train(), tokenizer=tokenizer)

    def test_a_tokenizer_is_needed(self, minilm: PretrainedEncoder) -> None:
        with pytest.raises(ws.InputError, match="tokenizer"):
            ws.encode("a text", minilm.model)
        with pytest.raises(ws.InputError, match="live"):
            ws.encode("a text", "minilm", tokenizer=minilm.tokenizer)
        with pytest.raises(ws.InputError, match="by name"):
            ws.encode("a text", fresh(minilm), cache=True)

    def test_a_tokenizer_of_another_model_is_refused(self, minilm: PretrainedEncoder) -> None:
        from transformers import BertConfig, BertModel

        small = BertModel(BertConfig(vocab_size=100, hidden_size=24, num_hidden_layers=1, num_attention_heads=2)).eval()
        with pytest.raises(ws.InputError, match="only 100 embeddings"):
            ws.encode("a text", small, tokenizer=minilm.tokenizer)
        with pytest.raises(ws.InputError, match="Linear is not a model"):
            ws.encode("a text", torch.nn.Linear(3, 3), tokenizer=minilm.tokenizer)
        with pytest.raises(ws.InputError, match="not to a function"):
            ws.encode("a text", lambda text: torch.ones(2, 2), tokenizer=minilm.tokenizer)

    def test_a_model_that_treats_embeddings_otherwise_is_refused(self, minilm: PretrainedEncoder) -> None:
        model, tokenizer = fresh(minilm)
        forward = model.embeddings.forward

        def scaled(input_ids: Any = None, **others: Any) -> Any:
            out = forward(input_ids=input_ids, **others)
            return out if input_ids is None else 2 * out

        model.embeddings.forward = scaled
        with pytest.raises(ws.InputError, match="inputs_embeds"):
            ws.encode("a text", model, tokenizer=tokenizer)

    def test_a_model_that_ignores_the_mask_is_refused(self, minilm: PretrainedEncoder) -> None:
        model, tokenizer = fresh(minilm)
        model.register_forward_pre_hook(
            lambda module, arguments, keywords: (arguments, {**keywords, "attention_mask": None}), with_kwargs=True
        )
        with pytest.raises(ws.InputError, match="padded"):
            ws.encode("a text", model, tokenizer=tokenizer)

    def test_blocks_that_are_not_the_hidden_states_fall_back_to_whole_runs(self, minilm: PretrainedEncoder) -> None:
        model, tokenizer = fresh(minilm)
        encoder = PretrainedEncoder(model, tokenizer)
        encoder.blocks = torch.nn.ModuleList(reversed(list(encoder.blocks)))
        assert check_encoder(encoder).blocks is None
        (_, tokens), *_ = encoder.embed([TEXTS[0]], 2, None)
        assert torch.allclose(tokens.X, ws.encode(TEXTS[0], layer=2, normalize=False).X, atol=1e-5)


class TestWithoutAModel:
    def test_synthetic_words_keep_their_rows(self) -> None:
        tokens = ws.encode("the cat and the dog", ws.SyntheticEncoder(d=64, seed=3))
        assert tokens.words == ("the", "cat", "and", "the", "dog") and tokens.X.shape == (5, 64)
        assert torch.equal(tokens.X[0], tokens.X[3]) and not torch.equal(tokens.X[0], tokens.X[1])
        other = ws.encode("a dog", ws.SyntheticEncoder(d=64, seed=3))
        assert torch.equal(other.X[1], tokens.X[4])

    @pytest.mark.parametrize("rho", [0.2, 0.8])
    def test_correlated_rows_have_that_cosine(self, rho: float) -> None:
        X = ws.synthetic_tokens(60, 4000, seed=1, correlation=rho) / math.sqrt(4000)
        cosines = (X @ X.T)[~torch.eye(60, dtype=torch.bool)]
        assert abs(float(cosines.mean()) - rho) < 0.04
        words = ws.encode("one two three four five six", ws.SyntheticEncoder(4000, rho)).X / math.sqrt(4000)
        assert abs(float((words @ words.T)[~torch.eye(6, dtype=torch.bool)].mean()) - rho) < 0.06

    def test_names(self) -> None:
        assert ws.encode("two words", "synthetic").X.shape == (2, 768)
        shared = ws.encode("two words", "correlated")
        assert float(shared.X[0] @ shared.X[1]) / 768 > 0.3

    def test_functions(self) -> None:
        rows = torch.randn(3, 5, dtype=torch.float64)
        assert ws.encode("one two three", lambda text: rows).words == ("one", "two", "three")
        named = ws.encode("one two", lambda text: (["on", "e", "two"], rows))
        assert named.tokens == ("on", "e", "two") and named.offsets == ((0, 2), (2, 3), (4, 7))
        assert ws.encode("one", lambda text: rows, normalize=False).words == ("row 0", "row 1", "row 2")
        with pytest.raises(ws.InputError, match="2 tokens but 3 rows"):
            ws.encode("one two", lambda text: (["one", "two"], rows))
        with pytest.raises(ws.InputError, match="NaN"):
            ws.encode("one", lambda text: rows * math.nan)

    @pytest.mark.parametrize("value", [None, 3, object()])
    def test_what_is_no_encoder(self, value: Any) -> None:
        with pytest.raises(ws.InputError, match="encoder must be"):
            ws.encode("a text", value)


class TestTokens:
    def test_the_papers_cropping(self) -> None:
        tokens = ws.encode(TEXTS[1])
        part = tokens[:6].first_dims(100)
        assert part.X.shape == (6, 100)
        assert torch.allclose(part.X.norm(dim=1), torch.tensor(10.0))
        raw = ws.encode(TEXTS[1], normalize=False)
        assert torch.allclose(ws.normalize_rows(raw.X[:6, :100]), part.X, atol=1e-5)
        assert torch.equal(raw[:6].first_dims(100).X, raw.X[:6, :100])

    def test_a_cut_word_keeps_its_pieces(self) -> None:
        part = ws.encode(TEXTS[1])[:6]
        assert part.words == ("The", "waiter", "was", "uncha") and part.pieces[3] == (4, 5)
        later = ws.encode(TEXTS[1])[2:5]
        assert later.words == ("waiter", "was", "un") and later.word_ids == (0, 1, 2)

    @pytest.mark.parametrize("cut", [lambda t: t[::2], lambda t: t[9:3]])
    def test_other_cuts_are_errors(self, cut: Callable[[Any], Any]) -> None:
        with pytest.raises(ws.InputError):
            cut(ws.encode(TEXTS[0]))

    def test_too_many_dims(self) -> None:
        with pytest.raises(ws.InputError, match="384"):
            ws.encode(TEXTS[0]).first_dims(385)


def test_crop_keeps_special_tokens() -> None:
    special = [True, False, False, False, True]
    assert crop(5, special, 4) == [0, 1, 2, 4] and crop(5, special, 9) == [0, 1, 2, 3, 4]
