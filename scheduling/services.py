"""What people do with workloads: each one row, one transition, and a wake-up of the cycle after commit.

No cluster is called here. People write `desired`; the cycle answers by moving `phase`.
"""

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction as F

from django.db import IntegrityError, transaction

from scheduling.announce import announce_on_commit, person_topic, team_topic
from scheduling.changes import Step, record
from scheduling.models import Cluster, Flavor, Node, NodePool, Workload
from scheduling.planning.cuda import Version, in_words, needed, too_old, version_of
from scheduling.planning.facts import Desired, Kind, Phase, Reason, Sharing
from scheduling.wake import wake_all, wake_cycle
from tenants import services as tenants
from tenants.errors import Refused
from tenants.models import Grant, QuotaRequest, RequestState, Team, User

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
PART = "[a-z0-9]+([._-]+[a-z0-9]+)*"
IMAGE = re.compile(rf"{PART}(:[0-9]{{1,5}})?(/{PART})*(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(@sha256:[0-9a-f]{{64}})?")
LONGEST_HOURS = 24 * 30
MOST_STORAGE_GIB = 2048
USUAL_GRACE, LONGEST_GRACE = 30, 3600  # seconds between the notice and the kill
LEAST_TO_SAVE = 5  # seconds, where something has to be saved before
UNITS = {Sharing.MIG: "MIG slice", Sharing.TIME_SLICE: "time-slice", Sharing.MPS: "MPS share"}
IMAGES = {
    Kind.WORKSPACE: "quay.io/jupyter/pytorch-notebook:cuda12-2026-10-20",
    Kind.JOB: "docker.io/pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asks for, as it came out of the form or the API; checked by `open_workload`."""

    name: str
    kind: Kind
    flavor: Flavor
    count: int = 1
    image: str = ""
    command: str = ""
    cpu_milli: int = 4000
    memory_mib: int = 16384
    storage_gib: int = 0
    hours: int | None = None
    cuda: str = ""  # the least version that the image needs, as 12.4; "": as its tag tells
    grace_seconds: int = USUAL_GRACE
    checkpoint: str = ""
    reason: str = ""
    submission: str = ""

    @property
    def share(self) -> F:
        """Cards, all units together."""
        return self.flavor.share * self.count


def open_workload(
    wish: Wish, *, team: Team, by: User, now: datetime, ask: F | None = None, until: datetime | None = None
) -> Workload:
    """Open one workload; with `ask`, also a quota request for so many cards that it waits for.

    A second submission of the same form answers with the first one's row. Refuses with the field at fault.
    """
    wish = replace(wish, submission=wish.submission or uuid.uuid4().hex)
    _check(wish)
    cluster = _cluster_for(wish)
    try:
        return _open(wish, cluster, team=team, by=by, now=now, ask=ask, until=until)
    except IntegrityError:
        first = Workload.objects.filter(owner=by, submission=wish.submission).first()
        if first is None:
            raise
        if (first.name, first.flavor_id, first.count, first.kind) != (wish.name, wish.flavor.pk, wish.count, wish.kind):
            raise Refused(
                "This form has already been sent with other values; open a new one.", field="submission"
            ) from None
        return first


def sleep_workload(workload: Workload, *, by: User, now: datetime) -> None:
    """Scale a workspace to zero: its storage stays, its quota is free."""
    if workload.kind != Kind.WORKSPACE:
        raise Refused("Only workspaces sleep; a job runs to its end or is ended.")
    if workload.phase not in (Phase.RUNNING, Phase.STARTING, Phase.PLACED, Phase.WAITING):
        raise Refused(f"{workload.name} is {workload.phase}; only what runs or waits can go to sleep.")
    _desire(workload, Desired.SLEEP, by=by, now=now)


def wake_workload(workload: Workload, *, by: User, now: datetime) -> None:
    """Bring a sleeping workspace back; it passes the quota check again and may have to wait."""
    if workload.phase != Phase.ASLEEP and workload.desired != Desired.SLEEP:
        raise Refused(f"{workload.name} is {workload.phase}; only what sleeps can be woken.")
    _desire(workload, Desired.RUN, by=by, now=now)


def end_workload(workload: Workload, *, by: User, now: datetime) -> None:
    """End it for good: the card is given back and the storage goes."""
    if workload.phase == Phase.ENDED:
        raise Refused(f"{workload.name} has already ended.")
    _desire(workload, Desired.END, by=by, now=now)


@transaction.atomic
def ask_quota(
    *, team: Team, by: User, model: str, amount: F, reason: str, now: datetime, until: datetime | None = None
) -> QuotaRequest:
    """Ask the team's leads for cards of one's own. The same question again, while it is open, is the same request."""
    User.objects.select_for_update().get(pk=by.pk)  # so that a double click asks once
    same = {"asked_by": by, "team": team, "model": model, "amount": amount, "until": until, "reason": reason.strip()}
    if first := QuotaRequest.objects.filter(state=RequestState.PENDING, **same).first():
        return first
    made = tenants.ask_quota(team=team, by=by, model=model, amount=amount, reason=reason, now=now, until=until)
    announce_on_commit(team_topic(team.pk), "request", request=str(made.pk), state=made.state)
    return made


@transaction.atomic
def approve_request(
    request: QuotaRequest,
    *,
    by: User,
    now: datetime,
    amount: F | None = None,
    until: datetime | None = None,
    note: str = "",
) -> Grant:
    """The lead's yes: the grant is made and what waits for it may start."""
    grant = tenants.approve(request, by=by, now=now, amount=amount, until=until, note=note)
    _after_decision(request)
    return grant


@transaction.atomic
def deny_request(request: QuotaRequest, *, by: User, now: datetime, note: str) -> None:
    """The lead's no: the workloads that waited for the request end, and their owner reads why."""
    tenants.deny(request, by=by, now=now, note=note)
    for workload in request.workloads.exclude(phase=Phase.ENDED):
        _desire(workload, Desired.END, by=by, now=now)
    _after_decision(request)


@transaction.atomic
def counter_request(
    request: QuotaRequest, *, by: User, now: datetime, amount: F, until: datetime | None, note: str = ""
) -> None:
    """The lead's offer: the workload goes on waiting until its owner accepts or withdraws."""
    tenants.counter(request, by=by, now=now, amount=amount, until=until, note=note)
    _after_decision(request)


@transaction.atomic
def accept_offer(request: QuotaRequest, *, by: User, now: datetime) -> Grant:
    grant = tenants.accept_counter(request, by=by, now=now)
    _after_decision(request)
    return grant


@transaction.atomic
def withdraw_request(request: QuotaRequest, *, by: User, now: datetime) -> None:
    """The asker steps back: what waited for the request ends."""
    tenants.withdraw(request, by=by, now=now)
    for workload in request.workloads.exclude(phase=Phase.ENDED):
        _desire(workload, Desired.END, by=by, now=now)
    _after_decision(request)


@transaction.atomic
def end_grant(grant: Grant, *, now: datetime) -> None:
    tenants.end_grant(grant, now=now)
    wake_all()


@transaction.atomic
def _open(
    wish: Wish, cluster: Cluster, *, team: Team, by: User, now: datetime, ask: F | None, until: datetime | None
) -> Workload:
    request = None
    if ask is not None:
        request = tenants.ask_quota(
            team=team,
            by=by,
            model=wish.flavor.model,
            amount=ask,
            reason=wish.reason,
            now=now,
            until=until,
            waits_for_it=_in_words(wish)[:120],
        )
    workload = Workload.objects.create(
        name=wish.name,
        kind=wish.kind,
        team=team,
        owner=by,
        cluster=cluster,
        flavor=wish.flavor,
        count=wish.count,
        image=wish.image or IMAGES[wish.kind],
        command=wish.command,
        cpu_milli=wish.cpu_milli,
        memory_mib=wish.memory_mib,
        storage_gib=wish.storage_gib,
        hours=wish.hours,
        cuda=wish.cuda,
        grace_seconds=wish.grace_seconds,
        checkpoint=wish.checkpoint,
        reason=wish.reason,
        submission=wish.submission,
        quota_request=request,
        asked_at=now,
        desired_at=now,
        desired_by=by,
        phase_since=now,
        phase_text="Submitted; the next look at the cluster decides.",
    )
    record(workload, None, Step(Phase.WAITING, Reason.SUBMITTED, workload.phase_text, now), by=by)
    if request is not None:
        announce_on_commit(team_topic(team.pk), "request", request=str(request.pk), state=request.state)
    wake_cycle(cluster.pk)
    return workload


def _in_words(wish: Wish) -> str:
    """ "detector-large, 3 × Whole H100 80GB"."""
    times = f"{wish.count} × " if wish.count > 1 else ""
    return f"{wish.name}, {times}{wish.flavor.words.partition(':')[0]}"


def _desire(workload: Workload, desired: Desired, *, by: User, now: datetime) -> None:
    """Write the wish if it is still a new one; the cycle does the rest.

    It is never older than the phase that it is about, even where the clock was set back.
    """
    at = max(now, workload.phase_since)
    with transaction.atomic():
        Workload.objects.filter(pk=workload.pk).exclude(desired=Desired.END).update(
            desired=desired, desired_at=at, desired_by=by
        )
        workload.refresh_from_db()
        if workload.desired != desired:
            raise Refused(f"{workload.name} is being ended; that cannot be taken back.")
        wake_cycle(workload.cluster_id)


def _after_decision(request: QuotaRequest) -> None:
    facts = {"request": str(request.pk), "state": request.state}
    announce_on_commit(team_topic(request.team_id), "request", **facts)
    announce_on_commit(person_topic(request.asked_by_id), "request", **facts)
    for workload in request.workloads.all():
        announce_on_commit(f"workload:{workload.pk}", "request", **facts)
    wake_all()


def _check(wish: Wish) -> None:
    """Shape and sense of a wish; capacity and quota are the cycle's to judge."""
    if not NAME.fullmatch(wish.name):
        raise Refused(
            "A name has 1 to 40 lower-case letters, digits and dashes, and begins and ends with a letter or digit.",
            field="name",
        )
    if not wish.flavor.offered:
        raise Refused(f"“{wish.flavor.words}” is no longer offered; choose another.", field="flavor")
    if wish.count < 1:
        raise Refused("Ask for at least 1.", field="count")
    if wish.count > 1 and wish.flavor.sharing != Sharing.WHOLE:
        raise Refused(
            f"A pod holds at most 1 {UNITS[Sharing(wish.flavor.sharing)]}: more would be refused by the node or bring "
            "no more compute to one program. Ask for 1, or for whole cards.",
            field="count",
        )
    if wish.image and not IMAGE.fullmatch(wish.image):
        raise Refused("The image is not a container image reference such as quay.io/team/image:tag.", field="image")
    _check_range(wish.hours, 1, LONGEST_HOURS, "hours", "Hours")
    _check_range(wish.storage_gib, 0, MOST_STORAGE_GIB, "storage_gib", "GiB of storage")
    _check_range(wish.cpu_milli, 100, 256_000, "cpu_milli", "Thousandths of a core")
    _check_range(wish.memory_mib, 128, 4 * 1024 * 1024, "memory_mib", "MiB of memory")
    if wish.kind == Kind.JOB and not wish.command.strip():
        raise Refused("Say which command the job runs.", field="command")
    for field in ("command", "reason", "checkpoint"):
        if "\x00" in getattr(wish, field):
            raise Refused("Text must not contain NUL characters.", field=field)
    _check_needs(wish)


def _check_needs(wish: Wish) -> None:
    """What it needs of the driver, and what it needs to stop."""
    if wish.cuda and version_of(wish.cuda) is None:
        raise Refused(f"“{wish.cuda}” is no CUDA version; write it as 12.4, or leave it empty.", field="cuda")
    _check_range(wish.grace_seconds, 1, LONGEST_GRACE, "grace_seconds", "Seconds to stop")
    if wish.checkpoint.strip() and wish.grace_seconds < LEAST_TO_SAVE:
        raise Refused(
            f"The command that saves its state has to end within the time to stop, and {wish.grace_seconds} seconds "
            f"are too few; choose {LEAST_TO_SAVE} or more.",
            field="grace_seconds",
        )


def _check_range(value: int | None, least: int, most: int, field: str, words: str) -> None:
    if value is not None and not least <= value <= most:
        raise Refused(f"{words}: choose {least} to {most}; {value} is outside.", field=field)


def _cluster_for(wish: Wish) -> Cluster:
    """The first cluster by name with a pool that can ever hold the wish."""
    pools = (
        NodePool.objects.filter(
            model=wish.flavor.model,
            sharing=wish.flavor.sharing,
            capacity=wish.flavor.capacity,
            replicas=wish.flavor.replicas,
            max_nodes__gte=1,
        )
        .select_related("cluster")
        .order_by("cluster__name", "-cards_per_node")
    )
    found = next(iter(pools), None)
    if found is None:
        raise Refused(f"No pool offers “{wish.flavor.words}” any more; choose another.", field="flavor")
    fitting = [pool for pool in pools if wish.flavor.sharing != Sharing.WHOLE or pool.cards_per_node >= wish.count]
    if not fitting:
        raise Refused(
            f"No node has {wish.count} such cards: the largest has {max(pool.cards_per_node for pool in pools)}. "
            "Ask for at most that many.",
            field="count",
        )
    roomy = [p for p in fitting if p.cpu_milli >= wish.cpu_milli and p.host_memory_mib >= wish.memory_mib]
    if not roomy:
        raise Refused("No node of that kind has so much CPU and memory; ask for less.", field="cpu_milli")
    return _new_enough(roomy, needed(wish.cuda, wish.image or IMAGES[wish.kind]), wish).cluster


def _new_enough(pools: Sequence[NodePool], need: Version | None, wish: Wish) -> NodePool:
    """The first pool that is not known to be too old for the image; what nobody knows is not refused."""
    offered = newest_cuda(pools)
    for pool in pools:
        if not too_old(offered[pool.pk], need):
            return pool
    most = in_words(max(version for version in offered.values() if version is not None))
    why = "as was said" if version_of(wish.cuda) else "by its tag"
    raise Refused(
        f"The image needs CUDA {in_words(need)}, {why}, and the drivers of all nodes with “{wish.flavor.words}” offer "
        f"{most} at most. Choose an image for CUDA {most} or older, or another flavor"
        + ("." if version_of(wish.cuda) else "; if it runs with less than its tag says, say so under Advanced."),
        field="cuda" if wish.cuda else "image",
    )


def newest_cuda(pools: Iterable[NodePool]) -> dict[int, Version | None]:
    """By pool: the newest CUDA that its nodes offer; of a pool without nodes, what they last offered. One query.

    None where a node does not say, as it may be newer, or where nobody has ever said.
    """
    found: dict[int, Version | None] = {pool.pk: version_of(pool.cuda) for pool in pools}
    for pk, said in Node.objects.filter(pool__in=list(found)).values_list("pool_id", "facts__cuda"):
        if said is None and pk is not None:
            found[pk] = None
    return found
