"""What README.md and docs/ say is run: Python blocks, commands, and outputs against what commands print."""

import io
import itertools
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from docs_blocks import ROOT, TOLERANCE, Block, all_blocks, differences, inline_commands, words_of
from searched import Searched
from wordsway.cli.main import app
from wordsway.support.errors import TextWarning
from wordsway.support.own_code import VARIABLE

BLOCKS = all_blocks()
COMMANDS = [(block, line) for block in BLOCKS for line, _ in block.commands()]

# Commands that are only parsed, by what they begin with. Every other one is run.
ONLY_PARSED = {
    'wordsway measure "I love her smile" --encoder bert-base-uncased': "needs the hub",
    'wordsway measure "I love her smile" --encoder ./my-model': "needs a model of the reader's",
    "wordsway run several": "minutes; test_studies.py runs the study at its smallest scale",
    "wordsway run encoders": "minutes to hours; test_states.py runs the study at its smallest scale",
    "wordsway run pairs": "minutes to hours; test_pairs.py runs the study at its smallest scale",
    'wordsway layers "..."': "a pattern",
    "wordsway reproduce --scale": "minutes; test_runs.py runs the smallest scale",
    "wordsway reproduce fig2 fig3a fig3b --scale paper": "minutes",
    "wordsway reproduce fig3a fig3b --scale paper": "minutes",
    "wordsway reproduce fig2 --engine dask": "needs a scheduler; test_runs.py starts one",
    "wordsway reproduce  ": "minutes; test_runs.py runs the smallest scale",
    "wordsway run mine.toml --out": "a minute or more; the smaller one before it is run",
    "wordsway layers --file docs/example.txt": "more than a minute; other texts are run",
    'wordsway substitute "The food was good and the staff kind." --model sentiment --word good --top 5 --search ex': (
        "a minute; README.md has the guided one"
    ),
    'wordsway substitute "Here is a review': "two minutes, with TinyLlama",
    'wordsway substitute "Is it good?': "half a minute; models.md has it from Python",
    "wordsway generalize --data imdb --n 40 --train-size 400": "more than a minute; README.md has a smaller one",
    "wordsway curve --data imdb": "a minute; the same cells as benchmarks/real_text.py",
    'wordsway measure "The movie was wonderful': "minutes; test_radius_profile.py measures smaller models",
    "wordsway compare runs": "needs two runs",
    "wordsway measure --file docs/example.txt --no-certificate -o": "minutes; shorter texts are run",
    "wordsway app": "runs until it is stopped; test_app.py starts it",
}


def only_parsed(line: str) -> str | None:
    return next((why for start, why in ONLY_PARSED.items() if line.startswith(start)), None)


def runs(block: Block) -> bool:
    """Whether there is something in a block to run."""
    if block.note("skip") is not None or block.file:
        return False
    if block.kind == "python":
        return True
    return any(line.startswith("wordsway") and not only_parsed(line) for line, _ in block.commands())


def leaves_something(block: Block) -> bool:
    """Whether later blocks may need what a block leaves: names of Python, or files."""
    return block.kind == "python" or any({"-o", "--out"} & set(words_of(line)) for line, _ in block.commands())


def marks(block: Block) -> list[pytest.MarkDecorator]:
    """Mark the blocks whose numbers come from a search that ends elsewhere on another processor."""
    searched = block.note("within") is not None or block.note("searched") is not None
    return [pytest.mark.docs, pytest.mark.rounding] if searched else [pytest.mark.docs]


class Page:
    """A page that is gone through from top to bottom, in a folder and a namespace of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.blocks = [block for block in BLOCKS if block.page == name]
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed: list[str] = []
        self.done = 0
        for block in self.blocks:
            if block.file:
                (folder / block.file).write_text(block.text, encoding="utf-8")
        (folder / "long.txt").write_text("word " * 600)
        (folder / "docs").mkdir()
        (folder / "docs" / "example.txt").write_bytes((ROOT / "docs" / "example.txt").read_bytes())

    def run(self, block: Block, models: dict[str, str | None]) -> None:
        """What was not run yet up to a block and left something that it may need, and that block. What fails on the
        way fails in its own test."""
        while self.done < len(self.blocks):
            current = self.blocks[self.done]
            if current.line > block.line:
                return
            self.done += 1
            if not runs(current) and current.note("output") is None:
                continue
            if current is not block and not leaves_something(current):
                continue
            if needed := current.note("needs"):
                if models[needed] is None:
                    if current is block:
                        pytest.skip(f"{needed} is not at hand")
                    continue
                link = self.folder / f"{needed}.gguf"
                if not link.exists():
                    link.symlink_to(models[needed] or "")
            try:
                self.step(current)
            except Exception:
                if current is block:
                    raise

    def step(self, block: Block) -> None:
        if block.kind == "python":
            printed = io.StringIO()
            if setup := block.note("setup"):
                exec(compile(setup, block.name, "exec"), self.names)
            code = compile("\n" * block.line + block.text, block.page, "exec")
            with redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore", TextWarning)  # a note to the reader, on purpose
                exec(code, self.names)
            self.printed = printed.getvalue().splitlines()
        elif block.note("output") is not None:
            self.compare(block, block.text.splitlines(), self.printed)
        for line, written in block.commands():
            if not line.startswith("wordsway") or only_parsed(line):
                continue
            done = CliRunner().invoke(app, words_of(line)[1:], env={"COLUMNS": "80"})
            os.environ.pop(VARIABLE, None)
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            assert done.exit_code == int(block.note("exit") or 0), (line, done.output)
            for option, made in itertools.pairwise(words_of(line)):
                assert option not in ("-o", "--out") or Path(made).exists(), (line, made)
            if written is not None:
                self.compare(block, written, (done.output if done.exit_code else done.stdout).splitlines(), line)

    def compare(self, block: Block, written: list[str], printed: list[str], line: str = "") -> None:
        note = block.note("within")
        names = block.note("searched")
        searched = Searched.of(names) if names else None
        different = differences(written, printed, float(note.split()[0]) if note else TOLERANCE, searched)
        whole = "\n".join(printed)
        assert not different, f"{block.name}: {line}\n{different}\n\nall that it prints:\n{whole}"


@pytest.fixture(scope="module")
def models(request: pytest.FixtureRequest) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in ("smollm2", "tinyllama"):
        try:
            found[name] = request.getfixturevalue(name)
        except pytest.skip.Exception:
            found[name] = None
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    names = dict.fromkeys(block.page for block in BLOCKS)
    return {name: Page(name, tmp_path_factory.mktemp(Path(name).stem)) for name in names}


@pytest.fixture
def page(request: pytest.FixtureRequest, pages: dict[str, Page], monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    from huggingface_hub import constants

    found = pages[request.getfixturevalue("block").page]
    monkeypatch.chdir(found.folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # the library reads the variable when it is imported
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.syspath_prepend(str(found.folder))
    yield found
    os.environ.pop(VARIABLE, None)
    for name in [block.file for block in found.blocks if block.file]:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.name, marks=marks(block))
        for block in BLOCKS
        if runs(block) or block.note("output") is not None
    ],
)
def test_block(block: Block, page: Page, models: dict[str, str | None]) -> None:
    page.run(block, models)


def check_command(line: str) -> None:
    """A command line could be carried out: its command, options and types are right."""
    words = words_of(re.split(r" [&|>]", line)[0])
    if words[0] == "wordsway":
        group: Any = typer.main.get_command(app)
        if len(words) == 1 or words[1].startswith("-"):
            known = {name for parameter in group.params for name in parameter.opts} | {"--help"}
            assert set(words[1:]) <= known
            return
        assert words[1] in group.commands, f"there is no command {words[1]!r}"
        if "--help" not in words:
            group.commands[words[1]].make_context(words[1], words[2:])
    elif words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert set(words[1:]) <= set(targets)
    elif words[0] == "pip":
        project = (ROOT / "pyproject.toml").read_text()
        for extra in re.findall(r"\[([\w,]+)\]", line):
            assert all(re.search(rf"^{name} = \[", project, re.M) for name in extra.split(","))
    elif words[0] == "python":
        assert (ROOT / words[1]).is_file()


@pytest.mark.parametrize(("block", "line"), [pytest.param(b, c, id=f"{b.name}:{c}") for b, c in COMMANDS])
def test_command_is_one(block: Block, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordsway.support.own_code.allow_maps", lambda *modules: None)
    check_command(line)


@pytest.mark.parametrize(("name", "line"), [pytest.param(*found, id=": ".join(found)) for found in inline_commands()])
def test_command_in_running_text(name: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordsway.support.own_code.allow_maps", lambda *modules: None)
    if len(words := line.removesuffix(" ...").split()) > 2:
        check_command(" ".join(words))
    else:  # a command is spoken of
        check_command(f"{' '.join(words)} --help")


def test_what_is_not_run_is_named_and_there() -> None:
    lines = [line for _, line in COMMANDS]
    for start, why in ONLY_PARSED.items():
        assert why and any(line.startswith(start) for line in lines), f"no page has {start!r} any more"
    for block in BLOCKS:
        for note in block.notes:
            assert re.match(
                r"(skip because .{8}|needs \w+$|within [\d.]+ because .{8}|searched \w|exit \d$|output$|setup\n)", note
            )
    skipped = [block for block in BLOCKS if block.note("skip") is not None]
    assert len(skipped) <= 6, [block.name for block in skipped]


def test_files_in_blocks_are_well_formed() -> None:
    import tomllib

    for block in BLOCKS:
        if block.kind == "python":
            compile(block.text, block.name, "exec")
        elif block.kind == "toml":
            tomllib.loads(block.text)


@pytest.mark.parametrize(
    ("written", "printed", "same"),
    [
        ("a 1.000 b", "a 1.001 b", True),
        ("a 1.000 b", "a 1.010 b", False),
        ("a 1.000 b", "a   1.000 c", False),
        ("took 3 s", "took 12.5 s", True),
        ("one\n...\nlast", "one\ntwo\nthree\nlast", True),
        ("one\n...\nlast", "one\ntwo\nthree", False),
        ("one\n...", "one\ntwo", True),
        ("files: a.png, ...", "files: a.png, b.png", True),
        ("one", "one\ntwo", False),
        ("one\ntwo", "one", False),
        ("up to 1.1e-14", "up to 3.3e-15", True),
        ("0.0039", "0.0040", True),
        ("word 4", "word 5", False),
        ("4588 evaluations", "4590 evaluations", True),
        ("-0.555 holds", "0.555 holds", False),
    ],
)
def test_outputs_are_compared(written: str, printed: str, same: bool) -> None:
    assert (differences(written.splitlines(), printed.splitlines()) == "") is same
