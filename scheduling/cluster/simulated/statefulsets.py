"""The StatefulSet controller: ordinal pods, claims that stay, one revision at a time."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime

from .api import DeleteOptions
from .errors import ApiError
from .kinds import Document, Key, copy, key_of
from .world import Controller, World, dependents, is_true, owned_by

SOURCE = "statefulset-controller"
ENDED = ("Succeeded", "Failed")


class StatefulSets(Controller):
    kinds = frozenset({"statefulsets", "pods"})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.replace_at: dict[str, datetime] = {}  # uid of a failed pod -> when it makes room for another
        self.not_before: dict[str, datetime] = {}  # uid of a set whose pod the API refused -> when to try again

    def reconcile(self, key: Key) -> None:
        if key.plural == "pods":
            self.hear_of_pod(key)
            return
        document = self.world.store.get(key)
        if document is None or document["metadata"].get("deletionTimestamp"):
            return
        self.shape(key, document)
        self.world.edit(key, self.describe)

    def hear_of_pod(self, key: Key) -> None:
        """A pod's name tells its set, even when the pod is gone."""
        name, _, ordinal = key.name.rpartition("-")
        if ordinal.isdigit():
            self.world.wake(self.world.now, self, Key("statefulsets", key.namespace, name))

    def shape(self, key: Key, document: Document) -> None:
        """One step towards the wished pods; the next follows when this one shows."""
        wished = int(document["spec"]["replicas"])
        pods = {ordinal_of(pod): pod for pod in dependents(self.world, document, "pods")}
        parallel = document["spec"].get("podManagementPolicy") == "Parallel"
        for ordinal in range(wished):
            pod = pods.get(ordinal)
            if pod is None:
                self.make(key, document, ordinal)
            elif not self.is_worn(key, document, pod) and (parallel or is_true(pod, "Ready")):
                continue
            if not parallel:
                return
        extra = sorted((ordinal for ordinal in pods if ordinal >= wished), reverse=True)
        for ordinal in extra if parallel else extra[:1]:
            self.drop(document, pods[ordinal])
        if not extra:
            self.roll(document, [pods[ordinal] for ordinal in range(wished) if ordinal in pods])

    def is_worn(self, key: Key, document: Document, pod: Document) -> bool:
        """Is the pod dying, or has it failed? A failed one is replaced after a pause."""
        if pod["metadata"].get("deletionTimestamp"):
            return True
        if pod["status"].get("phase") not in ENDED:
            return False
        at = self.replace_at.setdefault(pod["metadata"]["uid"], self.world.after("recreate"))
        if at > self.world.now:
            self.world.wake(at, self, key)
        else:
            del self.replace_at[pod["metadata"]["uid"]]
            self.drop(document, pod)
        return True

    def make(self, key: Key, document: Document, ordinal: int) -> None:
        """The pod of an ordinal and its claims. What the API refuses becomes an event and is tried again later."""
        uid = document["metadata"]["uid"]
        if self.not_before.get(uid, self.world.now) > self.world.now:
            return
        try:
            for claim in claims_of(document, ordinal):
                if self.world.store.get(key_of(claim)) is None:
                    self.world.create(claim)
            pod = self.world.create(pod_of(document, ordinal))
        except ApiError as error:
            name = f"{key.name}-{ordinal}"
            text = f"create Pod {name} in StatefulSet {key.name} failed error: {error.message}"
            self.world.event(document, "Warning", "FailedCreate", text, SOURCE)
            self.not_before[uid] = self.world.after("recreate")
            self.world.wake(self.not_before[uid], self, key)
            return
        name = pod["metadata"]["name"]
        text = f"create Pod {name} in StatefulSet {key.name} successful"
        self.world.event(document, "Normal", "SuccessfulCreate", text, SOURCE)

    def drop(self, document: Document, pod: Document) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            return
        name = pod["metadata"]["name"]
        text = f"delete Pod {name} in StatefulSet {document['metadata']['name']} successful"
        self.world.event(document, "Normal", "SuccessfulDelete", text, SOURCE)
        self.world.delete(key_of(pod), DeleteOptions(uid=pod["metadata"]["uid"]))

    def roll(self, document: Document, pods: list[Document]) -> None:
        """With everything ready: replace the last pod of an old revision."""
        if document["spec"]["updateStrategy"].get("type") == "OnDelete":
            return
        wanted = revision(document)
        old = [pod for pod in pods if pod["metadata"]["labels"].get("controller-revision-hash") != wanted]
        if old:
            self.drop(document, old[-1])

    def describe(self, document: Document) -> None:
        pods = dependents(self.world, document, "pods")
        ready = sum(is_true(pod, "Ready") for pod in pods)
        update = revision(document)
        updated = sum(pod["metadata"]["labels"].get("controller-revision-hash") == update for pod in pods)
        status = document["status"]
        current = update if updated == len(pods) else status.get("currentRevision", update)
        document["status"] = {
            "observedGeneration": document["metadata"].get("generation", 1),
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "currentReplicas": updated if current == update else len(pods) - updated,
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
        }


def ordinal_of(pod: Document) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])


def revision(document: Document) -> str:
    """The name of the template's revision: `<set>-<hash>`."""
    text = json.dumps(document["spec"]["template"], sort_keys=True)
    return f"{document['metadata']['name']}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def pod_of(document: Document, ordinal: int) -> Document:
    metadata, template = document["metadata"], copy(document["spec"]["template"])
    name = f"{metadata['name']}-{ordinal}"
    spec = template["spec"]
    spec["hostname"] = name
    spec["subdomain"] = document["spec"].get("serviceName", "")
    volumes = spec.setdefault("volumes", [])
    for claim in claims_of(document, ordinal):
        source = {"claimName": claim["metadata"]["name"]}
        template_name = claim["metadata"]["name"].removesuffix(f"-{name}")
        volumes.append({"name": template_name, "persistentVolumeClaim": source})
    labels = template["metadata"].get("labels") or {}
    labels |= {
        "controller-revision-hash": revision(document),
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": template["metadata"].get("annotations") or {},
            "ownerReferences": owned_by(document),
        },
        "spec": spec,
    }


def claims_of(document: Document, ordinal: int) -> list[Document]:
    """The claims of one ordinal. They have no owner: they outlive the pod and the set."""
    metadata = document["metadata"]
    claims = []
    for template in document["spec"].get("volumeClaimTemplates") or []:
        inner = copy(template["metadata"])
        inner["name"] = f"{template['metadata']['name']}-{metadata['name']}-{ordinal}"
        inner["namespace"] = metadata["namespace"]
        chosen = (document["spec"]["selector"].get("matchLabels")) or {}
        inner["labels"] = (inner.get("labels") or {}) | chosen
        claims.append(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": inner, "spec": copy(template["spec"])}
        )
    return claims
