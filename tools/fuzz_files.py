"""Files and folders for tools/fuzz.py that a command or function should refuse, or survive: each is made when a call
draws it, in the folder of that call. To add one, write a function of a `Place` and put it into a list below."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from fuzz_samples import STUDY_FILE, TEXT, Samples

ODD_TEXT = "<b>bold</b> \x1b[31mred\x07 \u202eright to left\u2066 [bold]x[/] \u200d e\u0301 \U0001f600 %s {} \ud7ff"
DEEP = 100_000
BIG = 5_000_000  # characters


class Place:
    """The folder of a call, the chance that its values depend on, and the sane values."""

    def __init__(self, folder: Path, chance: Random, samples: Samples) -> None:
        self.folder, self.chance, self.samples, self.made = folder, chance, samples, 0

    def new(self, suffix: str) -> Path:
        self.made += 1
        return self.folder / f"in-{self.made}{suffix}"

    def write(self, suffix: str, content: str | bytes) -> str:
        path = self.new(suffix)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return str(path)


Maker = Callable[[Place], Any]


def suffix(place: Place) -> str:
    return place.chance.choice([".json", ".toml", ".txt", ".csv", ".jsonl", ".html", ".parquet", ".gguf", ""])


def fifo(place: Place) -> str:
    path = place.new(suffix(place))
    os.mkfifo(path)
    return str(path)


def folder(place: Place) -> str:
    path = place.new(suffix(place))
    path.mkdir()
    return str(path)


def link(place: Place) -> str:
    """A symbolic link: to itself, to nothing, to a device, to a folder."""
    path = place.new(suffix(place))
    path.symlink_to(place.chance.choice([str(path), "/nowhere", "/dev/zero", "/dev/full", "/", "."]))
    return str(path)


PATHS: list[Maker] = [  # whatever is asked for
    fifo,
    folder,
    link,
    lambda place: place.write(suffix(place), b""),
    lambda place: place.write(suffix(place), place.chance.randbytes(3000)),
    lambda place: place.write(suffix(place), "\0" * 100),
    lambda place: str(place.new(suffix(place))),
    lambda place: "a" * 5000,
    lambda place: str(place.folder / ("a" * 300) / "x"),
    lambda place: place.chance.choice(["/dev/zero", "/dev/null", "/dev/full", "/dev/stdin", "/proc/self/mem", "."]),
    lambda place: place.chance.choice(["", " ", "~nobody/x", "file://x", "http://[", "a\nb", "\u202ex", "/proc/1/fd"]),
]
TEXTS: list[Maker] = [
    lambda place: place.write(".txt", "word " * (BIG // 5)),
    lambda place: place.write(".txt", "x" * BIG),
    lambda place: place.write(".txt", ODD_TEXT),
    lambda place: place.write(".txt", "gr\xfcn".encode("latin1")),
    lambda place: place.write(".txt", " \n\t\n"),
    lambda place: place.write(".txt", "\ufeff" + TEXT),
]
TABLES: list[Maker] = [
    lambda place: place.write(".csv", "text,text,label\na b,c d,1\n"),
    lambda place: place.write(".csv", "text,label\n" + "x" * 500_000 + ",1\n"),
    lambda place: place.write(".csv", "text,label\n"),
    lambda place: place.write(".csv", 'text,label\n"a b,1\nc d\n,,,,\n'),
    lambda place: place.write(".csv", "text,label\na b,99999999999999999999\nc d,nan\n,\n"),
    lambda place: place.write(".tsv", "text\tlabel\na\0b\t1\n"),
    lambda place: place.write(".jsonl", '{"text": null, "label": 1}\n[1]\n"x"\n'),
    lambda place: place.write(".jsonl", "[" * DEEP + "]" * DEEP),
    lambda place: place.write(".jsonl", '{"text": 3, "label": {"a": []}}\n{"text": "\\ud800", "label": 1}\n'),
    lambda place: place.write(".json", '[{"text": "a b", "label": 1e999}]'),
    lambda place: place.write(".parquet", b"PAR1" + place.chance.randbytes(200) + b"PAR1"),
]


def damaged_result(place: Place) -> str:
    """A saved result with a value that is wrong, missing, or damaged in its bytes."""
    text = place.chance.choice(place.samples.saved)
    way = place.chance.randrange(4)
    if way == 0:
        return place.write(".json", text[: place.chance.randrange(len(text))])
    if way == 1:
        content = bytearray(text.encode())
        content[place.chance.randrange(len(content))] = place.chance.randrange(256)
        return place.write(".json", bytes(content))
    value = json.loads(text)
    spoil(value, place.chance)
    return place.write(".json", json.dumps(value))


ODD_JSON: list[Any] = [
    None,
    True,
    "",
    "x",
    [],
    {},
    [None],
    -1,
    0,
    10**30,
    1e308,
    float("nan"),
    float("inf"),
    "<b>",
    "\x1b[2J",
    "\u202e",
    1.5,
    [[[]]],
    {"a": {"b": None}},
    "9" * 5000,
]


def spoil(value: Any, chance: Random) -> None:
    """Put an odd value, or nothing, into the place of one somewhere in a JSON value."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = chance.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.7:
            value = inner
            continue
        if chance.random() < 0.2:
            del value[key]
        else:
            value[key] = chance.choice(ODD_JSON)
        return


def damaged_study(place: Place) -> str:
    """A study's file with a line that is gone, given twice, or has another value."""
    lines = STUDY_FILE.splitlines()
    number = place.chance.randrange(len(lines))
    odd = [
        "10e400",
        "nan",
        "[]",
        "{}",
        '""',
        "[[[]]]",
        "-1",
        "9223372036854775808",
        "1000000000",
        '"\\u0000"',
        "true",
        '["a", 3]',
        "1979-05-27",
        '"' + "a" * 5000 + '"',
        "[1e-300]",
        "inf",
        '["raf", "drf"]',
    ]
    if place.chance.random() < 0.25:
        lines[number] = place.chance.choice(["", lines[number] * 2, lines[number - 1]])
    else:
        names = ("depth", "radius", "temperature", "d", "n", "seed", "token", "encoder", "trials", "layer", "map")
        key = lines[number].partition(" = ")[0] if " = " in lines[number] else place.chance.choice(names)
        lines[number] = f"{key} = {place.chance.choice(odd)}"
    return place.write(".toml", "\n".join(lines))


STUDIES: list[Maker] = [
    damaged_study,
    damaged_study,
    damaged_study,
    lambda place: place.write(".toml", "a = " + "[" * DEEP + "]" * DEEP),
    lambda place: place.write(".toml", ".".join("a" * 20_000) + " = 1"),
    lambda place: place.write(".toml", "a = " + "{a = " * 20_000 + "1" + "}" * 20_000),
    lambda place: place.write(".toml", "[" + ".".join("a" * 20_000) + "]"),
    lambda place: place.write(".toml", "x = " + "9" * 5000),
    lambda place: place.write(".toml", STUDY_FILE.replace('"small"', '"' + "s" * 5000 + '"')),
    lambda place: place.write(".toml", STUDY_FILE.replace("[3, 6]", "[" + "3," * 100_000 + "]")),
]
RESULTS: list[Maker] = [
    damaged_result,
    damaged_result,
    damaged_result,
    lambda place: place.write(".json", "[" * DEEP + "]" * DEEP),
    lambda place: place.write(".json", '{"format": "wordsway.table/1", "rows": ' + "9" * 5000 + "}"),
    lambda place: place.write(".json", '{"format": "wordsway.sensitivity/3"}'),
]


def damaged_run(place: Place) -> str:
    """A run whose store is empty, of another program, cut off, overwritten, or without its plan."""
    path = place.new("-run")
    shutil.copytree(place.samples.run_folder, path)
    store, chance = path / "run.sqlite", place.chance
    content = bytearray(store.read_bytes())
    way = chance.randrange(7)
    if way == 0:
        store.write_bytes(b"")
    elif way == 1:
        store.unlink()
        with closing(sqlite3.connect(store)) as db:
            db.execute("CREATE TABLE mine (a)")
            db.commit()
    elif way == 2:
        store.write_bytes(content[: chance.randrange(len(content))])
    elif way == 3:
        for _ in range(chance.choice([1, 8, 64])):
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        store.write_bytes(content)
    elif way == 4:
        page = chance.randrange(len(content) // 4096)
        content[page * 4096 : (page + 1) * 4096] = chance.randbytes(4096)
        store.write_bytes(content)
    elif way == 5:
        with closing(sqlite3.connect(store)) as db:
            names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            db.execute(f"DROP TABLE {chance.choice([name for name in names if not name.startswith('sqlite')])}")
            db.commit()
    else:
        store.unlink()
        store.symlink_to(chance.choice(["/dev/zero", "/dev/full", str(store), "/nowhere"]))
    return str(path)


def damaged_model(place: Place) -> str:
    """A model's folder that claims too much, or whose files are damaged."""
    path = place.new("-model")
    shutil.copytree(place.samples.model_folder, path)
    chance = place.chance
    config = path / "config.json"
    way = chance.randrange(6)
    if way == 0:
        claims = json.loads(config.read_text())
        key = chance.choice(
            [
                "num_hidden_layers",
                "hidden_size",
                "vocab_size",
                "intermediate_size",
                "max_position_embeddings",
                "num_attention_heads",
            ]
        )
        claims[key] = chance.choice([10**7, 10**12, 10**400, -1, 0, None, "x", 1e308, [3]])
        config.write_text(json.dumps(claims))
    elif way == 1:
        claims = json.loads(config.read_text())
        spoil(claims, chance)
        config.write_text(json.dumps(claims))
    elif way == 2:
        config.write_text("[" * DEEP)
    elif way == 3:
        weights = next(path.glob("*.safetensors"))
        content = bytearray(weights.read_bytes())
        place_of = chance.choice([0, 3, 7, 20, 200])
        content[place_of] ^= 0xFF
        weights.write_bytes(content if chance.random() < 0.5 else content[: chance.randrange(len(content))])
    elif way == 4:
        chance.choice([each for each in sorted(path.iterdir())]).unlink()
    else:
        chance.choice([each for each in sorted(path.iterdir())]).write_bytes(chance.choice([b"", b"{}", b"null"]))
    return str(path)


MODELS: list[Maker] = [
    damaged_model,
    damaged_model,
    lambda place: place.write(".gguf", b"GGUF" + place.chance.randbytes(500)),
    lambda place: place.chance.choice(["reinit:", "reinit:reinit:minilm", "reinit-9:minilm", "a/b/c", "..", "no/such"]),
]
RUNS: list[Maker] = [damaged_run, damaged_run, damaged_run, folder]
