"""The life of the process: a port of this machine, the server, and an end that leaves nothing running."""

import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Mapping
from typing import Any

import uvicorn

from wordsway.app.connections import Connection
from wordsway.app.jobs import Worker
from wordsway.app.model_loading import loading
from wordsway.app.offers import Offer
from wordsway.app.server import make_app
from wordsway.support.errors import InputError

HOST = "127.0.0.1"
PORT = 8137
_TRIES = 20  # ports after the usual one, where it is taken
_PATIENCE = 3  # seconds that a job has to end in


def serve(offers: Mapping[str, Offer], port: int | None = None, open_browser: bool = True) -> None:
    """Run until Ctrl-C or SIGTERM. `port` 0 takes any that is free."""
    listener = listen(port)
    worker = Worker()
    server = PageServer(listener.getsockname()[1], offers, worker, open_browser)
    try:
        server.run(sockets=[listener])
    finally:
        ended = worker.close(_PATIENCE)
        listener.close()
        if not ended or loading():  # loading cannot be interrupted; waiting would look like a hang
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(128 + signal.SIGINT)
    if server.stopped_by is not None:  # the server hands a signal on, unless its loop has ended by then
        signal.raise_signal(server.stopped_by)


class PageServer(uvicorn.Server):
    """One start of the page, with a secret of its own."""

    def __init__(self, port: int, offers: Mapping[str, Offer], worker: Worker, open_browser: bool) -> None:
        self.worker, self.address, self.open_browser = worker, f"http://{HOST}:{port}/", open_browser
        self.stopped_by: int | None = None
        app = make_app(offers, worker, port, secrets.token_urlsafe(32))
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_level="warning",
                access_log=False,
                server_header=False,
                limit_concurrency=256,
                timeout_graceful_shutdown=2,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(f"wordsway is at {self.address} (Ctrl-C stops it)", flush=True)
        if self.open_browser:
            threading.Thread(target=webbrowser.open, args=[self.address], daemon=True).start()

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.worker.closing, self.stopped_by = True, sig  # streams see it and end
        super().handle_exit(sig, frame)


def listen(port: int | None) -> socket.socket:
    """A socket on this machine's own address; no other machine can reach it."""
    reason = ""
    for number in range(PORT, PORT + _TRIES) if port is None else [port]:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if os.name == "posix":  # a port that was just left may be taken again; elsewhere this means something else
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, number))
            listener.listen(64)
            return listener
        except OSError as error:
            listener.close()
            reason = error.strerror or str(error)
    where = f"port {port}" if port is not None else f"ports {PORT} to {PORT + _TRIES - 1}"
    raise InputError(f"{where} cannot be used ({reason}); --port 0 takes one that is free")
