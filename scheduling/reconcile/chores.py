"""Work in the cluster, several pieces at a time: calls run beside each other, tables stay with the cycle's own thread.

A piece that fails, however it fails, does not stop the others. What is nobody's fault but the tables' or the lease's
ends the look.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError

from scheduling.cluster.port import ClusterError
from scheduling.reconcile.lease import Lease, LeaseLost

AT_ONCE = 8  # calls to one cluster at the same time: as many connections as the adapter keeps
BATCH = 64  # pieces between two questions for the lease
NOT_ITS_FAULT = (LeaseLost, OperationalError, InterfaceError)  # these end the look

Thing = TypeVar("Thing")

log = logging.getLogger(__name__)


class TakenOver(Exception):
    """The lease went to somebody else in the middle of a plan; the rest is left to them."""


@dataclass(slots=True)
class Done:
    """What was done and what could not be, in sentences."""

    actions: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    again: bool = False


def yes(_answer: object) -> bool:
    return True


def nothing(_fault: Exception) -> None:
    """What went wrong means nothing for the tables."""


@dataclass(frozen=True, slots=True)
class Chore:
    """One piece: `call` asks no tables, so it may run in a thread. Then, in the cycle's thread: `then`, which gets its
    answer and says whether it is worth a line, or `failed`, what the fault means for the tables."""

    what: object
    call: Callable[[], object]
    then: Callable[[Any], bool] = yes
    failed: Callable[[Exception], None] = nothing


def work_off(chores: Sequence[Chore], done: Done) -> None:
    """Carry them out, at most AT_ONCE at a time, and say what became of each."""
    for chore, answer in _called(chores):
        attempt(chore.what, partial(_concluded, chore, answer), done)


def attempt(what: object, act: Callable[[], bool], done: Done) -> str:
    """Do it and say so. Answers a sentence when it failed in a way that nobody foresaw: our fault, or the row's."""
    try:
        if act():
            done.actions.append(str(what))
            done.again = True
    except ClusterError as error:
        done.failures.append(f"{what}: {error}")
    except NOT_ITS_FAULT:
        raise
    except Exception as fault:
        log.exception("%s broke.", what)
        done.failures.append(f"{what}: {unforeseen(fault)}")
        return unforeseen(fault)
    return ""


def unforeseen(fault: Exception) -> str:
    return f"This broke on what nobody foresaw ({type(fault).__name__}: {str(fault)[:200]})."


def parts(things: Iterable[Thing], ours: Lease | None) -> Iterator[list[Thing]]:
    """The things in batches; before each the lease is asked for. Raises TakenOver when it is not ours any more."""
    part: list[Thing] = []
    for thing in things:
        part.append(thing)
        if len(part) == BATCH:
            still_ours(ours)
            yield part
            part = []
    if part:
        still_ours(ours)
        yield part


def still_ours(ours: Lease | None) -> None:
    if ours is not None and not ours.prolong():
        raise TakenOver


def _called(chores: Sequence[Chore]) -> Iterator[tuple[Chore, object]]:
    """Each with its answer or with its fault, in their order."""
    if len(chores) < 2:
        yield from ((chore, _answer_of(chore)) for chore in chores)
        return
    with ThreadPoolExecutor(min(AT_ONCE, len(chores)), thread_name_prefix="apply") as threads:
        yield from zip(chores, threads.map(_answer_of, chores), strict=True)


def _answer_of(chore: Chore) -> object:
    try:
        return chore.call()
    except Exception as fault:  # noqa: BLE001 (told by whoever waits for it)
        return fault


def _concluded(chore: Chore, answer: object) -> bool:
    if not isinstance(answer, Exception):
        return chore.then(answer)
    chore.failed(answer)
    raise answer
