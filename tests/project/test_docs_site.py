"""The docs site is built without a warning, has the whole reference, and asks no other host for anything."""

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import wordsway
from wordsway.cli.main import app

ROOT = Path(__file__).parents[2]
pytest.importorskip("mkdocs")


class Page(HTMLParser):
    """What a page loads, its anchors and its text."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.text: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids.add(values["id"])
        if tag == "link":
            self.loads.append(values.get("href", ""))
        self.loads += [values[name] for name in ("src", "srcset", "data", "poster") if name in values]
        if "style" in values:
            self.loads += re.findall(r"url\(([^)]*)\)", values["style"])

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_hook", ROOT / "docs" / "reference_hook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_nothing_comes_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        outside = [load for load in Page(page).loads if re.match(r"\s*(https?:)?//", load)]
        assert not outside, (page, outside)
    for sheet in site.rglob("*.css"):
        found = re.findall(r"(?:@import|url\()\s*['\"]?((?:https?:)?//[^'\")]+)", sheet.read_text(encoding="utf-8"))
        assert not found, (sheet, found)


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = {file.name: Page(file) for file in (site / "reference").glob("*.html")}
    ids = set().union(*(page.ids for page in pages.values()))
    missing = [name for name in wordsway.__all__ if f"{getattr(wordsway, name).__module__}.{name}" not in ids]
    assert not missing
    signature = "".join("".join(pages["measure.html"].text).split())
    assert "word_sensitivity(phi:Any,X:Any,token:int" in signature


@pytest.mark.slow
def test_every_command_and_option_is_in_the_reference(site: Path) -> None:
    page = Page(site / "reference" / "cli.html")
    text = " ".join("".join(page.text).split())
    group: Any = typer.main.get_command(app)
    assert {"measure", "curve", "reproduce"} <= set(group.commands)
    for name, command in group.commands.items():
        assert f"wordsway-{name}" in page.ids
        section = text.split(f"wordsway {name}¶", 1)[1].split("¶", 1)[0]
        for parameter in command.params:
            for option in parameter.opts:
                wanted = option if option.startswith("-") else option.upper()
                assert re.search(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", section), (name, option)
        assert " ".join((command.help or "").split("\n\n")[0].split()).replace("`", "") in section


def test_a_name_without_a_page_goes_to_the_last_one(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordsway, "__all__", [*wordsway.__all__, "something_new"])
    assert hook.grouped()["more"][1][-1] == "something_new"
    listed = [name for _, names in hook.grouped().values() for name in names]
    assert sorted(listed) == sorted(wordsway.__all__)


def test_readme_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
