"""Quantities as whole thousandths."""

import pytest

from scheduling.cluster.simulated.quantities import amounts, is_extended, milli, pod_requests, written

GOOD = {
    "cores": ("4", 4000),
    "millicores": ("250m", 250),
    "a fraction": ("0.5", 500),
    "binary": ("1Gi", 1024**3 * 1000),
    "decimal": ("1G", 10**12),
    "an exponent": ("1e3", 1_000_000),
    "a capital exponent with a sign": ("2E+2", 200_000),
    "less than a thousandth is rounded up": ("1n", 1),
    "a number instead of text": (8, 8000),
    "negative": ("-1", -1000),
}


@pytest.mark.parametrize(("text", "expected"), GOOD.values(), ids=GOOD)
def test_it_reads(text: str, expected: int) -> None:
    assert milli(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1Q", "1 Gi", "--1", "Gi", "1e", "."])
def test_it_refuses_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        milli(text)


@pytest.mark.parametrize(("thousandths", "text"), [(2000, "2"), (250, "250m"), (0, "0")])
def test_it_writes_the_shortest(thousandths: int, text: str) -> None:
    assert written(thousandths) == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [("nvidia.com/gpu", True), ("cpu", False), ("kubernetes.io/batteries", False), ("hugepages-1Gi", False)],
)
def test_extended_resources_have_a_foreign_domain(name: str, expected: bool) -> None:
    assert is_extended(name) is expected


def test_a_pod_takes_the_sum_of_its_containers_or_its_largest_init_container() -> None:
    spec = {
        "initContainers": [{"resources": {"requests": {"cpu": "3", "memory": "1Mi"}}}],
        "containers": [
            {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "nvidia.com/gpu": "1"}}},
            {"resources": {"limits": {"cpu": "500m", "nvidia.com/gpu": "2"}}},
        ],
    }

    assert pod_requests(spec) == {
        "pods": 1000,
        "cpu": 3000,
        "memory": 1024 * 1024 * 1000,
        "nvidia.com/gpu": 3000,
    }


def test_nonsense_in_a_nodes_status_is_left_out() -> None:
    assert amounts({"cpu": "2", "nvidia.com/gpu": "abc"}) == {"cpu": 2000}
