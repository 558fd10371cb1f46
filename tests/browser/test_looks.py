"""Every main page in each role, wide and narrow, light and dark: nothing sticks out or complains; a picture is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Route, WebSocketRoute, expect

from portal.demo.launcher import Demo
from portal.demo.visitor import Visitor
from tests.browser.conftest import NARROW, WIDE, Opener, Window

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

PAGES = {
    "robin": {
        "home": "/",
        "workloads": "/workloads/",
        "workloads-all": "/workloads/?phase=all",
        "workload": "tracking-lab",
        "new-workload": "/workloads/new/",
        "quotas": "/quotas/",
        "fleet": "/fleet/",
    },
    "dana": {"home": "/", "approvals": "/approvals/", "quotas": "/quotas/", "chargeback": "/chargeback/"},
    "farah": {"home": "/", "month": "last month", "drill-down": "drill-down"},
    "omar": {"home": "/", "fleet": "/fleet/", "pool": "h100-mig", "reports": "/fleet/reports/", "month": "last month"},
}
LOOKS = {
    "wide-light": (WIDE, "light"),
    "wide-dark": (WIDE, "dark"),
    "narrow-light": (NARROW, "light"),
    "narrow-dark": (NARROW, "dark"),
}


@pytest.mark.parametrize("username", PAGES)
def test_pages_of(username: str, window: Opener, demo: Demo, screenshots: Path) -> None:
    person = window(username)
    person.log_in()
    paths = {name: address_of(demo, username, where) for name, where in PAGES[username].items()}
    for look, (width, scheme) in LOOKS.items():
        person.page.set_viewport_size({"width": width, "height": 900})
        person.page.emulate_media(color_scheme=scheme)
        for name, path in paths.items():
            person.go(path)
            person.live()
            person.page.wait_for_timeout(350)  # one reading of the meters, for the picture
            check_width(person, name, width)
            person.keep(screenshots, f"{username}-{name}-{look}")


def test_the_log_in_page(window: Opener, screenshots: Path) -> None:
    stranger = window("robin")
    for look, (width, scheme) in LOOKS.items():
        stranger.page.set_viewport_size({"width": width, "height": 900})
        stranger.page.emulate_media(color_scheme=scheme)
        stranger.go("/login/")
        check_width(stranger, "login", width)
        stranger.keep(screenshots, f"login-{look}")


def test_without_a_socket_the_fragments_poll(window: Opener, demo: Demo) -> None:
    """The server's word still arrives, some seconds later, and the page says that it polls."""
    robin = window("robin")
    robin.page.route_web_socket(re.compile("/live/"), refuse)
    robin.log_in()
    robin.go("/workloads/")
    expect(robin.page.locator("[data-socket-words]").first).to_contain_text("polling")
    visitor = Visitor(demo.url, "robin")
    visitor.log_in()
    team = visitor.get("/api/v1/me/").data["teams"][0]["id"]
    sku = "a10g-24gb/time-slice-4/spot"
    visitor.post("/api/v1/workloads/", {"name": "polled", "kind": "workspace", "team": team, "flavor": sku}, 201)
    expect(robin.page.get_by_role("link", name="polled")).to_be_visible(timeout=25_000)
    robin.complaints.clear()  # of the refused socket itself


def test_what_was_asked_for_before_a_menu_opened_does_not_close_it(window: Opener, demo: Demo) -> None:
    """The fragment's answer is on its way when the menu is opened; it is taken once the menu is closed again."""
    omar = window("omar", viewport={"width": NARROW, "height": 900})
    omar.log_in()
    omar.go(address_of(demo, "omar", "tracking-lab"))
    omar.live()
    live = omar.page.locator("#live")
    expect(live).not_to_have_class(re.compile("htmx-request"))
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    omar.page.route(omar.page.url, hold, times=1)
    live.evaluate("part => htmx.trigger(part, 'refresh')")
    expect(live).to_have_class(re.compile("htmx-request"))
    omar.page.locator("#end").click()
    held[0].continue_()
    expect(live).not_to_have_class(re.compile("htmx-request"))
    button = omar.page.get_by_role("button", name="End tracking-lab")
    expect(button).to_be_in_viewport(ratio=1)
    with omar.page.expect_response(lambda answer: answer.url.endswith(omar.page.url)):
        omar.page.keyboard.press("Escape")
    expect(button).to_be_hidden()


def refuse(socket: WebSocketRoute) -> None:
    socket.close(code=1011, reason="No sockets here.")


def check_width(person: Window, name: str, width: int) -> None:
    """Nothing makes the whole page scroll sideways; wide tables scroll within themselves."""
    wide = person.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, f"{person.username}'s {name} is {wide} pixels wide in a window of {width}."


def address_of(demo: Demo, username: str, where: str) -> str:
    """The path; of a workload, a pool or a month by its name."""
    if where.startswith("/"):
        return where
    visitor = Visitor(demo.url, username)
    visitor.log_in()
    if where in ("last month", "drill-down"):
        period = sorted(one["period"] for one in visitor.get("/api/v1/chargeback/").data["results"])[-2]
        return f"/chargeback/{period}/" + ("workloads/" if where == "drill-down" else "")
    if where == "h100-mig":
        pools = visitor.get("/api/v1/fleet/").data["pools"]
        return next(f"/fleet/pools/{pool['id']}/" for pool in pools if pool["name"] == where)
    found = visitor.get(f"/api/v1/workloads/?search={where}").data["results"][0]
    return f"/workloads/{found['id']}/"
