"""What we ask Kubernetes for, compared as whole documents; and what no tenant can put into them."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta as td
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.cluster.belongings import belongings, host_name, owner_reference, route_document
from scheduling.cluster.reading import read_object, read_pod
from scheduling.cluster.writing import (
    FORBIDDEN_ENV,
    LaunchFact,
    RouteFact,
    job_documents,
    label_value,
    object_name,
    refuse_env,
    workspace_documents,
)
from scheduling.planning.facts import Kind, Taint

SHM, TMP = "/dev/shm", "/tmp"  # noqa: S108
ROW = UUID("0d6e6b52-7c1e-4f0e-9a53-8f1c2b7ad001")
GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
NOTEBOOK = LaunchFact(
    workload=ROW,
    name="Protein folding",
    kind=Kind.WORKSPACE,
    namespace="team-vision",
    team="vision",
    owner=7,
    image="example.org/notebook:1",
    command=(),
    env=(("SEED", "42"),),
    resource="nvidia.com/mig-1g.10gb",
    count=1,
    cpu_milli=4000,
    memory_mib=16384,
    storage_gib=50,
    node="gpu-1",
    tolerations=(GPU_TAINT,),
    attempt=3,
)
TRAINING = replace(
    NOTEBOOK,
    kind=Kind.JOB,
    command=("sh", "-c", "python train.py"),
    env=(),
    resource="nvidia.com/gpu",
    count=4,
    storage_gib=0,
    deadline=td(hours=2),
)

LABELS = {
    "app.kubernetes.io/managed-by": "berth",
    "berth.portal/workload": str(ROW),
    "berth.portal/team": "vision",
    "berth.portal/owner": "7",
}
METADATA = {
    "name": "protein-folding-0d6e6b52",
    "namespace": "team-vision",
    "labels": LABELS,
    "annotations": {"berth.portal/attempt": "3"},
}
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": "team-vision",
        "labels": {
            "app.kubernetes.io/managed-by": "berth",
            "berth.portal/team": "vision",
            "pod-security.kubernetes.io/enforce": "restricted",
            "pod-security.kubernetes.io/audit": "restricted",
            "pod-security.kubernetes.io/warn": "restricted",
        },
    },
}
POD = {  # the parts that both kinds share
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}
                ]
            }
        }
    },
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}],
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "fsGroup": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "terminationGracePeriodSeconds": 30,
    "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8192Mi"}}],
}
LOCKED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
WORKSPACE = (
    NAMESPACE,
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": METADATA,
        "spec": {
            "replicas": 1,
            "serviceName": "protein-folding-0d6e6b52",
            "selector": {"matchLabels": {"berth.portal/workload": str(ROW)}},
            "updateStrategy": {"type": "OnDelete"},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": POD
                | {
                    "restartPolicy": "Always",
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.org/notebook:1",
                            "env": [{"name": "SEED", "value": "42"}, {"name": "HOME", "value": "/home/berth"}],
                            "resources": {
                                "requests": {"cpu": "4000m", "memory": "16384Mi", "nvidia.com/mig-1g.10gb": "1"},
                                "limits": {"cpu": "4000m", "memory": "16384Mi", "nvidia.com/mig-1g.10gb": "1"},
                            },
                            "securityContext": LOCKED,
                            "volumeMounts": [
                                {"name": "shm", "mountPath": SHM},
                                {"name": "home", "mountPath": "/home/berth"},
                            ],
                        }
                    ],
                },
            },
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "home", "labels": LABELS},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "50Gi"}}},
                }
            ],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        },
    },
)
JOB = (
    NAMESPACE,
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": METADATA,
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "activeDeadlineSeconds": 7200,
            "template": {
                "metadata": {"labels": LABELS},
                "spec": POD
                | {
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "example.org/notebook:1",
                            "command": ["sh", "-c", "python train.py"],
                            "env": [{"name": "HOME", "value": TMP}],
                            "resources": {
                                "requests": {"cpu": "4000m", "memory": "16384Mi", "nvidia.com/gpu": "4"},
                                "limits": {"cpu": "4000m", "memory": "16384Mi", "nvidia.com/gpu": "4"},
                            },
                            "securityContext": LOCKED,
                            "volumeMounts": [{"name": "shm", "mountPath": SHM}],
                        }
                    ],
                },
            },
        },
    },
)


def documents(launch: LaunchFact) -> tuple[dict[str, Any], ...]:
    return job_documents(launch) if launch.kind is Kind.JOB else workspace_documents(launch)


def pod_of(launch: LaunchFact) -> dict[str, Any]:
    spec: dict[str, Any] = documents(launch)[-1]["spec"]["template"]["spec"]
    return spec


def test_a_workspace() -> None:
    assert workspace_documents(NOTEBOOK) == WORKSPACE


def test_a_job() -> None:
    assert job_documents(TRAINING) == JOB


def test_a_job_without_an_end_has_no_deadline() -> None:
    assert "activeDeadlineSeconds" not in job_documents(replace(TRAINING, deadline=None))[-1]["spec"]


def test_a_deadline_of_less_than_a_second_is_one() -> None:
    assert job_documents(replace(TRAINING, deadline=td(0)))[-1]["spec"]["activeDeadlineSeconds"] == 1


def test_a_workspace_without_storage_claims_none() -> None:
    spec = workspace_documents(replace(NOTEBOOK, storage_gib=0))[-1]["spec"]

    assert "volumeClaimTemplates" not in spec
    assert [mount["name"] for mount in spec["template"]["spec"]["containers"][0]["volumeMounts"]] == ["shm"]


@pytest.mark.parametrize("launch", [replace(NOTEBOOK, resource="", count=0), replace(NOTEBOOK, count=0)])
def test_t1_a_pod_without_cards_sees_none(launch: LaunchFact) -> None:
    (main,) = pod_of(launch)["containers"]

    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in main["env"]
    assert set(main["resources"]["limits"]) == {"cpu", "memory"}


def test_what_we_write_we_read_back() -> None:
    document = workspace_documents(NOTEBOOK)[-1]
    template = document["spec"]["template"]

    fact = read_object(document)
    pod = read_pod({"metadata": {"name": "x-0"} | template["metadata"], "spec": template["spec"]})

    assert fact is not None
    assert (fact.workload, fact.kind, fact.replicas, fact.generation) == (ROW, "StatefulSet", 1, 3)
    assert (pod.workload, pod.requests, pod.cpu_milli, pod.memory_mib) == (
        ROW,
        {"nvidia.com/mig-1g.10gb": 1},
        4000,
        16384,
    )


def test_a_taint_without_a_key_is_not_tolerated_as_it_would_tolerate_all() -> None:
    assert pod_of(replace(NOTEBOOK, tolerations=(Taint("", "", "NoSchedule"),)))["tolerations"] == []


# Names

NAMES = {
    "plain": ("train", "train-0d6e6b52"),
    "words": ("Protein Folding, 2nd try!", "protein-folding-2nd-try-0d6e6b52"),
    "accents": ("Übung é", "ubung-e-0d6e6b52"),
    "another script": ("蛋白质", "w-0d6e6b52"),
    "nothing": ("", "w-0d6e6b52"),
    "a digit first": ("3d", "w-3d-0d6e6b52"),
    "dashes": ("--a--", "a-0d6e6b52"),
    "a path": ("../../etc/passwd", "etc-passwd-0d6e6b52"),
    "forty and more": ("a" * 60, "a" * 40 + "-0d6e6b52"),
    "a dash at the cut": ("a" * 39 + " b", "a" * 39 + "-0d6e6b52"),
}


@pytest.mark.parametrize(("name", "expected"), NAMES.values(), ids=NAMES)
def test_an_object_has_one_readable_name(name: str, expected: str) -> None:
    assert object_name(name, ROW) == expected


@given(st.text(), st.uuids())
def test_any_name_is_a_service_name_of_at_most_52(name: str, workload: UUID) -> None:
    made = object_name(name, workload)

    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", made)
    assert len(made) <= 52
    assert made.endswith(workload.hex[:8])


@given(st.text())
def test_any_text_is_a_label_value(text: str) -> None:
    assert re.fullmatch(r"|[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", label_value(text))


# Variables

REFUSED = [
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "nvidia_visible_devices",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_MPS_PIPE_DIRECTORY",
    "ROCR_VISIBLE_DEVICES",
    "KUBERNETES_SERVICE_HOST",
    "GLIBC_TUNABLES",
    "BERTH_TEAM",
    "",
    "1A",
    "A B",
    "A=B",
    "A\n",
    "Ä",
    "A" * 129,
]


@pytest.mark.parametrize("name", REFUSED)
def test_some_variables_are_refused_in_a_sentence_and_never_written(name: str) -> None:
    assert refuse_env(name).endswith(".")
    assert len(refuse_env(name)) < 200
    assert [entry["name"] for entry in pod_of(replace(NOTEBOOK, env=((name, "all"),)))["containers"][0]["env"]] == [
        "HOME"
    ]


@pytest.mark.parametrize(
    "name", ["SEED", "_x", "WANDB_MODE", "CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "OLD_LD_"]
)
def test_others_are_the_owners_own(name: str) -> None:
    assert refuse_env(name) == ""


def test_a_variable_said_twice_is_written_once() -> None:
    launch = replace(NOTEBOOK, env=(("A", "1"), ("HOME", "/x"), ("A", "2")))

    assert pod_of(launch)["containers"][0]["env"] == [{"name": "A", "value": "2"}, {"name": "HOME", "value": "/x"}]


# Whatever tenants write

FORBIDDEN_FIELDS = {
    "hostPath",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "hostPort",
    "hostAliases",
    "privileged",
    "procMount",
    "sysctls",
    "shareProcessNamespace",
    "serviceAccountName",
    "serviceAccount",
    "runtimeClassName",
    "nodeName",
    "schedulerName",
    "priorityClassName",
    "imagePullSecrets",
    "initContainers",
    "ephemeralContainers",
    "envFrom",
    "valueFrom",
    "secret",
    "configMap",
    "csi",
    "nfs",
    "projected",
    "lifecycle",
    "subPathExpr",
    "add",
}
TENANTS_TEXT = st.text() | st.sampled_from(
    [
        "",
        "../..",
        "a\nb",
        "{{ 7*7 }}",
        "<script>",
        "*",
        "hostPath",
        "x" * 65536,
        "null",
        "!!python/object:os.system",
        "\x00",
    ]
)
TENANTS_ENV = st.tuples(TENANTS_TEXT | st.sampled_from(["NVIDIA_VISIBLE_DEVICES", "LD_PRELOAD", "A"]), TENANTS_TEXT)


@given(
    kind=st.sampled_from(list(Kind)),
    name=TENANTS_TEXT,
    team=TENANTS_TEXT,
    image=TENANTS_TEXT,
    command=st.lists(TENANTS_TEXT, max_size=3).map(tuple),
    env=st.lists(TENANTS_ENV, max_size=4).map(tuple),
    count=st.integers(0, 8),
    storage_gib=st.integers(0, 100),
)
def test_no_tenant_gets_a_forbidden_field_into_a_pod(**said: Any) -> None:
    launch = replace(NOTEBOOK, **said)

    made = documents(launch)

    assert json.loads(json.dumps(made)) == list(made)
    fields = [(key, value) for document in made for key, value in walked(document)]
    assert not FORBIDDEN_FIELDS & {key for key, _ in fields}
    assert all(
        value is False for key, value in fields if key in {"allowPrivilegeEscalation", "automountServiceAccountToken"}
    )
    (main,) = pod_of(launch)["containers"]
    chosen = {entry["name"] for entry in main["env"]} - {"NVIDIA_VISIBLE_DEVICES"}
    assert not any(name.upper().startswith(FORBIDDEN_ENV) for name in chosen)
    devices = [entry["value"] for entry in main["env"] if entry["name"] == "NVIDIA_VISIBLE_DEVICES"]
    assert devices == ([] if launch.count else ["void"])
    assert pod_of(launch)["affinity"] == POD["affinity"]
    for document in made:
        for key, value in document["metadata"].get("labels", {}).items():
            assert re.fullmatch(r"|[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value), key


def walked(value: Any) -> Iterator[tuple[str, Any]]:
    """Every field of a document with its value, at any depth."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from walked(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from walked(item)


@given(
    name=TENANTS_TEXT,
    image=TENANTS_TEXT,
    command=st.lists(TENANTS_TEXT, max_size=3).map(tuple),
    env=st.lists(TENANTS_ENV, max_size=4).map(tuple),
    checkpoint=TENANTS_TEXT,
    kind=st.sampled_from(list(Kind)),
)
def test_no_word_of_a_tenant_changes_anything_but_its_own_container(kind: Kind, **said: Any) -> None:
    """Image, command, variables and the command before the stop are the tenant's; the rest is as if none had said it.

    The name is in the objects' names alone, as letters, digits and dashes.
    """
    plain = replace(NOTEBOOK, kind=kind, facts=(("a", "b"),), route=RouteFact("ingress", "lab.example.org"))
    launch = replace(plain, **said)

    assert without_words(everything(launch), launch) == without_words(everything(plain), plain)
    (main,) = pod_of(launch)["containers"]
    assert main["image"] == launch.image
    assert main.get("command", []) == list(launch.command)
    if launch.checkpoint.strip():
        assert main["lifecycle"] == {"preStop": {"exec": {"command": ["sh", "-c", launch.checkpoint]}}}
    else:
        assert "lifecycle" not in main


def everything(launch: LaunchFact) -> list[dict[str, Any]]:
    """All documents of a workload."""
    made = [*documents(launch)]
    owner = owner_reference(made[-1]["kind"], made[-1]["metadata"]["name"], "uid")
    way_in = route_document(launch, owner)
    return [*made, *belongings(launch, owner), *([way_in] if way_in else [])]


def without_words(made: list[dict[str, Any]], launch: LaunchFact) -> Any:
    """The documents without what a tenant may choose."""
    text = json.dumps(made)
    for word, stand_in in (
        (host_name(launch.name, launch.workload, "lab.example.org"), "HOST"),
        (object_name(launch.name, launch.workload), "NAME"),
    ):
        text = text.replace(json.dumps(word)[1:-1], stand_in)
    bare = json.loads(text)
    (main,) = bare[1]["spec"]["template"]["spec"]["containers"]
    for field in ("image", "command", "env", "lifecycle"):
        main.pop(field, None)
    return bare
