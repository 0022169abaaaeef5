"""The report: one file, escaped, complete, for every kind of result; how it looks is in test_report_page."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import wordsway as ws
from wordsway.cli.main import app
from wordsway.measures.flip_radii import RealFlip
from wordsway.measures.ranks import rank_name
from wordsway.report.measurement import lead_of
from wordsway.report.page import fragment_html, report_html, word_fragment
from wordsway.report.parts import LEVELS, MOST_ROWS, Grid, Report, level_of

EVIL = 'Bad <script>alert("x")</script> & <img src=x onerror=alert(1)> film, {{ 7 * 7 }} ---> </template></script>!'


class Seen(HTMLParser):
    """The tags of a page, and what it would fetch or run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def of(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture(scope="module")
def evil() -> ws.Sensitivity:
    phi = ws.RandomAttention().sample(384, seed=0)
    tokens = ws.encode(EVIL)
    result = ws.word_sensitivity(phi, tokens, budget="quick")
    return ws.explain(phi, tokens, result, 3)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "smoke"
    CliRunner().invoke(app, ["reproduce", "fig2", "fig3a", "fig4", "--scale", "smoke", "--out", str(folder)])
    return folder


class TestOneFile:
    def test_nothing_of_a_text_becomes_markup(self, evil: ws.Sensitivity) -> None:
        made = {"command": f"wordsway measure {EVIL!r}", "versions": {"torch": "<b>2</b>"}}
        named = {**evil.map, "map": "<script>alert(2)</script>"}
        page = report_html(replace(evil, made=made, map=named))
        seen = Seen(page)
        assert not seen.of("img") and "<script>alert" not in page and "onerror=alert" in page
        assert {attributes.get("type") for attributes in seen.of("script")} == {None, "application/json"}
        assert len(seen.of("script")) == 1 + page.count('class="grid"')
        assert not [k for _, attributes in seen.tags for k in attributes if k.startswith("on")]
        assert "{{ 7 * 7 }}" in page  # a text is no template
        shown = "".join(re.findall(r'<div class="text".*?</div>', page, re.DOTALL))
        assert "&lt;" in shown and "<script" not in shown

    def test_it_asks_for_nothing(self, evil: ws.Sensitivity) -> None:
        page = report_html(evil)
        seen = Seen(page)
        assert [attributes["href"] for attributes in seen.of("link")] == ["data:,"]
        assert not seen.of("iframe", "object", "embed", "form", "base", "audio", "video", "source")
        for attributes in (each for _, each in seen.tags):
            for name in ("src", "href", "xlink:href", "action"):
                assert (attributes.get(name) or "#").startswith(("#", "data:"))
        assert "url(" not in page.replace("url(#", "") and "@import" not in page

    def test_only_our_script_may_run(self, evil: ws.Sensitivity) -> None:
        page = report_html(evil)
        (policy,) = [each["content"] or "" for each in Seen(page).of("meta") if each.get("http-equiv")]
        code = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
        assert page.index("Content-Security-Policy") < page.index("<style>")

    def test_every_word_has_its_numbers_and_its_shade(self, evil: ws.Sensitivity) -> None:
        words = {each["data-word"]: each for each in Seen(fragment_html(evil)).of("button") if "data-word" in each}
        assert evil.words is not None and len(words) == len(evil.words)
        high, shades = max(w.lower for w in evil.words), set()
        for word in evil.words:
            shown = words[str(word.word)]
            assert float(shown["data-lower"] or 0) == pytest.approx(word.lower, rel=1e-5)
            assert float(shown["data-upper"] or 0) == pytest.approx(word.upper, rel=1e-5)
            assert f"rank {rank_name(word.rank, word.tied)} of {len(words)}" in (shown["aria-label"] or "")
            shades |= {name for name in (shown["class"] or "").split() if name.startswith("level-")}
        assert all(word.tied == len(words) for word in evil.words)  # bounds of all words overlap, so
        assert shades == {f"level-{level_of(high, 0.0, high)}"}  # they share a shade, on a scale from 0
        assert [each["tabindex"] for each in words.values()].count("0") == 1

    def test_details_of_a_word(self, evil: ws.Sensitivity) -> None:
        assert evil.explained
        explained = evil.explained[0]
        found = word_fragment(evil, explained.word)
        assert all(each.text in found for each in explained.replacements) and explained.tried in found
        with pytest.raises(ws.InputError, match="was not explained"):
            word_fragment(evil, 999)


class TestLead:
    """What the first sentences claim holds for what was measured, and for nothing else."""

    def test_a_certificate_is_about_what_was_measured(self) -> None:
        phi, tokens = ws.RandomAttention().sample(384, seed=0), ws.encode("The unbelievably good waiter was rude.")
        one = ws.word_sensitivity(phi, tokens, 1, budget="quick")
        assert one.upper is not None
        assert f"No allowed change to it can exceed {one.upper:.3g} (proven)." in lead_of(one)
        every = ws.word_sensitivity(phi, tokens, budget="quick")
        whose = f"any of the {len(every.per_token)} tokens or words that were measured"
        assert any(whose in said for said in lead_of(every))
        some = ws.word_sensitivity(phi, tokens, budget="quick", tokens_at_once=2)
        assert any("No allowed change to these tokens" in said for said in lead_of(some))
        assert lead_of(some)[-1] == "The text: The unbelievably good waiter was rude."

    def test_a_very_long_word_is_shortened(self, evil: ws.Sensitivity) -> None:
        assert evil.top_word is not None
        top = replace(evil.top_word, text="x" * 5000)
        assert max(len(said) for said in lead_of(replace(evil, words=(top,)))) < 200


def test_levels() -> None:
    assert [level_of(v, 1.0, 2.0) for v in (1.0, 1.5, 2.0)] == [0, 4, LEVELS - 1]
    assert level_of(3.0, 3.0, 3.0) == LEVELS - 1


class TestTables:
    def test_a_table_that_is_too_long_says_so(self) -> None:
        grid = Grid.of("All", "all", [{"k": k, "none": None} for k in range(MOST_ROWS + 5)], more="See the export.")
        assert len(grid.rows) == MOST_ROWS and grid.columns == ("k",)
        assert grid.note == "These are the first 20,000 of 20,005 rows. See the export."

    def test_what_all_rows_share_is_said_once(self) -> None:
        grid = Grid.of("All", "all", [{"k": k, "map": "raf"} for k in range(3)], fold=True)
        assert grid.columns == ("k",) and grid.note == "The same in all rows: map raf."

    def test_values_that_json_lacks(self) -> None:
        rows = [{"x": float("nan"), "y": 1 / 3, "z": [1, 2], "t": "</script>"}]
        page = report_html(Report("t", (), (Grid.of("All", "all", rows),)))
        data = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
        assert json.loads(data[0])["rows"] == [["nan", 0.333333, "1, 2", "</script>"]]


class TestKinds:
    """Every result that can be saved can be looked at."""

    def made(self, result: Any, tmp_path: Path) -> str:
        result.save(tmp_path / "result.json")
        ran = CliRunner().invoke(app, ["report", str(tmp_path / "result.json"), "-o", str(tmp_path / "r.html")])
        assert ran.exit_code == 0, ran.output
        return (tmp_path / "r.html").read_text(encoding="utf-8")

    def test_a_measurement(self, evil: ws.Sensitivity, tmp_path: Path) -> None:
        page = self.made(evil, tmp_path)
        assert page.count("<template data-explains") == 3 and "How it was made" in page

    def test_gaussian_tokens(self, tmp_path: Path) -> None:
        phi = ws.RandomFeatures().sample(n=6, d=8, seed=0)
        result = ws.word_sensitivity(phi, ws.synthetic_tokens(6, 8), [0, 3], budget="quick")
        page = self.made(result, tmp_path)
        assert "All moves" in page and 'class="text"' not in page
        together = ws.word_sensitivity(phi, ws.synthetic_tokens(6, 8), budget="quick", tokens_at_once=2)
        assert "together" in self.made(together, tmp_path)

    def test_a_caption_names_the_colours_that_are_there(self) -> None:
        kept = Path(__file__).parents[1] / "support" / "earlier_results" / "flip-radius-1.json"
        result = ws.FlipRadii.from_dict(json.loads(kept.read_text(encoding="utf-8"))["result"])
        (word,) = result.words
        real = RealFlip("hated", 1.1, 12.0, "negative")
        for colours in product((False, True), repeat=3):
            found, near, proven = colours
            other = replace(
                word, radius=0.3 if found else None, real=real if near else None, certified=0.1 if proven else 0.0
            )
            page = report_html(replace(result, words=(other,)))
            assert tuple(f"{colour}: " in page for colour in ("Blue", "Orange", "Green")) == colours

    def test_a_substitution(self, tmp_path: Path) -> None:
        phi = ws.RandomAttention().sample(384, seed=0)
        before, after = ws.encode(["I love her much", "I love her smile"])
        page = self.made(ws.substitution(phi, before, after, budget="quick"), tmp_path)
        assert "of the worst case" in page and "smile" in page

    @pytest.mark.slow
    def test_layers_attention_and_real_words(self, tmp_path: Path) -> None:
        text = "The food was good."
        page = self.made(ws.layer_profile("minilm", text, "good", budget="quick", noise_draws=4), tmp_path)
        assert "All layers" in page and "<svg" in page
        page = self.made(ws.attention_maps("minilm", text, word="good", attract=True, budget="quick"), tmp_path)
        assert "What a move can draw" in page and "<svg" in page
        options: dict[str, Any] = {"candidates": ["bad", "<b>awful</b>", "fine"], "top": 3}
        page = self.made(ws.substitutions("sentiment", text, "good", **options), tmp_path)
        assert "Real words that move it most" in page and "<b>awful" not in page

    def test_a_run(self, run_folder: Path) -> None:
        page = (run_folder / "report.html").read_text(encoding="utf-8")  # written at the end of `reproduce`
        drawn = [each for each in Seen(page).of("div") if each.get("role") == "img"]
        panels = [panel for name in ("fig2", "fig3a", "fig4") for panel in ws.find_study(name, "smoke").panels]
        assert len(drawn) == len(panels) == 7
        assert {"fig2-left-exponents", "fig3", "fig4"} <= set(re.findall(r'"name": ?"([^"]+)"', page))
        assert "verdict holds" in page and "wordsway" in page and "seeds" in page
        assert len(page.encode()) < 5e6

    def test_a_run_that_is_not_finished(self, run_folder: Path, tmp_path: Path) -> None:
        study = ws.Study("mine", {"map": "rf", "n": [4, 6], "d": 8, "trials": 2})
        from wordsway.studies.run.store import Store

        with Store.open(tmp_path / "run") as store:
            store.add_plans([study])
        assert "not measured yet" in report_html(tmp_path / "run")


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ("no json", "is not JSON"),
            ("[1, 2]", "no result of this version"),
            ('{"format": "wordsway.layers/2"}', "damaged"),
            ('{"format": "wordsway.sensitivity/3"}', "damaged"),
            ('{"format": "other/1"}', "'other/1'"),
        ],
    )
    def test_files(self, content: str, problem: str, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text(content)
        ran = CliRunner().invoke(app, ["report", str(tmp_path / "x.json"), "-o", str(tmp_path / "r.html")])
        assert ran.exit_code == 2 and problem in ran.output and not (tmp_path / "r.html").exists()

    @pytest.mark.parametrize("field", ["lower", "upper", "map", "text", "explained", "made", "seconds", "words"])
    @pytest.mark.parametrize("value", ["a string", [1], float("nan")])
    def test_values_of_another_type(self, evil: ws.Sensitivity, field: str, value: Any, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text(json.dumps({**evil.to_dict(), field: value}))
        with pytest.raises(ws.InputError, match=r"damaged|not JSON|not a saved"):
            report_html(tmp_path / "x.json")

    def test_nesting_without_end(self, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text("[" * 100_000)
        with pytest.raises(ws.InputError, match="not JSON"):
            report_html(tmp_path / "x.json")

    def test_two_results_in_one_file(self, tmp_path: Path) -> None:
        both = ["-o", str(tmp_path / "a.html"), "--out", str(tmp_path / "a.html")]
        ran = CliRunner().invoke(app, ["measure", "hello there", *both])
        assert ran.exit_code == 2 and "the same file" in ran.output
        ran = CliRunner().invoke(app, ["measure", "a b", "--against", "a c", "--explain", "2"])
        assert ran.exit_code == 2 and "--explain" in ran.output

    def test_places(self, tmp_path: Path) -> None:
        for source, problem in ((tmp_path, "no run in the folder"), (tmp_path / "gone", "there is no file or folder")):
            ran = CliRunner().invoke(app, ["report", str(source)])
            assert ran.exit_code == 2 and problem in ran.output
        (tmp_path / "x.json").write_text("{}")
        ran = CliRunner().invoke(app, ["report", str(tmp_path / "x.json"), "-o", "report.pdf"])
        assert ran.exit_code == 2 and "ends in .html" in ran.output
        with pytest.raises(ws.InputError, match="not of int"):
            report_html(3)


def test_measure_writes_a_page_and_keeps_what_was_explained(tmp_path: Path) -> None:
    page, kept = tmp_path / "page.html", tmp_path / "result.json"
    words = [
        "measure",
        "I love her smile",
        "--out",
        str(page),
        "--out",
        str(kept),
        "--explain",
        "2",
        "--budget",
        "quick",
        "--weights",
        "1",
    ]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0 and f"wrote {page}" in ran.output
    result = ws.load_result(kept)
    assert len(result.explained or ()) == 2 and (result.made or {})["command"].startswith("wordsway")
    assert page.read_text(encoding="utf-8").count("<template data-explains") == 2
    assert report_html(kept) == report_html(result)
    ran = CliRunner().invoke(app, [*words[:-1], "2", "--word", "love"])
    assert ran.exit_code == 0
    drawn = ws.load_result(kept)
    assert len(drawn.first.explained or ()) == 1 and (drawn.made or {})["command"].startswith("wordsway")
    assert page.read_text(encoding="utf-8").count("<template data-explains") == 1
    ran = CliRunner().invoke(app, ["measure", "--n", "5", "--d", "8", "--explain", "2"])
    assert ran.exit_code == 2 and "needs a text" in ran.output


@pytest.mark.slow
def test_other_results_say_how_they_were_made(tmp_path: Path) -> None:
    kept = str(tmp_path / "r.json")
    for words in (["attention", "I love her", "--word", "love"], ["measure", "I love her", "--against", "I love him"]):
        assert CliRunner().invoke(app, [*words, "--out", kept]).exit_code == 0
        page = report_html(kept)
        assert 'class="command"' in page and "<dt>memory</dt>" in page and "<dt>versions</dt>" in page


def test_figures_take_the_page_s_colours_and_names_of_their_own() -> None:
    from wordsway.report.svg import as_svg
    from wordsway.support.plotting import new_axes

    pages = []
    for _ in range(2):
        axes = new_axes()
        axes.scatter(torch.rand(20_000), torch.rand(20_000))
        axes.set_title("a <b> & --> title")
        pages.append(as_svg(axes.figure))
    assert all(len(page) < 600_000 and "<image" in page for page in pages)  # points as an image, text as lines
    names = [set(re.findall(r'\bid="([^"]+)"', page)) for page in pages]
    assert names[0] and not names[0] & names[1]
    assert "currentColor" in pages[0] and "#000000" not in pages[0] and "<style" not in pages[0]
    for page in pages:
        used = set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page))
        assert used <= set(re.findall(r'\bid="([^"]+)"', page))
