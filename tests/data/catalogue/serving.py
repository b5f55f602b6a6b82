"""A real HTTP server on this machine with faults on demand, for the tests of downloads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """The files of the server, its faults, and the requests it received."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    """Bytes of the body after which each of the next answers is cut off."""
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    """Status, headers and body to give instead of the next answers."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range of each request."""
    url: str = ""


@contextmanager
def served(site: Site) -> Iterator[Site]:

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            site.asked.append((self.path, asked))
            if site.answers:
                self._answer(*site.answers.pop(0))
            elif self.path not in site.files:
                self._answer(404, {}, b"")
            else:
                content = site.files[self.path]
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and site.ranges else 0
                place = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
                headers = {"Content-Length": str(len(content) - start), **place}
                self._answer(206 if start else 200, headers, content[start:][: site.cuts.pop(0) if site.cuts else None])

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # of a client that has had enough
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
