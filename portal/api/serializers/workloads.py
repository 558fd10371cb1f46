"""What can be asked for, what runs, and what it was seen to do."""

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.fields import (
    Cards,
    Currency,
    Flag,
    Fraction,
    Instant,
    Key,
    Money,
    OneOf,
    Reading,
    Text,
    Title,
    Whole,
    sku,
)
from portal.api.inputs import Input, PageQuery, Query
from portal.api.serializers.people import PersonShape, TeamRef
from scheduling.planning.cuda import in_words, needed
from scheduling.planning.facts import Capacity, Desired, Isolation, Kind, Phase, Reason, Sharing
from scheduling.planning.shares import isolation_of
from scheduling.services import IMAGE, LONGEST_GRACE, LONGEST_HOURS, MOST_STORAGE_GIB, NAME

MOST_UNITS = 64
LEAST_CPU, MOST_CPU = 100, 256_000
LEAST_MEMORY, MOST_MEMORY = 128, 4 * 1024 * 1024


class FlavorRef(serializers.Serializer):
    sku = serializers.CharField()
    model = serializers.CharField()
    title = Title(source="model")
    sharing = OneOf(Sharing)
    profile = serializers.CharField(help_text="The MIG profile, or empty.")
    capacity = OneOf(Capacity)
    share = Fraction(help_text="Of one card.")
    memory_mib = serializers.IntegerField(help_text="GPU memory of one unit.")
    words = serializers.CharField(help_text="What it is, for people.")
    isolation = serializers.SerializerMethodField(help_text="What keeps two holders of one card apart.")

    @extend_schema_field({"type": "string", "enum": [str(one) for one in Isolation]})
    def get_isolation(self, flavor: Any) -> str:
        return str(isolation_of(flavor.sharing))


class FlavorShape(FlavorRef):
    replicas = serializers.IntegerField(help_text="How many share one card by time or MPS, else 1.")
    offered = serializers.BooleanField()
    per_card_hour = serializers.SerializerMethodField(help_text="A share costs its share. Null: it has no price yet.")
    currency = Currency()

    @extend_schema_field(Money(allow_null=True))
    def get_per_card_hour(self, flavor: Any) -> str | None:
        price: Decimal | None = self.context["prices"].get(flavor.sku)
        return None if price is None else f"{price:.6f}"


class OfferShape(serializers.Serializer):
    """One flavor as you could have it now."""

    flavor = FlavorRef()
    count = serializers.IntegerField(help_text="Units that this line is for.")
    share = Fraction(help_text="Cards, all units together.")
    per_hour = Money(allow_null=True, help_text="All units together. Null: it has no price, so it cannot be started.")
    currency = Currency()
    starts = OneOf(["now", "waits", "lead"], help_text="lead: a team lead has to grant the missing cards first.")
    text = serializers.CharField(source="outlook.text", help_text="What would happen, in a sentence.")
    free_units = serializers.IntegerField(source="outlook.free_units", help_text="Units that are free right now.")
    quota_left = Fraction(source="outlook.quota_left", help_text="Cards that you may still take.")
    missing = Fraction(help_text="Cards to ask the lead for; 0 when the quota is enough.")


class OffersShape(serializers.Serializer):
    team = TeamRef()
    at = Instant()
    offers = OfferShape(many=True)


class WorkloadShape(serializers.Serializer):
    id = Key()
    name = serializers.CharField()
    kind = OneOf(Kind)
    team = TeamRef()
    owner = PersonShape()
    cluster = serializers.CharField(source="cluster.name")
    flavor = FlavorRef()
    count = serializers.IntegerField(help_text="Units of the flavor, all on one node.")
    share = serializers.SerializerMethodField(help_text="Cards, all units together.")
    image = serializers.CharField()
    command = serializers.CharField()
    cpu_milli = serializers.IntegerField(help_text="Thousandths of a core.")
    memory_mib = serializers.IntegerField()
    storage_gib = serializers.IntegerField()
    hours = serializers.IntegerField(
        allow_null=True, help_text="Ends so long after it first ran; null: never by itself."
    )
    cuda = serializers.CharField(help_text="The least CUDA version that its owner named, or empty.")
    cuda_needed = serializers.SerializerMethodField(
        help_text="The same, or else what the image's tag tells; null: nobody says."
    )
    grace_seconds = serializers.IntegerField(help_text="From the notice to the kill.")
    checkpoint = serializers.CharField(help_text="Run in the container before it is stopped, or empty.")
    address = serializers.CharField(help_text="Where it is reached from outside while it runs, or empty.")
    address_problem = serializers.CharField(help_text="Why it has no address, in a sentence, or empty.")
    reason = serializers.CharField(help_text="The owner's words.")
    quota_request = Key(
        source="quota_request_id", allow_null=True, help_text="The request that it waits or waited for."
    )
    asked_at = Instant()
    desired = OneOf(Desired, help_text="What its people want.")
    phase = OneOf(Phase, help_text="Where it stands.")
    phase_since = Instant()
    phase_reason = OneOf(Reason)
    phase_text = serializers.CharField(help_text="Why, in a sentence.")
    version = serializers.IntegerField(help_text="Grows by one with each transition.")
    first_ran_at = Instant(allow_null=True)
    idle_since = Instant(allow_null=True, help_text="Null: busy, or not known.")

    @extend_schema_field(Fraction())
    def get_share(self, workload: Any) -> str:
        return str(workload.flavor.share * workload.count)

    def get_cuda_needed(self, workload: Any) -> str | None:
        need = needed(workload.cuda, workload.image)
        return None if need is None else in_words(need)


class CostShape(serializers.Serializer):
    """Use up to now, posted or not."""

    seconds = serializers.IntegerField()
    card_seconds = Fraction()
    amount = Money()
    currency = Currency()
    unpriced = Fraction(help_text="Card-seconds that no price covers; they are not in the amount.")


class WorkloadDetail(WorkloadShape):
    cost = serializers.SerializerMethodField()

    @extend_schema_field(CostShape())
    def get_cost(self, workload: Any) -> Any:
        return CostShape(self.context["cost"]).data


class ForceInput(Input):
    sure = Flag(default=False, help_text="That you know what removing a pod by force risks.")


class WorkloadInput(Input):
    name = Text(
        40,
        least=1,
        pattern=NAME.pattern,
        words="A name has 1 to 40 lower-case letters, digits and dashes, and begins and ends with a letter or digit.",
    )
    kind = OneOf(Kind)
    team = Key(help_text="A team in which you are a researcher or lead.")
    flavor = sku(help_text="A flavor by its sku.")
    count = Whole(1, MOST_UNITS, default=1, help_text="More than 1 for whole cards only.")
    image = Text(
        300,
        least=1,
        required=False,
        pattern=IMAGE.pattern,
        help_text="A usual one for its kind, when left out.",
        words="The image is not a container image reference such as quay.io/team/image:tag.",
    )
    command = Text(2000, required=False, default="", help_text="Run by a shell in the container; a job needs one.")
    cpu_milli = Whole(LEAST_CPU, MOST_CPU, default=4000)
    memory_mib = Whole(LEAST_MEMORY, MOST_MEMORY, default=16384)
    storage_gib = Whole(0, MOST_STORAGE_GIB, default=0, help_text="Kept while a workspace sleeps.")
    hours = Whole(1, LONGEST_HOURS, required=False, allow_null=True, default=None)
    cuda = Text(
        10,
        required=False,
        default="",
        pattern=r"([0-9]{1,2}\.[0-9]{1,2})?",
        words="Write the least CUDA version that the image needs as 12.4, or leave it out.",
        help_text="As the image's tag tells, when left out.",
    )
    grace_seconds = Whole(1, LONGEST_GRACE, default=30, help_text="From the notice to the kill.")
    checkpoint = Text(
        500, required=False, default="", help_text="Run by a shell in the container before it is stopped."
    )
    reason = Text(500, required=False, default="")
    ask = Cards(required=False, help_text="Also ask the lead for so many cards, and wait for them.")
    ask_until = Instant(required=False, help_text="Until when they are asked for; open-ended when left out.")


class WorkloadQuery(PageQuery):
    team = Key(required=False)
    phase = OneOf(Phase, required=False)
    kind = OneOf(Kind, required=False)
    owner = Text(150, least=1, required=False, help_text="A username, or me.")
    model = Text(60, required=False, help_text="A GPU model by its key.")
    search = Text(60, required=False, help_text="Part of the name.")
    ordering = OneOf(["asked_at", "-asked_at", "name", "-name"], default="-asked_at")


class FlavorQuery(PageQuery):
    model = Text(60, required=False, help_text="A GPU model by its key.")
    sharing = OneOf(Sharing, required=False)


class OfferQuery(Query):
    team = Key(help_text="A team in which you are a researcher or lead.")
    kind = OneOf(Kind, default="workspace")
    count = Whole(1, MOST_UNITS, of_text=True, default=1, help_text="Units; shared cards are offered one at a time.")
    cpu_milli = Whole(LEAST_CPU, MOST_CPU, of_text=True, default=4000)
    memory_mib = Whole(LEAST_MEMORY, MOST_MEMORY, of_text=True, default=16384)


class TransitionShape(serializers.Serializer):
    version = serializers.IntegerField()
    at = Instant()
    before = serializers.CharField(help_text="Empty for the first one.")
    after = OneOf(Phase)
    reason = OneOf(Reason)
    text = serializers.CharField()
    by = PersonShape(allow_null=True, help_text="Null: Berth itself.")


class PlacementShape(serializers.Serializer):
    """One stay on one node: from running_at to ended_at it is used and charged."""

    id = Key()
    attempt = serializers.IntegerField()
    cluster = serializers.CharField(source="cluster.name")
    pool = serializers.CharField()
    node = serializers.CharField()
    resource = serializers.CharField()
    share = Fraction(help_text="Cards, all units together.")
    namespace = serializers.CharField()
    pod = serializers.CharField()
    placed_at = Instant()
    running_at = Instant(allow_null=True)
    ended_at = Instant(allow_null=True)


class SampleShape(serializers.Serializer):
    """What was seen at one instant; null where nobody reported it, which is not zero."""

    at = Instant()
    busy = Reading(allow_null=True, help_text="0 to 1.")
    memory_used_mib = serializers.IntegerField(allow_null=True)
    memory_total_mib = serializers.IntegerField(allow_null=True)
    watts = Reading(allow_null=True)


class SamplesShape(serializers.Serializer):
    since = Instant()
    until = Instant()
    samples = SampleShape(many=True, help_text="Oldest first.")


class LogsShape(serializers.Serializer):
    text = serializers.CharField(help_text="The last lines, as the program wrote them.")
    problem = serializers.CharField(help_text="Why nobody can say, in a sentence, or empty.")


class EventShape(serializers.Serializer):
    at = Instant(allow_null=True, help_text="When it was last seen; null when nobody says.")
    about = serializers.CharField(help_text="The kind and name of the object.")
    warning = serializers.BooleanField()
    reason = serializers.CharField(help_text="In Kubernetes' own word.")
    text = serializers.CharField(help_text="In Kubernetes' own words.")
    times = serializers.IntegerField(help_text="How often it was seen.")
    said_by = serializers.CharField(source="source", help_text="Which part of Kubernetes says it.")


class EventsShape(serializers.Serializer):
    events = EventShape(many=True, help_text="Oldest first.")
    problem = serializers.CharField(help_text="Why nobody can say, in a sentence, or empty.")


class LogsQuery(Query):
    lines = Whole(1, 1000, of_text=True, default=200)
