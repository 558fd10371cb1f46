"""Which CUDA an image needs, which a node offers, and what follows for the plan."""

import pytest

from scheduling.planning import cuda
from scheduling.planning.actions import Note, Place
from scheduling.planning.facts import Reason
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import look, node, pool, quota, workload

IMAGES = {
    "docker.io/pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime": (12, 8),
    "quay.io/jupyter/pytorch-notebook:cuda12-2026-10-20": (12, 0),
    "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04": (12, 4),
    "nvidia/cuda:11.8.0-devel": (11, 8),
    "example.org/vllm:0.9-cu124": (12, 4),
    "example.org/jax:cu130": (13, 0),
    "example.org/torch:2.1-CUDA_12_1": (12, 1),
    "example.org:5000/train:v3-cuda-12.6@sha256:" + "0" * 64: (12, 6),
    "example.org/train:cuda12.4.1": (12, 4),
    "example.org/train:latest": None,
    "example.org/train": None,
    "example.org/barracuda12.4/x:1": None,
    "example.org/x:barracuda12.4": None,
    "example.org/x:cu1245": None,
    "example.org/x:cuda": None,
    "example.org/x:cuda99.1": None,
    "example.org/cuda12.4/x:1": None,
    "": None,
}


@pytest.mark.parametrize(("image", "version"), IMAGES.items(), ids=IMAGES)
def test_what_a_tag_says(image: str, version: cuda.Version | None) -> None:
    assert cuda.of_image(image) == version


WRITTEN = {
    "12.4": (12, 4),
    " 12.4.1 ": (12, 4),
    "12": None,
    "": None,
    "12.": None,
    "x": None,
    "99.1": None,
    "²2.4": None,
}


@pytest.mark.parametrize(("text", "version"), WRITTEN.items(), ids=WRITTEN)
def test_what_people_write(text: str, version: cuda.Version | None) -> None:
    assert cuda.version_of(text) == version


def test_the_owners_word_goes_before_the_tag() -> None:
    assert cuda.needed("12.0", "example.org/x:cuda12.8") == (12, 0)
    assert cuda.needed("", "example.org/x:cuda12.8") == (12, 8)


DRIVERS = {
    "580.95.05": (13, 0), "550.90.07": (12, 4), "551": (12, 4), "525.60.13": (12, 0), "384.1": None, "700.1": None,
    "": None, "none": None,
}  # fmt: skip


@pytest.mark.parametrize(("driver", "version"), DRIVERS.items(), ids=DRIVERS)
def test_what_a_driver_offers(driver: str, version: cuda.Version | None) -> None:
    assert cuda.of_driver(driver) == version


def test_unknown_is_not_too_old() -> None:
    assert cuda.too_old((12, 4), (12, 8))
    assert not any([cuda.too_old(None, (12, 8)), cuda.too_old((12, 4), None), cuda.too_old((12, 8), (12, 8))])
    assert not cuda.too_old((12, 10), (12, 9)), "minor versions are numbers"


# The plan


NEEDY = workload("a").having(cuda=(12, 8))
POOL = pool("train").having(max_nodes=2, wished_nodes=2)


def said(*pieces):
    (answer,) = [one for one in plan(look(*pieces)).actions if isinstance(one, Place | Note)]
    return answer


def test_a_node_that_is_too_old_is_not_chosen() -> None:
    old, new = node("n1").h100(8).having(cuda=(12, 4)), node("n2").h100(8).having(cuda=(13, 0))

    assert said(POOL, old, new, quota(8), NEEDY).node == "n2"


def test_a_node_that_does_not_say_is_taken() -> None:
    assert said(POOL, node("n1").h100(8), quota(8), NEEDY).node == "n1"


def test_where_all_are_too_old_it_waits_and_no_node_is_bought_for_it() -> None:
    old = pool("train").having(max_nodes=9, wished_nodes=1, cuda=(12, 4))
    actions = plan(look(old, node("n1").h100(8).having(cuda=(12, 4)), quota(8), NEEDY)).actions

    (note,) = actions
    assert note.reason is Reason.WAITING_FOR_CAPACITY
    assert "under CUDA 12.8 or newer" in note.text
    assert "its nodes offer CUDA 12.4 at most" in note.text


def test_one_that_fits_nowhere_for_its_cuda_does_not_keep_others_out() -> None:
    old = node("n1").h100(8).having(cuda=(12, 4))
    actions = plan(look(POOL, old, quota(8), NEEDY, workload("b"))).actions

    assert [one.node for one in actions if isinstance(one, Place)] == ["n1"]
