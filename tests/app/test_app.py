"""The page's server: who may ask, what may be asked, the line of jobs, and that its commands measure the same."""

import json
import os
import queue
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import torch
from typer.testing import CliRunner

import wordsway as ws
from app_site import Site
from wordsway.app import server
from wordsway.app.guard import MOST_BYTES
from wordsway.app.jobs import MOST_WAITING, Job
from wordsway.app.measuring import MOST_KEPT, Kept, segments
from wordsway.app.offers import find_offers
from wordsway.app.page_request import MOST_CHARACTERS, MOST_TOKENS, PageRequest
from wordsway.cli.main import app
from wordsway.measures.question import Question
from wordsway.report.page import fragment_html
from wordsway.support.digits import three
from wordsway.support.result import result_of

SMILE = {"text": "I love her smile", "map": "raf", "weights": 1}
LONG = {"text": "The food was good, but the waiter was rude and slow. " * 12, "model": "minilm", "budget": "thorough"}


def test_the_page_is_ours_alone(site: Site) -> None:
    page = site.client.get("/")
    assert page.status_code == 200 and site.token in page.text and "//" not in page.text.replace("<!doctype", "")
    for name, kind in (("app.js", "text/javascript"), ("app.css", "text/css"), ("report.css", "text/css")):
        found = site.client.get(f"/static/{name}")
        assert found.status_code == 200 and found.headers["content-type"].startswith(kind)
        assert "http" not in found.text.replace("http://www.w3.org/2000/svg", "")
    for name in ("/static/page.html.j2", "/static/..%2Fserver.py", "/static/__init__.py", "/nothing", "/report/x"):
        assert site.client.get(name).status_code == 404, name
    assert site.client.get("/measure").status_code == 405


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/nothing", "/report/x"])
def test_headers_of_every_answer(site: Site, path: str) -> None:
    for answer in (site.client.get(path), site.client.get(path, headers={"Host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "form-action 'none'" in policy and "base-uri 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", ""])
def test_other_hosts_are_refused(site: Site, host: str) -> None:
    headers = {"Host": host.format(port=site.port)}
    assert site.client.get("/", headers=headers).status_code in (400, 421)
    assert site.client.post("/measure", headers=headers, json=SMILE).status_code in (400, 421)
    assert not site.worker.busy


def test_localhost_is_this_machine(site: Site) -> None:
    assert site.client.get("/", headers={"Host": f"localhost:{site.port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["null", "http://evil.example", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_other_origins_are_refused(site: Site, origin: str) -> None:
    headers = {"Origin": origin.format(port=site.port)}
    for answer in (
        site.client.post("/measure", headers=headers, json=SMILE),
        site.client.get("/", headers=headers),
        site.client.options("/measure", headers={**headers, "Access-Control-Request-Method": "POST"}),
    ):
        assert answer.status_code == 403 and "origin" in answer.json()["message"]
    assert not site.worker.busy


def test_a_request_must_be_ours(site: Site) -> None:
    post = site.client.post
    for token in (b"", b"guess", b"\xe9"):
        assert post("/measure", headers={b"X-Wordsway-Token": token}, json=SMILE).status_code == 403
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert post("/measure", headers=form, content=json.dumps(SMILE)).status_code == 415
    assert post("/word", headers={"Content-Type": "text/plain"}, content="{}").status_code == 415
    for content in (b"", b"{", b"[" * 100_000, b"\xff"):
        answer = post("/measure", headers={"Content-Type": "application/json"}, content=content)
        assert answer.status_code == 400 and "JSON" in answer.json()["message"]
    assert not site.worker.busy


def test_sizes_are_limited(site: Site) -> None:
    kind = {"Content-Type": "application/json"}
    assert site.client.post("/measure", headers=kind, content=b" " * 300_000).status_code == 413
    # Without a length beforehand no more is read than allowed.
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 10**9:
            sent += 10_000
            yield b" " * 10_000

    try:
        assert site.client.post("/measure", headers=kind, content=endless()).status_code == 413
    except httpx.TransportError:
        pass  # the server hung up while we were still sending
    assert sent < 10**8


MODEL = {"map": None, "weights": None}
WRONG = [
    ({"text": " "}, "empty"),
    ({"text": 3}, "must be a str"),
    ({"text": "a" * (MOST_CHARACTERS + 1)}, "20,000"),
    ({"text": "a\0b"}, "NUL"),
    ({"text": "\ud800"}, "surrogate"),
    ({"model": "minilm"}, "not about both"),
    ({"map": None, "model": "minilm", "weights": 2}, "not about both"),
    ({"weights": 0}, "draws of the weights: from 1 to 50"),
    ({"weights": 51}, "draws of the weights: from 1 to 50"),
    ({"weights": 2.5}, "weights must be a whole number"),
    ({"map": "os:getcwd"}, "not known"),
    ({"map": "raf:nonsense=1"}, "nonsense"),
    ({"map": "raf:heads=a"}, "whole number"),
    ({"encoder": "bert-base-uncased"}, "not offered"),
    ({"encoder": "/etc"}, "not offered"),
    ({"encoder": "sentiment"}, "not an encoder"),
    ({**MODEL, "model": "../../etc"}, "not offered"),
    ({**MODEL, "model": "reinit:minilm"}, "not offered"),
    ({**MODEL, "model": "minilm", "output": "layer:99"}, "output"),
    ({"radius": 0}, "positive"),
    ({"radius": float("nan")}, "radius must be a number"),
    ({"radius": "1"}, "radius must be a number"),
    ({"radius": 10**400}, "radius must be a number"),
    ({"n": 1.5}, "n must be a whole number"),
    ({"n": 0}, "tokens to keep"),
    ({"seed": True}, "seed must be a whole number"),
    ({"seed": -1}, "whole numbers from 0"),
    ({"budget": "1000000000"}, "budget"),
    ({"certificate": 1}, "true or false"),
    ({"device": "cuda"}, "no 'device'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_wrong_questions(site: Site, change: dict[str, Any], message: str) -> None:
    kind = {"Content-Type": "application/json"}
    answer = site.client.post("/measure", headers=kind, content=json.dumps({**SMILE, **change}))
    assert answer.status_code == 422 and message in answer.json()["message"], answer.text
    assert site.client.post("/measure", json=[1]).status_code == 422


@pytest.mark.slow
def test_what_turns_out_wrong_later(site: Site) -> None:
    def error(**change: Any) -> str:
        return site.all_events({**SMILE, **change})["error"][0]["message"]

    assert "more than the 6" in error(n=100)
    assert "layer" in error(layer=99)
    assert "512" in error(text="word " * 600)
    assert "divide" in error(map="raf:heads=7") or "heads" in error(map="raf:heads=7")
    assert site.all_events({**SMILE, **MODEL, "model": "minilm", "output": "logits"})["error"]
    assert not site.worker.busy


def test_a_text(site: Site) -> None:
    text = "I <script>alert(1)</script> love\nher smile & unbelievableness"
    with site.events({"text": text, "weights": 1, "seed": 3, "radius": 0.5}) as events:
        heard = list(events)
    names = [event["event"] for event in heard]
    assert names[:3] == ["job", "loading", "text"] and names[-1] == "done" and set(names[3:-1]) == {"move"}
    tokens = ws.encode(text)
    expected = ws.word_sensitivity(ws.named_map("raf", len(tokens), 384, 3), tokens, seed=3, radius=0.5 * 384**0.5)
    assert "".join(part["text"] for part in heard[2]["segments"]) == text
    last = {event["word"]: event["value"] for event in heard if event["event"] == "move"}
    assert last == pytest.approx({word.word: word.lower for word in expected.words or ()}, rel=1e-9)
    assert [event["done"] for event in heard[3:-1]] == sorted(event["done"] for event in heard[3:-1])
    assert heard[-2]["done"] == heard[2]["words"] == len(tokens.words)
    key, done = heard[0]["job"], heard[-1]
    assert "<script>" not in done["fragment"] and "&lt;" in done["fragment"]

    report = site.client.get(f"/report/{key}")
    assert report.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "<script>alert" not in report.text and "unbelievableness" in report.text
    saved = site.client.get(f"/result/{key}")
    assert saved.headers["content-disposition"] == 'attachment; filename="result.json"'
    assert saved.json()["lower"] == pytest.approx(expected.lower, rel=1e-9) and saved.json()["text"]["text"] == text
    assert saved.json()["made"]["command"] == done["command"]


@pytest.mark.slow
def test_notes_are_told(site: Site) -> None:
    heard = site.all_events({"text": "I love her smile so very much", "model": "minilm", "n": 6, "budget": "quick"})
    assert "kept only 6" in heard["done"][0]["notes"][0]
    assert heard["text"][0]["segments"][-1] == {"text": " so very much", "left_out": True}


COMMANDS: list[dict[str, Any]] = [
    SMILE,
    {"text": "It's \"good\", isn't it? $HOME `ls` \\ \n*", "map": "relu-raf", "radius": 1.25, "seed": 7, "weights": 1},
    {"text": "--json is no option here", "map": "raf:heads=4,causal", "n": 5, "certificate": False, "weights": 2},
    {"text": "-", "map": "rf", "budget": "quick", "weights": 1},
    {"text": "I love her smile", "map": "drf", "layer": 2, "weights": 1},
    {"text": "good word " * 300, "n": 12, "weights": 1},  # too long as a whole, but not its beginning
    {"text": "I love her smile", "weights": 3, "budget": "quick", "seed": 5},
    {"text": "--good food", "model": "sentiment", "output": "logits", "budget": "quick", "radius": 0.5},
    {"text": "rude waiter", "model": "sentiment", "budget": "quick"},
]


@pytest.mark.slow
@pytest.mark.parametrize("question", COMMANDS)
def test_the_command_measures_the_same(site: Site, question: dict[str, Any]) -> None:
    same_as_the_command(site, question)


def test_watching() -> None:
    done = CliRunner().invoke(app, ["measure", "I love her smile", "--watch", "--json", "--budget", "quick"])
    table = json.loads(done.stdout)["per_token"]
    told = [f"token {row['token']}: at least {row['lower']:#.3g}, at most {row['upper']:#.3g}" for row in table]
    assert [line for line in done.stderr.splitlines() if line.startswith("token")] == told
    refused = CliRunner().invoke(app, ["measure", "I love her", "--against", "I love him", "--watch"])
    assert refused.exit_code == 2 and "--against" in refused.stderr


@pytest.mark.slow
def test_the_command_of_an_encoder(site: Site) -> None:
    found = same_as_the_command(site, {"text": "rude waiter", "model": "minilm", "budget": "quick"})
    assert found["format"] == "wordsway.radius-profile/2" and found["radii"] == [0.1, 1.0]


def same_as_the_command(site: Site, question: dict[str, Any]) -> dict[str, Any]:
    heard = site.all_events(question)
    shown = site.client.get(f"/result/{heard['job'][0]['job']}").json()
    parts = shlex.split(heard["done"][0]["command"])
    stdin = None
    if parts[:3] == ["echo", "-", "|"]:
        parts, stdin = parts[3:], b"-\n"
    assert parts[:2] == ["wordsway", "measure"]
    done = CliRunner().invoke(app, ["measure", "--json", *parts[2:]], input=stdin)
    assert done.exit_code == 0, done.stderr
    printed = json.loads(done.stdout)
    for values in (shown, printed, shown.get("first", {}), printed.get("first", {})):
        for changing in ("seconds", "made"):
            values.pop(changing, None)
    agree(printed, shown)
    return printed


def agree(one: Any, other: Any, where: str = "") -> None:
    """Equal but for rounding: how many searches share their steps is felt in the last digits of float64."""
    if isinstance(one, dict | list) and isinstance(other, type(one)) and len(one) == len(other):
        pairs = [(k, one[k], other[k]) for k in (one if isinstance(one, dict) else range(len(one)))]
        for key, first, second in pairs:
            agree(first, second, f"{where}/{key}")
    elif isinstance(one, float) and isinstance(other, float):
        # At a maximum the value is flat, so a delta is known to the root of what its value is known to.
        assert one == pytest.approx(other, rel=1e-9, abs=1e-6 if "/delta" in where else 1e-12), where
    else:
        assert one == other, where


@pytest.fixture
def gate(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator["queue.Queue[str]"]:
    """Jobs that go on until they are let through, in place of measurements."""
    through: queue.Queue[str] = queue.Queue()

    def slow(request: PageRequest, kept: Kept) -> Any:
        def work(job: Job) -> None:
            job.say("begun", text=request.text)
            while through.empty():
                job.check()
                time.sleep(0.01)
            through.get()
            job.say("done")

        return work

    monkeypatch.setattr(server, "measure", slow)
    yield through
    assert site.seconds_until_idle(5) < 5


def heard_until(events: Iterator[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(event for event in events if event["event"] == name)


def test_a_second_one_waits(site: Site, gate: "queue.Queue[str]") -> None:
    with site.events(SMILE) as first:
        heard_until(first, "begun")
        with site.events(SMILE) as second:
            assert heard_until(second, "waiting")["ahead"] == 1
            with site.events(SMILE) as third:
                assert heard_until(third, "waiting")["ahead"] == 2
                gate.put("go")
                assert heard_until(first, "done")
                assert heard_until(third, "waiting")["ahead"] == 1
                heard_until(second, "begun")
                gate.put("go")
                gate.put("go")
                assert heard_until(second, "done") and heard_until(third, "done")


def test_the_line_has_an_end(site: Site, gate: "queue.Queue[str]") -> None:
    def wait(begun: threading.Barrier, over: threading.Event) -> None:
        with httpx.Client(base_url=site.url, headers=site.client.headers, timeout=60, trust_env=False) as client:
            with client.stream("POST", "/measure", json=SMILE) as answer:
                lines = answer.iter_lines()
                assert next(lines)
                begun.wait(10)
                over.wait(10)

    count = 1 + site.worker.most_waiting
    begun, over = threading.Barrier(count + 1), threading.Event()
    clients = [threading.Thread(target=wait, args=[begun, over]) for _ in range(count)]
    clients[0].start()
    while not site.worker.running:
        time.sleep(0.01)
    for client in clients[1:]:
        client.start()
    begun.wait(10)
    answer = site.client.post("/measure", json=SMILE)
    assert answer.status_code == 503 and "waiting already" in answer.json()["message"]
    over.set()  # all of them go away, and so do their jobs
    for client in clients:
        client.join(10)
    assert site.seconds_until_idle() < 1


def test_a_client_that_goes_away(site: Site, gate: "queue.Queue[str]") -> None:
    first = site.client.send(site.client.build_request("POST", "/measure", json=SMILE), stream=True)
    lines = (json.loads(line) for line in first.iter_lines())
    heard_until(lines, "begun")
    with site.events(SMILE) as second:
        heard_until(second, "waiting")
    with site.events({**SMILE, "text": "third"}) as third:
        assert heard_until(third, "waiting")["ahead"] == 1  # the second one is out of the line
        began = time.perf_counter()
        first.close()
        assert heard_until(third, "begun")["text"] == "third" and time.perf_counter() - began < 1
        gate.put("go")
        assert heard_until(third, "done")


def test_a_fault_of_ours_is_told_and_the_next_job_runs(
    site: Site, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Question, "open", lambda question: 1 / 0)
        assert "ZeroDivisionError" in site.all_events(SMILE)["error"][0]["message"]
    assert "Traceback" in capfd.readouterr().err
    assert site.all_events(SMILE)["done"]


TRANSFORMER = {**LONG, "budget": "default", "model": None, "map": "transformer:depth=4"}


@pytest.mark.slow
@pytest.mark.parametrize("question", [LONG, {**LONG, "model": "sentiment"}, TRANSFORMER, {**TRANSFORMER, "weights": 1}])
def test_a_measurement_ends_soon_when_cancelled(site: Site, question: dict[str, Any]) -> None:
    for seconds in (0.0, 1.5):
        with site.events(question) as events:
            heard_until(events, "text")
            time.sleep(seconds)
            assert site.worker.running
        began = time.process_time()
        site.seconds_until_idle()
        # Work that is still done, by however many threads, not the time of a machine that is busy with other things.
        assert time.process_time() - began < 2 * torch.get_num_threads()
    assert site.all_events(SMILE)["done"]


@pytest.mark.slow
def test_few_results_are_kept(site: Site) -> None:
    keys = [site.all_events({**SMILE, "n": 3, "seed": seed})["job"][0]["job"] for seed in range(5)]
    assert [site.client.get(f"/result/{key}").status_code for key in keys] == [404, 200, 200, 200, 200]
    lost = site.client.post("/word", json={"job": keys[0], "word": 0})
    assert lost.status_code == 404 and "no longer kept" in lost.json()["message"]
    assert site.client.post("/word", json={"job": keys[1], "word": 99}).status_code == 404
    for wrong in ({"job": keys[1]}, {"job": 1, "word": 0}, {"job": keys[1], "word": True}, []):
        assert site.client.post("/word", json=wrong).status_code == 422


@pytest.mark.slow
@pytest.mark.parametrize("weights", [1, 2])
def test_a_word_is_looked_into(site: Site, weights: int) -> None:
    """The details are of a single map, or of the first of several draws."""

    def single() -> dict[str, Any]:
        whole = site.client.get(f"/result/{key}").json()
        return whole.get("first", whole)

    heard = site.all_events({"text": "I love her smile", "seed": 1, "weights": weights})
    key = heard["job"][0]["job"]
    assert heard["done"][0]["explains"] is True
    before = single()
    told = site.all_events({"job": key, "word": 4}, "/word")["word"][0]
    after = single()
    assert before.pop("explained") is None
    (explained,) = after.pop("explained")
    assert before == after and explained["word"] == 4 and explained["replacements"]
    for each in explained["replacements"]:
        assert each["text"] in told["fragment"] and three(each["change"]) in told["fragment"]
    assert site.all_events({"job": key, "word": 4}, "/word")["word"][0] == told
    site.all_events({"job": key, "word": 1}, "/word")
    assert [each["word"] for each in single()["explained"]] == [1, 4]
    assert explained["replacements"][0]["text"] in site.client.get(f"/report/{key}").text
    tokens = ws.encode("I love her smile")
    phi = ws.named_map("raf", len(tokens), 384, 1)
    same = ws.explain(phi, tokens, ws.word_sensitivity(phi, tokens, seed=1), [4], seed=1).explained
    assert same and json.loads(json.dumps(asdict(same[0]))) == explained


@pytest.mark.slow
@pytest.mark.parametrize(
    "evil", ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", '"><b>rude</b>']
)
def test_a_text_stays_a_text(site: Site, evil: str) -> None:
    """In the answer over draws: in words, labels, tables and their data, and the picture."""
    text = f"{evil} was rude"
    heard = site.all_events({"text": text, "map": "rf", "weights": 2, "budget": "quick", "certificate": False})
    (done,) = heard["done"]
    seen = Markup(done["fragment"])
    assert not seen.tags & {"img", "b", "iframe", "object", "link", "style"}
    assert all(kind == "application/json" for kind in seen.scripts)
    assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
    assert [part["text"] for part in heard["text"][0]["segments"] if "word" in part] == seen.words
    report = site.client.get(f"/report/{heard['job'][0]['job']}").text
    assert not Markup(report).tags & {"img", "b", "iframe"}


EVIL = "<img/onerror=a>"  # a word of a tokenizer that leaves it whole, and the name of a class
WHOLE = "recommendations"  # as long, and one token
assert len(WHOLE) == len(EVIL)


def evil(value: Any) -> Any:
    """JSON values of a result, with another word and another prediction."""
    if isinstance(value, dict):
        return {key: evil(each) for key, each in value.items()}
    if isinstance(value, list):
        return [evil(each) for each in value]
    return value.replace(WHOLE, EVIL).replace("negative", EVIL) if isinstance(value, str) else value


@pytest.mark.parametrize("kind", ["draws", pytest.param("flips", marks=pytest.mark.slow), "profile"])
def test_a_word_stays_a_word(kind: str) -> None:
    text = f"rude {WHOLE}"
    if kind == "draws":
        result: Any = ws.compare_draws(text, "rf", weights=2, budget="quick", certificate=False)
    elif kind == "flips":
        result = ws.flip_radius("sentiment", text, budget=20, real_words=20, effects=True)
    else:
        result = ws.radius_profile("raf", text, (0.1, 1.0), budget="quick", certificate=False)
    seen = Markup(fragment_html(result_of(evil(json.loads(json.dumps(result.to_dict()))), "this")))
    assert seen.words == ["rude", EVIL]
    assert "img" not in seen.tags and "onerror" not in seen.attributes


class Markup(HTMLParser):
    """What a browser would make of some HTML: its elements, their attributes, and the words of the text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.scripts: list[str | None] = []
        self.words: list[str] = []
        self._in_word = False
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._in_word = "data-word" in dict(attrs)
        if self._in_word:
            self.words.append("")
        if tag == "script":
            self.scripts.append(dict(attrs).get("type"))

    def handle_endtag(self, tag: str) -> None:
        self._in_word = False

    def handle_data(self, data: str) -> None:
        if self._in_word:
            self.words[-1] += data


@pytest.mark.slow
def test_a_prediction(site: Site) -> None:
    """The prediction comes first, and each word is said as soon as all is known of it."""
    heard = site.all_events({"text": "A rude waiter", "model": "sentiment", "budget": "quick"})
    key, (done,) = heard["job"][0]["job"], heard["done"]
    result = site.client.get(f"/result/{key}").json()
    assert result["format"] == "wordsway.flip-radius/2" and result["prediction"] == "negative"
    lead = done["fragment"].split("</p>")[0]
    assert f"Prediction: \u201cnegative\u201d, probability {result['probability']:.3f}." in lead
    assert "how far a change to one word was found to reach, not the word&#39;s importance" in done["fragment"]
    said = {event["word"]: event["value"] for event in heard["move"]}
    near = {word["word"]: 0.0 if word["real"] is None else 1 / word["real"]["radius"] for word in result["words"]}
    assert said == near and any(near.values())
    steps = [event["done"] for event in heard["step"]]
    assert steps == sorted(steps) and steps[-1] == heard["step"][-1]["total"]
    assert done["explains"] is False
    assert site.client.post("/word", json={"job": key, "word": 0}).status_code == 404


def test_the_number_of_draws_is_part_of_the_command() -> None:
    def command(draws: int | None, **more: Any) -> str:
        return PageRequest.of({"text": "x", **more}, find_offers()).command(draws)

    assert command(5) == "wordsway measure x --weights 5"
    assert command(3) == "wordsway measure x --weights 3"  # which took 20 s here, and may take longer elsewhere
    assert command(1) == "wordsway measure x"  # --weights 1 is a single map, and this one is a comparison of two
    assert command(None, weights=1) == "wordsway measure x --weights 1"
    assert command(2, weights=2, map="rf") == "wordsway measure x --map rf --weights 2"
    assert command(None, model="sentiment") == "wordsway measure x --model sentiment"


def test_revealed_weights_make_room(site: Site) -> None:
    keys = [site.all_events({**SMILE, "map": "rf", "budget": "quick", "n": 3})["job"][0]["job"] for _ in range(2)]
    assert site.all_events({"job": keys[1], "word": 1}, "/word")["word"]
    assert "measure this again" in site.all_events({"job": keys[0], "word": 1}, "/word")["error"][0]["message"]
    assert site.client.get(f"/report/{keys[0]}").status_code == 200


@pytest.mark.parametrize("text", ["I love her smile", " a  b\n c ", "x", "日本 語", "e\u0301 👩‍👩‍👧 ok"])
@pytest.mark.filterwarnings("ignore:minilm does not know")
def test_segments_are_the_text(text: str) -> None:
    tokens = ws.encode(text)
    parts = segments(tokens)
    assert "".join(part["text"] for part in parts) == text
    assert [part["text"] for part in parts if "word" in part] == list(tokens.words)


def test_the_docs_say_the_limits() -> None:
    told = (Path(__file__).parents[2] / "docs/app.md").read_text(encoding="utf-8")
    limits = f"{MOST_CHARACTERS:,} characters and {MOST_TOKENS} tokens. A request: at most {MOST_BYTES:,} bytes"
    assert limits in told and f"with {MOST_WAITING} in line" in told and f"last {MOST_KEPT} results" in told
    asked = {"text": server.EXAMPLE, "model": "sentiment", "budget": "quick"}
    assert PageRequest.of(asked, find_offers()).command() in told


def test_offers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORDSWAY_MODELS", raising=False)
    assert list(find_offers()) == ["minilm", "sentiment"]
    for name, files in {
        "home/mpnet/inner": ["config.json", "model.safetensors"],
        "home/pickled": ["config.json", "model.bin"],
        "home/small": ["small.Q4.gguf"],
        "mine": ["config.json", "model.safetensors"],
    }.items():
        (tmp_path / name).mkdir(parents=True)
        for file in files:
            (tmp_path / name / file).touch()
    monkeypatch.setenv("WORDSWAY_MODELS", str(tmp_path / "home"))
    found = find_offers([tmp_path / "mine", tmp_path / "home/small/small.Q4.gguf"])
    small = str(tmp_path / "home/small/small.Q4.gguf")
    assert list(found) == ["minilm", "sentiment", "mpnet", small, str(tmp_path / "mine")]
    assert found[small].label == "small.Q4"
    with pytest.raises(ws.InputError, match="has no model"):
        find_offers([tmp_path / "home/pickled"])


def test_the_command_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = CliRunner().invoke(app, ["app", "--no-open", "--port", str(taken.getsockname()[1])])
    assert busy.exit_code == 2 and "in use" in busy.stderr and "--port 0" in busy.stderr
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "uvicorn" else object())
    lacking = CliRunner().invoke(app, ["app", "--no-open"])
    assert lacking.exit_code == 2 and "needs uvicorn" in lacking.stderr and "'wordsway[app]'" in lacking.stderr


@pytest.mark.parametrize("wanted", [True, False])
def test_a_browser_is_opened_where_wanted(monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    opened: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    site = Site(open_browser=wanted)
    site.close()
    assert [opened.get(timeout=5)] == [f"{site.url}/"] if wanted else opened.empty()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["loading", "text"])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_running(stop: signal.Signals, when: str) -> None:
    command = [sys.executable, "-m", "wordsway", "app", "--no-open", "--port", "0"]
    plain = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  # a shell's background jobs ignore it
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}, preexec_fn=plain
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        client = httpx.Client(base_url=url, timeout=60, trust_env=False)
        token = client.get("/").text.split('wordsway-token" content="')[1].split('"')[0]
        with client.stream("POST", "/measure", json=LONG, headers={"X-Wordsway-Token": token}) as answer:
            lines = (json.loads(line) for line in answer.iter_lines())
            heard_until(lines, when)
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            process.send_signal(stop)
            began = time.perf_counter()
            _, errors = process.communicate(timeout=10)
        assert time.perf_counter() - began < 5 and process.returncode in (130, -stop)
        assert "Traceback" not in errors and "rror" not in errors, errors
        assert not [member for member in family if member.is_running() and member.status() != psutil.STATUS_ZOMBIE]
        with pytest.raises(httpx.TransportError):
            client.get("/")
        client.close()
    finally:
        process.kill()
