"""Say what happened: the operator's page shows the last looks in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from datetime import timedelta as td
from typing import Any

from scheduling.announce import announce, fleet_topic
from scheduling.models import Cluster, CycleReport
from tenants import clock

MOST_FAILED = 30_000  # fits into its column


@dataclass(frozen=True, slots=True)
class Report:
    """What one look came to."""

    at: datetime
    actions: Sequence[str] = ()
    failures: Sequence[str] = ()
    refusal: str = ""
    problems: Sequence[str] = ()
    changed: bool = False
    again: bool = False  # something was done whose effect should be looked at at once
    milliseconds: int = 0
    complete: bool = True  # every list could be read
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))  # wall clock; later wishes want another look
    due_at: datetime | None = None  # when time alone asks for the next look
    age: td = td(0)  # of what was seen, on the wall clock
    heard_at: datetime | None = None  # when the slowest of its streams last said anything; None: lists

    @property
    def troubled(self) -> bool:
        return bool(self.failures or self.refusal) or not self.complete

    def worth_keeping(self, trouble_before: str) -> bool:
        """What was done or failed, and a refusal once: the same one a minute later says nothing new."""
        return bool(self.actions or self.failures) or bool(self.refusal and self.refusal[:500] != trouble_before)


def remember(cluster: Cluster, report: Report) -> Report:
    """Keep a look that did or refused something; the cluster's row always says when it was last seen as a whole.

    A look that lacks a list is no sight of it, and one from a mirror is a sight of the time at which its slowest stream
    last said anything: hours that nobody saw the end of must not be charged.
    """
    facts: dict[str, Any] = {"trouble": _trouble(report)[:500], **_paced(cluster, report)}
    if report.complete:
        seen_at = report.at - report.age * clock.rate()
        facts |= {"seen_at": max(seen_at, cluster.seen_at or seen_at), "heard_at": report.heard_at}
    Cluster.objects.filter(pk=cluster.pk).update(**facts)
    kept = report.worth_keeping(cluster.trouble)
    if kept:
        CycleReport.objects.create(
            cluster=cluster,
            at=report.at,
            actions=list(report.actions),
            failures=list(report.failures),
            refusal=report.refusal[:500],
            problems=list(report.problems),
            milliseconds=report.milliseconds,
        )
    if kept or report.changed:
        announce(fleet_topic(), "fleet", cluster=cluster.name)
    return report


def remember_failure(cluster: Cluster, text: str, at: datetime, began_at: datetime) -> Report:
    """The look itself failed: the last good one stays the truth, and its age is shown."""
    report = Report(at=at, failures=[text], began_at=began_at, complete=False)
    _tell_trouble(cluster, text, **_paced(cluster, report))
    return report


def _paced(cluster: Cluster, report: Report) -> dict[str, Any]:
    """What the tick goes by. After trouble it is the growing pause that counts, not an instant that may be past."""
    failed = min(cluster.failed_looks + 1, MOST_FAILED) if report.troubled else 0
    return {"looked_at": report.began_at, "due_at": report.due_at, "failed_looks": failed}


def remember_break(cluster_id: int, fault: Exception, at: datetime) -> Report:
    """A fault of ours ended the look. The operator sees which, how often, and when it is tried again."""
    cluster = Cluster.objects.get(pk=cluster_id)
    often = "" if cluster.broken_looks < 2 else f" That was the {cluster.broken_looks}th look in a row to break."
    when = f"at {cluster.rest_until:%H:%M:%S} UTC" if cluster.rest_until else "with the next tick"
    text = f"The look broke on what nobody foresaw ({type(fault).__name__}: {str(fault)[:200]}); see the worker's log."
    words = f"{text}{often} It is tried again {when}."
    _tell_trouble(cluster, words)  # the look was not carried through, so it stays due; its rest is in the row
    return Report(at=at, failures=[words], complete=False)


def _tell_trouble(cluster: Cluster, text: str, **facts: Any) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(trouble=text[:500], **facts)
    if cluster.trouble != text[:500]:
        announce(fleet_topic(), "fleet", cluster=cluster.name)


def _trouble(report: Report) -> str:
    missing = "" if report.complete else next(iter(report.problems), "")
    return missing or report.refusal or next(iter(report.failures), "")
