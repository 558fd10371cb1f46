"""What it cost: prices, the ledger of charges, where each pool's card-seconds went, and the closed months.

Money is kept as whole millionths of the currency, so that any database sums it exactly; shares are exact fractions,
and card-seconds are summed by grouping seconds by share.
"""

from datetime import datetime
from decimal import Decimal
from fractions import Fraction as F
from typing import Any, NoReturn

from django.db import models
from django.db.models import F as Column
from django.db.models import Q

from tenants.billing.rating import MICRO, Kind
from tenants.errors import Refused
from tenants.fields import FractionField
from tenants.models import Team, User

KINDS = [(str(kind), str(kind).replace("-", " ")) for kind in Kind]


def from_micro(micro: int) -> Decimal:
    return Decimal(micro).scaleb(-MICRO)


def to_micro(amount: Decimal) -> int:
    """Raises ValueError for an amount with more places than the ledger keeps."""
    micro = amount.scaleb(MICRO)
    if micro != micro.to_integral_value():
        raise ValueError(f"{amount} has more than {MICRO} decimal places.")
    return int(micro)


class RateCard(models.Model):
    """Prices that begin together. Only a published card counts; it is never edited after that."""

    name = models.CharField(max_length=80)
    currency = models.CharField(max_length=3)
    starts_at = models.DateTimeField(help_text="Each of its prices holds from here until the next one of its SKU.")
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    published_at = models.DateTimeField(null=True, blank=True)
    published_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["starts_at", "id"]
        constraints = [
            models.CheckConstraint(
                name="a_published_card_has_a_publisher_and_a_time",
                condition=Q(published_at=None, published_by=None)
                | Q(published_at__isnull=False, published_by__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Rate(models.Model):
    """The price of one SKU per card-hour; a share of a card costs its share."""

    card = models.ForeignKey(RateCard, on_delete=models.PROTECT, related_name="rates")
    sku = models.CharField(max_length=120)
    per_card_hour = models.DecimalField(max_digits=12, decimal_places=6)

    class Meta:
        ordering = ["sku"]
        constraints = [
            models.UniqueConstraint(name="a_card_prices_a_sku_once", fields=["card", "sku"]),
            models.CheckConstraint(name="a_price_is_not_negative", condition=Q(per_card_hour__gte=0)),
        ]

    def __str__(self) -> str:
        return f"{self.sku}: {self.per_card_hour}"


class AppendOnly(models.QuerySet):
    """Rows that are written once. PostgreSQL refuses as well (see the migrations), whoever asks."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Refused("A ledger line is never changed or removed; post a line that corrects it.")

    update = delete = bulk_update = _refuse


class Metered(models.Model):
    """A piece of the meter: who held what share of which card, within one hour. Names are copied, to outlive people."""

    key = models.CharField(max_length=220, unique=True, help_text="The same for the same fact: posting twice is once.")
    period = models.CharField(max_length=7, help_text="The month it counts in, cut in the organisation's zone.")
    hour = models.DateTimeField()
    kind = models.CharField(max_length=14, choices=KINDS)
    team = models.ForeignKey(Team, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    team_name = models.CharField(max_length=80)
    member = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    member_name = models.CharField(max_length=310, blank=True)
    workload_id = models.UUIDField(null=True, blank=True)
    workload_name = models.CharField(max_length=60, blank=True)
    resource_id = models.UUIDField(null=True, blank=True, help_text="The placement.")
    cluster = models.CharField(max_length=40)
    pool = models.CharField(max_length=63, blank=True)
    node = models.CharField(max_length=253, blank=True)
    model = models.CharField(max_length=60)
    sku = models.CharField(max_length=120)
    share = FractionField(help_text="Cards, all units together; the mean of the time for the platform's lines.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    seconds = models.PositiveIntegerField()

    class Meta:
        abstract = True

    @property
    def card_seconds(self) -> F:
        return self.share * self.seconds


class Charge(Metered):
    """One immutable line of the ledger."""

    per_card_hour_micro = models.BigIntegerField(help_text="Price per card-hour, millionths of the currency.")
    amount_micro = models.BigIntegerField(help_text="Millionths of the currency.")
    currency = models.CharField(max_length=3)
    rate = models.ForeignKey(Rate, null=True, blank=True, on_delete=models.PROTECT, related_name="charges")
    corrects = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="corrections")
    posted_at = models.DateTimeField()

    objects = AppendOnly.as_manager()

    class Meta:
        ordering = ["started_at", "id"]
        indexes = [
            models.Index(fields=["period", "team", "workload_id"]),
            models.Index(fields=["cluster", "pool", "hour"]),
        ]
        constraints = [
            models.CheckConstraint(name="charge_kind_is_known", condition=Q(kind__in=[str(kind) for kind in Kind])),
            models.CheckConstraint(
                name="a_team_pays_for_use_and_the_platform_for_the_rest",
                condition=Q(kind="use", team__isnull=False) | (~Q(kind="use") & Q(team=None, member=None)),
            ),
            models.CheckConstraint(
                name="a_charge_covers_some_time", condition=Q(seconds__gte=1, ended_at__gt=Column("started_at"))
            ),
            models.CheckConstraint(name="a_charged_price_is_not_negative", condition=Q(per_card_hour_micro__gte=0)),
            models.CheckConstraint(
                name="only_a_correction_is_negative", condition=Q(amount_micro__gte=0) | Q(corrects__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} for {self.key}"

    @property
    def amount(self) -> Decimal:
        return from_micro(self.amount_micro)

    @property
    def per_card_hour(self) -> Decimal:
        return from_micro(self.per_card_hour_micro)


class SetAside(Metered):
    """A piece of the meter that no published price covers: shown, never priced 0, posted once there is a price."""

    reason = models.CharField(max_length=300)
    set_aside_at = models.DateTimeField()
    posted_at = models.DateTimeField(null=True, blank=True, help_text="When its charge was written.")

    class Meta:
        ordering = ["started_at", "id"]
        indexes = [
            models.Index(fields=["period"], name="set_aside_open", condition=Q(posted_at=None)),
            models.Index(fields=["cluster", "hour"]),
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}"


class PoolHour(models.Model):
    """Where the card-seconds of one pool went in one closed hour.

    present + overlap = used + cold start + unallocated + stranded + out of service + foreign, exactly.
    """

    cluster = models.CharField(max_length=40)
    pool = models.CharField(max_length=63, blank=True)
    hour = models.DateTimeField()
    present = FractionField(help_text="Card-seconds, as all of these.")
    used = FractionField()
    cold_start = FractionField()
    unallocated = FractionField()
    stranded = FractionField()
    out_of_service = FractionField()
    foreign = FractionField()
    overlap = FractionField(help_text="Held beyond the cards that were known: a finding.")

    class Meta:
        ordering = ["hour", "cluster", "pool"]
        constraints = [
            models.UniqueConstraint(name="one_balance_per_pool_and_hour", fields=["cluster", "pool", "hour"])
        ]

    def __str__(self) -> str:
        return f"{self.pool} of {self.cluster} in {self.hour:%Y-%m-%d %H}h"


class Meter(models.Model):
    """Up to when a cluster's hours stand in the ledger. Its row is locked while hours are posted."""

    cluster = models.CharField(max_length=40, unique=True)
    since = models.DateTimeField(help_text="The first hour that was posted.")
    until = models.DateTimeField(help_text="Every hour before this is posted.")

    class Meta:
        ordering = ["cluster"]
        constraints = [
            models.CheckConstraint(name="a_meter_runs_forward", condition=Q(until__gte=Column("since"))),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} until {self.until:%Y-%m-%d %H:%M}"


class StatementState(models.TextChoices):
    DRAFT = "draft", "Open"
    CLOSED = "closed", "Closed"


class Statement(models.Model):
    """A month's document: open while lines arrive; closed by one person once, with its totals written down."""

    period = models.CharField(max_length=7, unique=True)
    zone = models.CharField(max_length=60, help_text="In which the month was cut.")
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=6, choices=StatementState.choices, default=StatementState.DRAFT)
    closed_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    closed_at = models.DateTimeField(null=True, blank=True)
    charged_micro = models.BigIntegerField(null=True, blank=True, help_text="Charged to teams.")
    overhead_micro = models.BigIntegerField(null=True, blank=True, help_text="Borne by the platform.")
    lines = models.PositiveIntegerField(null=True, blank=True)
    card_seconds = FractionField(null=True, blank=True)

    class Meta:
        ordering = ["-period"]
        constraints = [
            models.CheckConstraint(name="statement_state_is_known", condition=Q(state__in=["draft", "closed"])),
            models.CheckConstraint(
                name="a_closed_statement_says_who_when_and_how_much",
                condition=Q(state="draft", closed_by=None, closed_at=None)
                | Q(
                    state="closed",
                    closed_by__isnull=False,
                    closed_at__isnull=False,
                    charged_micro__isnull=False,
                    overhead_micro__isnull=False,
                    lines__isnull=False,
                    card_seconds__isnull=False,
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"Statement {self.period}"

    @property
    def is_closed(self) -> bool:
        return self.state == StatementState.CLOSED

    def closing_words(self) -> str:
        """Who closed it and when, for the one who comes second."""
        at: datetime | None = self.closed_at
        return f"{self.closed_by} closed {self.period} on {at:%d %B %Y at %H:%M} UTC." if at else ""
