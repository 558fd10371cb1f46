"""Several at once: two posters, a poster and a closer. The database decides, and the ledger is the same."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection

from tenants.billing import checks, selectors
from tenants.billing.models import Charge, Statement
from tenants.billing.services import close_month
from tenants.errors import AlreadyDecided, Refused
from tests.tenants.billing.conftest import LATER

pytestmark = pytest.mark.django_db(transaction=True)


def together(*deeds: Callable[[], Any]) -> list[Any]:
    """What each came to, or the exception it ended with; all begin at the same moment."""
    gate = Barrier(len(deeds))
    outcomes: list[Any] = [None] * len(deeds)

    def run(number: int) -> None:
        gate.wait()
        try:
            outcomes[number] = deeds[number]()
        except Exception as error:  # noqa: BLE001 (it is the outcome)
            outcomes[number] = error
        finally:
            connection.close()

    threads = [Thread(target=run, args=[number]) for number in range(len(deeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_four_posters_of_the_same_hours_post_them_once(ledger: Any) -> None:
    facts = (
        ledger.robin("2026-06-03 07:13:11", "2026-06-05 21:00:05"),
        ledger.sasha("2026-06-10 00:00", "2026-06-11 00:00"),
    )

    posted = together(*[lambda: ledger.june(*facts)] * 4)

    lines = Charge.objects.count()
    assert sorted(each.charges for each in posted) == [0, 0, 0, lines]
    assert [each.findings for each in posted] == [[]] * 4
    assert selectors.totals("2026-06").card_seconds == 8 * 30 * 86400
    assert checks.reconciliation("2026-06") == []


def test_one_of_two_closers_is_told_that_the_other_was_first(ledger: Any) -> None:
    ledger.june()

    outcomes = together(*[lambda: close_month("2026-06", by=ledger.world.farah, now=LATER)] * 2)

    assert {type(outcome) for outcome in outcomes} == {Statement, AlreadyDecided}


def test_a_line_that_comes_while_a_month_is_closed_is_in_its_total_or_in_the_next_month(ledger: Any) -> None:
    ledger.june()

    def late() -> Any:
        line = ledger.sasha("2026-06-30 22:00", "2026-06-30 23:00", cluster="harbour-2")
        return ledger.post("2026-06-30 22:00", "2026-07-01 01:00", line, cluster="harbour-2")

    closed, posted = together(lambda: close_month("2026-06", by=ledger.world.farah, now=LATER), late)

    assert posted.charges == 1
    assert not isinstance(closed, Exception) or isinstance(closed, Refused)
    assert Charge.objects.get(cluster="harbour-2", kind="use").period in ("2026-06", "2026-07")
    assert checks.closings() == []
