"""What runs where: clusters, pools, nodes, flavors, workloads and their placements.

One writer per column: people write `desired`, the cycle writes `phase`. Placements are the meter; transitions and
cycle reports are append-only.
"""

import uuid

from django.db import models
from django.db.models import F as Column
from django.db.models import Q

from scheduling.choices import Queueing, Route, choices, known
from scheduling.planning import facts
from tenants.fields import FractionField
from tenants.models import QuotaRequest, Team, User


class Cluster(models.Model):
    """A Kubernetes cluster that Berth runs workloads on."""

    name = models.SlugField(max_length=40, unique=True)
    server = models.URLField(max_length=300, help_text="Address of the API server.")
    token_file = models.CharField(
        max_length=500, blank=True, help_text="File with our token there; read again when it is rotated."
    )
    authority_file = models.CharField(
        max_length=500, blank=True, help_text="File with the authority that signed the server's certificate."
    )
    queueing = models.CharField(max_length=8, choices=choices(Queueing), default=Queueing.DIRECT)
    pull_secrets = models.JSONField(
        default=list, blank=True, help_text="Names of image pull secrets that the site keeps in the teams' namespaces."
    )
    route_kind = models.CharField(max_length=10, choices=choices(Route), blank=True)
    route_domain = models.CharField(max_length=200, blank=True, help_text="Workspaces answer at NAME.this-domain.")
    route_class = models.CharField(
        max_length=130, blank=True, help_text="Ingress class, or NAMESPACE/NAME of the gateway."
    )
    metrics_namespace = models.CharField(max_length=63, default="gpu-operator")
    paused = models.BooleanField(default=False, help_text="The cycle looks but does not act.")
    seen_at = models.DateTimeField(null=True, blank=True, help_text="Last complete look.")
    heard_at = models.DateTimeField(null=True, blank=True, help_text="When its watches last spoke; on the wall clock.")
    picture = models.JSONField(default=dict, blank=True, help_text="How far seen and written: no look may show less.")
    due_at = models.DateTimeField(null=True, blank=True, help_text="When time alone asks for the next look.")
    wanted_at = models.DateTimeField(null=True, blank=True, help_text="Last wake-up; on the wall clock.")
    looked_at = models.DateTimeField(
        null=True, blank=True, help_text="When the last look that was carried through began; on the wall clock."
    )
    failed_looks = models.PositiveSmallIntegerField(
        default=0, help_text="Looks in a row that failed, were incomplete or could not do all that they wanted."
    )
    sampled_at = models.DateTimeField(null=True, blank=True, help_text="Last sampling; on the wall clock.")
    lease_token = models.CharField(max_length=32, blank=True, help_text="Who runs the cycle now.")
    lease_until = models.DateTimeField(null=True, blank=True, help_text="On the wall clock.")
    broken_looks = models.PositiveIntegerField(
        default=0, help_text="Looks in a row that a fault of ours or the death of their worker ended."
    )
    rest_until = models.DateTimeField(
        null=True, blank=True, help_text="No look before, after broken ones; on the wall clock."
    )
    trouble = models.CharField(max_length=500, blank=True, help_text="Why the last look failed, in a sentence.")
    meters_trouble = models.CharField(max_length=500, blank=True, help_text="Why no meter there can be read.")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(name="cluster_queueing_is_known", condition=known("queueing", Queueing)),
            models.CheckConstraint(
                name="cluster_route_is_known", condition=Q(route_kind="") | known("route_kind", Route)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Turn(models.Model):
    """Which period of a periodic task was served last: however many beats ring, each period is served once."""

    task = models.CharField(max_length=60, primary_key=True)
    began = models.DateTimeField(help_text="When the period began that was served last, on the wall clock.")


class NodePool(models.Model):
    """Nodes of one kind that a provider scales together, and the operator's rules for them."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="pools")
    name = models.CharField(max_length=63)
    model = models.CharField(max_length=60, help_text="GPU model, a key of the catalog.")
    sharing = models.CharField(max_length=12, choices=choices(facts.Sharing))
    replicas = models.PositiveSmallIntegerField(default=1, help_text="Shares per card, for time-slices and MPS.")
    capacity = models.CharField(max_length=12, choices=choices(facts.Capacity), default=facts.Capacity.ON_DEMAND)
    cards_per_node = models.PositiveSmallIntegerField()
    cpu_milli = models.PositiveIntegerField(help_text="Allocatable CPU of one node, in thousandths of a core.")
    host_memory_mib = models.PositiveIntegerField(help_text="Allocatable memory of one node, MiB.")
    provider = models.CharField(max_length=20, choices=[("cluster-api", "Cluster API"), ("static", "Static")])
    min_nodes = models.PositiveSmallIntegerField(default=0)
    max_nodes = models.PositiveSmallIntegerField()
    wished_nodes = models.PositiveSmallIntegerField(null=True, blank=True, help_text="As the provider last said.")
    trouble = models.CharField(max_length=300, blank=True, help_text="The provider's words when it cannot deliver.")
    layout = models.CharField(max_length=63, blank=True, help_text="MIG config that a fresh node comes up with.")
    layouts = models.JSONField(default=list, blank=True, help_text="MIG configs that the planner may cut to.")
    idle_minutes = models.PositiveSmallIntegerField(
        null=True, blank=True, default=90, help_text="A workspace quiet for so long goes to sleep; empty: never."
    )
    empty_minutes = models.PositiveSmallIntegerField(default=15, help_text="A node that held nothing so long may go.")
    runtime_class = models.CharField(
        max_length=63, blank=True, help_text="RuntimeClass of its pods, where the GPU runtime is not the default."
    )
    cuda = models.CharField(max_length=10, blank=True, help_text="Newest that its nodes offer, as last seen.")
    spread = models.BooleanField(default=False, help_text="Fill the emptiest node first instead of packing.")

    class Meta:
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(name="a_pool_has_one_name_per_cluster", fields=["cluster", "name"]),
            models.CheckConstraint(
                name="min_nodes_is_not_above_max_nodes", condition=Q(min_nodes__lte=Column("max_nodes"))
            ),
            models.CheckConstraint(
                name="only_shared_cards_have_replicas",
                condition=Q(sharing__in=["whole", "mig"], replicas=1)
                | Q(sharing__in=["time-slice", "mps"], replicas__gte=2),
            ),
            models.CheckConstraint(name="pool_sharing_is_known", condition=known("sharing", facts.Sharing)),
            models.CheckConstraint(name="pool_capacity_is_known", condition=known("capacity", facts.Capacity)),
        ]

    def __str__(self) -> str:
        return self.name


class Flavor(models.Model):
    """What can be asked for: GPU model x sharing x profile x capacity type."""

    sku = models.CharField(max_length=120, unique=True)
    model = models.CharField(max_length=60)
    sharing = models.CharField(max_length=12, choices=choices(facts.Sharing))
    profile = models.CharField(max_length=30, blank=True)
    replicas = models.PositiveSmallIntegerField(default=1)
    share = FractionField(help_text="Of one card.")
    memory_mib = models.PositiveIntegerField()
    capacity = models.CharField(max_length=12, choices=choices(facts.Capacity))
    words = models.CharField(max_length=160, help_text="What it is, for people.")
    offered = models.BooleanField(default=True)

    class Meta:
        ordering = ["model", "sku"]
        constraints = [
            models.CheckConstraint(name="flavor_sharing_is_known", condition=known("sharing", facts.Sharing)),
        ]

    def __str__(self) -> str:
        return self.words


class Node(models.Model):
    """One machine as last seen. `facts` is the whole NodeFact, so that a page needs no look at the cluster."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="nodes")
    pool = models.ForeignKey(NodePool, null=True, blank=True, on_delete=models.SET_NULL, related_name="nodes")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    model = models.CharField(max_length=60)
    cards = models.PositiveSmallIntegerField()
    schedulable = models.BooleanField()
    facts = models.JSONField()
    foreign = models.JSONField(default=dict, help_text="Units that others' pods hold, by namespace and resource.")
    lingering = models.JSONField(default=list, help_text="Our pods here that nobody pays for any more.")
    usable_since = models.DateTimeField(null=True, blank=True, help_text="When its GPUs were first advertised.")
    empty_since = models.DateTimeField(null=True, blank=True, help_text="Since when it holds none of our pods.")
    seen_at = models.DateTimeField(help_text="When these facts were last new.")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(name="a_node_has_one_name_per_cluster", fields=["cluster", "name"])]

    def __str__(self) -> str:
        return self.name


class CardSpan(models.Model):
    """How many cards a node had, and what of them was out of service, stranded or foreign, from a time until a time.

    The balance of card-seconds is made from these and from placements. Append-only but for the one end.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="card_spans")
    pool = models.CharField(max_length=63, blank=True)
    node = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64)
    model = models.CharField(max_length=60)
    cards = models.PositiveSmallIntegerField()
    out_of_service = FractionField(help_text="Cards that cannot be given out: sick, being cut, node not ready.")
    stranded = FractionField(help_text="Cards' worth of remainders that no profile can use.")
    foreign = FractionField(help_text="Cards' worth held by pods that are not ours.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["started_at", "id"]
        indexes = [models.Index(fields=["ended_at"]), models.Index(fields=["cluster", "pool", "started_at"])]
        constraints = [
            models.UniqueConstraint(
                name="one_open_card_span_per_node", fields=["cluster", "node_uid"], condition=Q(ended_at=None)
            ),
            models.CheckConstraint(
                name="a_card_span_ends_after_it_starts",
                condition=Q(ended_at=None) | Q(ended_at__gte=Column("started_at")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cards} cards on {self.node}"


class Ceiling(models.Model):
    """The outer bound of a team's namespace in a cluster, as it was last written there: a ResourceQuota."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ceilings")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="ceilings")
    hard = models.JSONField(default=dict, help_text="Most units that its pods may hold together, by resource.")
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["cluster__name", "team__name"]
        constraints = [models.UniqueConstraint(name="a_team_has_one_ceiling_per_cluster", fields=["cluster", "team"])]

    def __str__(self) -> str:
        return f"ceiling of {self.team} in {self.cluster}"


class Workload(models.Model):
    """What a researcher runs: a workspace or a job."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=12, choices=choices(facts.Kind))
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="workloads")
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="workloads")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="workloads")
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="workloads")
    count = models.PositiveSmallIntegerField(default=1, help_text="Units of the flavor, all on one node.")
    image = models.CharField(max_length=300)
    command = models.CharField(max_length=2000, blank=True, help_text="Run by a shell in the container.")
    cpu_milli = models.PositiveIntegerField(default=4000)
    memory_mib = models.PositiveIntegerField(default=16384)
    storage_gib = models.PositiveIntegerField(default=0)
    cuda = models.CharField(max_length=10, blank=True, help_text="Least CUDA version that the image needs, as 12.4.")
    grace_seconds = models.PositiveSmallIntegerField(default=30, help_text="From the notice to the kill.")
    checkpoint = models.CharField(max_length=500, blank=True, help_text="Run in the container before it is stopped.")
    reason = models.CharField(max_length=500, blank=True, help_text="The owner's words.")
    hours = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Ends so many hours after it first ran.")
    submission = models.CharField(max_length=64, help_text="Made by the form or client; makes a double click one row.")
    quota_request = models.ForeignKey(
        QuotaRequest, null=True, blank=True, on_delete=models.PROTECT, related_name="workloads"
    )
    asked_at = models.DateTimeField()

    # Written by people.
    desired = models.CharField(max_length=8, choices=choices(facts.Desired), default=facts.Desired.RUN)
    desired_at = models.DateTimeField()
    desired_by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    # Written by the cycle.
    phase = models.CharField(max_length=10, choices=choices(facts.Phase), default=facts.Phase.WAITING)
    phase_since = models.DateTimeField()
    phase_reason = models.CharField(max_length=30, choices=choices(facts.Reason), default=facts.Reason.SUBMITTED)
    phase_text = models.CharField(max_length=500, blank=True)
    version = models.PositiveIntegerField(default=0, help_text="Grows by one with each transition.")
    attempt = models.PositiveIntegerField(default=0, help_text="Grows by one with each placement.")
    failures = models.PositiveSmallIntegerField(default=0, help_text="In a row, since it last ran.")
    shunned = models.JSONField(default=list, blank=True, help_text="Nodes that refused it.")
    not_before = models.DateTimeField(null=True, blank=True)
    unfinished_puts = models.PositiveSmallIntegerField(
        default=0, help_text="Puts in a row that never came back: the workers that began them died."
    )
    first_ran_at = models.DateTimeField(null=True, blank=True)

    furnished = models.PositiveIntegerField(default=0, help_text="The attempt of which all has been written.")
    address = models.CharField(max_length=300, blank=True, help_text="Where it is reached from outside while it runs.")
    address_problem = models.CharField(max_length=300, blank=True, help_text="Why it has no address, in a sentence.")

    # Written by the sampler; a new placement clears it.
    idle_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-asked_at", "id"]
        indexes = [models.Index(fields=["cluster", "phase"]), models.Index(fields=["team", "phase"])]
        constraints = [
            models.UniqueConstraint(name="one_workload_per_submission", fields=["owner", "submission"]),
            models.CheckConstraint(name="workload_kind_is_known", condition=known("kind", facts.Kind)),
            models.CheckConstraint(name="workload_desired_is_known", condition=known("desired", facts.Desired)),
            models.CheckConstraint(name="workload_phase_is_known", condition=known("phase", facts.Phase)),
            models.CheckConstraint(name="a_workload_asks_for_something", condition=Q(count__gte=1)),
        ]

    def __str__(self) -> str:
        return self.name


class Placement(models.Model):
    """One pod of a workload holding one share (or several whole cards) on one node, from a time until a time.

    The meter: `placed_at` to `running_at` is cold start (the platform's cost), `running_at` to `ended_at` is use.
    Names are copied, so that the ledger can be read when teams and people are gone.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="placements")
    attempt = models.PositiveIntegerField()
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="placements")
    pool = models.CharField(max_length=63)
    node = models.CharField(max_length=253)
    resource = models.CharField(max_length=120)
    flavor = models.ForeignKey(Flavor, on_delete=models.PROTECT, related_name="placements")
    share = FractionField(help_text="Cards held, all units together.")
    namespace = models.CharField(max_length=63)
    pod = models.CharField(max_length=253, blank=True)
    pod_uid = models.CharField(max_length=64, blank=True)
    placed_at = models.DateTimeField()
    running_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-placed_at", "id"]
        indexes = [models.Index(fields=["ended_at"]), models.Index(fields=["cluster", "node"])]
        constraints = [
            models.UniqueConstraint(
                name="one_open_placement_per_workload", fields=["workload"], condition=Q(ended_at=None)
            ),
            models.UniqueConstraint(name="one_placement_per_attempt", fields=["workload", "attempt"]),
            models.CheckConstraint(
                name="a_placement_ends_after_it_began",
                condition=Q(ended_at=None) | Q(ended_at__gte=Column("placed_at")),
            ),
            models.CheckConstraint(
                name="a_placement_runs_after_it_began",
                condition=Q(running_at=None) | Q(running_at__gte=Column("placed_at")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.workload_id} on {self.node}"


class Transition(models.Model):
    """One step of a workload's phase, or a new reason within it. Append-only: feeds page, audit and notices."""

    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="transitions")
    version = models.PositiveIntegerField()
    at = models.DateTimeField()
    before = models.CharField(max_length=10, blank=True)
    after = models.CharField(max_length=10)
    reason = models.CharField(max_length=30)
    text = models.CharField(max_length=500, blank=True)
    by = models.ForeignKey(User, null=True, blank=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["workload", "version"]
        constraints = [
            models.UniqueConstraint(name="one_transition_per_version", fields=["workload", "version"]),
        ]

    def __str__(self) -> str:
        return f"{self.before or 'new'} to {self.after}: {self.text}"


class Removal(models.Model):
    """A pod that the operator had removed by force: the order, and the trace of it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="removals")
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="removals")
    node = models.CharField(max_length=253)
    namespace = models.CharField(max_length=63)
    pod = models.CharField(max_length=253)
    pod_uid = models.CharField(max_length=64)
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    done_at = models.DateTimeField(null=True, blank=True, help_text="When the pod was seen gone.")
    trouble = models.CharField(max_length=500, blank=True, help_text="The cluster's words when it refused.")

    class Meta:
        ordering = ["-asked_at", "id"]
        constraints = [models.UniqueConstraint(name="a_pod_is_removed_by_force_once", fields=["cluster", "pod_uid"])]


class Sample(models.Model):
    """What one placement was seen to use at one instant. Kept a day; None means that nobody reported it."""

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="samples")
    at = models.DateTimeField()
    busy = models.FloatField(null=True, blank=True, help_text="0 to 1.")
    memory_used_mib = models.PositiveIntegerField(null=True, blank=True)
    memory_total_mib = models.PositiveIntegerField(null=True, blank=True)
    watts = models.FloatField(null=True, blank=True)

    class Meta:
        ordering = ["at"]
        constraints = [
            models.UniqueConstraint(name="one_sample_per_placement_and_instant", fields=["placement", "at"]),
            models.CheckConstraint(
                name="busy_is_a_share_of_one", condition=Q(busy=None) | Q(busy__gte=0.0, busy__lte=1.0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.placement_id} at {self.at:%H:%M:%S}"


class UsageHour(models.Model):
    """One placement's samples of one hour, rolled up. Counts and sums, so that two halves can be added."""

    placement = models.ForeignKey(Placement, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    samples = models.PositiveIntegerField(default=0)
    busy_samples = models.PositiveIntegerField(default=0, help_text="Samples that said how busy.")
    busy_sum = models.FloatField(default=0.0)
    busy_max = models.FloatField(null=True, blank=True)
    memory_max_mib = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["hour"]
        constraints = [models.UniqueConstraint(name="one_rollup_per_placement_and_hour", fields=["placement", "hour"])]

    def __str__(self) -> str:
        return f"{self.placement_id} in {self.hour:%Y-%m-%d %H}h"


class CycleReport(models.Model):
    """What one look at a cluster came to: for the operator's page."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="reports")
    at = models.DateTimeField()
    actions = models.JSONField(default=list, help_text="Sentences, in the order in which they were done.")
    failures = models.JSONField(default=list, help_text="What could not be done, in sentences.")
    refusal = models.CharField(max_length=500, blank=True, help_text="Why nothing was done.")
    problems = models.JSONField(default=list, help_text="What looked odd.")
    milliseconds = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["cluster", "at"])]

    def __str__(self) -> str:
        return f"{self.cluster} at {self.at:%H:%M:%S}"
