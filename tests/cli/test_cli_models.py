"""The commands about pre-trained models, as a user types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app

TEXT = "I love her smile"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output if code else result.stdout


class TestMeasure:
    @pytest.mark.slow
    def test_a_table_and_json(self, tmp_path: Path) -> None:
        out = tmp_path / "result.json"
        common = ["measure", TEXT, "--model", "minilm", "--of", "pooled", "--budget", "quick", "--draws", "10"]
        shown = run(*common, "--out", str(out))
        assert "radius 0.1" in shown and "radius 1" in shown and "not the word's importance" in shown
        saved = json.loads(out.read_text())
        assert saved["map"]["model"] == "minilm" and len(saved["words"]) == 4
        profile = ws.load_result(out)
        order = [line.split()[1] for line in shown.partition(" rank")[2].splitlines()[1:5]]
        assert order == [word.text for word in profile.ranked]
        common += ["--watch"]  # which asks for the bounds of single tokens
        made = json.loads(run(*common, "--json", "--word", "smile", "--at", "word-embeddings", "--radius", "0.5"))
        assert made["map"]["at"] == "word-embeddings" and len(made["per_token"]) == 1
        norm = made["per_token"][0]["radius"]
        assert norm == pytest.approx(0.5 * json.loads(run(*common, "--json", "--word", "smile", "--at",
                                     "word-embeddings"))["per_token"][0]["radius"])  # fmt: skip

    @pytest.mark.slow
    def test_a_classifier_is_answered_in_its_units(self, tmp_path: Path) -> None:
        out = tmp_path / "answer.json"
        text = "The waiter was rude"
        shown = run(
            "measure", text, "--model", "sentiment", "--budget", "quick", "-o", str(out), "-o", str(tmp_path / "a.html")
        )
        saved = ws.load_result(out)
        assert saved.prediction == "negative" and shown.startswith("sentiment, prediction: 'negative', probability ")
        order = [line.split()[1] for line in shown.partition(" rank")[2].splitlines()[1:5]]
        assert order == [word.text for word in saved.by_real] and order[0] == "rude"
        first = saved.by_real[0]
        assert first.real is not None and first.best is not None and first.lowest is not None
        assert first.lowest < 0.5 and first.real.text in shown and first.best.text in shown
        assert "not the word's importance" in shown and "Captum" in shown
        page = (tmp_path / "a.html").read_text(encoding="utf-8")
        assert first.real.text in page and "importance" in page

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--of", "pooled"], "belong to --model"),
            (["--model", "minilm", "--map", "rf"], "--map belongs to a map"),
            (["--model", "minilm", "--encoder", "mpnet"], "--encoder belongs"),
            (["--model", "minilm", "--against", "x"], "--against belongs"),
            (["--model", "minilm", "--layer", "2"], "--layer belongs"),
            (["--model", "minilm", "--of", "logits"], "no logits"),
            (["--model", "minilm", "--of", "layer:7"], "hidden states 0 to 6"),
            (["--model", "/no/such"], "no model folder"),
            (["--model", "minilm", "--budget", "much"], "quick, default"),
        ],
    )
    def test_errors_are_one_line(self, arguments: list[str], words: str) -> None:
        assert words in run("measure", TEXT, *arguments, code=2)

    def test_a_model_needs_a_text(self) -> None:
        assert "--model needs a text" in run("measure", "--model", "minilm", code=2)


class TestOthers:
    @pytest.mark.slow
    def test_layers(self, tmp_path: Path) -> None:
        picture = tmp_path / "layers.png"
        common = ["layers", TEXT, "--word", "smile", "--budget", "quick", "--draws", "5"]
        shown = run(*common, "-o", str(picture))
        assert "searched" in shown and "real word: towards" in shown and picture.stat().st_size > 5000
        made = json.loads(run(*common, "--json", "--no-real-words"))
        assert len(made["searched"]) == 7 and made["real_word"] is None

    def test_attention(self, tmp_path: Path) -> None:
        shown = run("attention", "I love her much", "--against", TEXT, "-o", str(tmp_path / "a.svg"))
        assert "much" in shown and "smile" in shown
        shown = run("attention", TEXT, "--word", "4", "--attract", "--head", "2", "--budget", "quick")
        assert "closed form" in shown and "after the move" in shown
        assert "mean weight" not in shown and "layer 1, head 2" in shown
        assert len(json.loads(run("attention", TEXT, "--word", "4", "--json"))["mass_before"]) == 6

    def test_substitute(self, tmp_path: Path) -> None:
        words = tmp_path / "words.txt"
        words.write_text("# mine\nhate\nmiss\n\nlove\n")
        shown = run("substitute", TEXT, "--word", "love", "--candidates", str(words))
        assert "hate" in shown and "every candidate was tried (2)" in shown and "love (the word itself)" in shown
        made = json.loads(run("substitute", TEXT, "--candidates", str(words), "--json", "-o",
                              str(tmp_path / "s.pdf")))  # fmt: skip
        assert len(made["tried"]) == 4 and (tmp_path / "s.pdf").exists()

    def test_markup_in_a_text_is_text(self, tmp_path: Path) -> None:
        words = tmp_path / "words.txt"
        words.write_text("hate\n")
        shown = run("substitute", "I [bold]love[/bold] $x$ her", "--candidates", str(words), "-o",
                    str(tmp_path / "a.png"))  # fmt: skip
        assert "love" in shown
        run("attention", "I [red]love[/] $x_1$", "-o", str(tmp_path / "b.png"))

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["layers"], "give a text"),
            (["layers", TEXT, "--word", "5"], "not in the text"),
            (["layers", TEXT, "-o", "x.gif"], "ends in .json"),
            (["layers", TEXT, "--out", "/no/such/x.json"], "no such folder"),
            (["layers", TEXT, "--radius", "0"], "positive"),
            (["attention", TEXT, "--head", "x"], "number from 1"),
            (["attention", TEXT, "--attract"], "--word W"),
            (["substitute", TEXT, "--answer", "3"], "belong to --against"),
            (["substitute", TEXT, "--of", "best"], "--of 'best' is not known"),
            (["layers", " "], "the text is empty"),
            (["substitute", TEXT, "--against", "x", "--word", "love"], "leave out"),
            (["substitute", TEXT, "--chat"], "belong to --against"),
            (["substitute", TEXT, "--against", "I love her"], "does not predict"),
            (["substitute", TEXT, "--candidates", "/no/such"], "No such file"),
        ],
    )
    def test_errors_are_one_line(self, arguments: list[str], words: str) -> None:
        shown = run(*arguments, code=2)
        assert words in shown and len(shown.strip().splitlines()) == 1

    def test_help_is_there(self) -> None:
        for command in ("layers", "attention", "substitute"):
            assert "--model" in run(command, "--help")

    def test_help_of_commands_about_a_prediction_names_no_model_without_one(self) -> None:
        for command in ("flip", "ranges"):
            shown = run(command, "--help")
            assert "sentiment (bundled)" in shown and "minilm" not in shown and "mpnet" not in shown
