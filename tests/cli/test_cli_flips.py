"""`wordsway flip`, and `wordsway measure` with several radii, as a user types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wordsway.cli.main import app
from wordsway.support.digits import three

TEXT = "I love her smile"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output if code else result.stdout


class TestFlip:
    def test_a_word_with_files(self, tmp_path: Path) -> None:
        out, page, picture = tmp_path / "flip.json", tmp_path / "flip.html", tmp_path / "flip.png"
        common = ["flip", TEXT, "--word", "love", "--budget", "quick", "--real-words", "40"]
        shown = run(*common, "--out", str(out), "-o", str(page), "-o", str(picture))
        assert "predicts 'positive'" in shown and "flips at" in shown and "hated" in shown
        saved = json.loads(out.read_text())
        assert saved["format"] == "wordsway.flip-radius/2" and saved["words"][0]["to"] == "negative"
        assert "wordsway flip" not in shown and saved["made"]["versions"]
        assert "How far a word must move" in page.read_text() and picture.read_bytes()[:4] == b"\x89PNG"
        run("report", str(out), "--out", str(tmp_path / "again.html"))
        assert "How far a word must move" in (tmp_path / "again.html").read_text()

    def test_a_small_radius_says_so(self) -> None:
        common = ["flip", TEXT, "--word", "#2", "--budget", "quick", "--real-words", "0", "--radius", "0.01"]
        assert "No move of norm up to 0.01 that changes the prediction was found for: love." in run(*common)
        assert json.loads(run(*common, "--json"))["words"][0]["radius"] is None

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--radius", "0"], "radius must be a positive"),
            (["--model", "minilm"], "no logits"),
            (["--word", "banana"], "not in the text"),
            (["-o", "page.txt"], "ends in .json"),
            (["-o", "picture.gif"], ".png, .pdf or .svg"),
        ],
    )
    def test_errors_are_one_line(self, arguments: list[str], words: str) -> None:
        shown = run("flip", TEXT, *arguments, code=2)
        assert words in shown and len(shown.strip().splitlines()) == 1


class TestRanges:
    def test_all_words_share_a_range(self, tmp_path: Path) -> None:
        out = tmp_path / "ranges.json"
        shown = run("ranges", TEXT, "--out", str(out))
        assert "predicts 'positive'" in shown and shown.count("any one word") == 1 and "For 0 of 4 words" in shown
        saved = json.loads(out.read_text())
        assert saved["format"] == "wordsway.logit_ranges/2" and len(saved["words"]) == 4 and saved["made"]["versions"]
        for word in saved["words"]:
            for low, logit, high in zip(word["low"], saved["logits"], word["high"], strict=True):
                assert low < logit < high and f"{three(low)} to {three(high)}" in shown

    def test_one_word(self) -> None:
        assert "#2" in run("ranges", TEXT, "--word", "love")
        (word,) = json.loads(run("ranges", TEXT, "--word", "love", "--json"))["words"]
        assert word["text"] == "love" and word["flips_never"] is False

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [(["--model", "minilm"], "classifies no texts"), (["--word", "banana"], "not in the text")],
    )
    def test_errors_are_one_line(self, arguments: list[str], words: str) -> None:
        shown = run("ranges", TEXT, *arguments, code=2)
        assert words in shown and len(shown.strip().splitlines()) == 1


class TestProfile:
    def test_of_a_map(self, tmp_path: Path) -> None:
        out, page, picture = tmp_path / "p.json", tmp_path / "p.html", tmp_path / "p.svg"
        common = ["measure", TEXT, "--d", "16", "--radius", "0.01,0.1,1", "--budget", "quick"]
        shown = run(*common, "--out", str(out), "-o", str(page), "-o", str(picture))
        assert "no word can exceed" in shown and "The words differ by a factor of" in shown
        saved = json.loads(out.read_text())
        assert saved["format"] == "wordsway.radius-profile/2" and saved["radii"] == [0.01, 0.1, 1.0]
        assert "The change against the radius" in page.read_text() and "<svg" in picture.read_text()
        made = json.loads(run(*common, "--json", "--word", "love", "--no-certificate"))
        assert len(made["words"]) == 1 and made["words"][0]["upper"] == [None, None, None]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--radius", "a,b"], "--radius takes numbers"),
            (["--radius", "0.1,-1"], "--radius must be a positive number, got -1"),
            (["--radius", ","], "--radius must be a positive number"),
            (["--radius", "0.1,1", "--against", "I hate her smile"], "--against does not go with several radii"),
            (["--radius", "0.1,1", "--watch"], "--watch does not go with several radii"),
            (["--radius", "0.1,1", "--budget", "100"], "not a number"),
            (["-o", "picture.gif"], "--out takes a file that ends in .json, .csv"),
        ],
    )
    def test_errors_are_one_line(self, arguments: list[str], words: str) -> None:
        shown = run("measure", TEXT, *arguments, code=2)
        assert words in shown and len(shown.strip().splitlines()) == 1
