"""Each judge sees the faults of a site that has them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.judges.site import open_site
from tools import browser
from tools.judges import crawl, interface, markup, screen
from tools.judges.crawl import Page, Visitor, log_in, log_in_everybody
from tools.judges.findings import CouldNotJudge, Finding


@pytest.fixture
def base() -> Iterator[str]:
    with open_site() as address:
        yield address


def test_everybody_on_the_log_in_page_is_logged_in(base: str) -> None:
    visitors = log_in_everybody(base)
    assert [visitor.role for visitor in visitors] == ["ada", "bo"]
    assert [visitor.cookie("session").value for visitor in visitors] == ["ada", "bo"]


def test_a_log_in_page_without_people_stops_the_judges(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl, "LOGIN", "/nothing/")
    with pytest.raises(CouldNotJudge, match="/nothing/ answered 404 and lists nobody"):
        log_in_everybody(base)


def test_a_refused_log_in_stops_the_judges(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.judges.site.Handler.person", lambda _self: "")
    with pytest.raises(CouldNotJudge, match="ada could not log in: / answered 403"):
        log_in(base, "ada")


def test_the_crawl_follows_links_to_our_own_pages(base: str) -> None:
    pages, _ = crawl.crawl(log_in(base, "ada"))
    assert [page.path for page in pages] == ["/", "/good/?page=2&sort=name", "/rows/1/", "/rows/2/"]


def test_the_crawl_reports_a_link_to_nowhere(base: str) -> None:
    _, findings = crawl.crawl(log_in(base, "ada"))
    assert findings == [Finding("links", "a link to /gone/ answers 404", "/rows/*/", "ada follows /gone/")]


def test_the_crawl_has_an_end(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl, "PER_ROLE", 2)
    assert len(crawl.crawl(log_in(base, "ada"))[0]) == 2


def test_strangers_see_the_log_in_page_and_a_missing_page(base: str) -> None:
    assert [(page.path, page.status) for page in crawl.strangers_pages(base)] == [
        ("/login/", 200),
        ("/there-is-no-such-page/", 404),
    ]


@pytest.mark.browser
def test_axe_and_the_browser_see_what_is_wrong(base: str) -> None:
    visitor = log_in(base, "ada")
    chromium = browser.find_browser()
    assert chromium

    found = screen.judge(chromium, [visitor.get("/good/"), visitor.get("/rows/2/")], [visitor], base)

    assert {(finding.judge, finding.rule) for finding in found if finding.where == "/rows/*/"} == {
        ("axe", "image-alt"),
        ("browser", "a request answers 404"),
        ("browser", "an error on the console"),
        ("browser", "a script breaks"),
    }
    assert [finding for finding in found if finding.where == "/good/"] == []


@pytest.mark.browser
def test_a_missing_page_may_be_missing(base: str) -> None:
    chromium = browser.find_browser()
    assert chromium
    assert screen.judge(chromium, crawl.strangers_pages(base), [], base) == []


def page(path: str) -> Page:
    return Page("ada", path, 200, "text/html", b"<p>")


def vnu_says(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """Let the checker print this; its own work is done in `make judge`."""

    def run(words: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 0, stdout=answer.replace("FILE", words[-1]), stderr="no memory")

    monkeypatch.setattr("tools.judges.markup.subprocess.run", run)


def test_what_vnu_says_is_told_by_page_and_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {"url": "file:FILE", "message": "Bad value “row-17” for “id” here.", "lastLine": 3, "extract": "<p\n id>"}
    vnu_says(monkeypatch, json.dumps({"messages": [message]}))

    found = markup.judge(["vnu"], [page("/rows/17/")], [], tmp_path, tmp_path)

    assert found == [
        Finding("vnu", "Bad value “…” for “id” here.", "/rows/*/", "000-rows-17.html, line 3: <p id>"),
    ]


def test_a_checker_that_says_nothing_is_no_acquittal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vnu_says(monkeypatch, "")
    with pytest.raises(CouldNotJudge, match="no answer: no memory"):
        markup.judge(["vnu"], [page("/")], [], tmp_path, tmp_path)


def report(tested: int = 2, **parts: Any) -> dict[str, Any]:
    return {"operations": {"tested": tested}, "failures": [], "errors": [], **parts}


def test_failures_of_the_api_are_told_by_operation() -> None:
    failure = {"code": "ST101", "title": "Server error", "operations": ["GET /api/teams/{id}/", "POST /api/teams/"]}
    assert interface.findings(report(failures=[failure]), "as ada") == [
        Finding("schemathesis", "ST101 Server error", "GET /api/teams/{id}/", "as ada"),
        Finding("schemathesis", "ST101 Server error", "POST /api/teams/", "as ada"),
    ]


def test_an_error_is_a_finding_and_an_untested_api_no_acquittal() -> None:
    assert interface.findings(report(errors=["no schema"]), "")[0].rule == "an error"
    with pytest.raises(CouldNotJudge, match="tested no operation"):
        interface.findings(report(tested=0), "")


def test_schemathesis_goes_in_with_a_person_s_session(base: str) -> None:
    environment = interface.session(log_in(base, "ada"))

    assert environment == {"BERTH_SESSION": "ada", "BERTH_CSRF": "c"}


def test_a_visitor_without_a_session_is_a_sentence() -> None:
    with pytest.raises(CouldNotJudge, match="eve has no session cookie"):
        interface.session(Visitor("eve", "http://127.0.0.1"))
