"""Connections that ask for nothing: closed after some seconds, and few at a time, so that nobody is kept out by them.

Everybody who reaches the page is on this machine and has the same address, so the limit is one for all clients.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_IDLE = 24  # connections at a time; a browser opens six
IDLE_SECONDS = 5.0  # in which a request must be there, with its body


class Connection(H11Protocol):
    """One client's connection. It is idle while there is no whole request, and after its answer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.idle_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete or self.conn.their_state is h11.SEND_BODY

    @property
    def has_asked(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_to_wait()
        ours = [each for each in self.connections if isinstance(each, Connection) and not each.transport.is_closing()]
        # Those that never asked go first: who has asked before may be about to ask again.
        waiting = sorted((each for each in ours if each.idle), key=lambda each: (each.has_asked, each.idle_since))
        for longest in waiting[: max(len(waiting) - MOST_IDLE, 0)]:
            longest.transport.abort()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._begin_to_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _begin_to_wait(self) -> None:
        self.idle_since = self.loop.time()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(IDLE_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        if self.idle and not self.transport.is_closing():
            self.transport.close()
