"""What the planner knows: frozen facts, read from the tables and the cluster, and nothing else.

Shares are exact fractions of one card; memory is MiB; times are aware UTC. A fact that nobody reported is None,
never zero: unknown is not free.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from datetime import timedelta as td
from enum import StrEnum
from fractions import Fraction as F
from uuid import UUID


class Sharing(StrEnum):
    """How the cards of a node are given out."""

    WHOLE = "whole"
    MIG = "mig"
    TIME_SLICE = "time-slice"
    MPS = "mps"


class Isolation(StrEnum):
    """What keeps two holders of one card apart."""

    HARDWARE = "hardware"
    PROCESS = "process"
    NONE = "none"


class Capacity(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


class Kind(StrEnum):
    WORKSPACE = "workspace"
    JOB = "job"


class Desired(StrEnum):
    """What the owner wants; written by people only."""

    RUN = "run"
    SLEEP = "sleep"
    END = "end"


class Phase(StrEnum):
    """Where a workload stands; written by the cycle only."""

    WAITING = "waiting"
    PLACED = "placed"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ASLEEP = "asleep"
    ENDED = "ended"


class Reason(StrEnum):
    """Why a workload stands where it stands: a small closed set; Kueue's words for conditions where one fits."""

    # Waiting
    SUBMITTED = "Submitted"
    WAITING_FOR_APPROVAL = "WaitingForApproval"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    WAITING_FOR_NODE = "WaitingForNode"
    WAITING_FOR_CUT = "WaitingForCut"
    UNKNOWN_FLAVOR = "UnknownFlavor"
    BACKING_OFF = "BackingOff"
    NODE_LOST = "NodeLost"
    POD_LOST = "PodLost"
    PREEMPTED = "Preempted"
    REJECTED_BY_NODE = "RejectedByNode"
    # Waiting in a cluster's own queue (Kueue)
    HANDED_OVER = "HandedOver"
    EXCEEDS_QUOTA = "ExceedsMaxQuota"
    WAITING_FOR_PREEMPTED = "WaitingForPreemptedWorkloads"
    WAITING_FOR_CHECK = "WaitingForCheck"
    QUEUE_STOPPED = "QueueStopped"
    MISCONFIGURED = "Misconfigured"
    DEACTIVATED = "Deactivated"
    EVICTED = "Evicted"
    REQUEUED = "Requeued"
    ADMITTED = "Admitted"
    BORROWED = "Borrowed"
    SAID_BY_KUEUE = "SaidByKueue"
    # On the way and running
    PLACED = "Placed"
    PULLING_IMAGE = "PullingImage"
    IMAGE_UNAVAILABLE = "ImageUnavailable"
    CREATING = "Creating"
    POD_REFUSED = "PodRefused"  # the cluster has its object, and makes no pod for it
    RUNNING = "Running"
    # Stopping, asleep, ended
    ASKED_TO_SLEEP = "AskedToSleep"
    IDLE = "Idle"
    ASKED_TO_END = "AskedToEnd"
    TIME_IS_UP = "TimeIsUp"
    GRANT_ENDED = "GrantEnded"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REMOVED_OUTSIDE = "RemovedOutside"
    CHANGED_OUTSIDE = "ChangedOutside"
    DENIED = "Denied"
    WOKEN = "Woken"


HOLDING = frozenset({Phase.PLACED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING})
"""The phases in which a workload holds its share of the quota and of a card."""


@dataclass(frozen=True, slots=True)
class FlavorFact:
    """What can be asked for: GPU model x sharing x profile x capacity type."""

    sku: str  # "h100-80gb/mig-1g.10gb/on-demand"
    model: str  # a key of the catalog: "h100-80gb"
    sharing: Sharing
    profile: str  # "1g.10gb" for MIG, else ""
    replicas: int  # how many share one card by time or MPS, else 1
    share: F  # of one card
    memory_mib: int
    capacity: Capacity


@dataclass(frozen=True, slots=True)
class DeviceFact:
    """One extended resource of one node, e.g. nvidia.com/mig-1g.10gb."""

    resource: str
    profile: str  # MIG profile, else ""
    share: F  # what one unit is of one card
    isolation: Isolation
    capacity: int  # units the node has
    allocatable: int  # units that may be given out; less than capacity when a card is sick
    memory_mib: int | None  # of one unit; None when nobody says


@dataclass(frozen=True, slots=True)
class Problem:
    """Something odd in what the cluster or a file says: where, which field, in a sentence."""

    where: str  # the node's name, or the file
    field: str  # "status.allocatable[nvidia.com/gpu]"
    text: str


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeFact:
    """One machine with cards, as its Node document tells."""

    name: str
    uid: str
    pool: str  # the provider's pool label; "" when none is known
    model: str  # key of the catalog, or the product string as it stands when the catalog does not know it
    known: bool  # does the catalog know the model?
    memory_mib: int | None  # of one whole card
    cards: int  # physical cards
    sick_cards: int  # physical cards that the device plugin withholds
    sharing: Sharing
    replicas: int  # per card, for time-slices and MPS; 1 otherwise
    capacity: Capacity
    devices: tuple[DeviceFact, ...]
    cpu_milli: int
    host_memory_mib: int
    ready: bool
    schedulable: bool  # ready, not cordoned, not being reconfigured, no fault taint
    taints: tuple[Taint, ...] = ()
    zone: str = ""
    clique: str = ""  # NVLink domain
    machine: str = ""  # the provider's Machine behind the node
    mig_capable: bool = False
    mig_strategy: str = ""  # "", single, mixed
    mig_config: str = ""  # what the label asks for
    mig_state: str = ""  # pending, rebooting, success, failed, ""
    cutting_to: str = ""  # our own mark: the layout we asked for and have not yet seen done
    leaving: bool = False  # our own mark: cordoned by us to be given back to the provider
    dropped: bool = False  # our own mark: the provider has been asked to take it away (Resize.drop)
    created_at: datetime | None = None
    usable_since: datetime | None = None  # when we first saw its GPUs advertised; emptiness starts here; None before
    driver: str = ""
    problems: tuple[Problem, ...] = ()
    kept_away: str = ""  # a taint of nobody's fault that keeps our pods away, as its key
    stock: str = ""  # our own label: the kind of cards, by which Kueue's flavors find it
    not_ready_since: datetime | None = None  # since when its Ready condition says so; None: ready, or not known
    cuda: tuple[int, int] | None = None  # the newest CUDA that its driver offers; None: nobody says


@dataclass(frozen=True, slots=True)
class PodFact:
    """One pod, ours or somebody else's."""

    namespace: str
    name: str
    uid: str
    node: str  # "" while unbound
    phase: str  # Pending, Running, Succeeded, Failed, Unknown
    ready: bool
    workload: UUID | None  # from our label; None for foreign pods
    requests: Mapping[str, int]  # extended resources
    cpu_milli: int
    memory_mib: int
    created_at: datetime | None
    running_since: datetime | None  # the container's own start
    finished_at: datetime | None
    deleting_since: datetime | None
    waiting_reason: str = ""  # ContainerCreating, ImagePullBackOff, ...
    reason: str = ""  # UnexpectedAdmissionError, Evicted, NodeLost, ...
    message: str = ""
    exit_code: int | None = None
    controller: str = ""  # the uid of the StatefulSet or Job that made it; "": nobody's


@dataclass(frozen=True, slots=True)
class ObjectFact:
    """The StatefulSet or Job that stands for a workload in the cluster."""

    workload: UUID
    kind: str  # StatefulSet, Job
    namespace: str
    name: str
    uid: str
    replicas: int  # wished replicas or parallelism
    generation: int  # our attempt number, from our annotation
    deleting_since: datetime | None
    requests: Mapping[str, int] | None = None  # extended resources of one pod of it; None when nobody says
    complete: bool = False
    failed: bool = False
    reason: str = ""
    message: str = ""
    finished_at: datetime | None = None
    queue: str = ""  # the queue of Kueue's that it stands in; "" where our own plan admits


class Standing(StrEnum):
    """Where a workload stands in the cluster's own queue."""

    PENDING = "pending"  # not admitted, or not any more
    RESERVED = "reserved"  # its quota is set aside, other checks are open
    ADMITTED = "admitted"
    LEAVING = "leaving"  # evicted, and its pods may still be there
    INACTIVE = "inactive"  # taken out of the queue by somebody
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class QueueFact:
    """What Kueue says of one workload that was handed to it."""

    standing: Standing
    reason: Reason
    text: str
    borrowed: bool = False  # it runs on what another team leaves unused
    cause: Reason | None = None  # why it was last taken out, where it was
    cause_text: str = ""

    @property
    def demands(self) -> bool:
        """Is it to have a node, as far as Kueue is concerned?"""
        return self.standing in (Standing.RESERVED, Standing.ADMITTED)


@dataclass(frozen=True, slots=True)
class Lending:
    """How much one team may borrow of one model, and out of what; None: as much as there is."""

    tree: UUID  # the team at the top
    limit: F | None = None


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The cluster's own queue, as far as a plan has to know it."""

    facts: Mapping[UUID, QueueFact] = field(default_factory=dict)  # of all that was handed over
    mixed: frozenset[str] = frozenset()  # models of which cards are asked for under several names
    lending: Mapping[tuple[UUID, str], Lending] = field(default_factory=dict)  # by team and model
    trees: Mapping[tuple[UUID, str], F] = field(default_factory=dict)  # cards of a whole tree, by its top and model


@dataclass(frozen=True, slots=True)
class PoolFact:
    """Nodes of one kind that a provider scales together, and the operator's rules for them."""

    name: str
    model: str
    sharing: Sharing
    replicas: int
    capacity: Capacity
    cards_per_node: int
    cpu_milli: int  # of one fresh node; what a node from zero will offer
    host_memory_mib: int
    min_nodes: int
    max_nodes: int
    wished_nodes: int | None  # what the provider has been asked for; None: unknown, so do not resize
    layout: str  # MIG config name that a fresh node comes up with, else ""
    layouts: tuple[str, ...]  # MIG config names that the planner may cut to; empty: never cut
    empty_after: td  # a node that held nothing for so long may go
    resizable: bool = True
    spread: bool = False  # place on the emptiest node first instead of packing
    cuda: tuple[int, int] | None = None  # what a fresh node will offer, going by its nodes; None: not known


@dataclass(frozen=True, slots=True)
class WorkloadFact:
    """One row of the tables, as far as planning needs it."""

    id: UUID
    name: str
    kind: Kind
    team: UUID
    owner: int
    flavor: FlavorFact
    count: int  # units of the flavor, all on one node: cards for whole, always 1 for shared kinds
    cpu_milli: int
    memory_mib: int
    desired: Desired
    phase: Phase
    asked_at: datetime
    phase_since: datetime
    priority: int = 0
    approval_pending: bool = False  # an undecided quota request stands before it
    node: str = ""  # of the open placement
    pool: str = ""
    attempt: int = 0
    failures: int = 0  # in a row, since it last ran
    not_before: datetime | None = None  # back-off after a failure
    idle_since: datetime | None = None  # None: busy, or not known; never guess
    idle_limit: td | None = None  # None: never sleeps by itself
    ends_at: datetime | None = None  # asked-for duration is over then
    shunned: frozenset[str] = frozenset()  # nodes that refused it
    reason: Reason | None = None  # of the present phase; None when nobody says
    stopping_to: Phase | None = None  # while stopping: asleep or ended
    cuda: tuple[int, int] | None = None  # the least version that it needs; None: it does not say
    grace: td = td(seconds=30)  # from the notice to the kill

    @property
    def holds_quota(self) -> bool:
        """What still stops after its grace has no placement any more: its pod keeps the card, but not the quota."""
        return self.phase in HOLDING and (self.phase is not Phase.STOPPING or self.node != "")

    @property
    def share(self) -> F:
        """Cards held, as an exact fraction."""
        return self.flavor.share * self.count


@dataclass(frozen=True, slots=True)
class QuotaFact:
    """What one team may hold of one model now; members' own grants beside the team's."""

    team: UUID
    model: str
    granted: F
    own: Mapping[int, F] = field(default_factory=dict)  # member -> granted to this member alone
    team_name: str = ""  # for sentences
    elsewhere: Mapping[int, F] = field(default_factory=dict)  # member -> held in other clusters


@dataclass(frozen=True, slots=True)
class RefusedCut:
    """Somebody has said "not now" to a cut of this pool. It holds for whatever would let in nobody else."""

    pool: str
    lets_in: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class CutRules:
    """What cutting costs, what demand is to be expected, and what people have said about it."""

    minutes: int = 5  # that a node is out of service for a cut
    horizon: td = td(hours=6)  # for so long a layout is taken to serve what is usually asked for
    patience: td = td(minutes=30)  # whoever has waited so long is not weighed against what may come
    asks: frozenset[str] = frozenset()  # pools whose cuts a person has to agree to
    agreed: frozenset[tuple[str, str]] = frozenset()  # node and layout
    refused: tuple[RefusedCut, ...] = ()
    usual: Mapping[tuple[str, Capacity], Mapping[str, F]] = field(default_factory=dict)
    """By model and capacity type: how many instances of each profile ("" is a whole card) are usually wanted at a time;
    what is not said is not known, and then only waiting work counts."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One picture of tables and cluster. Everything that plan() looks at."""

    now: datetime
    pools: tuple[PoolFact, ...]
    nodes: tuple[NodeFact, ...]
    pods: tuple[PodFact, ...]
    objects: tuple[ObjectFact, ...]
    workloads: tuple[WorkloadFact, ...]
    quotas: tuple[QuotaFact, ...]
    complete: bool = True  # False: a part of the cluster could not be read
    problems: tuple[Problem, ...] = ()
    empty_since: Mapping[str, datetime] = field(default_factory=dict)  # node -> since when it holds none of our pods
    queue: QueueRules | None = None  # where the cluster's own queue admits; None: our plan does
    cutting: CutRules = field(default_factory=CutRules)
    quotas_change_at: datetime | None = None  # when a grant begins or ends by time alone; None: not foreseen
