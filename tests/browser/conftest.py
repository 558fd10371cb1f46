"""A demo and a real browser for one module of tests. Each person has a window of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, WebSocket, sync_playwright

from portal.demo.launcher import Demo, running
from portal.demo.people import person
from portal.processes import free_port
from tools.browser import FLAGS, find_browser

PATIENCE = 20_000  # milliseconds
NARROW, WIDE = 380, 1440


@dataclass
class Window:
    """One person's window: the page, what the browser complained of, and what came through the sockets."""

    page: Page
    username: str
    url: str
    complaints: list[str] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return person(self.username).name

    def log_in(self) -> None:
        """By one click on the person's name."""
        self.page.goto(f"{self.url}/login/")
        self.page.get_by_role("button", name=self.name).click()
        self.page.wait_for_url(f"{self.url}/")

    def go(self, path: str) -> None:
        self.page.goto(self.url + path)

    def live(self) -> None:
        """Until the page's socket has been told what to watch."""
        self.page.locator("[data-socket-state][data-state=live]").first.wait_for(state="attached")

    def meters(self) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame.get("what") == "meter"]

    def sees(self, text: str) -> None:
        self.page.get_by_text(text).first.wait_for()

    def forgive(self, words: str) -> None:
        """One complaint with these words was to be expected; it is not held against the page."""
        (found,) = [text for text in self.complaints if words in text]
        self.complaints.remove(found)

    def keep(self, folder: Path, name: str) -> None:
        self.page.screenshot(
            path=folder / f"{name}.png", full_page=True, caret="initial"
        )  # no style of its own, which the policy refuses


Opener = Callable[..., Window]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The whole product, started by its own launcher on free ports."""
    with running(Demo(tmp_path_factory.mktemp("demo"), free_port(), 60.0)) as started:
        yield started


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser is closed with the module: no other test runs beside its event loop."""
    with sync_playwright() as tools, closing(launched(tools)) as browser:
        yield browser


def launched(tools: Any) -> Browser:
    browser: Browser = tools.chromium.launch(executable_path=find_browser(), args=FLAGS)
    return browser


@pytest.fixture
def window(demo: Demo, chromium: Browser) -> Iterator[Opener]:
    """Opens windows; at the end of the test none of them may have had anything to complain of."""
    opened: list[Window] = []

    def open_window(username: str, **options: Any) -> Window:
        context = chromium.new_context(**{"viewport": {"width": WIDE, "height": 900}, "locale": "en-GB", **options})
        context.set_default_timeout(PATIENCE)
        found = Window(context.new_page(), username, demo.url)
        listen(found)
        opened.append(found)
        return found

    yield open_window
    complaints = [f"{one.username}: {text}" for one in opened for text in one.complaints]
    for one in opened:
        one.page.context.close()
    assert "\n".join(complaints) == ""


def listen(window: Window) -> None:
    """Note everything that a careful reader of the browser's console would."""
    page = window.page
    page.on("console", lambda message: note(window, message))
    page.on("pageerror", lambda error: window.complaints.append(f"{page.url}: {error}"))
    page.on("response", lambda response: note_response(window, response))
    page.on("websocket", lambda socket: hear(window, socket))
    page.on("request", lambda request: window.requests.append(request.url))


def note(window: Window, message: ConsoleMessage) -> None:
    if message.type in ("error", "warning"):
        window.complaints.append(f"{window.page.url}: {message.text}")


def note_response(window: Window, response: Response) -> None:
    if response.status >= 500:
        window.complaints.append(f"{response.url} answered {response.status}")


def hear(window: Window, socket: WebSocket) -> None:
    socket.on("framereceived", lambda text: window.frames.append(json.loads(text)))
