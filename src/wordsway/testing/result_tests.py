"""Tests of a kind of result: its line, table, picture and files, what can be read again, what a notebook shows."""

import json
import xml.etree.ElementTree as ElementTree
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wordsway.support.errors import InputError
from wordsway.support.names import RESULTS
from wordsway.support.plotting import new_axes
from wordsway.support.registry import load_home
from wordsway.support.result import SUFFIXES, Result, load_result

TEXT = "I love her smile"
_MARK = "<script>alert('x')</script> $x_1$ & \u201cquotes\u201d"  # of a text that must be escaped wherever it is shown


class ResultTests:
    """Tests of one kind of result. `make(text)` gives one about a text, or any one where there is no text in it."""

    longest_line = 200  # characters of its repr
    made: Result

    @abstractmethod
    def make(self, text: str) -> Result: ...

    @pytest.fixture
    def result(self) -> Result:
        kind = type(self)
        if "made" not in vars(kind):  # once for all tests of a kind
            kind.made = self.make(TEXT)
        return kind.made

    def test_is_registered(self, result: Result) -> None:
        assert load_home(RESULTS[result.format]) is type(result)

    def test_repr_is_one_short_line(self, result: Result) -> None:
        line = repr(result)
        assert line.startswith(type(result).__name__ + "(") and line.endswith(")")
        assert len(line) <= self.longest_line and "\n" not in line and "tensor" not in line

    def test_data_frame_has_the_records(self, result: Result) -> None:
        rows, data = result.records(), result.to_dataframe()
        assert rows and len(data) == len(rows)
        assert list(data.columns) == list(dict.fromkeys(name for row in rows for name in row))

    def test_words_are_numbered_from_one_everywhere(self, result: Result) -> None:
        """The table and the file call a word by the same number, which is its place in the text."""
        table, file = list(_numbered(result.records())), list(_numbered(result.to_dict()))
        assert {number for number, _ in table} <= {number for number, _ in file}
        words = TEXT.split()
        for number, word in table + file:
            assert number >= 1 and (word not in words or words.index(word) == number - 1)

    def test_plot_draws_on_given_or_new_axes(self, result: Result) -> None:
        new = result.plot()
        assert new.figure is not None and new.has_data()
        given = new_axes()
        if len(new.figure.axes) == 1:  # one with several pictures says how many axes it needs
            assert result.plot(given) is given and given.has_data()

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_save_writes_the_format_of_the_suffix(self, result: Result, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"result{suffix.upper() if suffix == '.png' else suffix}"
        result.save(path)
        content = path.read_bytes()
        starts = {".png": b"\x89PNG", ".pdf": b"%PDF", ".parquet": b"PAR1", ".html": b"<!doctype html>"}
        assert content.startswith(starts.get(suffix, b""))
        if suffix == ".svg":
            assert ElementTree.fromstring(content).tag.endswith("svg")
        if suffix == ".csv":
            import pandas

            assert len(pandas.read_csv(path, keep_default_na=False)) == len(result.records())
        if suffix == ".parquet":
            import pandas

            assert list(pandas.read_parquet(path).columns) == list(result.to_dataframe().columns)
        assert [each.name for each in tmp_path.iterdir()] == [path.name]

    @pytest.mark.parametrize("name", ["result.xlsx", "result", "result.json.gz"])
    def test_unknown_suffix_is_an_error_before_any_work(
        self, result: Result, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for work in ("to_dict", "records", "plot"):
            monkeypatch.setattr(type(result), work, _not_now)
        with pytest.raises(InputError, match="suffix"):
            result.save(tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_load_result_reads_it_again(self, result: Result, tmp_path: Path) -> None:
        result.save(tmp_path / "result.json")
        again = load_result(tmp_path / "result.json")
        assert type(again) is type(result)
        assert again.to_dict() == result.to_dict()
        assert again.records() == result.records()
        assert repr(again) == repr(result)
        assert again.plot().has_data()

    def test_damaged_file_is_an_error_that_names_it(self, result: Result, tmp_path: Path) -> None:
        values: dict[str, Any] = result.to_dict()
        path = tmp_path / "damaged.json"
        for name in [key for key in values if key not in ("format", "made", "version")]:
            path.write_text(json.dumps({**values, name: {"no": ["such", "thing"]}}), encoding="utf-8")
            try:
                load_result(path)
            except InputError as error:
                assert "damaged.json" in str(error)
        path.write_text(json.dumps({"format": result.format, "surprise": 1}), encoding="utf-8")
        with pytest.raises(InputError, match=r"damaged\.json.*damaged"):
            load_result(path)

    def test_notebook_shows_a_line_a_picture_and_rows(self, result: Result) -> None:
        """Each row of the table, or each word where it has several rows."""
        shown = result._repr_html_()
        assert "<svg" in shown and "<table>" in shown and "<html" not in shown and "<script" not in shown
        rows, words = result.records(), getattr(result, "ranked", ())
        assert shown.count("<tr>") == 1 + min(10, len(words or rows))

    def test_texts_are_escaped(self, tmp_path: Path) -> None:
        hostile = self.make(_MARK)
        assert "<script>alert" not in hostile._repr_html_()
        hostile.save(tmp_path / "result.html")
        assert "<script>alert" not in (tmp_path / "result.html").read_text(encoding="utf-8")
        hostile.save(tmp_path / "result.png")


def _numbered(values: Any) -> Iterator[tuple[int, str | None]]:
    """Every number of a word in the values of a result, with the word, where that stands beside it."""
    if isinstance(values, dict):
        if isinstance(values.get("word"), int):
            named = values.get("word_text", values.get("before", values.get("text")))
            yield values["word"], named
        for each in values.values():
            yield from _numbered(each)
    elif isinstance(values, list):
        for each in values:
            yield from _numbered(each)


def _not_now(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("work was done before the name of the file was checked")
