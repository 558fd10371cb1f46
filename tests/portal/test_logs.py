from __future__ import annotations

import json
import logging
import logging.config
from typing import Any

import pytest
import structlog

from portal.logs import endings, logging_config


def line_of(config: dict[str, Any], record: logging.LogRecord) -> str:
    details = dict(config["formatters"]["lines"])
    factory = details.pop("()")
    return str(factory(**details).format(record))


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("library", logging.WARNING, __file__, 1, message, arguments, None)


def test_a_library_s_line_is_one_json_object() -> None:
    line = line_of(logging_config("INFO", readable=False), record("slow query: %s s", 3))
    content = json.loads(line)
    assert (content["event"], content["level"], content["logger"]) == ("slow query: 3 s", "warning", "library")
    assert content["time"].endswith("Z")


def test_a_line_break_in_hostile_text_begins_no_new_line() -> None:
    line = line_of(logging_config("INFO", readable=False), record("login failed for %s", 'eve\n{"level": "info"}'))
    assert "\n" not in line


def test_an_endless_text_is_cut() -> None:
    line = line_of(logging_config("INFO", readable=False), record("%s", "x" * 1_000_000))
    assert len(line) < 3000
    assert "(1000000 characters)" in line


def test_our_own_lines_carry_their_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        structlog.get_logger("berth").info("placed", workload="a")
    assert caplog.records[0].msg["workload"] == "a"  # type: ignore[index]


def test_readable_lines_are_no_json() -> None:
    assert len(endings(readable=True)) == 2
    assert line_of(logging_config("INFO", readable=True), record("hello")).count("{") == 0
    logging_config("INFO", readable=False)
