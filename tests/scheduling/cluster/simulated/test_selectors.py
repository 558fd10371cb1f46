"""Label and field selectors."""

from typing import Any

import pytest

from scheduling.cluster.simulated.errors import ApiError
from scheduling.cluster.simulated.kinds import BY_PLURAL
from scheduling.cluster.simulated.selectors import expression_matches, field_test, label_test, labels_match

LABELS = {"app": "ws", "tier": "gold", "example.com/x": "1"}
BY_LABEL = {
    "nothing asked": ("", True),
    "equal": ("app=ws", True),
    "twice equal": ("app==ws", True),
    "another value": ("app=job", False),
    "unequal": ("app!=job", True),
    "unequal holds where the label is absent": ("nope!=x", True),
    "there": ("tier", True),
    "not there": ("!tier", False),
    "absent": ("!nope", True),
    "in": ("tier in (gold, silver)", True),
    "notin": ("tier notin (gold,silver)", False),
    "notin holds where the label is absent": ("nope notin (a)", True),
    "all of several": ("app=ws,tier in (gold),!nope", True),
    "one of several fails": ("app=ws,tier=silver", False),
    "a key with a prefix": ("example.com/x=1", True),
    "an empty value": ("app=", False),
}


@pytest.mark.parametrize(("text", "expected"), BY_LABEL.values(), ids=BY_LABEL)
def test_labels(text: str, expected: bool) -> None:
    assert label_test(text)({"metadata": {"labels": LABELS}}) is expected


@pytest.mark.parametrize("text", ["a b", "app in ws", "=x", "app=(x", "app in (a"])
def test_what_is_no_label_selector_is_a_bad_request(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        label_test(text)

    assert refused.value.code == 400


POD = {
    "metadata": {"name": "a", "namespace": "lab"},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running"},
}
BY_FIELD = {
    "name": ("metadata.name=a", True),
    "node": ("spec.nodeName=n2", False),
    "phases that it is not in": ("status.phase!=Succeeded,status.phase!=Failed", True),
    "an absent field is the empty text": ("status.podIP=", True),
}


@pytest.mark.parametrize(("text", "expected"), BY_FIELD.values(), ids=BY_FIELD)
def test_fields(text: str, expected: bool) -> None:
    assert field_test(text, BY_PLURAL["pods"])(POD) is expected


def test_a_field_that_cannot_be_selected_by_is_a_bad_request() -> None:
    with pytest.raises(ApiError, match=r"field label not supported: spec\.hostNetwork"):
        field_test("spec.hostNetwork=true", BY_PLURAL["pods"])


def test_true_and_false_are_words() -> None:
    test = field_test("spec.unschedulable=true", BY_PLURAL["nodes"])

    assert test({"metadata": {}, "spec": {"unschedulable": True}})
    assert not test({"metadata": {}, "spec": {}})


EXPRESSIONS: dict[str, tuple[dict[str, Any], bool]] = {
    "In": ({"key": "app", "operator": "In", "values": ["ws"]}, True),
    "NotIn": ({"key": "app", "operator": "NotIn", "values": ["ws"]}, False),
    "Exists": ({"key": "tier", "operator": "Exists"}, True),
    "DoesNotExist": ({"key": "tier", "operator": "DoesNotExist"}, False),
    "Gt": ({"key": "example.com/x", "operator": "Gt", "values": ["0"]}, True),
    "Lt of what is no number": ({"key": "app", "operator": "Lt", "values": ["5"]}, False),
    "an operator that nobody knows": ({"key": "app", "operator": "Like", "values": ["w*"]}, False),
}


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions(expression: dict[str, Any], expected: bool) -> None:
    assert expression_matches(expression, LABELS) is expected


def test_an_empty_selector_matches_all_and_none_matches_nothing() -> None:
    assert labels_match({}, LABELS)
    assert not labels_match(None, LABELS)
    assert labels_match({"matchLabels": {"app": "ws"}}, LABELS)
    assert not labels_match({"matchLabels": {"app": "job"}}, LABELS)
