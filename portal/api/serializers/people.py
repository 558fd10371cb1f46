"""People, teams, and what they hold."""

from typing import Any

from rest_framework import serializers

from portal.api.fields import Currency, Flag, Fraction, Instant, Key, OneOf, Text, Title, Whole
from portal.api.inputs import Input, PageQuery
from tenants.models import Role

NAME_TEXT = r"[\w.@+-]+"


class PersonShape(serializers.Serializer):
    id = serializers.IntegerField()
    username = serializers.CharField()
    name = serializers.CharField(source="__str__", help_text="As people read it.")


class TeamRef(serializers.Serializer):
    id = Key()
    slug = serializers.CharField()
    name = serializers.CharField()


class HoldingShape(serializers.Serializer):
    """One GPU model of one team, in cards."""

    model = serializers.CharField()
    title = Title(source="model")
    granted = Fraction(help_text="To the team as a whole.")
    own = Fraction(help_text="To single members, all together, beside the team's part.")
    held = Fraction(help_text="By all members now.")
    free = Fraction(help_text="Of the team's part; never negative.")
    over = Fraction(help_text="Held above the quota, as after a grant has ended.")
    left = Fraction(help_text="What you may still take.")


class TeamShape(TeamRef):
    parent = Key(allow_null=True, help_text="Null at the top of what you may see.")  # type: ignore[assignment]
    roles = serializers.ListField(child=OneOf(Role), help_text="Yours, inherited ones included.")
    quotas = HoldingShape(many=True)


class MeShape(serializers.Serializer):
    person = PersonShape()
    operator = serializers.BooleanField(help_text="Whether you run the platform.")
    teams = TeamShape(many=True, help_text="Those in which you have a role.")
    to_decide = serializers.IntegerField(help_text="Quota requests that wait for your decision.")
    csrf_token = serializers.CharField(help_text="Send it as X-CSRFToken with whatever changes something.")
    now = Instant(help_text="The portal's time; simulated in a demo.")
    clock_rate = serializers.FloatField(help_text="Seconds that pass per second of the wall clock: 1 but in a demo.")
    zone = serializers.CharField(help_text="In which days and months are cut.")
    currency = Currency()


class LoginInput(Input):
    username = Text(150, least=1, pattern=NAME_TEXT, words="Give the name that you log in with.")
    password = Text(256, least=1, pattern=r"[^\u0000]+", words="Give your password, 1 to 256 characters.")


class DemoLoginInput(Input):
    """In a demo, instead of name and password."""

    person = Text(150, least=1, pattern=NAME_TEXT, words="Name one of the people of the demo, such as robin.")


class WhoShape(serializers.Serializer):
    person = PersonShape()
    csrf_token = serializers.CharField(help_text="Send it as X-CSRFToken with whatever changes something.")


class GrantShape(serializers.Serializer):
    id = Key()
    team = TeamRef()
    member = PersonShape(allow_null=True, help_text="Null: for the whole team.")
    model = serializers.CharField()
    title = Title(source="model")
    amount = Fraction(help_text="Cards.")
    starts_at = Instant()
    ends_at = Instant(allow_null=True, help_text="Null: open-ended.")
    in_force = serializers.SerializerMethodField()
    request = Key(source="request_id", allow_null=True, help_text="The quota request that it answers.")
    made_by = PersonShape()
    made_at = Instant()
    reason = serializers.CharField()

    def get_in_force(self, grant: Any) -> bool:
        now = self.context["now"]
        return bool(grant.starts_at <= now and (grant.ends_at is None or now < grant.ends_at))


class TeamQuery(PageQuery):
    search = Text(60, required=False, help_text="Part of the name.")


class GrantQuery(PageQuery):
    team = Key(required=False)
    model = Text(60, required=False, help_text="A GPU model by its key.")
    member = Whole(1, of_text=True, required=False, help_text="The id of a person.")
    in_force = Flag(of_text=True, required=False)
