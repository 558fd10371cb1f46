"""What our commands share: exit codes, one sentence per trouble, files that may be anything, and tables."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

DONE, FINDINGS, COULD_NOT = 0, 1, 2

MOST_BYTES = 256 * 2**20
STANDARD_INPUT = "standard input"


class CouldNot(Exception):
    """The command cannot do it; the text is a sentence with the file and the field."""


class Console(BaseCommand):
    """A command that needs no tables, and says by its exit code how it went."""

    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            code = self.work(**options)
        except CouldNot as refusal:
            self.complain(str(refusal))
            code = COULD_NOT
        if code:
            sys.exit(code)

    def work(self, **options: Any) -> int:
        """Do it; the exit code."""
        raise NotImplementedError

    def complain(self, sentence: str) -> None:
        self.stderr.write(printable(sentence))

    def print_json(self, value: object) -> None:
        self.stdout.write(json.dumps(value, indent=2))

    def print_table(self, rows: Sequence[Sequence[str]]) -> None:
        for line in table(rows):
            self.stdout.write(line)


def unreadable_tables(error: Exception) -> CouldNot:
    return CouldNot(
        f"The tables cannot be read: {error}. Check DATABASE_URL or BERTH_FOLDER; `manage.py migrate` makes new tables."
    )


def read_file(name: str) -> tuple[str, str]:
    """The name for sentences, and the text, of a file or of standard input (`-`)."""
    shown = STANDARD_INPUT if name == "-" else name
    try:
        raw = read_bytes(name)
    except OSError as error:
        raise CouldNot(f"{shown}: it cannot be read: {(error.strerror or str(error)).lower()}.") from None
    if len(raw) > MOST_BYTES:
        raise CouldNot(f"{shown}: it is larger than {MOST_BYTES // 2**20} MiB; give a part of it.")
    try:
        return shown, raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CouldNot(f"{shown}: byte {error.start} is not UTF-8 text.") from None


def read_bytes(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with Path(name).open("rb") as file:
        return file.read(MOST_BYTES + 1)


def table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Rows as lines of even columns; the first row is the head."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(shown[0]))]
    for row in shown:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def printable(text: str) -> str:
    """Somebody's text for a terminal: nothing in it can move the cursor or change the colours."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)
