"""`manage.py lending`: limits shown and set, and what is said of nonsense."""

from __future__ import annotations

import json
from fractions import Fraction as F
from typing import Any

import pytest
from django.core.management import call_command

from tenants.errors import Refused
from tenants.models import LendingLimit
from tenants.services import set_lending_limit
from tests.world import H100, World


def said(capsys: Any, *words: str) -> str:
    call_command("lending", *words)
    return capsys.readouterr().out.strip()


def test_without_a_limit_there_is_none(world: World, capsys: Any) -> None:
    assert said(capsys, "vision", H100) == "Vision may borrow any and lend any of h100-80gb."
    assert not LendingLimit.objects.exists()


def test_a_limit_is_set_and_the_other_half_stays(world: World, capsys: Any) -> None:
    said(capsys, "vision", H100, "--borrow", "1/2", "--lend", "4")
    told = json.loads(said(capsys, "vision", H100, "--borrow", "0", "--json"))

    assert told == {"team": "vision", "model": H100, "borrow": "0", "lend": "4"}
    row = LendingLimit.objects.get(team=world.vision, model=H100)
    assert (row.borrowing, row.lending) == (F(0), F(4))


def test_any_takes_a_limit_away(world: World, capsys: Any) -> None:
    said(capsys, "vision", H100, "--borrow", "2")

    assert said(capsys, "vision", H100, "--borrow", "any") == "Vision may borrow any and lend any of h100-80gb."


NONSENSE = {
    "a team that is not there": (("nobody", H100), "There is no team “nobody”."),
    "a model that is not there": (("vision", "gtx"), "The catalog has no model “gtx”."),
    "no number": (("vision", H100, "--borrow", "some"), "--borrow “some” is no number of cards"),
    "less than nothing": (("vision", H100, "--lend=-1"), "--lend -1: nobody can lend less than 0 cards."),
}


@pytest.mark.parametrize(("words", "part"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_a_sentence(world: World, capsys: Any, words: tuple[str, ...], part: str) -> None:
    with pytest.raises(SystemExit) as end:
        call_command("lending", *words)

    assert end.value.code == 2
    assert part in capsys.readouterr().err
    assert not LendingLimit.objects.exists()


def test_the_service_refuses_less_than_nothing_too(world: World) -> None:
    with pytest.raises(Refused):
        set_lending_limit(team=world.vision, model=H100, borrowing=F(-1), lending=None)
