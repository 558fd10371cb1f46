"""Readings of real and invented DCGM output. Names that begin with a letter and a number are known troubles."""

from math import isclose
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.telemetry.dcgm import PLAUSIBLE, Device, Reading, Sample, device, energy_between, read, read_any

DATA = Path(__file__).parents[2] / "data"
CARD = "GPU-00000000-0000-4000-8000-000000000001"


def reading_of(name: str) -> Reading:
    return read_any((DATA / name).read_text(encoding="utf-8"))


def line(metric: str, value: object, **labels: str) -> str:
    said = {"UUID": CARD, "Hostname": "node-1", "modelName": "Tesla T4"} | labels
    inside = ",".join(f'{name}="{text}"' for name, text in said.items())
    return f"DCGM_FI_{metric}{{{inside}}} {value}\n"


def pods(*samples: Sample) -> list[tuple[str, float | None]]:
    return [(sample.pod, sample.busy) for sample in samples]


# Real shapes


def test_whole_cards_of_which_one_is_free() -> None:
    reading = reading_of("dcgm_samples/01-full-gpu-a100.prom")

    used, free = reading.samples
    assert (used.namespace, used.pod, used.container) == ("team-vision", "resnet-sweep-3-0-x8qv2", "trainer")
    assert (used.busy, used.memory_used_mib, used.memory_total_mib, used.watts) == (0.961204, 35882, 40522, 312.874)
    assert (free.pod, free.busy, free.shared_by) == ("", 0.0, 0)
    assert (len(reading.cards), reading.unattributed, reading.dropped) == (2, 1, ())


def test_the_power_of_a_cut_board_counts_once() -> None:
    reading = reading_of("dcgm_samples/02-mig-mixed-h100.prom")

    assert [card.watts for card in reading.cards] == [421.306]
    assert [sample.watts for sample in reading.samples] == [421.306, None, None, None]
    assert [(sample.gi, sample.profile) for sample in reading.samples] == [
        ("2", "3g.40gb"),
        ("3", "2g.20gb"),
        ("9", "1g.10gb"),
        ("10", "1g.10gb"),
    ]
    assert [sample.memory_total_mib for sample in reading.samples] == [40320, 20096, 9984, 9984]
    assert [sample.busy for sample in reading.samples] == [0.874512, 0.402118, 0.05113, 0.0]
    assert reading.unattributed == 1


def test_what_was_measured_for_each_sharer_stays_as_it_is() -> None:
    reading = reading_of("dcgm_samples/03-timesliced-a10g-virtual-gpus.prom")

    assert pods(*reading.samples) == [("nb-kim-0", 0.52), ("nb-lee-0", 0.0), ("asr-6f77d8c9c4-9qk5h", 0.27)]
    assert [sample.memory_used_mib for sample in reading.samples] == [7410, 1182, 4424]
    assert {sample.memory_total_mib for sample in reading.samples} == {13016 + 9518 + 494}
    assert [sample.vgpu for sample in reading.samples] == ["0", "1", "2"]
    assert reading.samples[0].pod_uid == "0d6e6b52-7c1e-4f0e-9a53-8f1c2b7ad001"
    assert sum(sample.watts or 0 for sample in reading.samples) == 187.402
    assert {(sample.shared_by, sample.divided) for sample in reading.samples} == {(3, False)}


def test_dra_slices_read_like_any_slice() -> None:
    (sample,) = reading_of("dcgm_samples/04-dra-mig-h100.prom").samples

    assert (sample.pod, sample.gi, sample.profile, sample.busy) == ("infer-5d8c7", "2", "3g.40gb", 0.644201)
    assert sample.xid is None


def test_m1_copies_of_a_shared_card_are_divided() -> None:
    reading = reading_of("traps/dcgm_timeslice_duplicate.prom")

    assert [sample.pod for sample in reading.samples] == ["train-a", "train-b", "train-c"]
    assert isclose(sum(sample.busy or 0 for sample in reading.samples), 0.71)
    assert {(sample.shared_by, sample.divided) for sample in reading.samples} == {(3, True)}
    assert sum(sample.watts or 0 for sample in reading.samples) == 66.2


def test_m5_the_exporter_owns_nothing() -> None:
    reading = reading_of("traps/prometheus_two_label_schemes.json")

    assert [(sample.namespace, sample.pod, sample.busy) for sample in reading.samples] == [
        ("team-a", "train-0", 0.88),
        ("team-b", "train-1", 0.12),
        ("", "", 0.55),
    ]
    assert reading.unattributed == 1


def test_prometheus_rows_carry_the_exported_pod() -> None:
    reading = reading_of("dcgm_samples/05-prometheus-api-exported.json")

    assert pods(*reading.samples) == [("llm-train-worker-0", 0.934511), ("nb-7d4f", 0.210443), ("", 0.0)]
    assert (reading.samples[1].gi, reading.samples[1].container) == ("5", "notebook")


DUMPS = {  #                                            busy, used, total
    "dcgm_dumps/mig-1g5gb-active.prom": [("9", "1g.5gb", 0.999892, 4384, 4864)],
    "dcgm_dumps/mig-1g5gb-allocated-idle.prom": [("8", "1g.5gb", 0.0, 6, 4863)],
    "dcgm_dumps/mig-active-2x1g-1x2g.prom": [
        ("7", "1g.5gb", 0.000062, 98, 4864),
        ("9", "1g.5gb", 0.999917, 4384, 4864),
        ("5", "2g.10gb", 0.000036, 153, 9855),
    ],
    "dcgm_dumps/mig-disabled-empty-scrape1.prom": [("", "", 0.0, 0, 40384)],
    "dcgm_dumps/mig-enabled-empty.prom": [("", "", 0.000033, None, None)],
}


@pytest.mark.parametrize(("name", "expected"), DUMPS.items(), ids=DUMPS)
def test_real_scrapes(name: str, expected: list[tuple[object, ...]]) -> None:
    reading = reading_of(name)

    assert [
        (sample.gi, sample.profile, sample.busy, sample.memory_used_mib, sample.memory_total_mib)
        for sample in reading.samples
    ] == expected
    assert len(reading.cards) == 1
    assert reading.unattributed == len(expected)
    assert reading.dropped == ()


# Rules, one by one


def test_the_engine_goes_before_the_utilisation() -> None:
    (sample,) = read(line("DEV_GPU_UTIL", 40, pod="a") + line("PROF_GR_ENGINE_ACTIVE", 0.75, pod="a")).samples

    assert sample.busy == 0.75


def test_a_value_out_of_range_gives_way_to_the_next_best() -> None:
    reading = read(line("DEV_GPU_UTIL", 40, pod="a") + line("PROF_GR_ENGINE_ACTIVE", 17, pod="a"))

    assert reading.samples[0].busy == 0.4
    assert [(drop.metric, drop.reason, drop.count) for drop in reading.dropped] == [
        ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "out of range", 1)
    ]


BAD_VALUES = {
    "not a number": "NaN",
    "negative": "-1",
    "out of range": "130",
    "not available": "9223372036854775794",
}


@pytest.mark.parametrize(("reason", "value"), BAD_VALUES.items(), ids=BAD_VALUES)
def test_a_bad_value_is_dropped_and_counted_and_missing_is_not_zero(reason: str, value: str) -> None:
    reading = read(line("DEV_GPU_UTIL", value, pod="a") + line("DEV_POWER_USAGE", 66, pod="a"))

    assert [(drop.metric, drop.reason, drop.count) for drop in reading.dropped] == [("DCGM_FI_DEV_GPU_UTIL", reason, 1)]
    assert [(sample.busy, sample.watts) for sample in reading.samples] == [(None, 66)]


def test_m8_a_family_that_disappears_is_unknown() -> None:
    (sample,) = read(line("DEV_FB_USED", 100, pod="a")).samples

    assert (sample.busy, sample.watts, sample.memory_used_mib, sample.memory_total_mib) == (None, None, 100, None)


ENERGY = {
    "it grows": (5, 27, 22),
    "it stands": (5, 5, 0),
    "it starts again": (27151028, 5, 5),
    "it was not there before": (None, 5, None),
    "it is not there now": (5, None, None),
}


@pytest.mark.parametrize(("before", "after", "spent"), ENERGY.values(), ids=ENERGY)
def test_m8_energy_never_goes_back(before: int | None, after: int | None, spent: int | None) -> None:
    assert energy_between(before, after) == spent


def test_host_names_are_one_case_and_either_label() -> None:
    reading = read(
        line("DEV_GPU_UTIL", 1, pod="a", Hostname="NODE-1") + line("DEV_FB_USED", 1, pod="a", hostname="node-1")
    )

    assert [(sample.host, sample.memory_used_mib) for sample in reading.samples] == [("node-1", 1)]


def test_the_old_name_space_says_uuid_in_lower_case() -> None:
    reading = read(f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",uuid="{CARD}",pod="a"}} 5')

    assert [(sample.card, sample.busy) for sample in reading.samples] == [(CARD, 0.05)]


def test_a_row_that_names_no_card_is_dropped() -> None:
    reading = read('DCGM_FI_DEV_GPU_UTIL{gpu="0",pod="a"} 5')

    assert (reading.samples, [drop.reason for drop in reading.dropped]) == ((), ["names no card"])


def test_empty_labels_name_nobody() -> None:
    reading = read(line("DEV_GPU_UTIL", 5, pod="", namespace="", container=""))

    assert (reading.samples[0].pod, reading.unattributed) == ("", 1)


def test_the_same_card_on_two_hosts_is_two_cards() -> None:
    reading = read(line("DEV_POWER_USAGE", 5, Hostname="a") + line("DEV_POWER_USAGE", 7, Hostname="b"))

    assert [(card.host, card.watts) for card in reading.cards] == [("a", 5), ("b", 7)]


def test_the_board_of_a_cut_card_is_no_sample_of_its_own() -> None:
    text = line("DEV_POWER_USAGE", 90) + line(
        "PROF_GR_ENGINE_ACTIVE", 0.5, GPU_I_ID="7", GPU_I_PROFILE="1g.5gb", pod="a"
    )

    reading = read(text)

    assert [(sample.gi, sample.watts) for sample in reading.samples] == [("7", 90)]


def test_parts_that_sum_to_more_than_the_card_are_scaled_to_it() -> None:
    text = "".join(line("DEV_GPU_UTIL", value, pod=pod, vgpu=pod) for pod, value in {"a": 90, "b": 60}.items())

    reading = read(text)

    assert pods(*reading.samples) == [("a", 0.6), ("b", 0.4)]


def test_a_pod_with_two_replicas_holds_two_of_three_parts() -> None:
    text = "".join(line("DEV_GPU_UTIL", 75, pod=pod, vgpu=vgpu) for vgpu, pod in {"0": "a", "1": "a", "2": "b"}.items())

    reading = read(text)

    assert pods(*reading.samples) == [("a", 0.25), ("a", 0.25), ("b", 0.25)]


def test_memory_that_was_copied_is_divided_and_its_total_is_the_cards() -> None:
    text = "".join(
        line(metric, value, pod=pod, vgpu=pod)
        for pod in "ab"
        for metric, value in (("DEV_FB_USED", 600), ("DEV_FB_FREE", 400))
    )

    reading = read(text)

    assert [(sample.memory_used_mib, sample.memory_total_mib) for sample in reading.samples] == [
        (300, 1000),
        (300, 1000),
    ]


def test_a_row_said_twice_counts_once() -> None:
    reading = read(line("DEV_POWER_USAGE", 5, pod="a") + line("DEV_POWER_USAGE", 7, pod="a"))

    assert [sample.watts for sample in reading.samples] == [7]
    assert [drop.reason for drop in reading.dropped] == ["said twice; the larger value counts"]


def test_an_error_code_reaches_every_sample_of_its_card() -> None:
    text = "".join(line("DEV_XID_ERRORS", 79, pod=pod, GPU_I_ID=gi) for pod, gi in (("a", "1"), ("b", "2")))

    assert [sample.xid for sample in read(text).samples] == [79, 79]


def test_other_metrics_and_odd_lines_are_not_in_the_way() -> None:
    reading = read("up 1\nrubbish\n" + line("DEV_SM_CLOCK", 1410, pod="a") + line("DEV_GPU_UTIL", 1, pod="a"))

    assert len(reading.samples) == 1
    assert [(drop.metric, drop.reason, drop.count) for drop in reading.dropped] == [("", "not a sample line", 1)]


IDS = {  # M2
    "a card": (CARD, Device(CARD)),
    "a replica of the device plugin": (f"{CARD}::2", Device(CARD, vgpu="2")),
    "a replica with a dash": (f"{CARD}-0", Device(CARD, vgpu="0")),
    "a replica with a slash": (f"{CARD}/vgpu1", Device(CARD, vgpu="1")),
    "an index of GKE": ("nvidia0", Device("nvidia0")),
    "a replica of GKE": ("nvidia0/vgpu3", Device("nvidia0", vgpu="3")),
    "a replica of a slice of GKE": ("nvidia0/gi7/vgpu1", Device("nvidia0", gi="7", vgpu="1")),
    "an old slice": (f"MIG-{CARD}/7/0", Device(CARD, gi="7")),
    "a new slice": (
        "MIG-6f1e2d3c-4b5a-5968-8776-95a4b3c2d1e0::1",
        Device("MIG-6f1e2d3c-4b5a-5968-8776-95a4b3c2d1e0", vgpu="1"),
    ),
    "a card with another kind of name": ("card-7::4", Device("card-7", vgpu="4")),
    "nothing": ("", Device("")),
}


@pytest.mark.parametrize(("identity", "expected"), IDS.values(), ids=IDS)
def test_m2_a_device_id_leads_to_its_card(identity: str, expected: Device) -> None:
    assert device(identity) == expected


@pytest.mark.parametrize("suffix", ["::2", "-2", "/vgpu2"])
def test_m2_a_suffix_in_the_exposition_leads_to_the_card_too(suffix: str) -> None:
    reading = read(line("DEV_GPU_UTIL", 10, UUID=CARD + suffix, pod="a") + line("DEV_POWER_USAGE", 66))

    assert [(sample.card, sample.vgpu, sample.busy, sample.watts) for sample in reading.samples] == [
        (CARD, "2", 0.1, 66)
    ]


# Anything at all

NUMBERS = st.one_of(st.floats(), st.integers(), st.sampled_from(["NaN", "+Inf", "-Inf", "9223372036854775794", ""]))
WORDS = st.sampled_from(["", "a", "b", CARD, f"{CARD}::1", "1", "x\\", "nvidia-dcgm-exporter-x"])
KEYS = st.sampled_from(["UUID", "uuid", "Hostname", "hostname", "GPU_I_ID", "pod", "namespace", "exported_pod", "vgpu"])
ROWS = st.tuples(st.sampled_from(sorted(PLAUSIBLE)), st.dictionaries(KEYS, WORDS, max_size=6), NUMBERS)


@given(st.lists(ROWS, max_size=12))
def test_whatever_is_said_busy_is_a_ratio_and_a_card_is_never_more_than_full(
    rows: list[tuple[str, dict[str, str], object]],
) -> None:
    text = "\n".join(
        metric + "{" + ",".join(f'{key}="{word}"' for key, word in labels.items()) + f"}} {value}"
        for metric, labels, value in rows
    )

    reading = read(text)

    held: dict[tuple[str, str, str], float] = {}
    for sample in reading.samples:
        assert sample.busy is None or 0 <= sample.busy <= 1
        key = (sample.host, sample.card, sample.gi)
        held[key] = held.get(key, 0) + (sample.busy or 0)
    assert all(together <= 1 + 1e-9 for together in held.values())
    assert all(card.watts is None or card.watts >= 0 for card in reading.cards)
    assert len(reading.cards) == len({(card.host, card.card) for card in reading.cards})
    assert reading.unattributed == sum(not sample.pod for sample in reading.samples)


@given(st.text())
def test_any_text_gives_a_reading(text: str) -> None:
    read_any(text)
