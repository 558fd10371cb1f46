from __future__ import annotations

from datetime import UTC, datetime
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import pytest
from django.template import Context, Template

from portal.pages.context import Time
from portal.templatetags import words

NARROW = words.NARROW

CARDS = {
    F(0): "0", F(1): "1", F(1, 8): "⅛", F(7, 2): "3½", F(99, 8): "12⅜", F(12): "12", F(1, 3): "⅓",
    F(1241, 100): "12.41", F(1, 50): "0.02", F(-3, 2): "−1½", F(1000): "1,000", None: "unknown",
}  # fmt: skip


@pytest.mark.parametrize("value", CARDS, ids=str)
def test_cards_are_written_as_people_write_them(value: F | None) -> None:
    assert words.cards(value) == CARDS[value]


@pytest.mark.parametrize(
    ("value", "said"), [(F(1, 8), "⅛ card"), (F(1), "1 card"), (F(0), "0 cards"), (F(9, 8), "1⅛ cards")]
)
def test_cards_in_words(value: F, said: str) -> None:
    assert words.card_words(value) == said


MONEY = {
    Decimal("13237.075"): "13,237.08", Decimal(0): "0.00", Decimal("0.005"): "0.01", Decimal(-3): "−3.00",
    Decimal("0.004999"): "0.00", None: "unknown",
}  # fmt: skip


@pytest.mark.parametrize("amount", MONEY, ids=str)
def test_money_has_two_places_half_up(amount: Decimal | None) -> None:
    assert words.money(amount) == MONEY[amount]


def test_money_carries_the_sign_of_the_organisations_currency(settings: Any) -> None:
    assert words.in_currency(Decimal("0.62")) == f"0.62{NARROW}€"
    settings.BERTH_CURRENCY = "CHF"
    assert words.in_currency(Decimal("0.62")) == f"0.62{NARROW}CHF"


PRICES = {Decimal("0.525000"): "0.525", Decimal("4.2"): "4.20", Decimal("0.03125"): "0.0313", Decimal(8): "8.00"}


@pytest.mark.parametrize("price", PRICES, ids=str)
def test_a_price_shows_more_places_only_where_they_say_something(price: Decimal) -> None:
    assert words.per_hour(price) == f"{PRICES[price]}{NARROW}€/h"


def test_what_has_no_price_is_not_free() -> None:
    assert words.per_hour(None) == "no price"


LENGTHS = {
    0: "0 s", 59: "59 s", 60: "1 min", 209: "3 min 29 s", 3600: "1 h", 4320: "1 h 12 min", 86400: "1 day",
    2 * 86400 + 3 * 3600: "2 days 3 h", -5: "0 s", 59.9: "59 s",
}  # fmt: skip


@pytest.mark.parametrize("seconds", LENGTHS)
def test_durations_have_two_units_at_most(seconds: float) -> None:
    assert words.duration(td(seconds=seconds)).replace("\N{NO-BREAK SPACE}", " ") == LENGTHS[seconds]


@pytest.mark.parametrize(("mib", "said"), [(9856, "9.6"), (81920, "80"), (185_000, "181"), (512, "0.5")])
def test_memory_is_in_gib(mib: int, said: str) -> None:
    assert words.gib(mib) == f"{said}{NARROW}GiB"


def test_unknown_is_said_and_never_zero() -> None:
    assert [words.percent(None), words.gib(None), words.duration(None), words.cards(None)] == ["unknown"] * 4
    assert words.percent(0.0) == f"0{NARROW}%"


NOW = datetime(2026, 12, 1, 8, 0, tzinfo=UTC)
MOMENTS = {
    "today is a clock": (NOW - td(hours=2), "", "07:00"),
    "with seconds where they matter": (NOW - td(seconds=5), "seconds", "08:59:55"),
    "yesterday has its day": (NOW - td(hours=10), "", "30 Nov, 23:00"),
    "the zone decides which day it is": (NOW - td(hours=8, minutes=30), "", "00:30"),
    "another year is named": (NOW - td(days=400), "", "27 Oct 2025, 09:00"),
}


@pytest.mark.parametrize("case", MOMENTS)
def test_times_are_told_in_the_organisations_zone(settings: Any, case: str) -> None:
    settings.BERTH_ZONE = "Europe/Berlin"
    value, style, said = MOMENTS[case]
    context = Context({"time": Time(NOW, "Europe/Berlin", 1.0, simulated=False), "value": value, "style": style})

    html = Template("{% load words %}{% moment value style %}").render(context)

    assert f">{said}</time>" in html
    assert "Europe/Berlin" in html


@pytest.mark.parametrize("phase", ["waiting", "placed", "starting", "running", "stopping", "asleep", "ended"])
def test_a_phase_is_told_by_word_and_picture_and_not_by_colour_alone(phase: str) -> None:
    html = Template("{% load words %}{% phase_pill phase %}").render(Context({"phase": phase}))

    assert f">{phase}</span>" in " ".join(html.split()).replace("</svg>", ">")
    assert "sprite.svg#" in html


ISOLATION = {"whole": "isolated in hardware", "mig": "isolated in hardware", "mps": "isolated by process",
             "time-slice": "no isolation"}  # fmt: skip


@pytest.mark.parametrize("sharing", ISOLATION)
def test_isolation_is_said_as_it_is(sharing: str) -> None:
    """T7: nobody believes that a time-slice's memory is enforced."""
    html = Template("{% load words %}{% isolation_pill sharing %}").render(Context({"sharing": sharing}))

    assert ISOLATION[sharing] in html
    if sharing == "time-slice":
        assert "nobody enforces a limit" in words.isolation_sentence(sharing)


def test_a_sku_reads_as_words_and_a_foreign_one_stays() -> None:
    assert words.sku_words("h100-80gb/mig-1g.10gb/spot") == "H100 80GB, slice 1g.10gb, spot"
    assert words.sku_words("a10g-24gb/time-slice-4/on-demand") == "A10G 24GB, time-slice ×4"
    assert words.sku_words("<b>") == "<b>"


def test_every_icon_that_a_template_names_is_in_the_sprite() -> None:
    import re
    from pathlib import Path

    root = Path(words.__file__).parent.parent.parent
    drawn = set(re.findall(r'<symbol id="([\w-]+)"', (root / "static/icons/sprite.svg").read_text()))
    named = {name for file in (root / "templates").rglob("*.html")
             for name in re.findall(r'{% icon "([\w-]+)"', file.read_text())}  # fmt: skip
    pictures = {found[0] for found in (*words.PHASES.values(), *words.STATES.values(), *words.ISOLATIONS.values())}

    assert (named | pictures) - drawn == set()
