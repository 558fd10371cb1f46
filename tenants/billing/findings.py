"""A disagreement, found and explained."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Which check found it, where, and what is wrong in a sentence. `mere_note`: worth knowing, nothing to repair."""

    check: str
    where: str
    text: str
    mere_note: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def counted(number: int, word: str) -> str:
    """ "1 line", "2 lines"."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
