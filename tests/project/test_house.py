"""The shape of the package: few entries at its top, one name a module, short modules and functions."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import wordsway

PACKAGE = Path(wordsway.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_ENTRIES, MOST_LINES, MOST_OF_A_FUNCTION = 18, 300, 60
RIDDLES = ("What ", "The same", "Who ", "Where ", "How ")  # a docstring says the thing itself


def name_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def test_few_entries_at_the_top() -> None:
    entries = sorted(entry.name for entry in PACKAGE.iterdir() if entry.name != "__pycache__")
    assert len(entries) <= MOST_ENTRIES, entries


def test_no_two_modules_of_one_name() -> None:
    packages = [module.parent for module in MODULES if module.name == "__init__.py" and module.parent != PACKAGE]
    names = [module.stem for module in MODULES if module.stem not in ("__init__", "base")]
    counted = Counter([*names, *(package.name for package in packages)])
    assert not [name for name, count in counted.items() if count > 1]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_and_functions_are_short(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    long = [f"{name}: {lines} lines" for name, lines in lengths(ast.parse(text)) if lines > MOST_OF_A_FUNCTION]
    assert not long


def lengths(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions with their lines, without the list of their parameters: a command's is the list of its options."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or 0) - node.body[0].lineno + 1


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_every_module_says_what_it_is_for(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_no_docstring_begins_like_a_riddle(module: Path) -> None:
    found = docstrings(ast.parse(module.read_text(encoding="utf-8")))
    assert not [f"{name}: {text.splitlines()[0]}" for name, text in found if text.startswith(RIDDLES)]


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Docstrings of the module, its classes and its functions, each with a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "name", "module"), ast.get_docstring(node) or ""


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_no_module_only_passes_names_on(module: Path) -> None:
    body = ast.parse(module.read_text(encoding="utf-8")).body[1:]  # without its docstring
    own = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom) and not lists_names(node)]
    assert own or not body


def lists_names(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]


def test_public_names_stand_once_and_load_nothing() -> None:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    names = [alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert len(names) == len(set(names)) and sorted(names) == dir(wordsway)
    code = (
        "import time; began = time.perf_counter(); import wordsway; took = time.perf_counter() - began\n"
        "import sys; print(took, 'torch' in sys.modules, dir(wordsway) == sorted(wordsway.__all__))"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(3)
    ]
    assert all(run[1:] == ["False", "True"] for run in runs)
    assert min(float(run[0]) for run in runs) < 0.1
