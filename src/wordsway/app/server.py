"""The addresses of the page, and the stream that tells a client how its job goes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from wordsway import __version__
from wordsway.app.guard import Guard, read_json
from wordsway.app.jobs import Full, Job, Worker
from wordsway.app.measuring import Kept, Measured, explain_word, measure
from wordsway.app.offers import Offer
from wordsway.app.page_request import MOST_TOKENS, MOST_WEIGHTS, PageRequest
from wordsway.models.loading.sentiment import NAME as SENTIMENT
from wordsway.report.page import report_html, script, stylesheet
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS, MAPS, SIMPLE_OUTPUTS

EXAMPLE = "The food was good, but the waiter was rude."
_PAUSE = 0.05  # between two looks at what a job has said


def make_app(offers: Mapping[str, Offer], worker: Worker, port: int, token: str) -> Starlette:
    """The application for one start of the page."""
    pages = _Pages(offers, worker, token)
    routes = [
        Route("/", pages.page),
        Route("/static/{name}", pages.static),
        Route("/measure", pages.measure, methods=["POST"]),
        Route("/word", pages.word, methods=["POST"]),
        Route("/report/{key}", pages.report),
        Route("/result/{key}", pages.result),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, port=port, token=token)],  # pyright: ignore[reportArgumentType]
        exception_handlers={HTTPException: _told, InputError: _told, 500: _told},  # pyright: ignore[reportArgumentType]
    )


class _Pages:
    def __init__(self, offers: Mapping[str, Offer], worker: Worker, token: str) -> None:
        self.offers, self.worker, self.token, self.kept = offers, worker, token, Kept()

    async def page(self, request: Request) -> Response:
        return HTMLResponse(page_html(self.offers, self.token))

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        own: dict[str, tuple[Callable[[], str], str]] = {
            "app.js": (lambda: _asset("app.js"), "text/javascript"),
            "app.css": (lambda: _asset("app.css"), "text/css"),
            "report.js": (script, "text/javascript"),
            "report.css": (stylesheet, "text/css"),
        }
        if name not in own:
            raise HTTPException(404, "there is no such file")
        make, kind = own[name]
        return Response(make(), media_type=kind)

    async def measure(self, request: Request) -> Response:
        asked = PageRequest.of(await read_json(request), self.offers)
        return self._begin(request, measure(asked, self.kept))

    async def word(self, request: Request) -> Response:
        asked = await read_json(request)
        key, word = (asked.get("job"), asked.get("word")) if isinstance(asked, dict) else (None, None)
        if not isinstance(key, str) or not isinstance(word, int) or isinstance(word, bool):
            raise InputError("a word is asked for by its job and its number")
        single = self._measured(key).single
        if single is None or word not in {each.word for each in single.words or ()}:
            raise HTTPException(404, f"there is no word {word} in this result")
        return self._begin(request, explain_word(key, word, self.kept))

    async def report(self, request: Request) -> Response:
        measured = self._measured(request.path_params["key"])
        content = await asyncio.to_thread(report_html, measured.result)
        return _download(content, "text/html", "report.html")

    async def result(self, request: Request) -> Response:
        measured = self._measured(request.path_params["key"])
        content = json.dumps(measured.result.to_dict(), indent=1, allow_nan=False) + "\n"
        return _download(content, "application/json", "result.json")

    def _measured(self, key: str) -> Measured:
        measured = self.kept.get(key)
        if measured is None:
            raise HTTPException(404, "this result is no longer kept; measure the text again")
        return measured

    def _begin(self, request: Request, work: Callable[[Job], None]) -> Response:
        try:
            job = self.worker.submit(work)
        except Full:
            raise HTTPException(503, "too many measurements are waiting already; try again in a while") from None
        return StreamingResponse(self._events(request, job), media_type="application/x-ndjson")

    async def _events(self, request: Request, job: Job) -> AsyncIterator[str]:
        """One JSON object a line, until the job has ended. A client that goes away cancels its job."""
        sent, told = 0, -1
        try:
            yield _line({"event": "job", "job": job.id})
            while True:
                ended = job.ended  # before its events are read, so that none is missed
                ahead = self.worker.ahead(job)
                if ahead != told and (ahead or told > 0):
                    yield _line({"event": "waiting", "ahead": ahead})
                told = ahead
                while sent < len(job.events):
                    yield _line(job.events[sent])
                    sent += 1
                if ended:
                    return
                if self.worker.closing:
                    yield _line({"event": "error", "message": "wordsway app was stopped"})
                    return
                if await request.is_disconnected():
                    return
                await asyncio.sleep(_PAUSE)
        finally:
            self.worker.cancel(job)


def page_html(offers: Mapping[str, Offer], token: str) -> str:
    """The page itself. Names of files are data, so all of it is escaped."""
    from jinja2 import Environment, StrictUndefined

    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_asset("page.html.j2"))
    return template.render(
        token=token,
        version=__version__,
        example=EXAMPLE,
        maps=MAPS,
        models=list(offers.values()),
        encoders=[offer for offer in offers.values() if offer.name != SENTIMENT],
        outputs=SIMPLE_OUTPUTS,
        budgets=tuple(BUDGETS),
        most_tokens=MOST_TOKENS,
        most_weights=MOST_WEIGHTS,
    )


def _asset(name: str) -> str:
    return (resources.files("wordsway.app") / "static" / name).read_text(encoding="utf-8")


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, allow_nan=False) + "\n"


def _download(content: str, kind: str, name: str) -> Response:
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})


async def _told(request: Request, error: Exception) -> Response:
    """Return an error as a sentence that the page shows."""
    if isinstance(error, HTTPException):
        return JSONResponse({"message": error.detail}, error.status_code, headers=error.headers)
    if isinstance(error, InputError):
        return JSONResponse({"message": str(error)}, 422)
    return JSONResponse({"message": "this went wrong; the terminal says more"}, 500)
