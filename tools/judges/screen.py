"""Looks at every page in a real browser: axe judges its accessibility, and the browser itself what it complains of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Request, Response, sync_playwright
from playwright.sync_api import Page as Tab

from tools.browser import FLAGS
from tools.judges.crawl import Page, Visitor
from tools.judges.findings import Finding, shape

AXE, BROWSER = "axe", "browser"
VIEWPORT = {"width": 1280, "height": 900}
DARK_OPTIONS = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
PATIENCE = 20_000  # milliseconds


def judge(chromium: str, pages: Sequence[Page], visitors: Sequence[Visitor], base: str) -> list[Finding]:
    """Findings of every page in the role that saw it."""
    sessions = {visitor.role: visitor for visitor in visitors}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            return [
                finding
                for role, theirs in groupby(sorted(pages, key=lambda page: page.role), key=lambda page: page.role)
                for finding in look(browser, base, theirs, sessions.get(role))
            ]
        finally:
            browser.close()


def look(browser: Browser, base: str, pages: Iterable[Page], visitor: Visitor | None) -> Iterator[Finding]:
    context = browser.new_context(viewport=VIEWPORT, reduced_motion="reduce")  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE)
    if visitor:
        take_over(context, visitor)
    try:
        for page in pages:
            yield from look_at(context, base, page)
    finally:
        context.close()


def take_over(context: BrowserContext, visitor: Visitor) -> None:
    """Give the browser the session of a visitor."""
    context.add_cookies(
        [{"name": cookie.name, "value": cookie.value or "", "url": visitor.base} for cookie in visitor.cookies]
    )


def look_at(context: BrowserContext, base: str, page: Page) -> Iterator[Finding]:
    """Load one page; answers what the browser and axe say of it, in light and in dark colours."""
    where, said = shape(page.path), list[Finding]()
    tab = context.new_page()
    try:
        listen(tab, where, said, expected=page.status)
        tab.goto(base + page.path, wait_until="load")
        yield from complaints(Axe().run(tab).response, where, page.role)
        tab.emulate_media(color_scheme="dark")
        yield from complaints(Axe().run(tab, options=DARK_OPTIONS).response, where, f"{page.role}, dark")
    finally:
        tab.close()
    yield from said


def listen(tab: Tab, where: str, said: list[Finding], expected: int) -> None:
    """Note what the browser complains of while it shows the page: scripts, styles, refused or missing files."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:  # on_response knows which
            said.append(Finding(BROWSER, "an error on the console", where, message.text[:300]))

    def on_response(response: Response) -> None:
        if response.status >= 400 and response.status != expected:
            said.append(Finding(BROWSER, f"a request answers {response.status}", where, shape(response.url)))

    def on_failure(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # what leaving a page breaks off
            said.append(Finding(BROWSER, "a request fails", where, f"{shape(request.url)}: {request.failure}"))

    tab.on("console", on_console)
    tab.on("response", on_response)
    tab.on("requestfailed", on_failure)
    tab.on("pageerror", lambda error: said.append(Finding(BROWSER, "a script breaks", where, str(error)[:300])))


def complaints(response: dict[str, Any], where: str, who: str) -> Iterator[Finding]:
    for violation in response["violations"]:
        node = violation["nodes"][0]
        spot = " ".join(str(part) for part in node["target"])
        example = f"{who}: {spot}: {node['html'][:160]} ({len(violation['nodes'])} in all; {violation['help']})"
        yield Finding(AXE, violation["id"], where, example)
