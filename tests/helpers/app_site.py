"""The page of `wordsway app`, served by this process on a free port."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from wordsway.app.jobs import Worker
from wordsway.app.offers import find_offers
from wordsway.app.serving import PageServer, listen


class Site:
    """A running page and a client of it."""

    def __init__(self, open_browser: bool = False) -> None:
        self.listener, self.worker = listen(0), Worker()
        self.port = self.listener.getsockname()[1]
        self.server = PageServer(self.port, find_offers(), self.worker, open_browser)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]})
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=120, trust_env=False)
        self.token = re.findall('wordsway-token" content="([^"]+)"', self.client.get("/").text)[0]
        self.client.headers["X-Wordsway-Token"] = self.token

    def close(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join(10)
        assert not self.thread.is_alive() and self.worker.close(10)
        self.listener.close()

    @contextmanager
    def events(self, question: dict[str, Any], path: str = "/measure") -> Iterator[Iterator[dict[str, Any]]]:
        """What the page says, as it says it."""
        with self.client.stream("POST", path, json=question) as answer:
            if answer.status_code != 200:
                raise AssertionError((answer.status_code, answer.read()))
            yield (json.loads(line) for line in answer.iter_lines())

    def all_events(self, question: dict[str, Any], path: str = "/measure") -> dict[str, list[dict[str, Any]]]:
        with self.events(question, path) as events:
            found: dict[str, list[dict[str, Any]]] = {}
            for event in events:
                found.setdefault(event["event"], []).append(event)
            return found

    def seconds_until_idle(self, most: float = 30) -> float:
        began = time.perf_counter()
        while self.worker.busy:
            assert time.perf_counter() - began < most, "the job goes on"
            time.sleep(0.01)
        return time.perf_counter() - began
