"""Who may see which charges, and who closes a month."""

from __future__ import annotations

from typing import Any

import pytest

from tenants.access import standing
from tenants.billing.access import check_closes_months, teams_in_view
from tenants.errors import NotAllowed
from tenants.models import Membership, Role


def view(world: Any, who: str) -> list[str] | None:
    found = teams_in_view(standing(getattr(world, who)))
    return None if found is None else sorted(standing(world.omar).teams[pk].name for pk in found)


def test_finance_of_the_organisation_and_the_operator_see_everything(world: Any) -> None:
    assert view(world, "farah") is None
    assert view(world, "omar") is None


def test_leads_see_their_part_of_the_tree(world: Any) -> None:
    assert view(world, "dana") == ["Vision"]
    assert view(world, "lena") == ["Research", "Speech", "Vision"]


def test_finance_of_one_team_sees_that_team(world: Any) -> None:
    Membership.objects.create(team=world.speech, user=world.sasha, role=Role.FINANCE, since=world.now)

    assert view(world, "sasha") == ["Speech"]
    with pytest.raises(NotAllowed):
        check_closes_months(standing(world.sasha))


def test_researchers_see_no_charges(world: Any) -> None:
    with pytest.raises(NotAllowed, match="ask one of them"):
        view(world, "robin")


@pytest.mark.parametrize(("who", "may"), [("farah", True), ("omar", False), ("lena", False), ("robin", False)])
def test_only_finance_of_the_whole_closes_months(world: Any, who: str, may: bool) -> None:
    if may:
        check_closes_months(standing(getattr(world, who)))
    else:
        with pytest.raises(NotAllowed, match="finance of the whole organisation"):
            check_closes_months(standing(getattr(world, who)))
