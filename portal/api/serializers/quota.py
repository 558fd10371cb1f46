"""Quota requests and what is decided about them."""

from rest_framework import serializers

from portal.api.fields import Cards, Fraction, Instant, Key, OneOf, Text, Title, model_key
from portal.api.inputs import Input, PageQuery
from portal.api.serializers.people import PersonShape, TeamRef
from tenants.models import RequestState

UNTIL = "Half-open: the cards are held until just before it. Leave it out for an open end."


class RequestShape(serializers.Serializer):
    id = Key()
    team = TeamRef()
    asked_by = PersonShape()
    asked_at = Instant()
    model = serializers.CharField()
    title = Title(source="model")
    amount = Fraction(help_text="Cards that were asked for.")
    until = Instant(allow_null=True)
    reason = serializers.CharField()
    waits_for_it = serializers.CharField(help_text="The workload that waits for it, in words, or empty.")
    state = OneOf(RequestState)
    decided_by = PersonShape(allow_null=True)
    decided_at = Instant(allow_null=True)
    note = serializers.CharField(help_text="The decider's words to the asker.")
    offered_amount = Fraction(allow_null=True, help_text="What was offered instead, or approved.")
    offered_until = Instant(allow_null=True)


class EffectShape(serializers.Serializer):
    """What approving would do, in cards of the model."""

    granted_before = Fraction()
    granted_after = Fraction()
    own_before = Fraction(help_text="The asker's own grants.")
    own_after = Fraction()
    parent_left_before = Fraction(allow_null=True, help_text="What the parent has not given to anybody.")
    parent_left_after = serializers.SerializerMethodField(help_text="Below 0 where it cannot be approved.")
    possible = serializers.BooleanField()

    def get_parent_left_after(self, effect: object) -> str | None:
        left = getattr(effect, "parent_left_after", None)
        return None if left is None else str(left)


class RequestDetail(serializers.Serializer):
    request = RequestShape()
    effect = EffectShape(allow_null=True, help_text="For its deciders while it is pending, else null.")


class AskInput(Input):
    team = Key()
    model = model_key()
    amount = Cards()
    until = Instant(required=False, allow_null=True, help_text=UNTIL)
    reason = Text(500, least=1, help_text="What the cards are for; the lead decides by it.")


class ApproveInput(Input):
    amount = Cards(required=False, help_text="What was asked for, when left out; or less.")
    until = Instant(required=False, allow_null=True, help_text="As asked, when left out.")
    note = Text(500, required=False, default="")


class DenyInput(Input):
    note = Text(500, least=1, help_text="The reason, for the asker.")


class CounterInput(Input):
    amount = Cards()
    until = Instant(required=False, allow_null=True, default=None, help_text=UNTIL)
    note = Text(500, required=False, default="")


class RequestQuery(PageQuery):
    team = Key(required=False)
    state = OneOf(RequestState, required=False)
    asked_by = OneOf(["me", "others"], required=False)
    model = Text(60, required=False, help_text="A GPU model by its key.")
