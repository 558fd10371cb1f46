"""The outer bound of each team's namespace, kept in step with its grants: a ResourceQuota, written when it changes.

It is raised before anything is placed, so that it never stands in the way of what our own plan admits; and it counts
pods that Berth does not know, which our plan cannot. Where Kueue admits, Kueue's own numbers are the bound.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import timedelta as td
from fractions import Fraction as F
from uuid import UUID

from scheduling.choices import Queueing
from scheduling.cluster.bounds import bound_document, most_units, offered_by
from scheduling.cluster.port import ClusterError, ClusterPort
from scheduling.cluster.writing import namespace_document
from scheduling.models import Ceiling, Cluster
from scheduling.planning.facts import Snapshot
from scheduling.planning.pods import holds
from scheduling.reconcile.observe import Look
from tenants.models import Team

RENEWED = td(hours=1)  # as somebody may have changed or deleted it
PAUSE = td(minutes=1)  # after one that could not be written


def write_ceilings(cluster: Cluster, port: ClusterPort, look: Look) -> list[str]:
    """Write what differs from what was written last; answers what could not be, in sentences."""
    if cluster.queueing != Queueing.DIRECT or not look.seen.complete:
        return []
    written = {row.team_id: row for row in Ceiling.objects.filter(cluster=cluster)}
    return list(_written(cluster, port, look.snapshot, written))


def _written(cluster: Cluster, port: ClusterPort, picture: Snapshot, written: Mapping[UUID, Ceiling]) -> Iterator[str]:
    wanted = {workload.team for workload in picture.workloads} | set(written)
    teams = Team.objects.filter(pk__in=wanted).order_by("slug") if wanted else ()
    ceilings = ceilings_of(picture, {team.pk: team.namespace for team in teams})
    for team in teams:
        hard, last = ceilings[team.pk], written.get(team.pk)
        if last is not None and _still_good(last, hard, picture.now - last.written_at):
            continue
        try:
            port.put(namespace_document(team.namespace, team.slug))
            port.put(bound_document(team.namespace, team.slug, hard))
        except ClusterError as error:
            hard = {}
            yield f"bound the namespace {team.namespace}: {error}"
        facts = {"hard": hard, "written_at": picture.now}
        Ceiling.objects.update_or_create(cluster=cluster, team=team, defaults=facts)


def _still_good(last: Ceiling, hard: Mapping[str, int], age: td) -> bool:
    """Written as it should be, and not long ago; or not to be tried again yet."""
    return age < PAUSE if last.hard == {} else last.hard == hard and age < RENEWED


def ceilings_of(picture: Snapshot, namespaces: Mapping[UUID, str]) -> dict[UUID, dict[str, int]]:
    """By team: most units of each resource that the cluster offers. No I/O."""
    offered = offered_by(picture.pools, picture.nodes)
    granted: defaultdict[UUID, dict[str, F]] = defaultdict(dict)
    for quota in picture.quotas:
        granted[quota.team][quota.model] = quota.granted + sum(quota.own.values(), F(0))
    held, spare = _held_in(picture)
    found = {}
    for team, namespace in namespaces.items():
        most = most_units(granted[team], offered)
        beside = {resource: units + spare[namespace][resource] for resource, units in most.items()}
        found[team] = {resource: max(units, held[namespace][resource]) for resource, units in beside.items()}
    return found


def _held_in(picture: Snapshot) -> tuple[Mapping[str, Counter[str]], Mapping[str, Counter[str]]]:
    """By namespace: what our pods hold, and what of it no quota counts any more, as of a pod that does not go."""
    holding = {workload.id for workload in picture.workloads if workload.holds_quota}
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    spare: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in picture.pods:
        if pod.workload is not None and holds(pod):
            held[pod.namespace].update(pod.requests)
            if pod.workload not in holding:
                spare[pod.namespace].update(pod.requests)
    return held, spare
