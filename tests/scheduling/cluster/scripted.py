"""An API that answers from a table and remembers what it was asked."""

import json
from collections.abc import Mapping
from typing import Any

from scheduling.cluster.api import JSON, Query
from scheduling.cluster.port import ClusterError


class ScriptedApi:
    def __init__(self, answers: Mapping[str, Any]) -> None:
        """`answers`: path -> document, text, bytes, or the error to raise; any other path is not found."""
        self.answers = answers
        self.asked: list[tuple[str, str, Any]] = []

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content: str = JSON,
        timeout: float | None = None,
    ) -> bytes:
        self.asked.append((method, path, body))
        answer = self.answers.get(path, ClusterError("not found", status=404, retry=False))
        if isinstance(answer, ClusterError):
            raise answer
        if isinstance(answer, bytes):
            return answer
        return answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()

    @property
    def written(self) -> list[tuple[str, str, Any]]:
        return [call for call in self.asked if call[0] != "GET"]
