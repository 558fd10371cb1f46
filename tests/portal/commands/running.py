"""Runs a command in this process and says how it ended."""

import json
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any
from unittest.mock import patch

from django.core.management import call_command


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    sentences: list[str]

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(name: str, *arguments: str, given: bytes = b"") -> Outcome:
    out, err = StringIO(), StringIO()
    code = 0
    with patch("sys.stdin", TextIOWrapper(BytesIO(given))):
        try:
            call_command(name, *arguments, stdout=out, stderr=err)
        except SystemExit as end:
            code = int(end.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue().splitlines())
