"""What the API refuses, with the field and the sentence."""

from typing import Any

import pytest

from scheduling.cluster.simulated.errors import ApiError
from tests.scheduling.cluster.simulated.stories import Story, config_map, container, job, plain_node, pod, stateful_set

GPU = "nvidia.com/gpu"


def with_resources(requests: dict[str, str] | None, limits: dict[str, str] | None) -> dict[str, Any]:
    document = pod()
    parts = {"requests": requests, "limits": limits}
    document["spec"]["containers"][0]["resources"] = {name: value for name, value in parts.items() if value}
    return document


def named(name: str, **labels: str) -> dict[str, Any]:
    return config_map(name, labels=labels)


def only_on(*names: str) -> dict[str, Any]:
    """A pod that asks for a node by its name."""
    fields = [{"key": "metadata.name", "operator": "In", "values": list(names)}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


BY_NAME = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0]"
)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a pod for the node without a name": (only_on(""), f"{BY_NAME}.values[0]"),
    "a pod for a node whose name is none": (only_on("Node 1"), f"{BY_NAME}.values[0]"),
    "a pod for one of two nodes by name": (only_on("n1", "n2"), f"{BY_NAME}.values"),
    "capital letters in a name": (named("Upper"), "metadata.name"),
    "a name that ends with a dash": (named("a-"), "metadata.name"),
    "a name with a newline": (named("a\nb"), "metadata.name"),
    "a name of 254 letters": (named("a" * 254), "metadata.name"),
    "a job's name of 64 letters": (job("a" * 64), "metadata.name"),
    "a label value of 64 letters": (named("a", x="b" * 64), "metadata.labels"),
    "a label value with a blank": (named("a", x="b c"), "metadata.labels"),
    "a label key with two slashes": (config_map(labels={"a/b/c": "1"}), "metadata.labels"),
    "an owner without uid": (
        config_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p"}]),
        "metadata.ownerReferences[0].uid",
    ),
    "a pod without containers": (pod() | {"spec": {}}, "spec.containers"),
    "a container without image": (pod() | {"spec": {"containers": [{"name": "a"}]}}, "spec.containers[0].image"),
    "two containers of one name": (
        pod() | {"spec": {"containers": [container(), container()]}},
        "spec.containers[1].name",
    ),
    "a mount without volume": (
        pod() | {"spec": {"containers": [container(volumeMounts=[{"name": "x", "mountPath": "/x"}])]}},
        "spec.containers[0].volumeMounts[0].name",
    ),
    "half a GPU": (with_resources(None, {GPU: "0.5"}), f"spec.containers[0].resources.limits[{GPU}]"),
    "a GPU requested without limit": (with_resources({GPU: "1"}, None), "spec.containers[0].resources.limits"),
    "fewer GPUs requested than the limit": (
        with_resources({GPU: "1"}, {GPU: "2"}),
        "spec.containers[0].resources.requests",
    ),
    "more cpu requested than the limit": (
        with_resources({"cpu": "3"}, {"cpu": "2"}),
        "spec.containers[0].resources.requests",
    ),
    "a quantity that is none": (
        with_resources(None, {"memory": "lots"}),
        "spec.containers[0].resources.limits[memory]",
    ),
    "a negative quantity": (with_resources(None, {"cpu": "-1"}), "spec.containers[0].resources.limits[cpu]"),
    "a resource without domain": (with_resources(None, {"gpus": "1"}), "spec.containers[0].resources.limits[gpus]"),
    "an unknown restart policy": (pod(restartPolicy="Sometimes"), "spec.restartPolicy"),
    "a toleration with a value for Exists": (
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        "spec.tolerations[0].operator",
    ),
    "a toleration of everything that must equal": (pod(tolerations=[{}]), "spec.tolerations[0].operator"),
    "a job that restarts always": (job(pod={"restartPolicy": "Always"}), "spec.template.spec.restartPolicy"),
    "a negative backoff limit": (job(backoffLimit=-1), "spec.backoffLimit"),
    "a taint with an unknown effect": (
        plain_node("n9", taints=[{"key": "a", "effect": "Never"}]),
        "spec.taints[0].effect",
    ),
}


@pytest.mark.parametrize(("document", "field"), REFUSED.values(), ids=REFUSED)
def test_it_is_unprocessable(story: Story, document: dict[str, Any], field: str) -> None:
    with pytest.raises(ApiError) as refused:
        story.create(document)

    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert field in [cause["field"] for cause in (refused.value.details or {})["causes"]]
    assert field in refused.value.message


def test_the_message_names_kind_name_field_and_rule(story: Story) -> None:
    with pytest.raises(ApiError) as refused:
        story.create(with_resources({GPU: "1"}, {GPU: "2"}))

    assert refused.value.message == (
        'Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "1": '
        "must be equal to nvidia.com/gpu limit of 2"
    )


def test_several_causes_are_listed(story: Story) -> None:
    with pytest.raises(
        ApiError, match=r'^Pod "P" is invalid: \[metadata\.name: .*, spec\.containers: Required value\]$'
    ):
        story.create(pod("P") | {"spec": {}})


def test_a_stateful_set_whose_selector_misses_its_own_pods(story: Story) -> None:
    document = stateful_set()
    document["spec"]["selector"] = {"matchLabels": {"app": "other"}}

    with pytest.raises(ApiError, match="`selector` does not match template `labels`"):
        story.create(document)


def test_a_claim_template_is_a_volume_that_may_be_mounted(story: Story) -> None:
    document = stateful_set()
    mounts = [{"name": "home", "mountPath": "/home/berth"}]
    document["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = mounts

    story.create(document)

    assert story.get("pods", "ws-0")["spec"]["volumes"] == [
        {"name": "home", "persistentVolumeClaim": {"claimName": "home-ws-0"}}
    ]


QUOTAS = {
    "requests of an extended resource": ("requests.nvidia.com/gpu", True),
    "requests of a MIG slice": ("requests.nvidia.com/mig-1g.10gb", True),
    "pods": ("pods", True),
    "objects by kind": ("count/jobs.batch", True),
    "limits of an extended resource": ("limits.nvidia.com/gpu", False),
    "a bare extended resource": ("nvidia.com/gpu", False),
}


@pytest.mark.parametrize(("name", "good"), QUOTAS.values(), ids=QUOTAS)
def test_what_a_quota_may_limit(story: Story, name: str, good: bool) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "lab"},
        "spec": {"hard": {name: "4"}},
    }

    if good:
        assert story.create(quota)["spec"]["hard"] == {name: "4"}
        return
    with pytest.raises(ApiError) as refused:
        story.create(quota)
    assert refused.value.code == 422


SHAPELESS: dict[str, dict[str, Any]] = {
    "a number as label": config_map(labels={"a": 1}),
    "a list of labels": config_map(labels=["a"]),
    "metadata that is a text": config_map() | {"metadata": "x"},
    "a name that is a number": config_map() | {"metadata": {"name": 5, "namespace": "lab"}},
    "containers that are a text": pod() | {"spec": {"containers": "main"}},
    "resources that are a list": pod() | {"spec": {"containers": [{"name": "a", "image": "b", "resources": ["x"]}]}},
}


@pytest.mark.parametrize("document", SHAPELESS.values(), ids=SHAPELESS)
def test_a_field_of_the_wrong_type_is_a_bad_request(story: Story, document: dict[str, Any]) -> None:
    from scheduling.cluster.simulated.kinds import BY_PLURAL

    kind = BY_PLURAL["pods" if document["kind"] == "Pod" else "configmaps"]

    with pytest.raises(ApiError) as refused:
        story.world.api.create(kind, "lab", document)

    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


IMMUTABLE: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "a stateful set's selector": (
        stateful_set(),
        "statefulsets",
        {"spec": {"serviceName": "other"}},
    ),
    "a job's template": (job(), "jobs", {"spec": {"template": {"metadata": {"labels": {"new": "x"}}}}}),
    "a job's completions": (job(), "jobs", {"spec": {"completions": 3}}),
    "a pod's node selector": (pod(), "pods", {"spec": {"nodeSelector": {"a": "b"}}}),
    "an immutable config map": (config_map() | {"immutable": True}, "configmaps", {"data": {"colour": "red"}}),
}


@pytest.mark.parametrize(("document", "plural", "patch"), IMMUTABLE.values(), ids=IMMUTABLE)
def test_what_may_not_change_later(story: Story, document: dict[str, Any], plural: str, patch: dict[str, Any]) -> None:
    story.create(document)

    with pytest.raises(ApiError) as refused:
        story.merge(plural, document["metadata"]["name"], patch)

    assert refused.value.code == 422


def test_the_template_of_a_suspended_job_may_still_change(story: Story) -> None:
    story.create(job(suspend=True))

    story.merge("jobs", "j", {"spec": {"template": {"metadata": {"labels": {"new": "x"}}}}})

    assert story.get("jobs", "j")["spec"]["template"]["metadata"]["labels"]["new"] == "x"


def test_replicas_and_template_of_a_stateful_set_may_change(story: Story) -> None:
    story.create(stateful_set())

    story.merge("statefulsets", "ws", {"spec": {"replicas": 0, "template": {"metadata": {"annotations": {"a": "b"}}}}})

    assert story.get("statefulsets", "ws")["metadata"]["generation"] == 2
