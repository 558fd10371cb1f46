"""Whose a pod is. A label is a claim that anybody in the namespace can make; who made the pod is what counts."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from scheduling.planning.facts import ObjectFact, PodFact


def unproven(pods: Iterable[PodFact], objects: Iterable[ObjectFact]) -> list[PodFact]:
    """Pods that wear our labels, but were not made by the object that stands for their workload."""
    made_by = {item.uid: item for item in objects if item.uid and stands_for_it(item)}
    return [pod for pod in pods if pod.workload is not None and not is_made_by(pod, made_by)]


def disowned(pods: Iterable[PodFact], others: Collection[str]) -> tuple[PodFact, ...]:
    """The pods, those whose uid is among `others` as nobody's workload: they hold what they hold, as foreign ones."""
    return tuple(replace(pod, workload=None) if pod.uid in others else pod for pod in pods)


def is_made_by(pod: PodFact, made_by: Mapping[str, ObjectFact]) -> bool:
    """By uid; and called as that object calls its pods, as a pod may name any owner."""
    item = made_by.get(pod.controller)
    if item is None or (item.workload, item.namespace) != (pod.workload, pod.namespace):
        return False
    return pod.name == f"{item.name}-0" if item.kind == "StatefulSet" else pod.name.startswith(f"{item.name}-")


def stands_for_it(item: ObjectFact) -> bool:
    """Under the one name that the object of this workload has; another one merely wears its labels."""
    return item.name.endswith(f"-{item.workload.hex[:8]}")
