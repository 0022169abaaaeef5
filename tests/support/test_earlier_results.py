"""Files of an earlier version, which counted words from 0 in files and from 1 in tables, are read as they were meant.

Each file has the result as it was saved, and the table and the line that the version which saved it showed."""

import json
from pathlib import Path
from typing import Any

import pytest

import wordsway as ws
from wordsway.measures.ranks import rank_name
from wordsway.support.earlier_formats import EARLIER, in_this_format
from wordsway.support.names import RESULTS
from wordsway.support.registry import load_home

FOLDER = Path(__file__).parent / "earlier_results"
KEPT = {each["result"]["format"]: each for each in (json.loads(f.read_text("utf-8")) for f in FOLDER.iterdir())}
TODAY = {"text": "word_text", "map": "subject"}  # columns that have another name by now
WORDS = "I love her smile indeed".split()


def test_there_is_a_file_of_every_earlier_format() -> None:
    assert sorted(KEPT) == sorted(EARLIER)
    assert {now for now, _ in EARLIER.values()} <= set(RESULTS) and not set(EARLIER) & set(RESULTS)


def named_ranks(row: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Write a rank as earlier tables of draws did, which had "1-4" for `rank` 1 and `tied` 4."""
    written = isinstance(earlier.get("rank"), str)
    return row | {"rank": rank_name(row["rank"], row["tied"])} if written else row


@pytest.mark.parametrize("name", KEPT)
def test_an_earlier_file_shows_the_table_that_it_showed(name: str, tmp_path: Path) -> None:
    kept = KEPT[name]
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(kept["result"]), encoding="utf-8")
    result = ws.load_result(file)
    named = {} if "before" in kept["records"][0] else TODAY  # of replacements, text is the whole text
    today = [{named.get(str(column), str(column)): value for column, value in row.items()} for row in kept["records"]]
    records = [named_ranks(row, today[0]) for row in json.loads(json.dumps(result.records()))]
    columns = today[0].keys()  # a table may have more of them by now, and its words in another order
    shown = [{column: row[column] for column in columns} for row in records]
    assert len(shown) == len(today) and all(row in today for row in shown)
    assert repr(result).partition("(")[0] == kept["repr"].partition("(")[0]
    assert result.to_dict() == load_home(RESULTS[result.format]).from_dict(kept["result"]).to_dict()
    result.save(file)
    assert ws.load_result(file).to_dict() == result.to_dict()  # and is not shifted again


@pytest.mark.parametrize("name", KEPT)
def test_every_word_of_an_earlier_file_has_its_number(name: str) -> None:
    result = load_home(RESULTS[EARLIER[name][0]]).from_dict(KEPT[name]["result"])
    found = list(numbered(result.to_dict()))
    assert found and all(WORDS[number - 1] == word for number, word in found)


def numbered(values: Any) -> list[tuple[int, str]]:
    """(number, word) of all words in the values of a result."""
    found = []
    if isinstance(values, dict):
        named = values.get("word_text", values.get("before", values.get("text")))
        if isinstance(values.get("word"), int) and isinstance(named, str):
            found.append((values["word"], named))
        if "word_numbers" in values:
            pairs = zip(values["word_numbers"], values["tokens"], strict=True)
            assert [k for k, token in pairs if (k is None) != (token in ("[CLS]", "[SEP]"))] == []
            own = [WORDS.index(token) for token in values["tokens"] if token in WORDS[1:]]
            assert [k for k in values["word_numbers"] if k is not None][1:] == [k + 1 for k in own]
    if isinstance(values, dict | list):
        for each in values.values() if isinstance(values, dict) else values:
            found += numbered(each)
    return found


def test_explained_words_are_those_that_were_explained() -> None:
    result = ws.Sensitivity.from_dict(KEPT["wordsway.sensitivity/2"]["result"])
    old = KEPT["wordsway.sensitivity/2"]["result"]["explained"]
    tokens = {word.word: word.tokens for word in result.words or ()}
    assert old and [each.word for each in result.explained or ()] == [each["word"] + 1 for each in old]
    assert all(tokens[each.word] == each.tokens for each in result.explained or ())


def test_a_result_of_this_version_is_left_alone() -> None:
    values = {"format": "wordsway.layers/2", "word": 1}
    assert in_this_format(values) is values
    assert in_this_format({"word": 1}) == {"word": 1}
    with pytest.raises(ws.InputError, match="its format is None"):
        ws.LayerProfile.from_dict({"word": 1})
