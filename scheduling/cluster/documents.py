"""The parts of Kubernetes documents that Berth reads, as typed structs; everything else is skipped while decoding.

Decoding never fails as a whole: what has the wrong type is left out and named in a Problem, the rest stays. Mappings
keep their values untyped here, because a message about a quantity or a label should name its key.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from scheduling.planning.facts import Problem

MOST_REPAIRS = 30  # a document with more wrong fields than that is not the kind it says it is
STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]", re.ASCII)

Strings = dict[str, Any]


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """One object inside a document. Unknown fields are skipped, missing ones have defaults."""


class OwnerPart(Part, frozen=True, kw_only=True):
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class Meta(Part, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Strings | None = None
    annotations: Strings | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    resource_version: str = ""
    owner_references: list[OwnerPart] | None = None


class Condition(Part, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class TaintPart(Part, frozen=True, kw_only=True):
    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Part, frozen=True, kw_only=True):
    unschedulable: bool | None = None
    taints: list[TaintPart] | None = None


class NodeStatus(Part, frozen=True, kw_only=True):
    capacity: Strings | None = None
    allocatable: Strings | None = None
    conditions: list[Condition] | None = None


class NodeDocument(Part, frozen=True, kw_only=True):
    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Resources(Part, frozen=True, kw_only=True):
    requests: Strings | None = None
    limits: Strings | None = None


class Container(Part, frozen=True, kw_only=True):
    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None


class PodSpec(Part, frozen=True, kw_only=True):
    node_name: str | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Strings | None = None


class StateWaiting(Part, frozen=True, kw_only=True):
    reason: str | None = None
    message: str | None = None


class StateRunning(Part, frozen=True, kw_only=True):
    started_at: str | None = None


class StateTerminated(Part, frozen=True, kw_only=True):
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Part, frozen=True, kw_only=True):
    waiting: StateWaiting | None = None
    running: StateRunning | None = None
    terminated: StateTerminated | None = None


class ContainerStatus(Part, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState | None = None


class PodStatus(Part, frozen=True, kw_only=True):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class PodDocument(Part, frozen=True, kw_only=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Part, frozen=True, kw_only=True):
    spec: PodSpec = PodSpec()


class ObjectSpec(Part, frozen=True, kw_only=True):
    template: PodTemplate | None = None
    replicas: int | None = None
    parallelism: int | None = None
    suspend: bool | None = None


class ObjectStatus(Part, frozen=True, kw_only=True):
    conditions: list[Condition] | None = None
    completion_time: str | None = None


class ObjectDocument(Part, frozen=True, kw_only=True):
    """A StatefulSet or a Job."""

    kind: str = ""
    metadata: Meta = Meta()
    spec: ObjectSpec = ObjectSpec()
    status: ObjectStatus = ObjectStatus()


class Template(Part, frozen=True, kw_only=True):
    metadata: Meta = Meta()


class DeploymentSpec(Part, frozen=True, kw_only=True):
    replicas: int | None = None
    template: Template = Template()


class DeploymentStatus(Part, frozen=True, kw_only=True):
    replicas: int | None = None
    ready_replicas: int | None = None
    conditions: list[Condition] | None = None


class DeploymentDocument(Part, frozen=True, kw_only=True):
    """A MachineDeployment of Cluster API."""

    metadata: Meta = Meta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class Reference(Part, frozen=True, kw_only=True):
    name: str = ""


class MachineStatus(Part, frozen=True, kw_only=True):
    node_ref: Reference | None = None
    phase: str | None = None
    conditions: list[Condition] | None = None


class MachineDocument(Part, frozen=True, kw_only=True):
    metadata: Meta = Meta()
    status: MachineStatus = MachineStatus()


class ListMeta(Part, frozen=True, kw_only=True):
    continue_: str = msgspec.field(default="", name="continue")
    resource_version: str = ""


class Page(Part, frozen=True, kw_only=True):
    """One page of a list; the items are still bytes, so that a bad one spoils only itself."""

    kind: str = ""
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


D = TypeVar("D", bound=Part)

EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<got>[^`]+)`")
WORDS = {
    "object": "a group of fields",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}


class Unreadable(ValueError):
    """A document of which nothing can be kept, not even its name."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


def decoded(raw: bytes | msgspec.Raw, kind: type[D]) -> tuple[D, list[Problem]]:
    """One document from its bytes, and what had to be left out of it."""
    try:
        return msgspec.json.decode(raw, type=kind), []
    except msgspec.ValidationError:
        return converted(msgspec.json.decode(raw), kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Unreadable(Problem("", "", f"this is not JSON: {error}")) from None


def converted(document: object, kind: type[D]) -> tuple[D, list[Problem]]:
    """One document from plain dicts and lists, and what had to be left out of it."""
    if not isinstance(document, Mapping):
        raise Unreadable(Problem("", "", "this is not a Kubernetes object but " + a_kind_of(document)))
    problems: list[Problem] = []
    rest: Any = document
    for _ in range(MOST_REPAIRS):
        try:
            return msgspec.convert(rest, kind), problems
        except msgspec.ValidationError as error:
            text, _, path = str(error).rpartition(" - at ")
            steps = list(steps_of(path))
            if not steps:
                break
            problems.append(Problem("", field_of(steps), f"{in_words(text)}; the field is left out"))
            rest = without(rest, steps)
    raise Unreadable(Problem("", "", "too many fields of this object have the wrong type"))


def text(strings: Strings | None, key: str) -> str:
    """A label or annotation as text; YAML writers leave quotes off, so numbers and booleans count as their text."""
    value = (strings or {}).get(key, "")
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else ""


def steps_of(path: str) -> Iterator[str | int]:
    """The steps of msgspec's own path form, `$.spec.taints[3].key`."""
    inside = path[path.find("$") :]
    for name, index in STEP.findall(inside):
        yield name or int(index)


def field_of(steps: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def without(value: Any, steps: list[str | int]) -> Any:
    """The same value, one place left out; a list keeps its length, so that later messages count alike."""
    if not steps:
        return None
    first, rest = steps[0], steps[1:]
    if isinstance(first, int):
        hollow = {} if not rest else without(value[first], rest)
        return [*value[:first], hollow, *value[first + 1 :]]
    if not rest:
        return {key: item for key, item in value.items() if key != first}
    return {**value, first: without(value[first], rest)}


def in_words(complaint: str) -> str:
    """A decoder's "Expected `object | null`, got `str`" as people say it."""
    found = EXPECTED.match(complaint)
    if not found:
        return complaint[:1].lower() + complaint[1:]
    wanted = [WORDS.get(word, word) for word in found["wanted"].split(" | ") if word != "null"]
    return f"{' or '.join(wanted) or 'nothing'} is expected here, not {WORDS.get(found['got'], found['got'])}"


def a_kind_of(value: object) -> str:
    names = {list: "a list", str: "a text", type(None): "nothing at all"}
    return names.get(type(value), f"a {type(value).__name__}")
