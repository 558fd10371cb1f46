"""The month in tables, and the ledger's lines."""

from typing import Any

from rest_framework import serializers

from portal.api.fields import Answer, Figure, Fraction, Instant, Key, Money, OneOf, Text, Title, Whole
from portal.api.inputs import PageQuery
from portal.api.serializers.people import PersonShape
from tenants.billing.models import StatementState, from_micro
from tenants.billing.rating import Kind


class RowKey(Answer):
    """What a drill-down asks with: an id, a model, a sku or a kind, as text."""

    def document(self) -> dict[str, Any]:
        return {"type": "string"}

    def to_representation(self, value: Any) -> str:
        return str(value)


class PeriodShape(serializers.Serializer):
    period = serializers.CharField(help_text="A month, such as 2026-11.")
    zone = serializers.CharField(help_text="In which it was cut.")
    state = OneOf(StatementState.values)
    closed_by = PersonShape(allow_null=True)
    closed_at = Instant(allow_null=True)
    charged = serializers.SerializerMethodField(help_text="When closed, for those who see all charges; else null.")
    overhead = serializers.SerializerMethodField(help_text="When closed, for those who see all charges; else null.")
    currency = serializers.CharField()

    def get_charged(self, statement: Any) -> Money(allow_null=True):  # type: ignore[valid-type]
        return self._total(statement.charged_micro)

    def get_overhead(self, statement: Any) -> Money(allow_null=True):  # type: ignore[valid-type]
        return self._total(statement.overhead_micro)

    def _total(self, micro: int | None) -> str | None:
        return f"{from_micro(micro):.6f}" if self.context["all"] and micro is not None else None


class RowShape(serializers.Serializer):
    """`amount` and `card_seconds` are exact; the others are for reading, and each column sums to its total."""

    key = RowKey(allow_null=True)
    name = serializers.CharField()
    card_seconds = Fraction()
    amount = Money()
    card_hours = Figure(2)
    mean_cards = Figure(2, allow_null=True)
    shown = Figure(2, help_text="The amount for reading.")
    percent = Figure(1, allow_null=True)


class TablesShape(serializers.Serializer):
    charged = RowShape(help_text="To the teams in view.")
    overhead = RowShape(allow_null=True, help_text="Borne by the platform; null where it is not for you to see.")
    total = RowShape()
    by_team = RowShape(many=True)
    by_person = RowShape(many=True)
    by_model = RowShape(many=True)
    by_flavor = RowShape(many=True)
    platform = RowShape(many=True, help_text="Unallocated, stranded and the like.")
    lines = serializers.IntegerField()


class MonthShape(serializers.Serializer):
    period = serializers.CharField()
    name = serializers.CharField()
    zone = serializers.CharField()
    currency = serializers.CharField()
    since = Instant()
    until = Instant(help_text="Half-open.")
    posted_until = Instant(allow_null=True, help_text="Up to here every hour is in it.")
    is_closed = serializers.BooleanField()
    closed_by = serializers.CharField(help_text="Empty while it is open.")
    closed_at = Instant(allow_null=True)
    set_aside = serializers.IntegerField(help_text="Lines that no price covers; they are in no sum.")
    tables = TablesShape()


class LineShape(serializers.Serializer):
    """One immutable line of the ledger."""

    key = serializers.CharField(help_text="The same for the same fact: posting twice is once.")
    period = serializers.CharField()
    kind = OneOf(Kind)
    team = Key(source="team_id", allow_null=True, help_text="Null: the platform.")
    team_name = serializers.CharField()
    member = serializers.IntegerField(source="member_id", allow_null=True)
    member_name = serializers.CharField()
    workload = Key(source="workload_id", allow_null=True)
    workload_name = serializers.CharField()
    placement = Key(source="resource_id", allow_null=True)
    cluster = serializers.CharField()
    pool = serializers.CharField()
    node = serializers.CharField()
    model = serializers.CharField()
    title = Title(source="model")
    sku = serializers.CharField()
    share = Fraction(help_text="Cards.")
    started_at = Instant()
    ended_at = Instant(help_text="Half-open.")
    seconds = serializers.IntegerField()
    card_seconds = Fraction()
    per_card_hour = Money()
    amount = Money(help_text="Negative only where it corrects another line.")
    currency = serializers.CharField()
    posted_at = Instant()


class LineQuery(PageQuery):
    team = Key(required=False)
    member = Whole(1, of_text=True, required=False, help_text="The id of a person.")
    workload = Key(required=False)
    kind = OneOf(Kind, required=False)
    sku = Text(120, required=False)
    model = Text(60, required=False)
    cluster = Text(40, required=False)
    pool = Text(63, required=False)
    since = Instant(required=False)
    until = Instant(required=False, help_text="Half-open.")
