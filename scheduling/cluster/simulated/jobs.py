"""The Job controller: pods until enough have succeeded, or too many have failed, or the time is up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from datetime import timedelta as td

from .api import DeleteOptions
from .clock import moment, stamp
from .errors import ApiError
from .kinds import Document, Key, copy, key_of
from .world import Controller, World, dependents, is_true, owned_by, set_condition

SOURCE = "job-controller"
INDEX = "batch.kubernetes.io/job-completion-index"
ENDED = ("Succeeded", "Failed")
LONGEST_PAUSE = td(minutes=10)


@dataclass(slots=True)
class Tally:
    """What became of a job's pods; a pod counts once, also when it is gone."""

    uid: str
    succeeded: dict[str, str] = field(default_factory=dict)  # pod uid -> index, "" when not Indexed
    failed: dict[str, datetime] = field(default_factory=dict)  # pod uid -> when
    ignored: set[str] = field(default_factory=set)  # failed, but the policy does not count it
    active: dict[str, Document] = field(default_factory=dict)  # pod uid -> the pod as last seen

    not_before: datetime | None = None  # no new pod earlier: the API refused one

    def seen(self, uid: str) -> bool:
        return uid in self.succeeded or uid in self.failed or uid in self.ignored


class Jobs(Controller):
    kinds = frozenset({"jobs", "pods"})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.tallies: dict[Key, Tally] = {}

    def reconcile(self, key: Key) -> None:
        if key.plural == "pods":
            self.hear_of_pod(key)
            return
        job = self.world.store.get(key)
        if job is None or job["metadata"].get("deletionTimestamp"):
            if job is None:
                self.tallies.pop(key, None)
            return
        tally = self.tallies.get(key)
        if tally is None or tally.uid != job["metadata"]["uid"]:
            tally = self.tallies[key] = Tally(job["metadata"]["uid"])
        if finish_time(job):
            self.retire(key, job)
        else:
            self.run(key, job, tally)

    def hear_of_pod(self, key: Key) -> None:
        pod = self.world.store.get(key)
        for owner in (pod or {}).get("metadata", {}).get("ownerReferences") or []:
            if owner["kind"] == "Job":
                self.world.wake(self.world.now, self, Key("jobs", key.namespace, owner["name"]))
        if pod is None:
            for job in [job for job in self.tallies if job.namespace == key.namespace]:
                self.world.wake(self.world.now, self, job)

    def run(self, key: Key, job: Document, tally: Tally) -> None:
        pods = dependents(self.world, job, "pods")
        verdict = self.count(job, tally, pods)
        active = [pod for pod in pods if pod["status"].get("phase") not in ENDED]
        reason, message = verdict or self.verdict(key, job, tally)
        if reason:
            self.finish_job(key, job, active, reason, message)
        elif job["spec"].get("suspend"):
            self.suspend(key, job, active)
        else:
            self.resume(key, job)
            self.fill(key, job, tally, active)
        self.describe(key, tally)

    # Counting

    def count(self, job: Document, tally: Tally, pods: list[Document]) -> tuple[str, str] | None:
        """Enter what ended since the last look. The answer is a verdict when the failure policy has one."""
        verdict = None
        present = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in [uid for uid in tally.active if uid not in present]:
            last = tally.active.pop(uid)
            if not tally.seen(uid) and not job["spec"].get("suspend"):
                verdict = self.count_failure(job, tally, last) or verdict  # deleted before it ended by itself
        for uid, pod in present.items():
            if tally.seen(uid):
                continue
            phase = pod["status"].get("phase")
            if phase == "Succeeded":
                tally.succeeded[uid] = index_of(pod)
            elif phase == "Failed":
                verdict = self.count_failure(job, tally, pod) or verdict
            else:
                tally.active[uid] = pod
                continue
            tally.active.pop(uid, None)
        return verdict

    def count_failure(self, job: Document, tally: Tally, pod: Document) -> tuple[str, str] | None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        action = policy_action(job, pod)
        if action == "Ignore":
            tally.ignored.add(uid)
            return None
        tally.failed[uid] = self.world.now
        if action == "FailJob":
            return "PodFailurePolicy", f"Pod {pod['metadata']['namespace']}/{name} failed and matched a FailJob rule"
        return None

    def verdict(self, key: Key, job: Document, tally: Tally) -> tuple[str, str]:
        """Complete, failed, or not yet (two empty texts)."""
        spec = job["spec"]
        wanted = spec.get("completions") or 1
        if len(set(tally.succeeded.values()) if is_indexed(job) else tally.succeeded) >= wanted:
            return "CompletionsReached", "Reached expected number of succeeded pods"
        if len(tally.failed) > spec.get("backoffLimit", 6):
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        started, limit = job["status"].get("startTime"), spec.get("activeDeadlineSeconds")
        if started and limit is not None:
            due = moment(started) + td(seconds=limit)
            if due <= self.world.now:
                return "DeadlineExceeded", "Job was active longer than specified deadline"
            self.world.wake(due, self, key)
        return "", ""

    # Acting

    def fill(self, key: Key, job: Document, tally: Tally, active: list[Document]) -> None:
        """Start the pods that are missing; after a failure only when its pause is over."""
        pause = self.pause_until(tally)
        if pause > self.world.now:
            self.world.wake(pause, self, key)
            return
        busy = {index_of(pod) for pod in active} | set(tally.succeeded.values())
        done = len(set(tally.succeeded.values()) if is_indexed(job) else tally.succeeded)
        wanted = min(job["spec"]["parallelism"], (job["spec"].get("completions") or 1) - done) - len(active)
        free = [str(index) for index in range(job["spec"].get("completions") or 1) if str(index) not in busy]
        for number in range(max(wanted, 0)):
            index = free[number] if is_indexed(job) and number < len(free) else ""
            if not self.start(job, tally, index):
                self.world.wake(self.pause_until(tally), self, key)
                return

    def pause_until(self, tally: Tally) -> datetime:
        if tally.not_before and tally.not_before > self.world.now:
            return tally.not_before
        if not tally.failed:
            return self.world.now
        pause = self.world.delays.of("recreate") * 2 ** min(len(tally.failed) - 1, 10)
        return max(tally.failed.values()) + min(pause, LONGEST_PAUSE)

    def start(self, job: Document, tally: Tally, index: str) -> bool:
        """One more pod. What the API refuses becomes an event and is tried again later."""
        pod = pod_of(job, index, self.world.api.letters(5))
        try:
            self.world.create(pod)
        except ApiError as error:
            self.world.event(job, "Warning", "FailedCreate", f"Error creating: {error.message}", SOURCE)
            tally.not_before = self.world.after("recreate")
            return False
        text = f"Created pod: {pod['metadata']['name']}"
        self.world.event(job, "Normal", "SuccessfulCreate", text, SOURCE)
        return True

    def suspend(self, key: Key, job: Document, active: list[Document]) -> None:
        self.stop(active)
        if is_true(job, "Suspended"):
            return

        def write(live: Document) -> None:
            set_condition(live["status"], "Suspended", "True", "JobSuspended", "Job suspended", self.world.now)
            live["status"].pop("startTime", None)

        self.world.edit(key, write)
        self.world.event(job, "Normal", "Suspended", "Job suspended", SOURCE)

    def resume(self, key: Key, job: Document) -> None:
        def write(live: Document) -> None:
            live["status"].setdefault("startTime", stamp(self.world.now))
            if is_true(live, "Suspended"):
                set_condition(live["status"], "Suspended", "False", "JobResumed", "Job resumed", self.world.now)

        if not job["status"].get("startTime"):
            self.world.edit(key, write)
            limit = job["spec"].get("activeDeadlineSeconds")
            if limit is not None:
                self.world.wake(self.world.now + td(seconds=limit), self, key)

    def finish_job(self, key: Key, job: Document, active: list[Document], reason: str, message: str) -> None:
        good = reason == "CompletionsReached"
        self.stop(active)
        word, earlier = ("Complete", "SuccessCriteriaMet") if good else ("Failed", "FailureTarget")

        def write(live: Document) -> None:
            now, status = self.world.now, live["status"]
            set_condition(status, earlier, "True", reason, message, now)
            set_condition(status, word, "True", reason, message, now)
            if good:
                status["completionTime"] = stamp(now)

        self.world.edit(key, write)
        if good:
            self.world.event(job, "Normal", "Completed", "Job completed", SOURCE)
        else:
            self.world.event(job, "Warning", reason, message, SOURCE)

    def stop(self, pods: list[Document]) -> None:
        for pod in pods:
            if not pod["metadata"].get("deletionTimestamp"):
                self.world.delete(key_of(pod))

    def retire(self, key: Key, job: Document) -> None:
        """A finished job goes with its pods when its time to live is over."""
        self.describe(key, self.tallies[key])
        keep = job["spec"].get("ttlSecondsAfterFinished")
        finished = finish_time(job)
        if keep is None or finished is None:
            return
        due = finished + td(seconds=keep)
        if due > self.world.now:
            self.world.wake(due, self, key)
        else:
            self.world.delete(key, DeleteOptions("Background"))

    def describe(self, key: Key, tally: Tally) -> None:
        def write(live: Document) -> None:
            pods = [pod for pod in dependents(self.world, live, "pods") if pod["status"].get("phase") not in ENDED]
            dying = [pod for pod in pods if pod["metadata"].get("deletionTimestamp")]
            figures: Document = {
                "active": len(pods) - len(dying),
                "ready": sum(is_true(pod, "Ready") for pod in pods if pod not in dying),
                "terminating": len(dying),
                "succeeded": len(tally.succeeded),
                "failed": len(tally.failed) + len(tally.ignored),
            }
            live["status"] |= {"uncountedTerminatedPods": {}}
            for name, value in figures.items():
                if value or name in ("ready", "terminating"):
                    live["status"][name] = value
                else:
                    live["status"].pop(name, None)

        self.world.edit(key, write)


def finish_time(job: Document) -> datetime | None:
    """When the job was complete or failed; None while it is neither."""
    for entry in job["status"].get("conditions") or []:
        if entry["type"] in ("Complete", "Failed") and entry["status"] == "True":
            return moment(entry["lastTransitionTime"])
    return None


def is_indexed(job: Document) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Document) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(INDEX, ""))


def policy_action(job: Document, pod: Document) -> str:
    """What podFailurePolicy says of this failure: FailJob, Ignore or Count; the first rule that fits decides."""
    for rule in (job["spec"].get("podFailurePolicy") or {}).get("rules") or []:
        if rule_fits(rule, pod):
            return str(rule.get("action", "Count"))
    return "Count"


def rule_fits(rule: Document, pod: Document) -> bool:
    for wanted in rule.get("onPodConditions") or []:
        conditions = pod["status"].get("conditions") or []
        if any(one["type"] == wanted["type"] and one["status"] == wanted.get("status", "True") for one in conditions):
            return True
    codes = rule.get("onExitCodes") or {}
    if not codes:
        return False
    for one in pod["status"].get("containerStatuses") or []:
        if codes.get("containerName") not in (None, one["name"]):
            continue
        code = (one["state"].get("terminated") or {}).get("exitCode", 0)
        if code and (code in codes.get("values", [])) is (codes.get("operator") == "In"):
            return True
    return False


def pod_of(job: Document, index: str, letters: str) -> Document:
    metadata, template = job["metadata"], copy(job["spec"]["template"])
    labels = template["metadata"].get("labels") or {}
    annotations = template["metadata"].get("annotations") or {}
    name = f"{metadata['name']}-{index}-{letters}" if index else f"{metadata['name']}-{letters}"
    if index:
        labels[INDEX] = annotations[INDEX] = index
        template["spec"]["hostname"] = f"{metadata['name']}-{index}"
        for container in template["spec"]["containers"]:
            container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": index})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": owned_by(job),
        },
        "spec": template["spec"],
    }
