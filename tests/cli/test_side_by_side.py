"""`wordsway measure` with several models or maps, and `wordsway compare` of results."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app

TEXT = "Dull film"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def words_of(output: str) -> list[Any]:
    return [{k: v for k, v in each.items() if k != "seconds"} for each in json.loads(output)["maps"]]


def test_several_maps_are_the_default_run(tmp_path: Path) -> None:
    same = ("--weights", "2", "--budget", "quick", "--json", "--quiet")
    named = run("measure", TEXT, "--map", "raf", "--map", "rf", *same, "-o", str(tmp_path / "a.json"))
    assert words_of(named) == words_of(run("measure", TEXT, *same))
    shown = run("measure", TEXT, "--map", "raf", "--map", "rf", "--map", "relu-raf", *same[:-2])
    assert "2 draws of the weights, seed 0" in shown and "relu-raf: no two words are separated" in shown
    assert "\u2026" not in shown  # no column is cut off


def test_two_seeds_compared(tmp_path: Path) -> None:
    files = [tmp_path / f"{seed}.json" for seed in (0, 1)]
    for seed, file in enumerate(files):
        ws.compare_draws(TEXT, weights=2, budget=24, seed=seed, random_draws=0).save(file)
    shown = run("compare", *map(str, files), "-o", str(tmp_path / "both.html"), "-o", str(tmp_path / "both.csv"))
    assert "95% interval" in shown and " to " in shown and "seed 0" in shown and "seed 1" in shown
    assert TEXT in shown and "largest relative change" in shown
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert f"<h1>0 and 1 side by side on \u201c{TEXT}\u201d</h1>" in page
    values = json.loads(run("compare", *map(str, files), "--json"))
    order = [(row["key"]["map"], row["key"]["text"]) for row in values["compared_rows"]]
    lines = [line.split() for line in shown.splitlines() if line.startswith((" raf", " rf"))]
    assert [(line[0], line[1]) for line in lines] == order


def test_a_classifier_and_an_encoder() -> None:
    asked = ("measure", TEXT, "--word", "film", "--budget", "quick", "--seed", "0")
    both = json.loads(run(*asked, "--model", "sentiment", "--model", "minilm", "--json", "--quiet"))
    alone = [json.loads(run(*asked, "--model", name, "--json", "--quiet")) for name in ("sentiment", "minilm")]
    (row,) = both["compared_rows"]
    assert row["values"] == [alone[0]["words"][0]["radius"], alone[1]["words"][0]["lower"][0]]
    assert row["difference"] is None and both["same"] is False
    assert "'negative'" in both["sides"][0]["about"] or "'positive'" in both["sides"][0]["about"]
    assert "radius 0.1" in both["sides"][1]["quantity"]


def test_two_encoders_at_a_radius_of_ones_own() -> None:
    models = ("--model", "minilm", "--model", "reinit:minilm")
    shown = run("measure", TEXT, *models, "--word", "film", "--budget", "quick", "--radius", "0.2", "--quiet")
    assert "change at radius 0.2" in shown and "difference" in shown and "1 of 1 word differs" in shown


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["--map", "raf", "--map", "raf"], "the same map twice"),
        (["--map", "raf", "--map", "rf", "--radius", "0.1,1"], "one --map"),
        (["--map", "raf", "--map", "rf", "--token", "1"], "--token asks about one map"),
        (["--map", "drf", "--map", "rf", "--depth", "3"], "drf:depth=3"),
        (["--model", "minilm", "--model", "minilm"], "the same model twice"),
        (["--model", "minilm", "--model", "sentiment", "--weights", "3"], "--weights does not go with several models"),
        (["--model", "minilm", "--model", "sentiment", "--map", "rf"], "--map does not go with several models"),
        (["--model", "minilm", "--model", "sentiment", "--radius", "0.1,1"], "one positive number"),
        (["--word", "Dull", "--word", "film"], "--word takes one value here; it was given 2 times"),
    ],
)
def test_what_does_not_go_together(line: list[str], says: str) -> None:
    assert says in " ".join(run("measure", TEXT, *line, code=2).split())


def test_files_that_cannot_be_compared(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    ws.logit_ranges("sentiment", TEXT).save(file)
    assert "there is no file or folder" in run("compare", str(file), str(tmp_path / "nofile.json"), code=2)
    assert "both are the same file" in run("compare", str(file), str(file), code=2)
    ws.compare_draws(TEXT, weights=1, budget=24).save(tmp_path / "d.json")
    said = run("compare", str(file), str(tmp_path / "d.json"), code=2)
    assert "about proven ranges of logits, another about draws of random maps" in said


def test_help_says_what_is_repeatable() -> None:
    shown = " ".join(run("measure", "--help").split())
    assert "reinit:NAME has random weights. Repeatable." in shown
    assert "reinit:NAME has random weights. Repeatable." not in " ".join(run("layers", "--help").split())
