"""Work in the cluster, several pieces at a time: calls run beside each other, tables stay with the cycle's own thread.

A piece that fails, however it fails, does not stop the others. What is nobody's fault but the tables' or the lease's
ends the look.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

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


Begun = Iterator[tuple[Chore, object]]
"""Chores that are under way, in their order, each with its answer or its fault as soon as somebody asks for it."""


class Crew:
    """The threads of one plan: at most AT_ONCE, none before two calls are to run beside each other, none afterwards."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None:
            self._threads.shutdown()

    def begin(self, chores: Sequence[Chore]) -> Begun:
        if len(chores) < 2:
            return iter([(chore, _answer_of(chore)) for chore in chores])
        if self._threads is None:
            self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="apply")
        under_way = [(chore, self._threads.submit(_answer_of, chore)) for chore in chores]
        return ((chore, answer.result()) for chore, answer in under_way)


def conclude(begun: Begun, done: Done) -> None:
    """Wait for each in turn, and say what became of it."""
    for chore, answer in begun:
        attempt(chore.what, partial(_concluded, chore, answer), done)


def work_off(chores: Sequence[Chore], done: Done) -> None:
    """Carry them out, several at a time, and say what became of each."""
    with Crew() as crew:
        conclude(crew.begin(chores), done)


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
