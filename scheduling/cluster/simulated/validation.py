"""What the API refuses: names, labels, shapes, and the rules for extended resources. Answers are lists of causes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .errors import Cause
from .kinds import Document, Kind
from .quantities import is_extended, milli
from .selectors import labels_match

LABEL_NAME = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
DNS_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
DNS_1035 = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
DNS_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
SHORT_NAMES = {"namespaces": DNS_LABEL, "services": DNS_1035, "jobs": DNS_SUBDOMAIN}
RESTART_POLICIES = ("Always", "OnFailure", "Never")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
PLAIN_QUOTA = frozenset(
    {"cpu", "memory", "ephemeral-storage", "pods", "services", "secrets", "configmaps", "persistentvolumeclaims",
     "resourcequotas", "limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.storage"}
)  # fmt: skip


def problems(kind: Kind, document: Document, old: Document | None) -> list[Cause]:
    """Everything wrong with a document that is to be stored; empty when it may be."""
    found = list(metadata_problems(kind, document["metadata"]))
    check = CHECKS.get(kind.plural)
    if check:
        found += check(document)
    if old is not None:
        found += immutable_problems(kind, document, old)
    return found


def required(field: str, text: str = "") -> Cause:
    return Cause("FieldValueRequired", field, f"Required value{': ' + text if text else ''}")


def wrong(field: str, value: object, text: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown}: {text}")


def unsupported(field: str, value: object, allowed: tuple[str, ...]) -> Cause:
    listed = ", ".join(f'"{word}"' for word in allowed)
    return Cause("FieldValueNotSupported", field, f'Unsupported value: "{value}": supported values: {listed}')


# Metadata


def metadata_problems(kind: Kind, metadata: Document) -> Iterator[Cause]:
    yield from name_problems(kind, metadata["name"])
    for key, value in (metadata.get("labels") or {}).items():
        yield from key_problems("metadata.labels", key)
        yield from label_value_problems("metadata.labels", value)
    for key in metadata.get("annotations") or {}:
        yield from key_problems("metadata.annotations", key)
    if sum(len(k) + len(v) for k, v in (metadata.get("annotations") or {}).items()) > 256 * 1024:
        yield Cause("FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes")
    for index, owner in enumerate(metadata.get("ownerReferences") or []):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield required(f"metadata.ownerReferences[{index}].{field}")


def name_problems(kind: Kind, name: str) -> Iterator[Cause]:
    shape, longest = SHORT_NAMES.get(kind.plural, DNS_SUBDOMAIN), 63 if kind.plural in SHORT_NAMES else 253
    if not shape.match(name):
        yield wrong(
            "metadata.name",
            name,
            "a lowercase RFC 1123 name consists of lower case letters, digits, '-' or '.', "
            "and starts and ends with a letter or digit",
        )
    if len(name) > longest:
        yield wrong("metadata.name", name, f"must be no more than {longest} characters")


def key_problems(field: str, key: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and (not DNS_SUBDOMAIN.match(prefix) or len(prefix) > 253):
        yield wrong(field, key, "the prefix part must be a lowercase RFC 1123 subdomain of at most 253 characters")
    if not LABEL_NAME.match(name) or len(name) > 63:
        yield wrong(
            field, key, "the name part must have at most 63 letters, digits, '-', '_' or '.', beginning with one"
        )


def label_value_problems(field: str, value: str) -> Iterator[Cause]:
    if len(value) > 63:
        yield wrong(field, value, "must be no more than 63 characters")
    elif value and not LABEL_NAME.match(value):
        yield wrong(field, value, "a valid label is empty or letters, digits, '-', '_' or '.'")


# Pods


def pod_problems(pod: Document) -> list[Cause]:
    return list(pod_spec_problems(pod.get("spec") or {}, "spec"))


def pod_spec_problems(spec: Document, path: str) -> Iterator[Cause]:
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or []}
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or []):
            yield from container_problems(container, f"{path}.{field}[{index}]", volumes, seen)
    if spec.get("restartPolicy", "Always") not in RESTART_POLICIES:
        yield unsupported(f"{path}.restartPolicy", spec["restartPolicy"], RESTART_POLICIES)
    for index, toleration in enumerate(spec.get("tolerations") or []):
        yield from toleration_problems(toleration, f"{path}.tolerations[{index}]")
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield from key_problems(f"{path}.nodeSelector", key)
        yield from label_value_problems(f"{path}.nodeSelector", value)
    yield from affinity_problems(spec, f"{path}.affinity.nodeAffinity")


def affinity_problems(spec: Document, path: str) -> Iterator[Cause]:
    """The fields by which a pod asks for a node: its name, and a real one."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    path += ".requiredDuringSchedulingIgnoredDuringExecution"
    wanted = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for number, term in enumerate(wanted.get("nodeSelectorTerms") or []):
        for index, field in enumerate(term.get("matchFields") or []):
            at = f"{path}.nodeSelectorTerms[{number}].matchFields[{index}]"
            values = field.get("values") or []
            if len(values) != 1:
                yield required(f"{at}.values", "must be only one value when `operator` is 'In' or 'NotIn'")
            for place, value in enumerate(values):
                if not DNS_SUBDOMAIN.match(value):
                    yield wrong(f"{at}.values[{place}]", value, "must be the name of a node")


def container_problems(container: Document, path: str, volumes: set[Any], seen: set[str]) -> Iterator[Cause]:
    name = container.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    elif not DNS_LABEL.match(name) or len(name) > 63:
        yield wrong(f"{path}.name", name, "must be a lowercase RFC 1123 label of at most 63 characters")
    if name in seen:
        yield Cause("FieldValueDuplicate", f"{path}.name", f'Duplicate value: "{name}"')
    seen.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")
    for index, variable in enumerate(container.get("env") or []):
        if not variable.get("name"):
            yield required(f"{path}.env[{index}].name")
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            yield Cause("FieldValueNotFound", f"{path}.volumeMounts[{index}].name", f'Not found: "{mount.get("name")}"')
    yield from resource_problems(container.get("resources") or {}, f"{path}.resources")


def resource_problems(resources: Document, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    sound = True
    for part, quantities in (("limits", limits), ("requests", requests)):
        for name, quantity in quantities.items():
            for cause in quantity_problems(f"{path}.{part}[{name}]", name, quantity):
                sound = False
                yield cause
    if not sound:
        return
    for name in sorted(set(limits) | set(requests)):
        yield from ratio_problems(name, limits.get(name), requests.get(name), path)


def quantity_problems(field: str, name: str, quantity: object) -> Iterator[Cause]:
    try:
        amount = milli(str(quantity))
    except ValueError:
        yield wrong(field, str(quantity), "must be a quantity such as 500m, 2 or 8Gi")
        return
    if amount < 0:
        yield wrong(field, str(quantity), "must be greater than or equal to 0")
    if is_extended(name) and amount % 1000:
        yield wrong(field, str(quantity), "must be an integer")
    if "/" not in name and name not in {"cpu", "memory", "ephemeral-storage"} and not name.startswith("hugepages-"):
        yield wrong(field, name, "must be a standard resource type or fully qualified")


def ratio_problems(name: str, limit: object, request: object, path: str) -> Iterator[Cause]:
    """Requests stay within limits; for extended resources both are the same, as nothing of them is overcommitted."""
    if is_extended(name) and limit is None:
        yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    if limit is None or request is None:
        return
    asked, most = milli(str(request)), milli(str(limit))
    if is_extended(name) and asked != most:
        yield wrong(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")
    elif asked > most:
        yield wrong(f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")


def toleration_problems(toleration: Document, path: str) -> Iterator[Cause]:
    operator = toleration.get("operator", "Equal")
    if operator not in ("Equal", "Exists"):
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if not toleration.get("key") and operator != "Exists":
        yield wrong(f"{path}.operator", operator, "operator must be Exists when `key` is empty")
    if operator == "Exists" and toleration.get("value"):
        yield wrong(f"{path}.operator", operator, "value must be empty when `operator` is 'Exists'")
    if toleration.get("effect") and toleration["effect"] not in EFFECTS:
        yield unsupported(f"{path}.effect", toleration["effect"], EFFECTS)


# Workloads and the rest


def stateful_set_problems(document: Document) -> list[Cause]:
    spec = document.get("spec") or {}
    template = spec.get("template") or {}
    found = list(template_problems(template, spec.get("selector")))
    if (template.get("spec") or {}).get("restartPolicy", "Always") != "Always":
        found.append(unsupported("spec.template.spec.restartPolicy", template["spec"]["restartPolicy"], ("Always",)))
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or []):
        if not (claim.get("metadata") or {}).get("name"):
            found.append(required(f"spec.volumeClaimTemplates[{index}].metadata.name"))
    return found + list(count_problems(spec, "replicas"))


def template_problems(template: Document, selector: Document | None) -> Iterator[Cause]:
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        yield required("spec.selector")
    elif not labels_match(selector, labels):
        yield wrong("spec.template.metadata.labels", str(labels), "`selector` does not match template `labels`")
    for value in labels.values():
        yield from label_value_problems("spec.template.labels", value)
    # A claim template becomes a volume of the pod by its own name.
    yield from pod_spec_problems(template.get("spec") or {}, "spec.template.spec")


def stateful_set_volumes(document: Document) -> Document:
    """The set with its claim templates as volumes of the pod template: what its pods will have."""
    spec = document.get("spec") or {}
    claims = [{"name": (claim.get("metadata") or {}).get("name")} for claim in spec.get("volumeClaimTemplates") or []]
    if not claims or not isinstance(spec.get("template"), dict):
        return document
    inner = spec["template"].get("spec") or {}
    template = spec["template"] | {"spec": inner | {"volumes": [*(inner.get("volumes") or []), *claims]}}
    return document | {"spec": spec | {"template": template}}


def job_problems(document: Document) -> list[Cause]:
    spec = document.get("spec") or {}
    template = (spec.get("template") or {}).get("spec") or {}
    found = list(pod_spec_problems(template | {"restartPolicy": "Never"}, "spec.template.spec"))
    policy = template.get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        found.append(
            required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
            if not policy
            else unsupported("spec.template.spec.restartPolicy", policy, ("OnFailure", "Never"))
        )
    if spec.get("podFailurePolicy") and policy != "Never":
        found.append(wrong("spec.template.spec.restartPolicy", policy, "only 'Never' goes with podFailurePolicy"))
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        found += count_problems(spec, field)
    return found


def count_problems(spec: Document, field: str) -> Iterator[Cause]:
    value = spec.get(field)
    if isinstance(value, int) and value < 0:
        yield wrong(f"spec.{field}", value, "must be greater than or equal to 0")


def quota_problems(document: Document) -> list[Cause]:
    """Only `requests.<name>` may limit an extended resource; counting by kind is `count/<resource>`."""
    found = []
    for name, quantity in ((document.get("spec") or {}).get("hard") or {}).items():
        field = f"spec.hard[{name}]"
        extended = name.startswith("requests.")
        if not (name in PLAIN_QUOTA or extended or name.startswith("count/")):
            found.append(wrong(field, name, "must be a standard resource for quota"))
        found += quantity_problems(field, "x/x" if extended and "/" in name else "cpu", quantity)
    return found


def machine_deployment_problems(document: Document) -> list[Cause]:
    spec = document.get("spec") or {}
    found = [required(f"spec.{field}") for field in ("clusterName", "selector", "template") if not spec.get(field)]
    return found + list(count_problems(spec, "replicas"))


def node_problems(document: Document) -> list[Cause]:
    found = []
    for index, taint in enumerate((document.get("spec") or {}).get("taints") or []):
        if taint.get("effect") not in EFFECTS:
            found.append(unsupported(f"spec.taints[{index}].effect", taint.get("effect"), EFFECTS))
        found += key_problems(f"spec.taints[{index}].key", taint.get("key") or "")
    return found


CHECKS = {
    "pods": pod_problems,
    "statefulsets": lambda document: stateful_set_problems(stateful_set_volumes(document)),
    "jobs": job_problems,
    "resourcequotas": quota_problems,
    "machinedeployments": machine_deployment_problems,
    "nodes": node_problems,
}


# Updates

STATEFUL_SET_MUTABLE = frozenset(
    {"replicas", "ordinals", "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
     "revisionHistoryLimit"}
)  # fmt: skip
POD_MUTABLE = frozenset({"activeDeadlineSeconds", "terminationGracePeriodSeconds", "schedulingGates"})


def immutable_problems(kind: Kind, document: Document, old: Document) -> Iterator[Cause]:
    new_spec, old_spec = document.get("spec") or {}, old.get("spec") or {}
    if kind.plural == "statefulsets":
        changed = [name for name in set(new_spec) | set(old_spec) if new_spec.get(name) != old_spec.get(name)]
        if set(changed) - STATEFUL_SET_MUTABLE:
            listed = ", ".join(f"'{name}'" for name in sorted(STATEFUL_SET_MUTABLE))
            yield Cause(
                "FieldValueForbidden",
                "spec",
                f"Forbidden: updates to statefulset spec for fields other than {listed} are forbidden",
            )
    elif kind.plural == "jobs":
        yield from job_immutable(new_spec, old_spec)
    elif kind.plural == "pods" and comparable_pod(new_spec) != comparable_pod(old_spec):
        yield Cause("FieldValueForbidden", "spec", "Forbidden: pod updates may not change fields other than images")
    elif kind.plural in ("secrets", "configmaps") and old.get("immutable") and document.get("data") != old.get("data"):
        yield Cause("FieldValueForbidden", "data", "Forbidden: field is immutable when `immutable` is set")


def job_immutable(new: Document, old: Document) -> Iterator[Cause]:
    """The template of a suspended job that never started may still change; nothing else of it may."""
    for field in ("completions", "selector", "completionMode", "podFailurePolicy"):
        if new.get(field) != old.get(field):
            yield wrong(f"spec.{field}", str(new.get(field)), "field is immutable")
    if new.get("template") != old.get("template") and not old.get("suspend"):
        yield wrong("spec.template", "...", "field is immutable")


def comparable_pod(spec: Document) -> Document:
    """The part of a pod's spec that nobody may change; tolerations may only be added to, which is not checked."""
    kept = {name: value for name, value in spec.items() if name not in POD_MUTABLE | {"tolerations", "nodeName"}}
    return kept | {"containers": [container | {"image": ""} for container in spec.get("containers") or []]}
