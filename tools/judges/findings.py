"""What a judge found, and what we have accepted with a reason."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ACCEPTED_KEYS = {"judge", "rule", "where", "reason"}
VARIABLE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d(-\d\d)?|\d+")


class CouldNotJudge(Exception):
    """A judge could not do its work; the sentence says what is missing."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One complaint. `where` is a page's shape, a file or an operation; `example` helps to find the spot."""

    judge: str
    rule: str
    where: str
    example: str = ""

    def __str__(self) -> str:
        return f"{self.judge}: {self.where}: {self.rule}" + (f"\n    {self.example}" if self.example else "")


@dataclass(frozen=True, slots=True)
class Accepted:
    """Findings that we live with; `rule` and `where` are patterns with * and ?."""

    judge: str
    rule: str
    where: str
    reason: str

    def covers(self, finding: Finding) -> bool:
        return (
            self.judge == finding.judge
            and fnmatchcase(finding.rule, self.rule)
            and fnmatchcase(finding.where, self.where)
        )


def read_accepted(path: Path) -> list[Accepted]:
    """The entries of accepted.toml. Raises CouldNotJudge where one lacks a key or its reason is empty."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("accepted", [])
    for entry in entries:
        if set(entry) != ACCEPTED_KEYS or not all(isinstance(text, str) and text.strip() for text in entry.values()):
            raise CouldNotJudge(f"{path.name}: an entry needs {', '.join(sorted(ACCEPTED_KEYS))}, not {entry}.")
    return [Accepted(**entry) for entry in entries]


def verdict(
    found: Iterable[Finding], accepted: Sequence[Accepted], judges: Iterable[str]
) -> tuple[list[Finding], list[Accepted]]:
    """The findings that nothing covers, one for each rule and place, and the entries that nothing needed.

    Only the entries of the judges that sat today are missed.
    """
    distinct = {(finding.judge, finding.rule, finding.where): finding for finding in sorted(found, reverse=True)}
    findings = sorted(distinct.values())
    open_ones = [finding for finding in findings if not any(entry.covers(finding) for entry in accepted)]
    sat = set(judges)
    stale = [
        entry for entry in accepted if entry.judge in sat and not any(entry.covers(finding) for finding in findings)
    ]
    return open_ones, stale


def shape(path: str) -> str:
    """A path without what differs between rows: ids, numbers, dates. A query keeps only its names."""
    place, _, query = path.partition("?")
    names = sorted({part.partition("=")[0] for part in query.split("&") if part})
    return VARIABLE.sub("*", place) + (f"?{'&'.join(names)}" if names else "")
