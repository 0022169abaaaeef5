"""A report as its readers meet it: in a browser, by mouse, keyboard and ear, on a desk and on a phone."""

import csv
import io
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wordsway as ws
from browser import Pages, serious
from wordsway.report.page import html_of, report_html
from wordsway.report.parts import Grid, Report
from wordsway.report.svg import picture

pytestmark = pytest.mark.slow
TEXT = "The food was good,\nbut the waiter was <script>alert('x')</script> rude & <b>loud</b>."


@pytest.fixture(scope="module")
def result() -> ws.Sensitivity:
    phi, tokens = ws.RandomAttention().sample(384, seed=0), ws.encode(TEXT)
    return ws.explain(phi, tokens, ws.word_sensitivity(phi, tokens, budget="quick"), 4)


@pytest.fixture(scope="module")
def address(result: ws.Sensitivity, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("report") / "a report's file.html"
    file.write_text(report_html(result), encoding="utf-8")
    return file.as_uri()


def luminance(colour: str) -> float:
    """Relative luminance of "rgb(r, g, b)", by the definition of WCAG."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def colours(tab: Any) -> list[dict[str, Any]]:
    return tab.eval_on_selector_all(
        ".text .word",
        "all => all.map(e => ({word: +e.dataset.word, back: getComputedStyle(e).backgroundColor,"
        " front: getComputedStyle(e).color}))",
    )


@pytest.mark.parametrize("dark", [False, True])
def test_shades_follow_the_numbers_and_can_be_read(
    page: Pages, address: str, result: ws.Sensitivity, dark: bool
) -> None:
    tab = page(dark=dark)
    tab.goto(address)
    lower = {word.word: word.lower for word in result.words or ()}
    assert all(word.tied == len(lower) for word in result.words or ())
    assert len({each["back"] for each in colours(tab)}) == 1  # words that tie share a shade, unless it is stretched
    tab.locator("input.stretch").check()
    seen = sorted(colours(tab), key=lambda each: lower[each["word"]])
    assert len(seen) == len(lower)
    light = [luminance(each["back"]) for each in seen]
    order = light if dark else light[::-1]
    assert order == sorted(order) and abs(light[0] - light[-1]) > 0.5  # by lightness alone, without hues
    for each in seen:
        bright, dim = sorted((luminance(each["back"]), luminance(each["front"])), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5


def test_the_text_is_shown_as_it_was_written(page: Pages, address: str) -> None:
    tab = page()
    tab.goto(address)
    assert tab.locator(".text").inner_text().strip() == TEXT  # with tags as text and its lines


def test_from_right_to_left(page: Pages, tmp_path: Path) -> None:
    tokens = ws.encode("\u05d0\u05e0\u05d9 \u05d0\u05d5\u05d4\u05d1 \u05d0\u05ea", "synthetic")
    result = ws.word_sensitivity(lambda X: X.mean(0), tokens, budget=8, random_draws=0)
    (tmp_path / "r.html").write_text(report_html(result), encoding="utf-8")
    tab = page()
    tab.goto((tmp_path / "r.html").as_uri())
    places = [word.bounding_box()["x"] for word in tab.locator(".text .word").all()]
    assert places == sorted(places, reverse=True) and len(places) == 3


def test_pointing_at_a_word_and_choosing_it(page: Pages, address: str, result: ws.Sensitivity) -> None:
    tab = page()
    tab.goto(address)
    top = result.top_word
    assert top is not None and top.upper is not None
    word = tab.locator(f'.word[data-word="{top.word}"]')
    word.hover()
    card = tab.locator(".card").inner_text()
    assert f"{top.lower:#.3g}" in card and f"{top.upper:#.3g}" in card and "rank 1" in card
    tab.mouse.move(5, 5)
    assert tab.locator(".card").count() == 0
    word.click()
    shown = tab.locator(".detail").inner_text()
    explained = next(each for each in result.explained or () if each.word == top.word)
    assert explained.replacements[0].text in shown and explained.tried in shown
    assert explained.attention_after is not None and f"{max(explained.attention_after):.3f}" in shown
    last = max(result.words or (), key=lambda each: each.rank)
    tab.locator(f'.word[data-word="{last.word}"]').click()
    assert "Details of this word were not computed" in tab.locator(".detail").inner_text()
    assert tab.locator('.word[aria-pressed="true"]').count() == 1


def test_by_keyboard_alone(page: Pages, address: str, result: ws.Sensitivity) -> None:
    tab = page()
    tab.goto(address)
    focused = "document.activeElement.dataset.word"
    tab.keyboard.press("Tab")  # the switch that stretches the colours
    tab.keyboard.press("Tab")
    top = result.top_word
    assert top is not None and tab.evaluate(focused) == str(top.word)  # one stop for the whole text
    assert tab.locator(".card").count() == 1
    tab.keyboard.press("Home")
    assert tab.evaluate(focused) == "1"
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate(focused) == "2"
    assert tab.eval_on_selector_all('.word[tabindex="0"]', "all => all.map(e => e.dataset.word)") == ["2"]
    tab.keyboard.press("Enter")
    assert tab.locator(".detail h3").inner_text().startswith("food (rank")
    tab.keyboard.press("Escape")
    assert tab.locator(".card").count() == 0
    stops = []
    for _ in range(40):  # and on to everything else, without a trap
        tab.keyboard.press("Tab")
        stops.append(tab.evaluate("document.activeElement.outerHTML.slice(0, 60)"))
    assert any('type="search"' in stop for stop in stops) and any("csv" in stop for stop in stops)


def test_tables_are_sorted_filtered_and_taken_away(page: Pages, address: str, result: ws.Sensitivity) -> None:
    tab = page()
    tab.goto(address)
    table = tab.locator(".grid").first
    column = lambda k: table.locator(f"tbody td:nth-child({k})").all_inner_texts()  # noqa: E731
    words = result.words
    assert words is not None and column(1) == [f"1-{len(words)}"] * len(words)  # they all tie
    table.get_by_role("button", name="place").click()
    assert column(3) == [str(k) for k in range(len(words), 0, -1)]
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("place")
    table.get_by_role("button", name="place").click()
    assert column(3) == [str(k) for k in range(1, len(words) + 1)]
    table.locator("input").fill("WAS")
    assert column(2) == ["was", "was"] and "2 of" in table.locator(".count").inner_text()
    table.locator("input").fill("")
    with tab.expect_download() as download:
        table.get_by_role("button", name="Download CSV").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
    assert download.value.suggested_filename == "words.csv" and len(rows) == len(words)
    assert float(rows[0]["at least"]) == pytest.approx(words[0].lower, rel=1e-5)  # in the order that is shown


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_serious_for_accessibility(page: Pages, address: str, dark: bool, width: int) -> None:
    tab = page(width=width, height=844, dark=dark)
    tab.goto(address)
    tab.locator(".text .word").first.click()
    assert serious(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width  # no sideways scrolling of the page


def test_a_run_on_desk_and_phone(page: Pages, tmp_path: Path) -> None:
    study = ws.Study("mine", {"map": ["rf", "raf"], "n": [6, 12, 24], "d": 16, "trials": 2}, title="A <b>study</b>")
    ws.run(study, tmp_path / "run")
    file = tmp_path / "run.html"
    file.write_text(report_html(tmp_path / "run"), encoding="utf-8")
    for width in (390, 1280):
        tab = page(width=width, height=844)
        tab.goto(file.as_uri())
        assert "A <b>study</b>" in tab.locator("h1").inner_text()
        assert serious(tab) == [] and tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.locator(".drawing svg").first.bounding_box()["height"] > 150


def test_on_paper(page: Pages, address: str) -> None:
    tab = page(dark=True)
    tab.goto(address)
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not tab.locator(".csv").first.is_visible()
    assert len(tab.pdf()) > 20_000


def test_all_rows_are_on_paper(page: Pages, tmp_path: Path) -> None:
    grid = Grid.of("All", "all", [{"k": k, "word": f"w{k}"} for k in range(120)])
    (tmp_path / "t.html").write_text(html_of(Report("Rows", ("Many.",), (grid,))), encoding="utf-8")
    tab = page()
    tab.goto((tmp_path / "t.html").as_uri())
    tab.locator(".on").click()
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("tbody td:first-child").all_inner_texts() == [str(k) for k in range(120)]
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.locator("tbody tr").count() == 50


def test_two_thousand_words(page: Pages, tmp_path: Path, result: ws.Sensitivity) -> None:
    """A page of that size. Its numbers are those of a short text over and over: to measure so many takes minutes."""
    words = result.words
    assert words is not None and result.text is not None
    texts, found = [], []
    for k in range(2000):
        start = sum(map(len, texts)) + len(texts)
        texts.append(f"word{k}")
        own = words[k % len(words)]
        found.append(replace(own, word=k + 1, text=texts[-1], span=(start, start + len(texts[-1])), rank=k + 1))
    about = {**result.text, "text": " ".join(texts), "tokens": texts, "offsets": [list(each.span) for each in found]}
    result = replace(result, words=tuple(found), text=about, explained=None)
    file = tmp_path / "long.html"
    file.write_text(report_html(result), encoding="utf-8")
    assert file.stat().st_size < 5e6
    tab = page()
    tab.goto(file.as_uri())
    assert tab.locator(".text .word").count() == 2000
    took = tab.evaluate(
        "() => { const t = performance.now(); const words = document.querySelectorAll('.text .word');"
        " words[1999].click(); words[3].focus(); document.body.offsetHeight; return performance.now() - t; }"
    )
    assert took < 2000 and "2,000" not in tab.locator(".card").inner_text()
    assert "Rows 1 to 50 of 2,000 rows" in tab.locator(".count").first.inner_text()
    assert tab.locator(".grid").first.locator("tbody tr").count() == 50
    tab.locator(".on").first.click()
    assert "Rows 51 to 100" in tab.locator(".count").first.inner_text()


def test_ten_thousand_points(page: Pages, tmp_path: Path) -> None:
    from wordsway.studies.panels.flip_panel import draw_flips
    from wordsway.support.plotting import new_axes

    rng = random.Random(0)
    rows = [
        {"training": "retrain", "map": "raf", "n": 10, "train_size": 10, "penalty": None, "objective": "align",
         "gamma": rng.uniform(0, 2), "err": rng.uniform(0, 4), "trial": k}
        for k in range(10_000)
    ]  # fmt: skip
    axes = new_axes()
    draw_flips([[axes]], rows, ["retrain"], [{"map": "raf", "n": 10}])
    parts = (picture(axes.figure, "Err against gamma", ["Every point is a text."]), Grid.of("All", "all", rows))
    file = tmp_path / "points.html"
    file.write_text(html_of(Report("Many points", ("Ten thousand of them.",), parts)), encoding="utf-8")
    assert file.stat().st_size < 5e6
    tab = page()
    tab.goto(file.as_uri())
    assert tab.evaluate("document.querySelectorAll('*').length") < 5000
    took = tab.evaluate(
        "() => { const t = performance.now(); document.querySelectorAll('th button')[4].click();"
        " document.body.offsetHeight; return performance.now() - t; }"
    )
    assert took < 3000 and "of 10,000 rows" in tab.locator(".count").inner_text()


def test_texts_come_first_and_what_flips_them_is_seen_without_scrolling(page: Pages) -> None:
    row = {"subject": "m", "word": 1, "word_text": "incomprehensible", "word_kind": "content", "rank": 1,
           "prediction": "positive", "probability": 0.75, "radius": 1.0, "flips_at": 0.123, "flips_to": "negative",
           "easier_than": 0.5, "real_word": "understandable", "real_distance": 0.567}  # fmt: skip
    rows = tuple({**row, "text_number": k} for k in (1, 2, 3))
    texts = tuple(f"A film of {k} hours, and an incomprehensible one " + "at that, " * 20 for k in (1, 2, 3))
    tab = page(width=1280, height=900)
    tab.set_content(report_html(ws.Corpus(("m",), texts, "quick", rows, {"id": [7, 8, 9]})))
    first, every = tab.locator("section.grid").first, tab.locator("section.grid").last
    assert first.locator("h2, h3").inner_text() == "What flips each text"
    assert first.bounding_box()["y"] < tab.locator("figure").first.bounding_box()["y"]
    for table, names in ((first, ("replaced", "by", "distance", "changed", "flips at")),
                         (every, ("text_number", "word_text", "flips_at", "easier_than", "real_word"))):  # fmt: skip
        frame = table.locator(".scroll").bounding_box()
        ends = table.locator("th").evaluate_all(
            "all => all.map(e => [e.innerText.trim(), e.getBoundingClientRect().right])"
        )
        for name in names:
            assert dict(ends)[name] <= frame["x"] + frame["width"], name
