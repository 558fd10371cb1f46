"""The whole story in a real browser: four people, four windows, nobody reloads a page to see what is new."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener, Window

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

NAME = "depth-maps"
REASON = "Two cards to render the depth maps for Friday's review."
SLOW, FAST = "60", "300"  # times the wall clock, as the operator's buttons say


def test_four_people_live_the_whole_story(window: Opener, screenshots: Path) -> None:
    robin, dana, farah, omar = (window(name) for name in ("robin", "dana", "farah", "omar"))
    plain = window("dana", java_script_enabled=False)
    for one in (robin, dana, farah, omar, plain):
        one.log_in()
    for one in (robin, dana, farah, omar):
        one.live()

    the_operator_reads_the_fleet(omar)
    the_researcher_asks_by_keyboard(robin)
    robin.keep(screenshots, "story-1-robin-waits-for-dana")
    the_lead_approves_for_a_time(dana, plain, screenshots)
    phases = the_open_page_follows(robin)
    robin.keep(screenshots, "story-3-robin-runs")
    the_meter_moves_by_the_socket_alone(robin)
    the_operator_sees_the_woken_node(omar)
    omar.keep(screenshots, "story-4-omar-sees-the-node")

    the_operator_sets_the_clock(omar, FAST)
    the_workspace_falls_asleep_and_is_woken(robin)
    the_operator_sets_the_clock(omar, SLOW)

    the_month_sums_and_is_closed(farah, screenshots)
    assert phases == ["placed", "starting", "running"]


def the_operator_reads_the_fleet(omar: Window) -> None:
    omar.page.get_by_role("link", name="Fleet").first.click()
    for pool in ("h100-train", "h100-mig", "a10g-shared", "a100-burst"):
        omar.sees(pool)
    omar.live()


def the_researcher_asks_by_keyboard(robin: Window) -> None:
    """Two A100, though Vision has none: no mouse is touched from the form's first field to its button."""
    page = robin.page
    page.get_by_role("link", name="New workload").first.click()
    slice_ = page.get_by_role("article", name="1g.10gb slice of an H100: 10 GiB, isolated in hardware")
    expect(slice_).to_contain_text("Starts now")
    expect(slice_).to_contain_text("/h")
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type(NAME)
    tab_to(robin, "count")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("2")
    burst = page.get_by_role("article", name=re.compile("Whole A100"))
    expect(burst).to_contain_text("2 ×")
    expect(burst).to_contain_text("Needs Dana Okafor")
    tab_to(robin, "reason")
    page.keyboard.type(REASON)
    asks = burst.get_by_role("button", name="Ask Dana")
    tab_until(robin, lambda: bool(asks.evaluate("button => button === document.activeElement")))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(NAME)
    expect(page.locator("#state")).to_contain_text("waiting")
    robin.sees("Your lead has been asked.")
    robin.live()


def the_lead_approves_for_a_time(dana: Window, plain: Window, screenshots: Path) -> None:
    """She sees reason and effect. In her other browser, which runs no scripts, she comes too late and reads why."""
    plain.go("/approvals/")
    dana.go("/approvals/")
    item = dana.page.get_by_role("article").filter(has_text=REASON)
    expect(item).to_contain_text("Robin Vale asks for 2 cards of A100 40GB")
    expect(item.get_by_label("Effect of a yes")).to_contain_text(re.compile(r"Robin Vale alone\s*0 .*2"))
    dana.keep(screenshots, "story-2-dana-decides")
    item.get_by_text("Less, or for a time").click()
    item.get_by_label("Until the end of").first.fill(in_days(2))
    item.get_by_role("button", name="Approve so").click()
    expect(dana.page.get_by_role("article").filter(has_text=REASON)).to_have_count(0)
    plain.page.get_by_role("article").filter(has_text=REASON).get_by_role("button", name="Approve 2").click()
    plain.sees("Already approved by Dana Okafor")
    plain.forgive("409 (Conflict)")


def the_open_page_follows(robin: Window) -> list[str]:
    """Robin's page goes from waiting to running without being loaded again; answers the phases that were heard."""
    page = robin.page
    page.evaluate("window.loadedOnce = true")
    expect(page.locator("#state")).to_contain_text("running", timeout=30_000)
    assert page.evaluate("window.loadedOnce") is True
    expect(page.locator("#side")).to_contain_text("a100-burst")
    expect(page.get_by_role("heading", name="How it started")).to_be_visible()
    heard = [frame["phase"] for frame in robin.frames if frame["what"] == "phase"]
    return [phase for phase in dict.fromkeys(heard) if phase != "waiting"]


def the_meter_moves_by_the_socket_alone(robin: Window) -> None:
    """The number on the page is the one that the socket brought last, while not a single request is made."""
    reading = robin.page.locator("#use-now [data-reading=busy]")
    expect(reading).to_have_text(re.compile(r"\d+\s%"))
    expect(robin.page.locator("[data-chart=busy] canvas")).to_be_visible()
    for _ in range(3):
        if moved_without_request(robin, reading.inner_text):
            return
    pytest.fail("Every change of the meter came beside a request: the socket alone moves nothing.")


def moved_without_request(robin: Window, shown: Callable[[], str]) -> bool:
    before, requests, frames = shown(), len(robin.requests), len(robin.meters())
    eventually(robin, lambda: len(robin.meters()) > frames + 1 and shown() != before, "the meter moves")
    told = {round(frame["busy"] * 100) for frame in robin.meters()[frames:]}
    assert int(amount(shown())) in told
    return len(robin.requests) == requests


def the_operator_sees_the_woken_node(omar: Window) -> None:
    """On the page that has been open since the pool slept at zero."""
    pool = omar.page.locator("section, article").filter(has=omar.page.get_by_role("heading", name="a100-burst")).last
    expect(pool).to_contain_text(re.compile(r"a100-burst-\w{5}"))
    expect(
        omar.page.get_by_text(re.compile("resize pool a100-burst from 0 to 1", re.IGNORECASE)).first
    ).to_be_attached()


def the_operator_sets_the_clock(omar: Window, pace: str) -> None:
    omar.go("/fleet/")
    omar.page.get_by_role("form", name="How fast").get_by_role("button", name=re.compile(rf"\b{pace}\b")).click()
    expect(omar.page.locator(".clock .fast")).to_contain_text(pace)


def the_workspace_falls_asleep_and_is_woken(robin: Window) -> None:
    """Ninety quiet minutes later it sleeps, and its owner's quota is free; Wake brings it back."""
    page = robin.page
    expect(page.locator("#state")).to_contain_text("asleep", timeout=60_000)
    expect(page.locator("#side")).to_contain_text("Where it last ran")
    robin.sees("Quiet for 1 h 3")
    page.get_by_role("button", name="Wake").click()
    expect(page.locator("#state")).to_contain_text("running", timeout=30_000)
    robin.sees("Woken; it passes the quota check again.")


def the_month_sums_and_is_closed(farah: Window, screenshots: Path) -> None:
    page = farah.page
    page.get_by_role("link", name="Chargeback").first.click()
    months = page.get_by_role("region", name="Months").get_by_role("link")
    expect(months).to_have_count(2)
    months.nth(1).click()
    expect(page.get_by_text("open", exact=True).first).to_be_visible()
    for words in ("Unallocated", "Stranded", "Vision", "Robin Vale", "H100 80GB"):
        farah.sees(words)
    check_columns(farah)
    check_file(farah)
    farah.keep(screenshots, "story-5-farah-reads-the-month")
    drill_down(farah)
    page.get_by_text("Close month…").click()
    page.get_by_role("button", name=re.compile("^Close ")).click()
    expect(page.locator(".top .pill", has_text="closed")).to_be_visible()
    expect(page.get_by_text("Close month…")).to_have_count(0)
    farah.keep(screenshots, "story-6-farah-closed-the-month")


def check_columns(farah: Window) -> None:
    """The amounts that one reads sum to the total that one reads, in each table."""
    for name in ("By team", "By person", "By GPU model", "By flavor", "Borne by the platform"):
        rows = farah.page.get_by_role("region", name=name).locator("table").first.locator("tr")
        texts = [cells for row in rows.all() if (cells := row.locator("td.n").all_inner_texts())]
        column = max(
            range(len(texts[-1])), key=lambda at: amount(texts[-1][at]) if money(texts[-1][at]) else Decimal(-1)
        )
        *parts, total = [amount(cells[column]) for cells in texts]
        assert sum(parts) == total, f"{name}: {parts} do not sum to {total}"


def check_file(farah: Window) -> None:
    with farah.page.expect_download() as waiting:
        farah.page.get_by_role("link", name="CSV").click()
    with Path(waiting.value.path()).open(newline="") as file:
        total = sum(Decimal(row["amount"]) for row in csv.DictReader(file))
    shown = farah.page.locator(".tiles .panel", has_text="Altogether").locator(".huge").inner_text()
    assert abs(total - amount(shown)) <= Decimal("0.005")


def drill_down(farah: Window) -> None:
    """From the team's row to a workload, to a placement, to its lines, and back."""
    page, month = farah.page, farah.page.url
    page.get_by_role("region", name="By team").get_by_role("link", name="Vision").click()
    page.locator("main table a").first.click()
    page.locator("main table a").first.click()
    expect(page.locator("main table tr")).not_to_have_count(1)
    page.goto(month)


def tab_to(window: Window, name: str) -> None:
    """Tab until the field of that name has the focus."""
    tab_until(window, lambda: window.page.evaluate("document.activeElement.name") == name)


def tab_until(window: Window, reached: Callable[[], bool]) -> None:
    for _ in range(60):
        window.page.keyboard.press("Tab")
        if reached():
            return
    pytest.fail("The focus never gets there by Tab.")


def in_days(days: int) -> str:
    return f"{datetime.now().astimezone() + timedelta(days=days):%Y-%m-%d}"


def money(text: str) -> bool:
    return re.fullmatch(r"[\d,  ]+\.\d\d", text.strip()) is not None


def amount(text: str) -> Decimal:
    return Decimal(re.sub(r"[^\d.-]", "", text) or "0")


def eventually(window: Window, happened: Callable[[], bool], what: str, patience: float = 20.0) -> None:
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, f"Not within {patience:g} s: {what}."
        window.page.wait_for_timeout(50)
