"""`lending TEAM MODEL`: how much a team may borrow and lend where its cluster queues with Kueue."""

from argparse import ArgumentParser
from fractions import Fraction as F
from typing import Any

from django.db import DatabaseError

from portal.management.console import DONE, Console, CouldNot, unreadable_tables
from scheduling.planning.catalog import model as catalogued
from scheduling.planning.shares import number
from scheduling.wake import wake_all
from tenants.models import LendingLimit, Team
from tenants.services import set_lending_limit

ANY = "any"


class Command(Console):
    help = "Show or set how many cards of a model a team may borrow from others and lend to them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("team", metavar="TEAM", help="the team's short name")
        parser.add_argument("model", metavar="MODEL", help="a GPU model, as h100-80gb")
        parser.add_argument("--borrow", metavar="CARDS|any")
        parser.add_argument("--lend", metavar="CARDS|any")
        parser.add_argument("--json", action="store_true")

    def work(self, **options: Any) -> int:
        if catalogued(options["model"]) is None:
            raise CouldNot(f"The catalog has no model “{options['model']}”.")
        told = {key: cards_of(key, options[key]) for key in ("borrow", "lend") if options[key] is not None}
        try:
            found = self._limit(options["team"], options["model"], told)
        except DatabaseError as error:
            raise unreadable_tables(error) from None
        borrowing, lending = words(found.borrowing), words(found.lending)
        if options["json"]:
            self.print_json({"team": found.team.slug, "model": found.model, "borrow": borrowing, "lend": lending})
        else:
            self.stdout.write(f"{found.team} may borrow {borrowing} and lend {lending} of {found.model}.")
        return DONE

    def _limit(self, slug: str, model: str, told: dict[str, F | None]) -> LendingLimit:
        team = Team.objects.filter(slug=slug).first()
        if team is None:
            raise CouldNot(f"There is no team “{slug}”.")
        found = LendingLimit.objects.filter(team=team, model=model).first() or LendingLimit(team=team, model=model)
        if not told:
            return found
        borrowing, lending = told.get("borrow", found.borrowing), told.get("lend", found.lending)
        found = set_lending_limit(team=team, model=model, borrowing=borrowing, lending=lending)
        wake_all()
        return found


def cards_of(option: str, text: str) -> F | None:
    """None for as many as there are."""
    if text == ANY:
        return None
    try:
        cards = F(text)
    except (ValueError, ZeroDivisionError):
        raise CouldNot(f"--{option} “{text}” is no number of cards such as 2, 1/2 or any.") from None
    if cards < 0:
        raise CouldNot(f"--{option} {text}: nobody can {option} less than 0 cards.")
    return cards


def words(cards: F | None) -> str:
    return ANY if cards is None else number(cards)
