"""Checks of requests. Any web page open in a browser can send requests to 127.0.0.1; only our own gets an answer.

A page elsewhere is known by its Origin, a name that was pointed at this machine (DNS rebinding) by the Host; and what
makes the machine work must carry the secret that is written into our page at every start.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BYTES = 200_000  # of what a request may carry
_DRAINED = 4_000_000  # bytes that are read and thrown away of one that carries more
_SECONDS = 10  # for all of it to arrive
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_HANG_UP = {"Connection": "close"}  # what is still to come of a request is not read


class Guard:
    """Around the application: refuses other hosts, origins and protocols; adds headers to every answer."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        if port == 80:
            self.hosts |= {"127.0.0.1", "localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self.refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            if refusal[0] == 413:
                await _drain(receive)
            return await JSONResponse({"message": refusal[1]}, refusal[0], _HANG_UP)(scope, receive, with_headers)
        await self.app(scope, receive, with_headers)

    def refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """A status and why, unless the request is one of ours."""
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return 421, "this page answers to 127.0.0.1 and localhost at its own port only"
        if any(origin not in {f"http://{host}" for host in self.hosts} for origin in headers.getlist("origin")):
            return 403, "requests from other origins are refused"
        if method == "POST":
            if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
                return 415, "send JSON"
            if not secrets.compare_digest(headers.get("x-wordsway-token", "").encode(), self.token.encode()):
                return 403, "the page is from before a restart; load it again"
            length = headers.get("content-length", "0")
            if not length.isdecimal() or len(length) > 18 or int(length) > MOST_BYTES:
                return 413, f"a request may have at most {MOST_BYTES:,} bytes"
        return None


async def _drain(receive: Receive) -> None:
    """Take in some of what is still coming: who is cut off while sending may never see the answer."""
    left = _DRAINED
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


async def read_json(request: Request) -> Any:
    """Read the JSON body of a request, and stop at the largest allowed size."""
    content = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for part in request.stream():
                content += part
                if len(content) > MOST_BYTES:
                    raise HTTPException(413, f"a request may have at most {MOST_BYTES:,} bytes", _HANG_UP)
        return json.loads(content)
    except TimeoutError:
        raise HTTPException(408, "the request took too long to arrive", _HANG_UP) from None
    except (ValueError, RecursionError):
        raise HTTPException(400, "this is not JSON") from None
