"""A pod's status, written from what its kubelet knows. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from .clock import stamp
from .kinds import Document
from .world import set_condition

WAITING = {
    "creating": ("ContainerCreating", ""),
    "backing-off": ("CrashLoopBackOff", "back-off restarting failed container"),
    "pull-failed": ("ErrImagePull", "the image was not found"),
    "pull-backing-off": ("ImagePullBackOff", "Back-off pulling image"),
}


@dataclass(slots=True)
class ContainerRun:
    """One container: creating, running, backing-off, terminated, pull-failed or pull-backing-off."""

    pulled_at: datetime
    starts_at: datetime
    state: str = "creating"
    started_at: datetime | None = None
    ends_at: datetime | None = None  # None: runs until it is stopped
    code: int = 0
    restarts: int = 0
    announced: bool = False
    last: Document = field(default_factory=dict)

    def next_moments(self) -> Iterator[datetime]:
        """When something may happen to it by itself."""
        match self.state:
            case "creating":
                yield self.pulled_at
                yield self.starts_at
            case "backing-off" | "pull-failed":
                yield self.starts_at
            case "running" if self.ends_at is not None:
                yield self.ends_at

    def kill(self, now: datetime, code: int) -> None:
        if self.state == "running":
            self.state, self.ends_at, self.code = "terminated", now, code


@dataclass(slots=True)
class Run:
    """One pod on its node."""

    uid: str
    node: str
    taken_at: datetime
    containers: dict[str, ContainerRun] = field(default_factory=dict)
    killing: bool = False


def describe(pod: Document, run: Run, now: datetime) -> None:
    """Write the status of a pod that its kubelet has taken on."""
    status = pod["status"]
    status["phase"] = phase_of(pod, run)
    status.setdefault("startTime", stamp(run.taken_at))
    status.setdefault("hostIP", address(run.node, 10))
    status.setdefault("hostIPs", [{"ip": status["hostIP"]}])
    if any(one.started_at for one in run.containers.values()):
        status.setdefault("podIP", address(run.uid, 64))
        status.setdefault("podIPs", [{"ip": status["podIP"]}])
    status["containerStatuses"] = [
        container_status(run, container, run.containers[container["name"]]) for container in pod["spec"]["containers"]
    ]
    if pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = [init_status(run, one) for one in pod["spec"]["initContainers"]]
    write_conditions(status, now)


def reject(pod: Document, reason: str, message: str, now: datetime) -> None:
    """Write the status of a pod that its kubelet does not take on."""
    pod["status"] |= {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": stamp(now),
    }


def phase_of(pod: Document, run: Run) -> str:
    states = [one.state for one in run.containers.values()]
    if all(state == "terminated" for state in states):
        return "Succeeded" if all(one.code == 0 for one in run.containers.values()) else "Failed"
    started = any(one.started_at for one in run.containers.values())
    return "Running" if started else "Pending"


def container_status(run: Run, container: Document, one: ContainerRun) -> Document:
    name, image = container["name"], container["image"]
    here = one.started_at is not None
    return {
        "name": name,
        "image": image,
        "imageID": f"{image}@sha256:{digest(image)}" if here else "",
        "containerID": container_id(run, name, one) if here else "",
        "ready": one.state == "running",
        "started": one.state == "running",
        "restartCount": one.restarts,
        "state": state_of(one),
        "lastState": {"terminated": one.last} if one.last else {},
    }


def state_of(one: ContainerRun) -> Document:
    if one.state == "running" and one.started_at:
        return {"running": {"startedAt": stamp(one.started_at)}}
    if one.state == "terminated":
        return {"terminated": terminated(one)}
    reason, message = WAITING[one.state]
    return {"waiting": {"reason": reason} | ({"message": message} if message else {})}


def terminated(one: ContainerRun) -> Document:
    if one.started_at is None or one.ends_at is None:
        raise ValueError("A container that never ran has not ended either.")
    return {
        "exitCode": one.code,
        "reason": "Completed" if one.code == 0 else "Error",
        "startedAt": stamp(one.started_at),
        "finishedAt": stamp(one.ends_at),
    }


def init_status(run: Run, container: Document) -> Document:
    """Init containers take no time here: they have always just ended well."""
    at = stamp(run.taken_at)
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
    return {"name": container["name"], "image": container["image"], "imageID": "", "ready": True, "started": False,
            "restartCount": 0, "state": {"terminated": ended}, "lastState": {}}  # fmt: skip


def write_conditions(status: Document, now: datetime) -> None:
    ready = all(one["ready"] for one in status["containerStatuses"])
    ended = status["phase"] in ("Succeeded", "Failed")
    reason = "" if ready else "PodCompleted" if status["phase"] == "Succeeded" else "ContainersNotReady"
    set_condition(status, "PodReadyToStartContainers", "False" if ended else "True", "", "", now)
    set_condition(status, "Initialized", "True", "", "", now)
    set_condition(status, "Ready", str(ready), reason, "", now)
    set_condition(status, "ContainersReady", str(ready), reason, "", now)


def waiting_reason(one: ContainerRun | None) -> str:
    return WAITING.get(one.state, WAITING["creating"])[0] if one else "ContainerCreating"


def container_id(run: Run, name: str, one: ContainerRun) -> str:
    return f"containerd://{digest(f'{run.uid}/{name}/{one.restarts}')}"


def address(name: str, net: int) -> str:
    """An address that belongs to this name only, for all practical purposes."""
    numbers = hashlib.sha256(name.encode()).digest()
    return f"10.{net + numbers[0] % 32}.{numbers[1]}.{1 + numbers[2] % 254}"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
