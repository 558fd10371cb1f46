"""The types of the fields that anything here reads. What is of another type does not decode: 400, as in life.

A shape is `str`, `int`, `bool`, `dict` (any map), `QUANTITY`, a list with the shape of its items, a map from names to
shapes (other fields are not looked at), or `{"*": shape}` for a map of free names. A field may be absent or null, but
for those that a `"!"` names.
"""

from __future__ import annotations

import json
from typing import Any

from .errors import ApiError, bad_request
from .kinds import Document, Kind

QUANTITY = (str, int, float)
TEXTS: Any = {"*": str}
AMOUNTS: Any = {"*": QUANTITY}
SELECTOR: Any = {"matchLabels": TEXTS, "matchExpressions": [{"key": str, "operator": str, "values": [str]}]}
CONDITION: Any = {
    "!": ("type", "status"),
    "type": str,
    "status": str,
    "reason": str,
    "message": str,
    "lastTransitionTime": str,
}
STATUS: Any = {"!": ("name", "state"), "name": str, "state": dict}
OWNER: Any = {"apiVersion": str, "kind": str, "name": str, "uid": str}
METADATA: Any = {
    "name": str, "namespace": str, "generateName": str, "uid": str, "resourceVersion": str, "labels": TEXTS,
    "annotations": TEXTS, "finalizers": [str], "ownerReferences": [OWNER], "managedFields": [dict],
}  # fmt: skip
CONTAINER: Any = {
    "name": str, "image": str, "command": [str], "args": [str], "env": [{"name": str, "value": str}],
    "ports": [{"containerPort": int, "protocol": str}], "volumeMounts": [{"name": str, "mountPath": str}],
    "resources": {"limits": AMOUNTS, "requests": AMOUNTS},
    "lifecycle": {"preStop": {"exec": {"command": [str]}}, "postStart": {"exec": {"command": [str]}}},
}  # fmt: skip
TERM: Any = {"matchExpressions": SELECTOR["matchExpressions"], "matchFields": SELECTOR["matchExpressions"]}
POD_SPEC: Any = {
    "containers": [CONTAINER], "initContainers": [CONTAINER], "restartPolicy": str, "nodeName": str,
    "schedulerName": str, "priority": int, "terminationGracePeriodSeconds": int, "nodeSelector": TEXTS,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "schedulingGates": [{"name": str}], "serviceAccountName": str,
    "runtimeClassName": str, "imagePullSecrets": [{"name": str}],
    "volumes": [
        {"name": str, "persistentVolumeClaim": {"claimName": str}, "configMap": {"name": str, "optional": bool}}
    ],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
    },
}  # fmt: skip
TEMPLATE: Any = {"metadata": METADATA, "spec": POD_SPEC}
RULE: Any = {
    "action": str, "onExitCodes": {"containerName": str, "operator": str, "values": [int]},
    "onPodConditions": [{"type": str, "status": str}],
}  # fmt: skip
CLAIM: Any = {"accessModes": [str], "storageClassName": str, "resources": {"requests": AMOUNTS}}

SHAPES: dict[str, Any] = {
    "pods": {
        "spec": POD_SPEC,
        "status": {"phase": str, "conditions": [CONDITION], "containerStatuses": [STATUS]},
    },
    "nodes": {
        "spec": {"unschedulable": bool, "taints": [{"key": str, "value": str, "effect": str, "timeAdded": str}]},
        "status": {"capacity": AMOUNTS, "allocatable": AMOUNTS, "conditions": [CONDITION]},
    },
    "statefulsets": {
        "spec": {
            "replicas": int, "serviceName": str, "podManagementPolicy": str, "selector": SELECTOR,
            "template": TEMPLATE, "updateStrategy": {"type": str},
            "volumeClaimTemplates": [{"metadata": METADATA, "spec": CLAIM}],
        },
        "status": {"currentRevision": str},
    },
    "jobs": {
        "spec": {
            "parallelism": int, "completions": int, "backoffLimit": int, "suspend": bool, "completionMode": str,
            "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int, "template": TEMPLATE, "selector": SELECTOR,
            "podFailurePolicy": {"rules": [RULE]},
        },
        "status": {"conditions": [CONDITION], "startTime": str},
    },
    "machinedeployments": {
        "spec": {
            "clusterName": str, "replicas": int, "selector": SELECTOR, "template": {"metadata": METADATA, "spec": dict},
        },
        "status": {"conditions": [CONDITION]},
    },
    "machines": {"spec": dict, "status": {"conditions": [CONDITION], "nodeRef": {"name": str}, "phase": str}},
    "services": {"spec": {"ports": [{"name": str, "port": int, "protocol": str}]}},
    "ingresses": {
        "spec": {
            "ingressClassName": str, "tls": [{"hosts": [str], "secretName": str}],
            "rules": [{"host": str, "http": {"paths": [{"path": str, "pathType": str, "backend": dict}]}}],
        },
    },
    "runtimeclasses": {"handler": str},
    "configmaps": {"data": TEXTS, "immutable": bool},
    "secrets": {"data": TEXTS, "stringData": TEXTS, "type": str},
    "persistentvolumeclaims": {"spec": CLAIM, "status": {"phase": str}},
    "resourcequotas": {"spec": {"hard": AMOUNTS}},
    "namespaces": {"spec": {"finalizers": [str]}, "status": {"phase": str}},
}  # fmt: skip


def check(kind: Kind, document: Document) -> None:
    """BadRequest for the first field of the wrong type."""
    fit(document, {"metadata": METADATA, **SHAPES.get(kind.plural, {})}, "")


def fit(value: Any, shape: Any, path: str) -> None:
    if shape is dict and isinstance(value, dict):
        return
    if isinstance(shape, list) and isinstance(value, list):
        for item in value:
            fit(item, shape[0], path)
    elif isinstance(shape, dict) and isinstance(value, dict):
        fit_map(value, shape, path)
    elif not is_a(value, shape):
        raise undecodable(value, path)


def fit_map(value: Document, shape: Any, path: str) -> None:
    for name in shape.get("!", ()):
        if name not in value:
            raise bad_request(f"{path}.{name}: a value is required")
    for name, item in value.items():
        inner = shape.get(name, shape.get("*"))
        if inner is not None:
            fit(item, inner, f"{path}.{name}" if path else name)


def is_a(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict | list):
        return False
    return shape is bool if isinstance(value, bool) else isinstance(value, shape)


def undecodable(value: Any, path: str) -> ApiError:
    word = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    shown = word.get(type(value), json.dumps(value))
    return bad_request(f"json: cannot unmarshal {shown} into field {path}")
