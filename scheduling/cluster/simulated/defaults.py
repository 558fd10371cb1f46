"""What the API server fills in where a document says nothing. Filling in twice changes nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from .kinds import Document, Kind

EVICTION_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def fill(kind: Kind, document: Document) -> Document:
    """The document with its defaults, changed in place and returned."""
    fillers: dict[str, Callable[[Document], None]] = {
        "pods": fill_pod, "statefulsets": fill_stateful_set, "jobs": fill_job, "services": fill_service,
        "namespaces": fill_namespace, "persistentvolumeclaims": fill_claim, "secrets": fill_secret,
        "machinedeployments": fill_machine_deployment,
    }  # fmt: skip
    if kind.plural in fillers:
        fillers[kind.plural](document)
    return document


def fill_pod(pod: Document) -> None:
    spec = pod.setdefault("spec", {})
    fill_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    tolerations = spec.setdefault("tolerations", [])
    for key in EVICTION_TAINTS:
        if not any(toleration.get("key") in (key, None, "") for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def fill_pod_spec(spec: Document) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        fill_container(container)


def fill_container(container: Document) -> None:
    tag = (container.get("image") or "").rpartition("/")[2].partition(":")[2]
    container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    if resources.get("limits"):
        resources["requests"] = dict(resources["limits"]) | dict(resources.get("requests") or {})
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")


def fill_stateful_set(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    fill_template(spec)
    for claim in spec.get("volumeClaimTemplates") or []:
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("status", {"phase": "Pending"})
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def fill_template(spec: Document) -> Document:
    template: Document = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    fill_pod_spec(template.setdefault("spec", {}))
    return template


def fill_job(document: Document) -> None:
    """The job's own labels and selector come with its uid, once it has one."""
    spec = document.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    uid, name = document["metadata"].get("uid"), document["metadata"]["name"]
    labels = fill_template(spec)["metadata"].setdefault("labels", {})
    if uid and not spec.get("selector"):
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        labels |= {
            "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
            "controller-uid": uid, "job-name": name,
        }  # fmt: skip


def fill_service(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if document["metadata"].get("uid") and "clusterIP" not in spec:
        digest = hashlib.sha256(document["metadata"]["uid"].encode()).digest()
        spec["clusterIP"] = f"10.96.{digest[0]}.{1 + digest[1] % 254}"
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def fill_namespace(document: Document) -> None:
    document["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = document["metadata"]["name"]
    document.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])


def fill_claim(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("storageClassName", "standard")


def fill_secret(document: Document) -> None:
    document.setdefault("type", "Opaque")
    plain = document.pop("stringData", None)
    if plain:
        coded = {name: base64.b64encode(str(value).encode()).decode() for name, value in plain.items()}
        document["data"] = dict(document.get("data") or {}) | coded


def fill_machine_deployment(document: Document) -> None:
    document.setdefault("spec", {}).setdefault("replicas", 1)


def first_status(kind: Kind, document: Document) -> Document | None:
    """The status that a fresh object of a kind shows before any controller has seen it."""
    match kind.plural:
        case "pods":
            return {"phase": "Pending", "qosClass": qos_class(document["spec"])}
        case "namespaces":
            return {"phase": "Active"}
        case "persistentvolumeclaims":
            return {"phase": "Pending"}
        case "statefulsets":
            return {"replicas": 0}
        case "services" | "ingresses":
            return {"loadBalancer": {}}
        case "nodes":
            return document.get("status") or {}
    return {} if kind.has_status else None


def qos_class(spec: Document) -> str:
    resources = [container.get("resources") or {} for container in spec.get("containers") or []]
    if all(not part.get("requests") and not part.get("limits") for part in resources):
        return "BestEffort"
    equal = all(
        (part.get("limits") or {}).get(name) is not None
        and (part.get("limits") or {}).get(name) == (part.get("requests") or {}).get(name)
        for part in resources
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if equal else "Burstable"
