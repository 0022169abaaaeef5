"""Who asks for nothing keeps nobody out, who goes away frees the line, and memory stays what it is."""

import gc
import socket
import threading
import time
from contextlib import ExitStack
from typing import Any

import psutil
import pytest

from app_site import Site
from wordsway.app import connections, model_loading
from wordsway.measures.question import Question

SMILE = {"text": "I love her smile", "map": "raf", "weights": 1, "n": 3}


def connect(site: Site, first: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", site.port), timeout=20)
    try:
        client.sendall(first)
    except ConnectionError:
        pass  # it was closed already, to make room
    return client


HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: 127"
NO_HOST = b"POST /measure HTTP/1.1\r\nContent-Length: 9\r\n\r\n"
NO_BODY = b"POST /measure HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"


@pytest.mark.parametrize("first", [b"", HALF_A_HEAD, NO_HOST, NO_BODY])
def test_idle_connections_keep_nobody_out(site: Site, first: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(connect(site, first))
        began = time.perf_counter()
        assert site.client.get("/").status_code == 200 and site.all_events(SMILE)["done"]
        assert time.perf_counter() - began < 10


@pytest.mark.parametrize("slowly", [False, True])
def test_an_idle_connection_is_closed(site: Site, monkeypatch: pytest.MonkeyPatch, slowly: bool) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.6)
    with connect(site, b"GET / HTTP/1.1\r\nX: ") as client:
        if slowly:
            for _ in range(4):
                time.sleep(0.1)
                client.sendall(b"a")
        client.settimeout(5)
        assert client.recv(1) == b""


def test_a_stream_is_not_idle(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.2)
    real = Question.open

    def slow(question: Question) -> Any:
        time.sleep(1)
        return real(question)

    monkeypatch.setattr(Question, "open", slow)
    assert site.all_events(SMILE)["done"]


def test_a_tab_closed_while_a_model_loads(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real, go_on = Question.open, threading.Event()

    def hangs(question: Question) -> Any:
        assert go_on.wait(60)
        return real(question)

    with monkeypatch.context() as slow:
        slow.setattr(Question, "open", hangs)
        for left in range(1, model_loading.MOST_LEFT + 1):
            with site.events(SMILE) as events:
                assert next(event for event in events if event["event"] == "loading")
                time.sleep(0.2)
            assert site.seconds_until_idle() < 2 and len(model_loading.loading()) == left
        with site.events(SMILE) as third:  # waits until one of these has ended, and can be left as well
            assert next(event for event in third if event["event"] == "loading")
            time.sleep(0.2)
        assert site.seconds_until_idle() < 2 and len(model_loading.loading()) == model_loading.MOST_LEFT
    go_on.set()
    assert site.all_events(SMILE)["done"] and not model_loading.loading()


@pytest.mark.slow
def test_memory_is_flat_over_many_requests(site: Site) -> None:
    def use(requests: int) -> int:
        for number in range(requests):
            assert all(site.client.get(path).status_code == 200 for path in ("/", "/static/app.js") * 5)
            assert site.all_events({**SMILE, "seed": number})["done"]
        gc.collect()
        return psutil.Process().memory_info().rss

    before = use(6)
    grown = use(20) - before
    assert grown < 20 * 400_000, f"{grown / 20:,.0f} bytes a request"
