"""Instants, lengths and lists within sentences."""

from datetime import UTC, datetime, timezone
from datetime import timedelta as td

import pytest

from scheduling.planning.wording import instant, length, listed, sentence, several


def test_an_instant_is_said_in_utc() -> None:
    at = datetime(2026, 12, 1, 1, 30, tzinfo=timezone(td(hours=2)))

    assert instant(at) == "2026-11-30 23:30 UTC"
    assert instant(at.astimezone(UTC)) == instant(at)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (td(0), "0 s"),
        (td(seconds=-3), "0 s"),
        (td(seconds=59.9), "59 s"),
        (td(seconds=60), "1 min"),
        (td(minutes=90), "1 h 30 min"),
        (td(hours=2), "2 h"),
        (td(days=2, minutes=5, seconds=59), "48 h 5 min"),
    ],
)
def test_a_length(span: td, words: str) -> None:
    assert length(span) == words


def test_lists_count_what_they_do_not_name() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_others_messages_become_one_sentence() -> None:
    assert sentence(" no\nhealthy   devices. ") == "no healthy devices."
    assert sentence("") == ""
    assert len(sentence("x" * 10_000)) == 301


def test_several() -> None:
    assert several(1, "node") == "1 node"
    assert several(0, "node") == "0 nodes"
