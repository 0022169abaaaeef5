"""Real words in the place of one: exact against a plain loop over the model, with the filters that were asked for."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from families import CAUSAL, tiny, tokenizer
from wordsway.models.loading.load import open_model
from wordsway.models.moving.candidates import find_candidates
from wordsway.models.moving.map import PretrainedMap
from wordsway.search.guided import largest

TEXT = "The food was good and the staff kind."
WORDS = ["bad", "terrible", "fine", "outstanding", "not", "good", "xylophonically", "splendid"]


def plain(model: Any, text: str) -> torch.Tensor:
    """Mean of the last state by a plain call, as anybody would make it."""
    with torch.no_grad():
        return model(**tokenizer()(text, return_tensors="pt")).last_hidden_state[0].mean(0)


class TestAgainstAPlainLoop:
    def test_words_of_a_list(self) -> None:
        found = ws.substitutions("minilm", TEXT, "good", candidates=WORDS)
        model = open_model("minilm").base
        base = plain(model, TEXT)
        wanted = {
            word: float((plain(model, TEXT.replace("good", word)) - base).norm() / base.norm())
            for word in WORDS
            if word != "good"
        }
        assert {item.after: pytest.approx(item.change, rel=1e-3) for item in found.top} == wanted
        assert [item.after for item in found.top] == sorted(wanted, key=lambda word: -wanted[word])
        assert found.tried[0].exhaustive and found.tried[0].skipped == {"good": "the word itself"}
        assert found.best.text == TEXT.replace("good", found.best.after)

    def test_every_word(self) -> None:
        found = ws.substitutions("minilm", TEXT, candidates=WORDS[:3], top=2)
        assert len(found.tried) == 8 and len(found.top) == 16
        model = open_model("minilm").base
        base = plain(model, TEXT)
        best = max(
            (float((plain(model, TEXT[:a] + word + TEXT[b:]) - base).norm() / base.norm()), TEXT[a:b], word)
            for a, b in ws.encode(TEXT).spans[:-1]
            for word in WORDS[:3]
        )
        assert (found.ranking[0].before, found.ranking[0].after) == best[1:]
        assert found.best.change == pytest.approx(best[0], rel=1e-3)

    @pytest.mark.parametrize("family", CAUSAL)
    def test_a_causal_model_by_its_next_token(self, family: str) -> None:
        model = tiny(family, "causal")
        found = ws.substitutions(model, TEXT, "good", candidates=WORDS[:5], tokenizer=tokenizer())
        assert found.output == "logits"

        def logs(text: str) -> torch.Tensor:
            with torch.no_grad():
                ids = torch.tensor([tokenizer()(text)["input_ids"]])
                return model(input_ids=ids).logits[0, -1].double().log_softmax(0)

        before = logs(TEXT)
        for item in found.top:
            after = logs(item.text)
            assert item.kl == pytest.approx(float((before.exp() * (before - after)).sum()), rel=1e-2, abs=1e-6)
            assert item.prediction == tokenizer().decode([int(after.argmax())]) and item.flips is None

    def test_a_classifier(self) -> None:
        model = tiny("bert", "classifier")
        found = ws.substitutions(model, TEXT, "food", candidates=WORDS, tokenizer=tokenizer(), top=20)
        for item in found.top:
            with torch.no_grad():
                logits = model(**tokenizer()(item.text, return_tensors="pt")).logits[0]
            assert item.prediction == f"LABEL_{int(logits.argmax())}"
            assert item.flips == (item.prediction != found.prediction)
            assert item.probability == pytest.approx(float(logits.softmax(0).max()), rel=1e-3)
        assert found.tried[0].flips == sum(bool(item.flips) for item in found.top)


class TestCandidates:
    @pytest.mark.slow
    def test_whole_words_of_the_vocabulary(self) -> None:
        model = open_model("minilm")
        tokens = PretrainedMap(model).encode(TEXT)
        whole = find_candidates(model, tokens, 3)
        assert len(whole) > 20_000 and all(word.isalpha() for word in whole.words)
        assert "good" not in whole.words and "bad" in whole.words
        pieces = find_candidates(model, tokens, 3, pieces=True)
        assert len(pieces) > len(whole) and any(word.startswith("##") for word in pieces.words)
        index = whole.words.index("bad")
        assert whole.ids[index] == tuple(tokenizer()(TEXT.replace("good", "bad"))["input_ids"])

    def test_progress_is_told_on_the_way(self) -> None:
        told: list[tuple[int, int]] = []
        words = sorted(name for name in tokenizer().get_vocab() if name.isalpha() and len(name) > 3)[:600]
        ws.substitutions("minilm", "Good.", "Good", candidates=words, progress=lambda *now: told.append(now))
        assert told == [(128, 600), (256, 600), (384, 600), (512, 600), (600, 600)]

    def test_similar_words_only(self) -> None:
        near = ws.substitutions("minilm", TEXT, "good", similar=0.5)
        assert {"great", "bad", "nice"} & {item.after for item in near.top}
        assert all(item.similarity >= 0.5 for item in near.top) and near.tried[0].candidates < 100

    def test_lengths(self) -> None:
        same = ws.substitutions("minilm", TEXT, "good", candidates=[*WORDS, "unputdownable"], same_length=True)
        assert "1 token long" in same.tried[0].skipped["unputdownable"]
        other = ws.substitutions("minilm", TEXT, "good", candidates=["unputdownable"])
        assert other.best.after == "unputdownable"
        with pytest.raises(ws.InputError, match="same_length"):
            ws.substitutions("minilm", TEXT, "good", output="last", same_length=False)
        with pytest.raises(ws.InputError, match=r"no candidate.*allow other lengths"):
            ws.substitutions("minilm", "An unputdownable book.", "unputdownable", output="last")
        assert ws.substitutions("minilm", "An unputdownable book.", 2, candidates=["dull"]).best.after == "dull"

    @pytest.mark.slow
    def test_a_word_at_the_start_of_a_decoders_text(self, smollm2: str) -> None:
        model = open_model(smollm2)
        tokens = PretrainedMap(model).encode("Good food and kind staff")
        first, second = (find_candidates(model, tokens, place) for place in (0, 1))
        assert "Bad" in first.words and "bad" in second.words and len(first) > 1000
        for found in (first, second):
            index = len(found) // 2
            place = 0 if found is first else 1
            low, high = tokens.spans[place]
            text = tokens.text[:low] + found.words[index] + tokens.text[high:]
            assert model.encoder.tokenize([text])[0].ids == found.ids[index]

    def test_a_cropped_text(self) -> None:
        with pytest.warns(ws.TextWarning):
            found = ws.substitutions("minilm", TEXT + " It was long ago." * 9, "good", candidates=WORDS, max_tokens=16)
        assert found.best.after != "good" and len(found.top) == 7

    def test_what_cannot_be_asked_for(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"word": "tea"}, "not in the text"),
            ({"candidates": ["good"], "word": "good"}, "the word itself"),
            ({"similar": 1.0, "word": "good"}, "no candidate"),
            ({"search": "clever"}, "exhaustive or guided"),
            ({"budget": "huge"}, "quick, default"),
            ({"top": 0}, "top"),
            ({"candidates": "bad"}, "list of words"),
            ({"candidates": []}, "list of words"),
            ({"output": "logits"}, "neither classifies"),
        ]
        for options, words in cases:
            with pytest.raises(ws.InputError, match=words):
                ws.substitutions("minilm", TEXT, **options)


class TestGuided:
    def test_all_are_tried_where_that_is_allowed(self) -> None:
        asked: list[int] = []
        points = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
        found = largest(points, lambda part: asked.extend(part) or [float(k) for k in part], 20, 0)
        assert asked == list(range(20)) and found[19] == 19.0

    def test_a_smooth_peak_is_found_with_few(self) -> None:
        points = torch.randn(3000, 16, generator=torch.Generator().manual_seed(0))
        peak = points[1234] / points[1234].norm()
        values = (points / points.norm(dim=1, keepdim=True)) @ peak
        asked: list[int] = []

        def evaluate(part: list[int]) -> list[float]:
            asked.extend(part)
            return [float(values[k]) for k in part]

        found = largest(points, evaluate, 300, 5)
        assert len(asked) == len(set(asked)) == len(found) == 300
        assert max(found, key=lambda k: found[k]) == 1234

    @pytest.mark.slow
    def test_real_words(self) -> None:
        """On a real text the guided search, with a tenth of the evaluations, finds what trying all finds."""
        names = [name for name in tokenizer().get_vocab() if name.isalpha() and len(name) > 3]
        words = sorted(names)[::10][:2000]
        for word in ("food", "staff"):
            every = ws.substitutions("minilm", TEXT, word, candidates=words, search="exhaustive")
            few = ws.substitutions("minilm", TEXT, word, candidates=words, search="guided", budget="quick")
            assert every.tried[0].exhaustive and not few.tried[0].exhaustive and few.tried[0].evaluated == 200
            assert few.best.change >= 0.95 * every.best.change
            assert len({i.after for i in few.top} & {i.after for i in every.top}) >= 4

    def test_the_same_seed_finds_the_same(self) -> None:
        words = sorted(name for name in tokenizer().get_vocab() if name.isalpha() and len(name) > 3)[:1000]
        first, again = (
            ws.substitutions("minilm", "Good.", "Good", candidates=words, search="guided", budget="quick", seed=3)
            for _ in range(2)
        )
        assert first.top == again.top


class TestResult:
    def test_table_picture_and_file(self, tmp_path: Path) -> None:
        found = ws.substitutions("minilm", TEXT, "good", candidates=WORDS)
        table = found.to_dataframe()
        assert list(table["after"]) == [item.after for item in found.top]
        axes = found.plot()
        assert len(axes.patches) >= len(found.top)
        found.save(tmp_path / "found.json")
        saved = json.loads((tmp_path / "found.json").read_text())
        assert saved["format"] == "wordsway.substitutions/2" and saved["top"][0]["after"] == found.best.after

    @pytest.mark.slow
    def test_layers(self, tmp_path: Path) -> None:
        profile = ws.layer_profile("minilm", TEXT, "good", budget="quick", noise_draws=10)
        assert profile.layers == tuple(range(7))
        assert profile.replacement is not None and profile.real_word is not None and profile.replaced is not None
        for layer in range(1, 7):
            assert profile.searched[layer] >= max(profile.attracting[layer], profile.real_word[layer])
            assert profile.searched[layer] > profile.noise[layer]
        for curve in (profile.searched, profile.attracting, profile.real_word):
            assert curve[0] == pytest.approx(profile.noise[0], rel=1e-4)
        assert list(profile.to_dataframe().columns)[:3] == ["layer", "searched", "attracting"]
        assert len(profile.plot().lines) == 5
        profile.save(tmp_path / "layers.json")
        assert json.loads((tmp_path / "layers.json").read_text())["word_text"] == "good"
        # That word itself, by a plain run of the model on the new text.
        model = open_model("minilm").base
        with torch.no_grad():
            states = [
                model(**tokenizer()(text, return_tensors="pt"), output_hidden_states=True).hidden_states
                for text in (TEXT, TEXT.replace("good", profile.replacement))
            ]
        for layer in range(7):
            old, new = states[0][layer], states[1][layer]
            assert float((new - old).norm() / old.norm()) == pytest.approx(profile.replaced[layer], rel=1e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize("at", ["embeddings", "word-embeddings"])
    def test_layers_of_a_decoder(self, at: str) -> None:
        model = tiny("llama", "causal")
        options: dict[str, Any] = {"at": at, "budget": "quick", "noise_draws": 5, "tokenizer": tokenizer()}
        profile = ws.layer_profile(model, TEXT, 4, head=2, **options)
        assert len(profile.searched) == 4 and profile.head == 2
        assert all(profile.searched[k] >= profile.attracting[k] for k in (1, 2, 3))
        with pytest.raises(ws.InputError, match="heads 1 to 3"):
            ws.layer_profile(model, TEXT, 4, head=4, **options)

    @pytest.mark.slow
    def test_punctuation_has_no_real_word(self) -> None:
        profile = ws.layer_profile("minilm", "Good.", 2, budget="quick", noise_draws=5)
        assert profile.word_text == "." and profile.replacement is None
        found = ws.substitutions("minilm", "Good.", ".", budget="quick", search="guided")
        assert found.top == () and found.tried[0].evaluated == 200
        with pytest.raises(ws.InputError, match="punctuation"):
            _ = found.best

    @pytest.mark.slow
    def test_layers_of_a_word_of_several_pieces(self) -> None:
        profile = ws.layer_profile("minilm", "An unputdownable book.", 2, budget="quick", noise_draws=5)
        assert len(profile.tokens) > 1 and profile.replacement is None
        assert all(profile.searched[k] > profile.noise[k] for k in range(1, 7))


class TestPrompts:
    def test_against_plain_calls(self) -> None:
        model = tiny("gpt2", "causal")
        compared = ws.compare_prompts(model, "The food was good", "The food was bad", tokenizer=tokenizer(), top=3)
        assert not compared.chat and len(compared.top_before) == 3 and compared.kl > 0
        with torch.no_grad():
            ids = torch.tensor([tokenizer()("The food was good")["input_ids"]])
            for _ in range(40):
                ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
                if int(ids[0, -1]) == 102:
                    break
        start = len(tokenizer()("The food was good")["input_ids"])
        assert compared.answer_before == tokenizer().decode(ids[0, start:], skip_special_tokens=True).strip()

    def test_refusals(self) -> None:
        for model, texts, words in (
            ("minilm", ("a b", "a c"), "does not predict"),
            ((tiny("gpt2", "causal"), tokenizer()), ("a b", "a  b"), "the same to the model"),
        ):
            with pytest.raises(ws.InputError, match=words):
                ws.compare_prompts(model, *texts)
        with pytest.raises(ws.InputError, match="no chat template"):
            ws.compare_prompts((tiny("gpt2", "causal"), tokenizer()), "a b", "a c", chat=True)

    @pytest.mark.slow
    def test_a_real_chat_model(self, smollm2: str) -> None:
        review = "Is this review positive or negative? The film was {}."
        options: dict[str, Any] = {"answer_tokens": 12}
        compared = ws.compare_prompts(smollm2, review.format("wonderful"), review.format("dreadful"), **options)
        assert compared.chat and compared.kl > 0 and compared.answer_before
        assert sum(one for _, one, _ in compared.top_before) <= 1
        plain = ws.compare_prompts(smollm2, "It is good", "It is bad", chat=False, answer_tokens=0)
        assert plain.answer_after == "" and not plain.chat
        with pytest.raises(ws.InputError, match="special token"):
            ws.compare_prompts(smollm2, "Hello <|im_end|> you", "Hello")
