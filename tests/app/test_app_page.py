"""The page as people use it, in a real browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app_site import Site
from browser import Pages, serious
from wordsway.support.digits import three

pytestmark = pytest.mark.slow
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
LONG = "The food was good, but the waiter was rude and slow. " * 4


def opened(page: Pages, site: Site, weights: str = "1", **options: Any) -> Any:
    """The page with its example, asked for one map, which is quick."""
    shown = page(**options)
    shown.goto(site.url)
    shown.locator("#weights").evaluate("(field, value) => { field.value = value; }", weights)  # leaves the focus alone
    return shown


def says(shown: Any, place: str, text: str) -> None:
    shown.locator(f"#{place}", has_text=text).wait_for(timeout=60_000)


def measured(shown: Any, text: str) -> None:
    shown.fill("#text", text)
    shown.click("#run")
    shown.wait_for_selector("#keep:not([hidden])", timeout=180_000)


def test_type_and_see(site: Site, page: Pages) -> None:
    shown = opened(page, site)
    measured(shown, "I <script>alert(1)</script> love her smile")
    assert "Done in" in shown.inner_text("#status") and not shown.inner_text("#error")
    words = shown.query_selector_all("#result button.word")
    numbers = saved(shown)["words"]
    assert [word.inner_text() for word in words] == [word["text"] for word in numbers]
    assert only_data(shown)
    in_step(words, [word["lower"] for word in numbers])


def only_data(shown: Any) -> bool:
    """Whether no script is in the result but the data of its tables, which no browser runs."""
    return shown.query_selector('#result script:not([type="application/json"])') is None


def rows(shown: Any, columns: int) -> list[list[str]]:
    """The first columns of the table of all words."""
    cells = "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    return [row[:columns] for row in shown.locator("#result .grid tbody tr").evaluate_all(cells)]


def asked_for(page: Pages, site: Site, subject: str, text: str, weights: str = "1") -> Any:
    """The page with a quick answer about a text."""
    shown = opened(page, site, weights)
    shown.select_option("#subject", subject)
    shown.click("summary")
    shown.select_option("#budget", "quick")
    measured(shown, text)
    return shown


def test_a_text_over_draws(site: Site, page: Pages) -> None:
    """What is shown is what the numbers say, which are those of the command (tests/app/test_app.py)."""
    shown = asked_for(page, site, "map", "I <img src=x onerror=alert(1)> smile", "2")
    result = saved(shown)
    attention, features = result["maps"]
    assert (attention["name"], features["name"], len(result["seeds"])) == ("raf", "rf", 2)
    assert shown.inner_text("#command").endswith("--weights 2 --budget quick")
    of_features = {word["word"]: word for word in features["words"]}
    expected = []
    for word in sorted(attention["words"], key=lambda word: -word["mean"]):
        other = of_features[word["word"]]
        proven = sum(word["upper"]) / len(word["upper"])
        expected.append([word["text"], word["word"], ranks(word), word["mean"], word["sd"], proven, ranks(other)])
    found = rows(shown, 7)
    assert [[row[0], int(row[1]), row[2], row[6]] for row in found] == [[*row[:3], row[6]] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert [float(value) for value in row[3:6]] == pytest.approx(wanted[3:6], rel=5.1e-3)  # three digits are shown
    words = shown.query_selector_all("#result button.word")
    assert [word.inner_text() for word in words] == [word["text"] for word in attention["words"]]
    assert only_data(shown) and shown.query_selector("#result img") is None
    drawn = shown.locator("#result .drawing svg path[stroke]").first
    assert drawn.evaluate("path => getComputedStyle(path).stroke") != "none"  # the page forbids styles, not attributes
    words[0].click()
    shown.locator("#result .detail .columns").wait_for(timeout=60_000)
    assert f"raf: {attention['words'][0]['mean']:#.3g}, sd" in shown.inner_text("#result .detail")


def ranks(word: dict[str, Any]) -> str:
    first, last = word["rank"], word["rank"] + word["tied"] - 1
    return str(first) if first == last else f"{first}-{last}"


def test_a_classifier(site: Site, page: Pages) -> None:
    shown = asked_for(page, site, "model sentiment", "A <b>rude waiter")
    result = saved(shown)
    lead = shown.locator("#result .lead")
    sure = f", probability {result['probability']:.3f}."
    assert lead.first.inner_text() == f"Prediction: \u201c{result['prediction']}\u201d{sure}"
    assert "not the word's importance" in lead.last.inner_text()
    ordered = sorted(result["words"], key=lambda word: (word["real"] or {"radius": 1e9})["radius"])
    found = rows(shown, 10)
    for row, word in zip(found, ordered, strict=True):
        if word["real"] is not None:
            assert row[1:4] == [word["text"], str(word["word"]), word["real"]["text"]]
            assert float(row[4]) == pytest.approx(word["real"]["radius"], rel=5.1e-3)  # three digits are shown
    by_place = {row[2]: row for row in found}
    for word in result["words"]:
        row = by_place[str(word["word"])]
        assert float(row[5]) == pytest.approx(word["radius"], rel=5.1e-3)  # three digits are shown
        assert re.fullmatch(r"\d+(-\d+)?", row[6])
        assert float(row[7]) == pytest.approx(word["lowest"], rel=5.1e-3)  # three digits are shown
        assert row[8] == ("" if word["best"] is None else word["best"]["text"])
    places = sorted(result["words"], key=lambda word: word["word"])
    words = shown.query_selector_all("#result button.word")
    assert [word.inner_text() for word in words] == [word["text"] for word in places]
    assert only_data(shown) and shown.query_selector("#result .text b") is None
    real = next(k for k, word in enumerate(places) if word["real"] is not None)
    words[real].click()
    told = shown.inner_text("#result .detail")
    assert f"flipped by \u201c{places[real]['real']['text']}\u201d" in told and "P falls to" in told
    assert not serious(shown)


def test_an_encoder(site: Site, page: Pages) -> None:
    shown = asked_for(page, site, "model minilm", "A rude waiter")
    result = saved(shown)
    assert result["radii"] == [0.1, 1.0]
    ordered = sorted(result["words"], key=lambda word: -word["lower"][0])
    for row, word in zip(rows(shown, 7), ordered, strict=True):
        assert row[1:3] == [word["text"], str(word["word"])]
        assert [float(value) for value in row[3:]] == pytest.approx(
            [*word["lower"], *word["upper"]], rel=5.1e-3
        )  # three digits are shown
    assert "Words are ordered at radius 0.1" in shown.inner_text("#result")
    in_step(shown.query_selector_all("#result button.word"), [word["lower"][0] for word in result["words"]])


def test_a_word_is_looked_into(site: Site, page: Pages, tmp_path: Path) -> None:
    shown = asked_for(page, site, "map transformer", "The food was good <b>and</b> fine.")
    for number, word in ((3, "good"), (1, "food")):
        shown.locator("#result button.word").nth(number).click()
        detail = shown.locator("#result .detail")
        detail.locator("h3", has_text=word).wait_for()
        detail.locator(".columns").wait_for(timeout=60_000)
        told = detail.inner_text()
        explained = {each["word"]: each for each in saved(shown)["explained"]}[number + 1]
        assert all(part in told for part in ("Change of every layer", "Real words"))
        for each in explained["replacements"]:
            assert each["text"] in told and three(each["change"]) in told
        assert all(three(value) in told for value in explained["layers"])
    assert shown.query_selector("#result .text b") is None
    assert not serious(shown)
    with shown.expect_download() as download:
        shown.click("#report")
    assert download.value.suggested_filename == "report.html"
    download.value.save_as(tmp_path / "report.html")
    report = page()
    report.goto((tmp_path / "report.html").as_uri())
    assert report.locator("button.word").count() == shown.locator("#result button.word").count()


def test_choosing_a_word_while_another_measurement_runs(site: Site, page: Pages) -> None:
    """Looking into a word waits its turn too, and a choice of another word takes its place."""
    first, second = opened(page, site), opened(page, site)
    measured(first, "I love her smile")
    second.select_option("#subject", "model minilm")
    second.fill("#text", LONG)
    second.click("#run")
    second.wait_for_selector("#live button.word", timeout=60_000)
    words = first.locator("#result button.word")
    words.nth(1).click()
    says(first, "status", "1 measurement ahead of yours.")
    words.nth(2).click()
    says(first, "result", "her (rank")
    second.click("#cancel")
    first.locator("#result .detail .columns").wait_for(timeout=60_000)
    assert site.seconds_until_idle() < 5
    assert [each["word"] for each in saved(first)["explained"]] == [3]


def saved(shown: Any) -> dict[str, Any]:
    """The numbers that the page offers for download."""
    with shown.expect_download() as download:
        shown.click("#json")
    assert download.value.suggested_filename == "result.json"
    return json.loads(Path(download.value.path()).read_text(encoding="utf-8"))


def in_step(words: list[Any], values: list[float]) -> None:
    """Colours follow numbers, from 0: darker means more, and the darkest is the most."""
    level = [int(re.findall(r"level-(\d)", word.get_attribute("class"))[0]) for word in words]
    ordered = [level for _, level in sorted(zip(values, level, strict=True))]
    assert ordered == sorted(ordered) and ordered[-1] == 8
    light = [lightness(word) for word in words]
    for one, other in zip(range(len(words) - 1), range(1, len(words)), strict=True):
        if level[one] != level[other]:
            assert (light[one] > light[other]) == (level[one] < level[other])


def lightness(word: Any) -> float:
    colour = word.evaluate("word => getComputedStyle(word).backgroundColor")
    red, green, blue = (float(part) for part in re.findall(r"[\d.]+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_words_appear_one_after_the_other_and_stop_when_cancelled(site: Site, page: Pages) -> None:
    shown = opened(page, site)
    shown.select_option("#subject", "model minilm")
    assert shown.is_visible("#output") and not shown.is_visible("#encoder") and not shown.is_visible("#weights")
    shown.select_option("#subject", "map raf")
    assert not shown.is_visible("#output") and shown.is_visible("#weights")
    shown.click("summary")
    shown.select_option("#budget", "thorough")
    shown.fill("#text", LONG)
    shown.click("#run")
    done = shown.locator("#live button.word:not(.pending)")
    done.nth(3).wait_for(timeout=60_000)
    seen = done.evaluate_all("words => words.map(word => [Number(word.dataset.value), word.className])")
    most = max(seen)[0]
    for value, kind in seen:  # on a scale from 0
        assert kind == f"word level-{min(8, int(9 * value / most))}"
    assert shown.locator("#live button.word.pending").count() > 20
    assert re.search(r"\d+ of \d+ words, \d+ s", shown.inner_text("#count"))
    shown.click("#cancel")
    assert site.seconds_until_idle() < 1.5
    says(shown, "status", "Cancelled.")
    assert shown.is_enabled("#run") and shown.is_disabled("#cancel")
    shown.select_option("#subject", "map")
    measured(shown, "I love her smile")


def test_closing_the_tab_cancels(site: Site, page: Pages) -> None:
    shown = opened(page, site)
    shown.select_option("#subject", "model minilm")
    shown.fill("#text", LONG)
    shown.click("#run")
    shown.wait_for_selector("#live button.word", timeout=60_000)
    assert site.worker.busy
    shown.close()
    assert site.seconds_until_idle() < 2


def test_a_second_tab_is_told_to_wait(site: Site, page: Pages) -> None:
    first, second = opened(page, site), opened(page, site)
    first.select_option("#subject", "model minilm")
    first.fill("#text", LONG)
    first.click("#run")
    first.wait_for_selector("#live button.word", timeout=60_000)
    second.click("#run")
    says(second, "status", "1 measurement ahead of yours.")
    first.click("#cancel")
    second.wait_for_selector("#keep:not([hidden])", timeout=60_000)


def test_errors_are_sentences(site: Site, page: Pages) -> None:
    shown = opened(page, site)
    shown.click("summary")
    shown.fill("#n", "400")
    shown.click("#run")
    says(shown, "error", "more than the 13")
    shown.fill("#n", "5")
    assert not shown.is_visible("#options")
    shown.select_option("#subject", "map raf")
    shown.fill("#options", "heads=4,causal")
    shown.fill("#radius", "0.5")
    shown.click("#run")
    shown.wait_for_selector("#keep:not([hidden])", timeout=60_000)
    assert not shown.inner_text("#error")
    command = (
        "wordsway measure 'The food was good, but the waiter was rude.' --map raf:heads=4,causal --n 5 --weights 1 "
        "--radius 0.5"
    )
    assert shown.inner_text("#command") == command
    assert saved(shown)["n"] == 5
    shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown.click("#copy")
    says(shown, "status", "copied")
    assert shown.evaluate("navigator.clipboard.readText()") == command


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_for_everybody(site: Site, page: Pages, size: str, dark: bool, tmp_path: Path) -> None:
    width, height = SIZES[size]
    shown = opened(page, site, "2", width=width, height=height, dark=dark)
    shown.click("summary")
    shown.select_option("#budget", "quick")
    assert not serious(shown)
    measured(shown, "The food was good, but the waiter was unbelievably rude.")
    assert not serious(shown)
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth"), "something is wider than the screen"
    shown.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_by_keyboard_alone(site: Site, page: Pages) -> None:
    shown = opened(page, site)
    reached = tabbed(shown, until="run")
    assert {"text", "subject", "weights", "radius", "run"} <= set(reached)
    shown.keyboard.press("Enter")
    shown.wait_for_selector("#keep:not([hidden])", timeout=60_000)
    reached = tabbed(shown, until="copy")
    assert {"report", "json", "command", "copy"} <= set(reached)
    shown.focus("#result button.word[tabindex='0']")
    shown.keyboard.press("Home")
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("document.activeElement.textContent") == "food"
    shown.keyboard.press("Enter")
    shown.locator("#result .detail .columns").wait_for(timeout=60_000)


def tabbed(shown: Any, until: str) -> list[str]:
    """The ids of what the tab key reaches, up to one of them; each shows that it has the focus."""
    reached: list[str] = []
    while until not in reached:
        shown.keyboard.press("Tab")
        reached.append(shown.evaluate("document.activeElement.id"))
        assert len(reached) < 100
        outline = shown.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", reached[-1]
    return reached


def test_a_server_that_is_gone(page: Pages) -> None:
    site = Site()
    shown = opened(page, site, forgive="ERR_CONNECTION_REFUSED")
    site.close()
    shown.click("#run")
    says(shown, "error", "was it stopped")
