"""The small tools: the browser's finder, the sum of two test runs, the check of links."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import browser, docs, test

VERDICTS = {
    "both runs passed": ([0, 0], 0, 9, 0),
    "one run had nothing to do": ([0, 5], 0, 9, 0),
    "a test failed": ([1, 0], 1, 9, 1),
    "no test ran": ([5, 5], 0, 0, 1),
    "a run broke off without counts": ([0, 3], 0, 9, 1),
    "a test was skipped": ([0, 0], 1, 9, 1),
}


@pytest.mark.parametrize(("statuses", "failed", "ran", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_the_run_s_verdict(statuses: list[int], failed: int, ran: int, expected: int) -> None:
    assert test.verdict(statuses, failed=failed, ran=ran) == expected


@pytest.mark.browser
def test_the_browser_is_there() -> None:
    assert browser.find_browser()
    assert browser.driver_runs()


def test_a_driver_that_does_not_start_is_no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "node").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "driver" / "node").chmod(0o755)
    monkeypatch.setattr(browser, "package_folders", lambda _name: [tmp_path])
    assert browser.is_ready() is False


def test_a_missing_browser_is_one_line_and_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("BERTH_BROWSER", raising=False)
    assert browser.main() == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# A heading: with `code`\n```\n# no heading\n```\n")
    return tmp_path / "page.md"


LINKS = {
    "a file": ("[x](other.md)", []),
    "a heading": ("[x](other.md#a-heading-with-code)", []),
    "another host": ("[x](https://example.org/gone)", []),
    "code is no link": ("```\n[x](gone.md)\n```", []),
    "no such file": ("[x](gone.md)", ["page.md: nothing at gone.md"]),
    "no such picture": ("![x](gone.png)", ["page.md: nothing at gone.png"]),
    "no such heading": ("[x](other.md#no-heading)", ["page.md: nothing at other.md#no-heading"]),
    "no such heading here": ("# One\n[x](#two)", ["page.md: nothing at #two"]),
}


@pytest.mark.parametrize(("text", "complaints"), LINKS.values(), ids=LINKS)
def test_links_lead_somewhere(page: Path, text: str, complaints: list[str]) -> None:
    page.write_text(text)
    assert docs.broken_links(page) == complaints


def test_the_documents_of_this_project_lead_somewhere() -> None:
    assert [line for document in docs.documents() for line in docs.broken_links(document)] == []
