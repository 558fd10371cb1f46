"""One person at the portal's doors, without a browser: pages, API and socket, as any client would use them."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from portal.demo import people

TIMEOUT = 15.0  # seconds for one answer
GLANCE = 0.1  # seconds between two looks at something that changes
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
JSON = "application/json"


class DidNotHappen(Exception):
    """A step of the story went otherwise; the sentence says what was seen."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a door said."""

    status: int
    text: str
    headers: Message  # names in any case

    @property
    def data(self) -> Any:
        return json.loads(self.text)

    @property
    def refusal(self) -> str:
        """The sentence of a refusal by the API."""
        return str(self.data["error"]["text"])


@dataclass(slots=True)
class Visitor:
    """Somebody with a session. `username` is one of the demo's people."""

    url: str
    username: str
    jar: CookieJar = field(default_factory=CookieJar)
    token: str = ""
    opener: OpenerDirector = field(init=False)

    def __post_init__(self) -> None:
        self.opener = build_opener(HTTPCookieProcessor(self.jar))

    def log_in(self) -> None:
        """By the log-in page: one click for the four, name and password for others. Then the API's token."""
        guises = {guise.username for guise in people.FOUR}
        by_name = {"username": self.username, "password": people.PASSWORD}
        self.submit("/login/", {"person": self.username} if self.username in guises else by_name, form_of="/login/")
        me = self.get("/api/v1/me/").data
        expect(me["person"]["username"] == self.username, f"The session is {me['person']['username']}'s.")
        self.token = me["csrf_token"]

    def get(self, path: str, status: int = 200) -> Answer:
        return self._ask(Request(self.url + path), status)  # noqa: S310 (an address of our own making)

    def post(self, path: str, body: Mapping[str, Any] | None = None, status: int = 200, **headers: str) -> Answer:
        """JSON to the API."""
        request = Request(self.url + path, data=json.dumps(body or {}).encode(), method="POST")  # noqa: S310
        for name, value in {"Content-Type": JSON, "X-CSRFToken": self.token, **headers}.items():
            request.add_header(name, value)
        return self._ask(request, status)

    def submit(self, path: str, fields: Mapping[str, str], *, form_of: str, status: int = 200) -> Answer:
        """A form of a page, with the token that stands in it; answers where the browser would end up."""
        found = TOKEN.search(self.get(form_of).text)
        expect(found is not None, f"{form_of} has no form with a token.")
        body = urlencode({**fields, "csrfmiddlewaretoken": found[1] if found else ""})
        request = Request(self.url + path, data=body.encode(), method="POST")  # noqa: S310
        request.add_header("Referer", self.url + form_of)
        return self._ask(request, status)

    @property
    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)

    def _ask(self, request: Request, status: int) -> Answer:
        try:
            with self.opener.open(request, timeout=TIMEOUT) as reply:
                answer = Answer(reply.status, reply.read().decode(), reply.headers)
        except HTTPError as fault:
            with fault:
                answer = Answer(fault.code, fault.read().decode(), fault.headers)
        expect(
            answer.status == status,
            f"{request.get_method()} {request.selector} answered {answer.status}, not {status}: {answer.text[:300]}",
        )
        return answer


@dataclass(frozen=True, slots=True)
class Heard:
    """One event and when it arrived, on the monotonic clock."""

    at: float
    event: Mapping[str, Any]


class Listener:
    """An open socket: everything it hears, with the time of arrival."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.heard: list[Heard] = []
        self.changed = threading.Condition()
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    def watch(self, *topics: str) -> None:
        """Raises DidNotHappen when one of the topics is refused."""
        self.socket.send(json.dumps({"watch": list(topics)}))
        reply = self.next(lambda event: event.get("what") == "watching" and set(event["topics"]) >= set(topics))
        expect(not reply.event.get("refused"), f"The socket refused {reply.event.get('refused')}.")

    def next(self, wanted: Callable[[Mapping[str, Any]], bool], *, since: int = 0, patience: float = TIMEOUT) -> Heard:
        """The first event from number `since` on that is wanted. Raises DidNotHappen after `patience` seconds."""
        deadline = time.monotonic() + patience
        with self.changed:
            while True:
                found = next((heard for heard in self.heard[since:] if wanted(heard.event)), None)
                if found:
                    return found
                if not self.changed.wait(max(0.0, deadline - time.monotonic())):
                    said = [heard.event.get("what") for heard in self.heard[-5:]]
                    raise DidNotHappen(f"The socket did not say it within {patience:g} s; it said {said} last.")

    def _listen(self) -> None:
        try:
            for message in self.socket:
                with self.changed:
                    self.heard.append(Heard(time.monotonic(), json.loads(message)))
                    self.changed.notify_all()
        except ConnectionClosed:
            return


@contextmanager
def listening(visitor: Visitor) -> Iterator[Listener]:
    """A socket with the visitor's session, closed at the end."""
    address = visitor.url.replace("http://", "ws://", 1) + "/live/"
    headers = {"Cookie": visitor.cookies}
    with connect(address, origin=Origin(visitor.url), additional_headers=headers) as socket:
        yield Listener(socket)


def expect(happened: object, otherwise: str) -> None:
    """Raises DidNotHappen with the sentence."""
    if not happened:
        raise DidNotHappen(otherwise)


def until(look: Callable[[], Any], what: str, *, patience: float = TIMEOUT) -> Any:
    """What `look()` sees, as soon as it sees something. Raises DidNotHappen after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not (seen := look()):
        expect(time.monotonic() < deadline, f"{what} did not happen within {patience:g} s.")
        time.sleep(GLANCE)
    return seen
