"""A little site with known faults, on which the judges prove that they see something."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

HEAD = '<!doctype html><html lang="en"><head><title>A page</title></head><body><main><h1>A page</h1>'
TAIL = "</main></body></html>"
LOGIN = (
    '<form method="post" action="/enter/"><input type="hidden" name="token" value="t">'
    '<button name="person" value="ada">Ada</button><button name="person" value="bo">Bo</button></form>'
)
PAGES = {
    "/login/": LOGIN,
    "/": '<a href="/good/?page=2&amp;sort=name">good</a> <a href="/rows/1/">one</a> <a href="/rows/2/">two</a>'
    '<a href="/rows/3/">three</a> <a href="https://example.org/">away</a> <a href="/static/a.css">style</a>',
    "/good/": '<p>Nothing to say.</p><a href="/">home</a> <a href="list.csv">a file</a>',
    "/good/list.csv": "a,b",
    "/rows/1/": '<p>One</p><a href="/gone/">gone</a>',
    "/rows/2/": '<img src="/missing.png"><script>console.error(1); nothing.here()</script>',
    "/rows/3/": "<p>Three</p>",
}
SCHEMA = {
    "openapi": "3.0.3",
    "info": {"title": "A little API", "version": "1"},
    "paths": {
        "/api/rows/": {
            "get": {
                "operationId": "rows",
                "responses": {
                    "200": {"description": "ok", "content": {"application/json": {"schema": {"type": "array"}}}}
                },
            }
        }
    },
}
ANSWERS = {"/api/schema/": SCHEMA, "/api/rows/": {"not": "an array"}}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in ANSWERS:
            self.answer(200, json.dumps(ANSWERS[path]), "application/json")
        elif path not in PAGES:
            self.answer(404, f"{HEAD}<p>No such page.</p>{TAIL}")
        elif path.endswith(".csv"):
            self.answer(200, PAGES[path], "text/csv")
        elif path == "/login/" or self.person():
            self.answer(200, HEAD + PAGES[path] + TAIL)
        else:
            self.answer(403, f"{HEAD}<p>Log in.</p>{TAIL}")

    def do_POST(self) -> None:
        fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        allowed = self.path == "/enter/" and fields.get("token") == ["t"]
        self.send_response(303 if allowed else 403)
        if allowed:
            self.send_header("Set-Cookie", f"session={fields['person'][0]}; Path=/")
            self.send_header("Set-Cookie", "csrf=c; Path=/")
            self.send_header("Location", "/")
        self.end_headers()

    def person(self) -> str:
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        return cookie.value if cookie else ""

    def answer(self, status: int, text: str, kind: str = "text/html; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (its parent's name)
        """Say nothing."""


@contextmanager
def open_site() -> Iterator[str]:
    """The site's address while the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    with open_site() as address:
        print(address, flush=True)
        threading.Event().wait()
