"""The kubelets: they take pods on, run their containers, say how they are, and end them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from datetime import timedelta as td

from . import podstatus
from .clock import moment
from .devices import Devices
from .errors import bad_request
from .faults import Faults
from .kinds import Document, Key, key_of
from .nodes import pods_on
from .podstatus import ContainerRun, Run
from .programs import log_lines, program_of
from .quantities import amounts, is_extended, pod_requests
from .world import Controller, World

MISSING_IMAGE = "does-not-exist"
BACK_OFF = td(seconds=10)
MOUNT_AGAIN = td(seconds=0.5)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
LONGEST_BACK_OFF = td(seconds=300)
ENDED = ("Succeeded", "Failed")


class Kubelet(Controller):
    """All kubelets at once. What it knows of a running pod it keeps in a Run; the pod's status is written from that."""

    kinds = frozenset({"pods", "nodes"})

    def __init__(self, world: World, devices: Devices, faults: Faults) -> None:
        super().__init__(world)
        self.devices = devices
        self.faults = faults
        self.runs: dict[Key, Run] = {}
        self.told: set[str] = set()  # pods whose missing ConfigMap was spoken of
        self.images: dict[tuple[str, str], datetime] = {}  # (node, image) -> when it is there

    def reconcile(self, key: Key) -> None:
        if key.plural == "nodes":
            if self.world.store.get(key) is None:
                self.images = {where: at for where, at in self.images.items() if where[0] != key.name}
            for pod in pods_on(self.world, key.name):
                self.world.wake(self.world.now, self, key_of(pod))
            return
        found = self.world.store.get(key)
        run = self.runs.get(key)
        if run and (found is None or found["metadata"]["uid"] != run.uid):
            self.devices.release(run.uid)
            del self.runs[key]
        if found is not None and self.alive(found["spec"].get("nodeName", "")):
            self.look_after(key, found)

    def alive(self, node: str) -> bool:
        return node not in self.faults.dead and self.world.get("nodes", "", node) is not None

    def look_after(self, key: Key, pod: Document) -> None:
        run = self.runs.get(key)
        if pod["metadata"].get("deletionTimestamp"):
            self.end(key, pod, run)
        elif pod["status"].get("phase") in ENDED:
            self.devices.release(pod["metadata"]["uid"])
        elif run is None:
            self.take_on(key, pod)
        else:
            self.carry_on(key, pod, run)

    # Taking on

    def take_on(self, key: Key, pod: Document) -> None:
        node = pod["spec"]["nodeName"]
        if missing := self.missing_map(pod):
            self.wait_for_map(key, pod, Run(pod["metadata"]["uid"], node, self.world.now), missing)
            return
        reason, message = self.objection(pod, node)
        if reason:
            self.world.edit(key, lambda live: podstatus.reject(live, reason, message, self.world.now))
            self.world.event(pod, "Warning", reason, message, "kubelet")
            return
        run = Run(pod["metadata"]["uid"], node, self.world.now)
        for container in pod["spec"]["containers"]:
            pulled = self.pull(pod, node, container["image"])
            run.containers[container["name"]] = ContainerRun(pulled_at=pulled, starts_at=pulled)
        ready = max(one.pulled_at for one in run.containers.values()) + self.world.delays.of("container_start")
        for one in run.containers.values():
            one.starts_at = ready
        self.runs[key] = run
        self.carry_on(key, pod, run)

    def missing_map(self, pod: Document) -> Document | None:
        """The first volume whose ConfigMap is not there; None when nothing is missing."""
        for volume in pod["spec"].get("volumes") or []:
            wanted = volume.get("configMap") or {}
            there = not wanted or self.world.get("configmaps", pod["metadata"]["namespace"], wanted.get("name", ""))
            if not there and not wanted.get("optional"):
                return volume
        return None

    def wait_for_map(self, key: Key, pod: Document, run: Run, volume: Document) -> None:
        """Say so once, and look again soon."""
        if run.uid not in self.told:
            self.told.add(run.uid)
            why = f'configmap "{volume["configMap"]["name"]}" not found'
            text = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {why}'
            self.world.event(pod, "Warning", "FailedMount", text, "kubelet")
        for container in pod["spec"]["containers"]:
            run.containers[container["name"]] = ContainerRun(pulled_at=NEVER, starts_at=NEVER)
        self.world.edit(key, lambda live: podstatus.describe(live, run, self.world.now))
        self.world.wake(self.world.now + MOUNT_AGAIN, self, key)

    def objection(self, pod: Document, node: str) -> tuple[str, str]:
        """Why this kubelet does not take the pod on: reason and sentence, both empty when it does."""
        if self.faults.refusals.get(node, 0) > 0:
            self.faults.refusals[node] -= 1
            return "UnexpectedAdmissionError", "Allocate failed due to a fault on request, which is unexpected"
        shortage = self.shortage(pod, node)
        if shortage:
            return shortage
        refusal = self.devices.admit(pod, node)
        return ("UnexpectedAdmissionError", refusal) if refusal else ("", "")

    def shortage(self, pod: Document, node: str) -> tuple[str, str] | None:
        """Cpu, memory or pods that the node does not have any more."""
        document = self.world.get("nodes", "", node) or {}
        have = amounts((document.get("status") or {}).get("allocatable"))
        used: dict[str, int] = {}
        for other in pods_on(self.world, node):
            if key_of(other) in self.runs and other["status"].get("phase") not in ENDED:
                for resource, amount in pod_requests(other["spec"]).items():
                    used[resource] = used.get(resource, 0) + amount
        for resource, amount in pod_requests(pod["spec"]).items():
            if is_extended(resource) or amount + used.get(resource, 0) <= have.get(resource, 0):
                continue
            figures = f"requested: {amount}, used: {used.get(resource, 0)}, capacity: {have.get(resource, 0)}"
            return f"OutOf{resource}", f"Node didn't have enough resource: {resource}, {figures}"
        return None

    def pull(self, pod: Document, node: str, image: str) -> datetime:
        """When the image will be on the node."""
        known = self.images.get((node, image))
        if known is None:
            known = self.images[node, image] = self.world.after("image_pull")
            self.world.event(pod, "Normal", "Pulling", f'Pulling image "{image}"', "kubelet")
            return known
        return max(known, self.world.after("image_present"))

    # Running

    def carry_on(self, key: Key, pod: Document, run: Run) -> None:
        """Let everything happen that is due, write it down, and come back when the next thing is."""
        for container in pod["spec"]["containers"]:
            self.move(pod, container, run.containers[container["name"]])
        self.world.edit(key, lambda live: podstatus.describe(live, run, self.world.now))
        due = [at for one in run.containers.values() for at in one.next_moments() if at > self.world.now]
        if due:
            self.world.wake(min(due), self, key)
        if (self.world.store.get(key) or {}).get("status", {}).get("phase") in ENDED:
            self.devices.release(run.uid)

    def move(self, pod: Document, container: Document, one: ContainerRun) -> None:
        now = self.world.now
        if MISSING_IMAGE in container["image"]:
            self.fail_pull(pod, container, one)
            return
        if one.state == "creating" and one.pulled_at <= now and not one.announced:
            one.announced = True
            self.world.event(pod, "Normal", "Pulled", f'Successfully pulled image "{container["image"]}"', "kubelet")
        if one.state in ("creating", "backing-off") and one.starts_at <= now:
            self.start(pod, container, one)
        if one.state == "running" and one.ends_at is not None and one.ends_at <= now:
            self.finish_container(pod, one)

    def start(self, pod: Document, container: Document, one: ContainerRun) -> None:
        name, program = container["name"], program_of(container)
        self.world.event(pod, "Normal", "Created", f"Created container: {name}", "kubelet")
        self.world.event(pod, "Normal", "Started", f"Started container {name}", "kubelet")
        one.state, one.started_at = "running", one.starts_at
        one.code = program.code
        one.ends_at = None if program.seconds is None else one.starts_at + td(seconds=program.seconds)

    def finish_container(self, pod: Document, one: ContainerRun) -> None:
        one.state = "terminated"
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Never" or (policy == "OnFailure" and one.code == 0):
            return
        pause = min(BACK_OFF * 2**one.restarts, LONGEST_BACK_OFF)
        one.last = podstatus.terminated(one)
        one.state, one.restarts = "backing-off", one.restarts + 1
        one.starts_at = (one.ends_at or self.world.now) + pause
        self.world.event(pod, "Warning", "BackOff", "Back-off restarting failed container", "kubelet")

    def fail_pull(self, pod: Document, container: Document, one: ContainerRun) -> None:
        image = container["image"]
        if one.state == "creating" and one.pulled_at <= self.world.now:
            one.state, one.starts_at = "pull-failed", self.world.now + BACK_OFF
            text = f'Failed to pull image "{image}": not found'
            self.world.event(pod, "Warning", "Failed", text, "kubelet")
        elif one.state == "pull-failed" and one.starts_at <= self.world.now:
            one.state = "pull-backing-off"
            self.world.event(pod, "Normal", "BackOff", f'Back-off pulling image "{image}"', "kubelet")

    # Ending

    def end(self, key: Key, pod: Document, run: Run | None) -> None:
        """Give the containers their time, then write the last status and let the pod go."""
        metadata = pod["metadata"]
        grace = td(seconds=int(metadata.get("deletionGracePeriodSeconds") or 0))
        asked_at = moment(metadata["deletionTimestamp"]) - grace
        due = asked_at + min(grace, self.world.delays.of("termination"))
        if run and due > self.world.now and pod["status"].get("phase") not in ENDED:
            if not run.killing:
                run.killing = True
                self.world.event(pod, "Normal", "Killing", "Stopping container", "kubelet")
            self.world.wake(due, self, key)
            return
        if run:
            for one in run.containers.values():
                one.kill(self.world.now, 143 if grace else 137)
            if pod["status"].get("phase") not in ENDED:
                self.world.edit(key, lambda live: podstatus.describe(live, run, self.world.now))
        self.devices.release(metadata["uid"])
        self.world.let_go(key)

    # Logs

    def log_of(self, pod: Document, container: str, *, stamps: bool) -> list[tuple[datetime, str]]:
        """What a container printed so far; BadRequest while it has not started."""
        names = [one["name"] for one in pod["spec"]["containers"]]
        name = container or names[0]
        if name not in names:
            raise bad_request(f"container {name} is not valid for pod {pod['metadata']['name']}")
        run = self.runs.get(key_of(pod))
        one = run.containers[name] if run else None
        if one is None or one.started_at is None:
            why = f'container "{name}" in pod "{pod["metadata"]["name"]}" is waiting to start: '
            raise bad_request(why + podstatus.waiting_reason(one))
        until = min(one.ends_at or self.world.now, self.world.now)
        return list(stamped(log_lines(pod, one.started_at, until), stamps=stamps))


def stamped(lines: Iterator[tuple[datetime, str]], *, stamps: bool) -> Iterator[tuple[datetime, str]]:
    for at, text in lines:
        yield at, f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z {text}" if stamps else text
