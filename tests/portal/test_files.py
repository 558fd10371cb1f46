"""Static files come from memory, with headers a browser can trust."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from django.test import AsyncClient, Client

VENDOR = Path(__file__).resolve().parent.parent.parent / "static" / "vendor"
SCRIPT = "/static/vendor/uplot/uPlot.iife.min.js"


def test_a_script_is_served_whole(client: Client) -> None:
    answer = client.get(SCRIPT)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.content == (VENDOR / "uplot" / "uPlot.iife.min.js").read_bytes()


async def test_an_asynchronous_server_gets_no_stream(async_client: AsyncClient) -> None:
    """Django warns of synchronous streams, and warnings are errors here."""
    answer = await async_client.get(SCRIPT)
    assert (answer.status_code, answer.streaming) == (200, False)


def test_an_unchanged_file_is_not_sent_again(client: Client) -> None:
    first = client.get(SCRIPT)
    again = client.get(SCRIPT, headers={"If-Modified-Since": first.headers["Last-Modified"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/static/nothing.js", "/static/../manage.py", "/static/vendor/"])
def test_what_is_no_static_file_is_not_there(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404


def test_vendored_files_are_what_their_list_says() -> None:
    listed = dict(
        re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)
    )
    present = {str(file.relative_to(VENDOR)): file for file in VENDOR.rglob("*") if file.is_file()}
    present.pop("README.md")
    assert listed == {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in present.items()}
