"""A real browser for tests that look at pages: Debian's chromium, driven by Playwright.

`page` is a factory: page(width=390, height=844, dark=True) opens an empty page of that size. Afterwards a test's pages
are checked: nothing was asked of any other machine, and nothing was complained about in the console. Where
WORDSWAY_BROWSER is set, no browser is a failure; without it such tests are skipped.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

_QUIET = (
    "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)
_HERE = {"127.0.0.1", "localhost", ""}  # the last one is a file's, or a data: address
Pages = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = shutil.which(os.environ.get("WORDSWAY_BROWSER") or "chromium")
    if path is None:
        message = "there is no chromium"
        pytest.fail(message) if os.environ.get("WORDSWAY_BROWSER") else pytest.skip(message)
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=_QUIET.split())
        yield running
        running.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Pages]:
    contexts, asked, complaints = [], [], []

    def make(
        width: int = 1280, height: int = 900, dark: bool = False, forgive: str | None = None, **options: Any
    ) -> Any:
        scheme = "dark" if dark else "light"
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", **options)
        contexts.append(context)
        made = context.new_page()
        made.on("request", lambda request: asked.append(request.url))
        made.on("console", lambda said: hear(said.text, forgive) if said.type in ("error", "warning") else None)
        made.on("pageerror", lambda error: complaints.append(str(error)))
        return made

    def hear(complaint: str, forgive: str | None) -> None:
        if forgive is None or forgive not in complaint:
            complaints.append(complaint)

    yield make
    for context in contexts:
        context.close()
    elsewhere = [url for url in asked if (urlsplit(url).hostname or "") not in _HERE]
    assert not elsewhere and not complaints, (elsewhere, complaints)


def serious(page: Any) -> list[str]:
    """What axe finds wrong with a page for people who cannot see, point or tell colours apart."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes'][:3]]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
