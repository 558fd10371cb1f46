"""From facts to Kubernetes documents. Pure; what a tenant wrote lands in a container's image, command, env and the
command before its stop, and nowhere else.

The pods fit the Pod Security level `restricted`. They hold no token, see no card that they did not ask for, and can
run on the one node that the plan chose.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import timedelta as td
from typing import Any
from uuid import UUID

from scheduling.cluster import names
from scheduling.planning.facts import Kind, Taint

Document = dict[str, Any]

MAIN = "main"  # the container
HOME = "/home/berth"
TENANCY = "/etc/berth"  # where a workload reads what it got
USER = 1000
LEAST_SHM_MIB = 64  # what a container has without asking
LONGEST_SLUG = 40
LONGEST_LABEL = 63
LONGEST_ENV_NAME = 128

FORBIDDEN_ENV = (  # prefixes: they steer the container runtime, the loader or the choice of cards
    "NVIDIA_",
    "LD_",
    "GLIBC_TUNABLES",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MPS_",
    "CUDA_DEVICE_ORDER",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "AMD_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "KUBERNETES_",
    "BERTH_",
)
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class RouteFact:
    """How the workspaces of a cluster are reached from outside, as its operator says."""

    kind: str  # "ingress" or "httproute"
    domain: str  # they answer at NAME.domain
    through: str = ""  # the ingress class, or NAMESPACE/NAME of the gateway


@dataclass(frozen=True, slots=True)
class LaunchFact:
    """All that is needed to start one workload on one node."""

    workload: UUID
    name: str  # the owner's words
    kind: Kind
    namespace: str
    team: str  # slug
    owner: int
    image: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    resource: str  # "nvidia.com/mig-1g.10gb"; "" for a pod without cards
    count: int  # units of it
    cpu_milli: int
    memory_mib: int
    storage_gib: int  # of a workspace's home; 0: none
    node: str
    tolerations: tuple[Taint, ...]
    attempt: int
    deadline: td | None = None  # of a job, from its start
    grace: td = td(seconds=30)  # from the notice to the kill
    checkpoint: str = ""  # the tenant's command, run in the tenant's container before it is stopped
    pull_secrets: tuple[str, ...] = ()  # names of secrets that the site keeps in the namespace
    runtime_class: str = ""  # of the pool, where the GPU runtime is not the node's default
    facts: tuple[tuple[str, str], ...] = ()  # of the tenancy, for the workload itself to read
    route: RouteFact | None = None  # how a workspace is reached from outside; None: not at all
    none_of: tuple[str, ...] = ()  # resources of which it says that it asks for none


def workspace_documents(launch: LaunchFact) -> tuple[Document, ...]:
    """Namespace and StatefulSet, in the order in which they are applied; what belongs to it comes after them."""
    return namespace_document(launch.namespace, launch.team), stateful_set(launch)


def job_documents(launch: LaunchFact) -> tuple[Document, ...]:
    """Namespace and Job, in the order in which they are applied; what belongs to it comes after them."""
    return namespace_document(launch.namespace, launch.team), job(launch)


def object_name(name: str, workload: UUID) -> str:
    """The one name of a workload's objects: readable, of at most 49 characters, and always the same."""
    return f"{slug(name)[:LONGEST_SLUG].rstrip('-')}-{workload.hex[:8]}"


def refuse_env(name: str) -> str:
    """Why a workload may not set this environment variable, in a sentence; "" when it may."""
    if len(name) > LONGEST_ENV_NAME or not ENV_NAME.fullmatch(name):
        shown = name if len(name) <= LONGEST_SLUG else name[: LONGEST_SLUG - 1] + "…"
        return f"The variable {shown!r} has no usable name: begin with a letter, go on with letters, digits and _."
    prefix = next((prefix for prefix in FORBIDDEN_ENV if name.upper().startswith(prefix)), "")
    if not prefix:
        return ""
    return f"The variable {name} is set by the platform, as is all that begins with {prefix}; choose another name."


def namespace_document(namespace: str, team: str) -> Document:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    labels = {names.MANAGED_BY: names.MANAGER, names.TEAM: label_value(team)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels | levels}}


def stateful_set(launch: LaunchFact) -> Document:
    spec: Document = {
        "replicas": 1,
        "serviceName": object_name(launch.name, launch.workload),
        "selector": {"matchLabels": selector(launch)},
        "updateStrategy": {"type": "OnDelete"},  # a changed template never restarts what runs
        "template": template(launch),
    }
    if launch.storage_gib:
        spec["volumeClaimTemplates"] = [home_claim(launch)]
        spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata(launch), "spec": spec}


def job(launch: LaunchFact) -> Document:
    """One pod, tried once. Attempts are ours to count; a disruption is not the program's failure."""
    spec: Document = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
        "template": template(launch),
    }
    if launch.deadline is not None:
        spec["activeDeadlineSeconds"] = max(1, launch.deadline // td(seconds=1))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(launch), "spec": spec}


def metadata(launch: LaunchFact) -> Document:
    return {
        "name": object_name(launch.name, launch.workload),
        "namespace": launch.namespace,
        "labels": labels(launch),
        "annotations": {names.ATTEMPT: str(launch.attempt)},
    }


def labels(launch: LaunchFact) -> dict[str, str]:
    return {
        names.MANAGED_BY: names.MANAGER,
        names.WORKLOAD: str(launch.workload),
        names.TEAM: label_value(launch.team),
        names.OWNER: str(launch.owner),
    }


def selector(launch: LaunchFact) -> dict[str, str]:
    return {names.WORKLOAD: str(launch.workload)}


def template(launch: LaunchFact) -> Document:
    return {"metadata": {"labels": labels(launch)}, "spec": pod_spec(launch)}


def pod_spec(launch: LaunchFact) -> Document:
    spec: Document = {
        "restartPolicy": "Never" if launch.kind is Kind.JOB else "Always",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": only_on(launch.node)}},
        "tolerations": [toleration(taint) for taint in launch.tolerations if taint.key],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": launch.grace // td(seconds=1),
        "containers": [container(launch)],
        "volumes": volumes(launch),
    }
    if launch.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in dict.fromkeys(launch.pull_secrets)]
    if launch.runtime_class and holds_cards(launch):
        spec["runtimeClassName"] = launch.runtime_class
    return spec


def volumes(launch: LaunchFact) -> list[Document]:
    found: list[Document] = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{shm_mib(launch)}Mi"}}]
    if launch.facts:
        found.append({"name": "tenancy", "configMap": {"name": object_name(launch.name, launch.workload)}})
    return found


def only_on(node: str) -> Document:
    """By field, not by label: a node's host-name label may differ from its name."""
    return {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}


def toleration(taint: Taint) -> Document:
    """Exactly this taint. An empty key would tolerate everything, so it is left out before."""
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}


def container(launch: LaunchFact) -> Document:
    amounts = {"cpu": f"{launch.cpu_milli}m", "memory": f"{launch.memory_mib}Mi"}
    if holds_cards(launch):
        amounts[launch.resource] = str(launch.count)
    amounts |= dict.fromkeys(launch.none_of, "0")
    parts: Document = {
        "name": MAIN,
        "image": launch.image,
        "env": [{"name": name, "value": value} for name, value in env(launch).items()],
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": mounts(launch),
    }
    if launch.command:
        parts["command"] = list(launch.command)
    if launch.checkpoint.strip():
        parts["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", launch.checkpoint]}}}
    return parts


def mounts(launch: LaunchFact) -> list[Document]:
    found: list[Document] = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    if has_home(launch):
        found.append({"name": "home", "mountPath": HOME})
    if launch.facts:
        found.append({"name": "tenancy", "mountPath": TENANCY, "readOnly": True})
    return found


def env(launch: LaunchFact) -> dict[str, str]:
    """The owner's variables without those that services refuse, and ours. Each name once, as an apply wants it."""
    said = {name: value for name, value in launch.env if not refuse_env(name)}
    said.setdefault("HOME", HOME if has_home(launch) else "/tmp")  # noqa: S108  the user has no home in most images
    if not holds_cards(launch):
        said["NVIDIA_VISIBLE_DEVICES"] = "void"  # else an image with `all` inside sees every card of the node
    return said


def holds_cards(launch: LaunchFact) -> bool:
    return bool(launch.resource and launch.count)


def has_home(launch: LaunchFact) -> bool:
    return launch.kind is Kind.WORKSPACE and launch.storage_gib > 0


def home_claim(launch: LaunchFact) -> Document:
    return {
        "metadata": {"name": "home", "labels": labels(launch)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{launch.storage_gib}Gi"}},
        },
    }


def shm_mib(launch: LaunchFact) -> int:
    """Half the memory, which it counts against: data loaders of training frameworks fill more than the usual 64 MiB."""
    return max(LEAST_SHM_MIB, launch.memory_mib // 2)


def slug(text: str) -> str:
    """A tenant's words as a part of a name: letters, digits and dashes, beginning with a letter."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    dashed = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return dashed if dashed[:1].isalpha() else f"w-{dashed}".rstrip("-")


def label_value(text: str) -> str:
    """A text as a label's value: at most 63 letters, digits, dashes, underscores and dots."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode())
    return kept[:LONGEST_LABEL].strip("-._")
