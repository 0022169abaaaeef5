"""Tables that `wordsway measure` prints about a model's answer and about many texts, at the width of a terminal."""

import re
from dataclasses import replace

import pytest

import wordsway as ws
from wordsway.cli.show_answers import prediction_tables
from wordsway.cli.show_texts import show_corpus
from wordsway.measures.flip_radii import FlipRadii, RealChange, RealFlip, WordFlip

LONG = ("internationalization", " Copenhagen", "stabilization")


def answer(count: int, flipped: str, to: str, best: str) -> FlipRadii:
    """An answer about `count` words, with these names in its columns."""
    real = RealFlip(flipped, 0.1234, 1.0, to)
    word = WordFlip(
        1, "place", (0, 1), (0,), 0, 1.0, 0.234, 0.1, to, 0.0, 0.0, None, real, 100, None, 1,
        best=RealChange(best, 0.567, to),
    )  # fmt: skip
    words = tuple(replace(word, word=k + 1) for k in range(count))
    return FlipRadii(" Oslo", 0.9, 1.0, words, {"map": "pretrained"}, None, 4, 0, 1.0, "plain", "0", kind="next token")


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_an_answer_that_fits_loses_nothing(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    prediction_tables(answer(12, *LONG))
    shown = capsys.readouterr().out
    assert "\u2026" not in shown and shown.count(" rank word ") == (2 if columns == 80 else 1)
    assert all(shown.count(name.strip()) == (24 if "hagen" in name else 12) for name in LONG)
    assert shown.count("0.123") == shown.count("0.567") == shown.count("0.234") == shown.count("(1-12)") == 12
    assert all(len(line.rstrip()) <= columns for line in shown.splitlines() if re.match(r" \d+", line))


def test_numbers_are_whole_where_names_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    prediction_tables(answer(12, *(name * 3 for name in LONG)))
    shown = capsys.readouterr().out
    assert "\u2026" in shown
    assert shown.count("0.123") == shown.count("0.567") == shown.count("0.234") == shown.count("(1-12)") == 12


@pytest.mark.parametrize(("columns", "letters"), [(80, 30), (120, 43), (50, 9)])
def test_texts_of_a_table_take_the_room_there_is(
    columns: int, letters: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = "The tower stood behind a row of plane trees"
    row = {"subject": "m", "text_number": 1, "word": 1, "word_text": "tower", "word_kind": "content", "change": 0.5,
           "relative": 1.0, "fall": 0.25, "probability": 0.9, "prediction": "positive", "flips": False,
           "radius": 0.1}  # fmt: skip
    show_corpus(ws.Corpus(("m",), (text,), "step", (row, {**row, "word": 2, "word_text": "stood"})))
    assert text[:letters] in capsys.readouterr().out


def test_the_median_of_two_texts_lies_between_them(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"subject": "m", "word": 1, "word_text": "a", "word_kind": "function", "change": 0.5, "relative": 1.0,
           "probability": 0.9, "prediction": " the", "flips": False, "radius": 0.1}  # fmt: skip
    rows = tuple({**row, "text_number": k, "fall": fall} for k, fall in enumerate((0.1, 0.2), 1))
    show_corpus(ws.Corpus(("m",), ("a", "a"), "step", rows))
    shown = capsys.readouterr().out
    assert "median 0.150, range 0.100 to 0.200" in shown and "' the'" in shown


def flipped_texts(count: int, real_word: str) -> ws.Corpus:
    """Make a table of texts, each flipped by a long word in the place of a long one."""
    row = {"subject": "m", "word": 1, "word_text": "incomprehensible", "word_kind": "content", "rank": 1,
           "prediction": "positive", "probability": 0.75, "radius": 1.0, "flips_at": 0.123, "flips_to": "negative",
           "real_word": real_word, "real_distance": 0.567}  # fmt: skip
    rows = tuple({**row, "text_number": k} for k in range(1, count + 1))
    return ws.Corpus(("m",), ("an incomprehensible film",) * count, "quick", rows)


@pytest.mark.parametrize("real_word", ["dull", "understandable", "comprehensible and more"])
def test_the_word_that_flips_a_text_is_whole_at_80_columns(
    real_word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_corpus(flipped_texts(20, real_word))
    shown = capsys.readouterr().out
    assert shown.count(f" incomprehensible > {real_word} ") == 20 and "more text" not in shown
    table = [line for line in shown.splitlines() if "0.567" in line]
    assert len(table) == 20 and all("0.123" in line and len(line) <= 80 for line in table)


def test_a_narrow_terminal_wraps_the_word_that_flips(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show_corpus(flipped_texts(1, "understandable"))
    shown = capsys.readouterr().out
    assert "understandable" in shown and "0.123" in shown and "0.567" in shown


def test_more_than_twenty_texts_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    show_corpus(flipped_texts(23, "dull"))
    assert "and 3 more texts: -o FILE saves all" in capsys.readouterr().out
