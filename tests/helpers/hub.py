"""A hub of our own for tests: serves folders by the protocol that the Hugging Face client speaks."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlparse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Handler(BaseHTTPRequestHandler):
    repositories: dict[str, Path]  # "models/owner/name" or "datasets/owner/name"
    status: int | None  # answer everything with this
    asked: list[str]

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            wanted = json.loads(content).get("paths", [])
        except ValueError:
            wanted = []
        self._answer(body=True, wanted=wanted)

    def _answer(self, body: bool, wanted: list[str] | None = None) -> None:
        path = unquote(urlparse(self.path).path).strip("/")
        self.asked.append(path)
        if self.status:
            return self._send(self.status, b"{}", body)
        if path.startswith("api/"):
            return self._api(path.removeprefix("api/"), body, wanted)
        name, _, rest = path.partition("/resolve/")
        name = name if name.startswith("datasets/") else f"models/{name}"
        file = self.repositories.get(name, Path("/nowhere")) / rest.partition("/")[2]
        if not file.is_file():
            code = "EntryNotFound" if name in self.repositories else "RepoNotFound"
            return self._send(404, b"{}", body, {"X-Error-Code": code})
        content = file.read_bytes()
        tag = hashlib.sha1(content).hexdigest()
        self._send(200, content, body, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT})

    def _api(self, path: str, body: bool, wanted: list[str] | None) -> None:
        name = "/".join(path.split("/")[:3])
        if name not in self.repositories:
            return self._send(404, b"{}", body, {"X-Error-Code": "RepoNotFound"})
        folder = self.repositories[name]
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        entries = [
            {
                "type": "file",
                "path": str(file.relative_to(folder)),
                "size": file.stat().st_size,
                "oid": hashlib.sha1(file.read_bytes()).hexdigest(),
            }
            for file in files
        ]
        if "/tree/" in path:
            found: object = entries
        elif "/paths-info/" in path:
            found = [entry for entry in entries if entry["path"] in (wanted or [])]
        else:
            found = {
                "id": name.partition("/")[2],
                "sha": COMMIT,
                "private": False,
                "tags": [],
                "downloads": 0,
                "siblings": [{"rfilename": entry["path"]} for entry in entries],
            }
        self._send(200, json.dumps(found).encode(), body)

    def _send(self, status: int, content: bytes, body: bool, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def hub(repositories: dict[str, Path], status: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """The address of a running hub, and the paths that it is asked for."""
    asked: list[str] = []
    handler = type("Handler", (_Handler,), {"repositories": repositories, "status": status, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
