"""Layouts that a node would refuse are refused before, with the field."""

from typing import Any

import pytest

from scheduling.planning import catalog
from scheduling.planning.layouts import (
    config_file,
    inferred_profiles,
    known,
    refused_config,
    refused_names,
    refused_slices,
)


def model(key: str = "a100-40gb") -> catalog.Model:
    found = catalog.model(key)
    assert found is not None
    return found


def entry(**fields: Any) -> dict[str, Any]:
    return {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.5gb": 7}} | {
        name.replace("_", "-"): value for name, value in fields.items()
    }


GOOD = {
    "one layout for all cards": [entry()],
    "cards by number, some of them whole": [
        entry(devices=[0, 1], mig_enabled=False, mig_devices={}),
        entry(devices=[2, 3], mig_devices={"3g.20gb": 1, "4g.20gb": 1}),
    ],
    "a filter for the board": [entry(device_filter="0x20B010DE")],
    "enabled and not cut": [{"devices": "all", "mig-enabled": True}],
}
BAD: dict[str, tuple[Any, str, str]] = {
    "a number instead of a list": ([entry(devices=7)], "[0].devices", "7 does not say which cards"),
    "cards that are true": ([entry(devices=[True])], "[0].devices", "does not say which cards"),
    "no cards": ([entry(devices=[])], "[0].devices", "does not say which cards"),
    "a card twice": ([entry(devices=[1, 1])], "[0].devices", "does not say which cards"),
    "a card by name among numbers": ([entry(devices=[0, "1"])], "[0].devices", "does not say which cards"),
    "a card below zero": ([entry(), entry(devices=[-1])], "[1].devices", "does not say which cards"),
    "a field that does not exist": ([entry(mig_device={})], "[0].mig-device", "No such field"),
    "enabled in words": ([entry(mig_enabled="yes")], "[0].mig-enabled", "true or false"),
    "slices as a list": ([entry(mig_devices=["1g.5gb"])], "[0].mig-devices", "profiles with counts"),
    "slices while MIG is off": ([entry(mig_enabled=False)], "[0].mig-devices", "MIG is off"),
    "another board's profile": ([entry(mig_devices={"1g.10gb.gfx": 1})], "[0].mig-devices.1g.10gb.gfx", "no profile"),
    "a count in words": ([entry(mig_devices={"1g.5gb": "7"})], "[0].mig-devices.1g.5gb", "no number of slices"),
    "a count of zero": ([entry(mig_devices={"1g.5gb": 0})], "[0].mig-devices.1g.5gb", "no number of slices"),
    "a count that is true": ([entry(mig_devices={"1g.5gb": True})], "[0].mig-devices.1g.5gb", "no number of slices"),
    "four 2g.10gb on one card": ([entry(mig_devices={"2g.10gb": 4})], "[0].mig-devices.2g.10gb", "at most 3 do"),
    "each fits, but not together": (
        [entry(mig_devices={"3g.20gb": 1, "2g.10gb": 3})],
        "[0].mig-devices",
        "1 of 3g.20gb and 3 of 2g.10gb do not fit on one A100 40GB together",
    ),
    "an entry that is a word": (["all"], "[0]", "Give fields"),
    "no entry": ([], "", "at least one entry"),
    "not a list": ({"devices": "all"}, "", "Give a list"),
}


@pytest.mark.parametrize("config", GOOD.values(), ids=GOOD)
def test_a_good_config_is_not_refused(config: object) -> None:
    assert refused_config(model(), "mine", config) is None


@pytest.mark.parametrize(("config", "field", "words"), BAD.values(), ids=BAD)
def test_a_config_is_refused_with_its_field(config: object, field: str, words: str) -> None:
    problem = refused_config(model(), "mine", config)

    assert problem is not None
    assert problem.field == f"mig-configs.mine{field}"
    assert words in problem.text


def test_a_card_that_cannot_be_cut_takes_no_slices() -> None:
    problem = refused_slices(model("a10g-24gb"), {"1g.5gb": 1}, field="slices")

    assert problem is not None
    assert problem.text == "A10G 24GB cannot be cut; leave its slices empty."


def test_a_pool_may_be_cut_to_what_its_model_knows() -> None:
    assert refused_names(model(), ["all-1g.5gb", "all-balanced", "all-disabled"]) is None

    problem = refused_names(model(), ["all-1g.5gb", "all-1g.99gb"])

    assert problem is not None
    assert problem.field == "layouts[1]"
    assert problem.text.startswith("all-1g.99gb is no layout of A100 40GB. Known are all-disabled, all-1g.5gb")


def test_a_model_without_mig_knows_no_layouts() -> None:
    assert known(model("t4-16gb")) == []
    assert refused_names(model("t4-16gb"), ["all-disabled"]) is not None


def test_the_mig_manager_is_given_what_each_name_means() -> None:
    file = config_file(model(), ["all-disabled", "all-1g.5gb", "cut-1x3g.20gb_1x4g.20gb"])

    assert file["version"] == "v1"
    assert file["mig-configs"] == {
        "all-disabled": [{"devices": "all", "mig-enabled": False, "mig-devices": {}}],
        "all-1g.5gb": [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.5gb": 7}}],
        "cut-1x3g.20gb_1x4g.20gb": [
            {"devices": "all", "mig-enabled": True, "mig-devices": {"3g.20gb": 1, "4g.20gb": 1}}
        ],
    }
    for name, config in file["mig-configs"].items():
        assert refused_config(model(), name, config) is None


def test_no_file_is_written_for_a_name_that_means_nothing() -> None:
    with pytest.raises(ValueError, match=r"cut-2x4g\.20gb is no layout of A100 40GB"):
        config_file(model(), ["cut-2x4g.20gb"])


def test_a_mixed_layout_may_be_named_in_a_pool() -> None:
    assert refused_names(model(), ["cut-1x3g.20gb_1x4g.20gb"]) is None
    assert refused_names(model(), ["cut-1x3g.20gb_3x2g.10gb"]) is not None


def test_the_operator_is_told_which_profiles_are_inferred() -> None:
    assert inferred_profiles(model(), known(model())) == {}
    assert inferred_profiles(model("b300-269gb"), ["all-1g.34gb", "nonsense"]) == {
        "1g.34gb": "inferred from the family pattern; confirm on a node before relying on it"
    }
    assert inferred_profiles(model("t4-16gb"), ["all-disabled"]) == {}
