"""Trying again after a failure: a growing pause, and an end to it."""

from dataclasses import replace
from datetime import timedelta as td

from scheduling.planning.facts import Phase, PodFact, Reason
from scheduling.planning.look import Look, Move
from scheduling.planning.wording import instant

MOST_FAILURES = 5
FIRST_BACK_OFF = td(seconds=30)
LONGEST_BACK_OFF = td(minutes=30)


def try_again(look: Look, reason: Reason, text: str, *, pod: PodFact | None = None, shun: str = "") -> Move:
    """Back to waiting after a growing pause, or to the end after too many failures in a row."""
    failures = look.workload.failures + 1
    if failures >= MOST_FAILURES:
        words = (
            f"{text}. That was failure {failures} of at most {MOST_FAILURES} in a row; open it again when it is mended."
        )
        return replace(look.step(Phase.ENDED, Reason.FAILED, words, pod=pod), failures=failures, shun=shun)
    until = look.now + back_off(failures)
    words = f"{text}. It is tried again from {instant(until)} on, elsewhere if there is room."
    move = look.step(Phase.WAITING, reason, words, pod=pod)
    return replace(move, failures=failures, shun=shun, not_before=until)


def back_off(failures: int) -> td:
    """How long to wait after so many failures in a row: 30 s x 2^failures, at most half an hour."""
    return min(LONGEST_BACK_OFF, FIRST_BACK_OFF * (1 << min(failures, 10)))
