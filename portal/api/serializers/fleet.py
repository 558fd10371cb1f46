"""Clusters, pools and nodes, and the operator's rules."""

from typing import Any

from rest_framework import serializers

from portal.api.fields import Flag, Fraction, Instant, OneOf, Text, Title, Whole
from portal.api.inputs import Input, PageQuery
from scheduling.cluster.port import NOT_NOW
from scheduling.planning.cuda import in_words
from scheduling.planning.facts import Capacity, Isolation, Sharing
from scheduling.pools import EMPTY_MINUTES, IDLE_MINUTES, MOST_NODES

LAYOUT_TEXT = "[a-z0-9][a-z0-9.+-]{0,62}"
MOST_LAYOUTS = 32
LAYOUT_WORDS = "Name a MIG layout such as all-1g.10gb."


class ClusterShape(serializers.Serializer):
    name = serializers.CharField()
    paused = serializers.BooleanField(help_text="Berth looks, but does not act.")
    seen_at = Instant(allow_null=True, help_text="The last complete look.")
    trouble = serializers.SerializerMethodField(
        help_text="Why the last look failed, or empty; addresses and files are told to the operator alone."
    )

    def get_trouble(self, cluster: Any) -> str:
        return cluster.trouble if self.context["operates"] or not cluster.trouble else NOT_NOW


class PoolShape(serializers.Serializer):
    id = serializers.IntegerField()
    cluster = serializers.CharField(source="cluster.name")
    name = serializers.CharField()
    model = serializers.CharField()
    title = Title(source="model")
    sharing = OneOf(Sharing)
    replicas = serializers.IntegerField(help_text="Shares per card, for time-slices and MPS.")
    capacity = OneOf(Capacity)
    provider = serializers.CharField()
    cards_per_node = serializers.IntegerField()
    cpu_milli = serializers.IntegerField(help_text="Of one node.")
    host_memory_mib = serializers.IntegerField(help_text="Of one node.")
    min_nodes = serializers.IntegerField()
    max_nodes = serializers.IntegerField()
    wished_nodes = serializers.IntegerField(allow_null=True, help_text="As the provider last said.")
    trouble = serializers.CharField(help_text="The provider's words when it cannot deliver, or empty.")
    layout = serializers.CharField(help_text="MIG layout of a fresh node, or empty.")
    layouts = serializers.ListField(child=serializers.CharField(), help_text="Layouts that Berth may cut to.")
    idle_minutes = serializers.IntegerField(allow_null=True, help_text="A workspace quiet so long sleeps; null: never.")
    empty_minutes = serializers.IntegerField(help_text="A node that held nothing so long may go.")
    spread = serializers.BooleanField(help_text="The emptiest node first, instead of packing.")


class DeviceShape(serializers.Serializer):
    resource = serializers.CharField()
    profile = serializers.CharField(help_text="The MIG profile, or empty.")
    share = Fraction(help_text="Of one card.")
    isolation = OneOf(Isolation)
    capacity = serializers.IntegerField(help_text="Units that there are.")
    allocatable = serializers.IntegerField(help_text="Units that may be given out; fewer when a card is sick.")
    held = serializers.SerializerMethodField(help_text="Units in use, by whomever.")
    memory_mib = serializers.IntegerField(allow_null=True, help_text="Of one unit; null when nobody says.")

    def get_held(self, device: Any) -> int:
        held: dict[str, int] = self.context["held"]
        return held.get(device.resource, 0)


class StuckShape(serializers.Serializer):
    """A pod of ours that holds units though nobody pays for it any more."""

    workload = serializers.UUIDField(allow_null=True, help_text="Null when it is another team's.")
    pod = serializers.CharField(help_text="Its name, or empty when it is another team's.")
    since = Instant(allow_null=True, help_text="Since when it is to go.")
    units = serializers.DictField(child=serializers.IntegerField(), help_text="By resource.")
    words = serializers.CharField(help_text="What it is, and what can be done about it.")


class ProblemShape(serializers.Serializer):
    where = serializers.CharField()
    field = serializers.CharField()
    text = serializers.CharField()


class ForeignShape(serializers.Serializer):
    """What pods that were not started here hold in one namespace; nobody is charged for it."""

    namespace = serializers.CharField(help_text="Empty where its name is not for you to know.")
    units = serializers.DictField(child=serializers.IntegerField(), help_text="By resource.")
    cards = Fraction(help_text="Their worth in cards.")


class NodeShape(serializers.Serializer):
    name = serializers.CharField()
    cluster = serializers.CharField()
    pool = serializers.CharField(help_text="Empty when it belongs to none that we know.")
    model = serializers.CharField(source="fact.model")
    title = Title(source="fact.model")
    cards = serializers.IntegerField(source="fact.cards")
    sick_cards = serializers.IntegerField(source="fact.sick_cards")
    sharing = OneOf(Sharing, source="fact.sharing")
    ready = serializers.BooleanField(source="fact.ready")
    schedulable = serializers.BooleanField(source="fact.schedulable")
    leaving = serializers.BooleanField(source="fact.leaving", help_text="To be given back to the provider.")
    mig_config = serializers.CharField(source="fact.mig_config")
    mig_state = serializers.CharField(source="fact.mig_state")
    driver = serializers.CharField(source="fact.driver")
    cuda = serializers.SerializerMethodField(help_text="The newest CUDA that its driver offers; null: nobody says.")
    seen_at = Instant()
    devices = serializers.SerializerMethodField()
    problems = ProblemShape(source="fact.problems", many=True)
    foreign = ForeignShape(many=True, help_text="Held outside Berth, by namespace.")
    lingering = StuckShape(source="stuck", many=True, help_text="Pods that do not go; their units are out of service.")

    def get_cuda(self, node: Any) -> str | None:
        return in_words(node.fact.cuda) if node.fact.cuda else None

    def get_devices(self, node: Any) -> DeviceShape(many=True):  # type: ignore[valid-type]
        return DeviceShape(node.fact.devices, many=True, context={"held": node.held}).data


class NodePage(serializers.Serializer):
    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = NodeShape(many=True)


class ReportShape(serializers.Serializer):
    """What one look at a cluster came to."""

    cluster = serializers.CharField(source="cluster.name")
    at = Instant()
    actions = serializers.ListField(child=serializers.CharField())
    failures = serializers.ListField(child=serializers.CharField())
    refusal = serializers.CharField(help_text="Why nothing was done, or empty.")
    problems = serializers.ListField(child=serializers.CharField())
    milliseconds = serializers.IntegerField()


class FleetShape(serializers.Serializer):
    clusters = ClusterShape(many=True)
    pools = PoolShape(many=True)
    nodes = NodePage()
    reports = ReportShape(many=True, allow_null=True, help_text="The last 20, for the operator; null for others.")


class FleetQuery(PageQuery):
    """Pages the nodes."""

    cluster = Text(40, required=False, help_text="A cluster by its name.")
    pool = Text(63, required=False, help_text="A pool by its name.")
    troubled = Flag(of_text=True, required=False, help_text="Only nodes that take no work.")


class PoolInput(Input):
    """Rules to change; those left out stay."""

    min_nodes = Whole(0, MOST_NODES, required=False)
    max_nodes = Whole(0, MOST_NODES, required=False)
    idle_minutes = Whole(*IDLE_MINUTES, required=False, allow_null=True, help_text="Null: never.")
    empty_minutes = Whole(*EMPTY_MINUTES, required=False)
    spread = Flag(required=False)
    layout = Text(63, required=False, pattern=f"({LAYOUT_TEXT})?", words=LAYOUT_WORDS)
    layouts = serializers.ListField(
        child=Text(63, least=1, pattern=LAYOUT_TEXT, words=LAYOUT_WORDS), required=False, max_length=MOST_LAYOUTS
    )
