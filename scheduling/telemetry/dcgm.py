"""What a DCGM exporter says, as samples of who used which card how much. Pure; any text gives a reading.

The exporter repeats itself: a board's power stands on each of its MIG slices, and where several pods share a card by
time each of them gets a copy of the board's numbers. So that sums stay true,

- watts and energy are counted once per (host, card), with the largest value seen. A `Card` holds them; of the samples
  only the first of its card does;
- a copied number is divided equally among the pods that share the card (`divided` says so); a number that the
  exporter measured for each pod stays as it is;
- a card that nobody is named for is a sample without a pod, and a number that is missing is None, never 0.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from scheduling.telemetry.exposition import Point, Points, from_api, from_text

UTIL = "DCGM_FI_DEV_GPU_UTIL"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
USED = "DCGM_FI_DEV_FB_USED"
FREE = "DCGM_FI_DEV_FB_FREE"
RESERVED = "DCGM_FI_DEV_FB_RESERVED"
TOTAL = "DCGM_FI_DEV_FB_TOTAL"
WATTS = "DCGM_FI_DEV_POWER_USAGE"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
HEAT = "DCGM_FI_DEV_GPU_TEMP"
XID = "DCGM_FI_DEV_XID_ERRORS"

PLAUSIBLE: Mapping[str, tuple[float, float]] = {  # least and most that we believe
    UTIL: (0, 100),
    ENGINE: (0, 1.01),  # counters of two moments divide to a hair above one
    USED: (0, 10**7),
    FREE: (0, 10**7),
    RESERVED: (0, 10**7),
    TOTAL: (0, 10**7),
    WATTS: (0, 20_000),
    ENERGY: (0, 2**53),
    HEAT: (-50, 250),
    XID: (0, 100_000),
}
BLANKS = (2**31 - 16, 2**47, 2**63 - 16)  # DCGM's "no value"; a reason is added in the last bits

HOST_KEYS = ("hostname", "Hostname", "node", "kubernetes_node", "instance")
CARD_KEYS = ("UUID", "uuid")
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
CARD_FORMS = (
    rf"(?P<card>GPU-{UUID})(?:(?:::|-|/vgpu)(?P<vgpu>\d+))?",
    rf"MIG-(?P<card>GPU-{UUID})/(?P<gi>\d+)/\d+(?:(?:::|-|/vgpu)(?P<vgpu>\d+))?",
    rf"(?P<card>MIG-{UUID})(?:(?:::|-|/vgpu)(?P<vgpu>\d+))?",
    r"(?P<card>nvidia\d+)(?:/gi(?P<gi>\d+))?(?:/vgpu(?P<vgpu>\d+))?",
    r"(?P<card>[^/]+?)(?:(?:::|/vgpu)(?P<vgpu>\d+))?",
)
EXPORTER = "dcgm-exporter"


@dataclass(frozen=True, slots=True)
class Device:
    """A device id taken apart: the parent card, the MIG instance, and which replica."""

    card: str
    gi: str = ""
    vgpu: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One pod on one card or slice; without a pod when nobody is named."""

    host: str
    card: str  # the UUID of the physical card
    gi: str  # GPU instance id; "" for a whole card
    profile: str  # MIG profile; "" for a whole card
    model: str
    namespace: str
    pod: str
    pod_uid: str
    container: str
    vgpu: str
    busy: float | None  # 0..1
    memory_used_mib: int | None
    memory_total_mib: int | None  # of the card or slice
    watts: float | None  # of the whole card, on the first of its samples only
    temperature: float | None  # of the whole card
    xid: int | None  # last error code of the card; 0: none
    energy_mj: int | None  # of the whole card, on the first of its samples only
    shared_by: int  # pods seen on this card or slice; 0: nobody is named
    divided: bool = False  # busy is the card's number, divided equally


@dataclass(frozen=True, slots=True)
class Card:
    """The numbers that belong to a whole board."""

    host: str
    card: str
    model: str
    watts: float | None
    temperature: float | None
    xid: int | None
    energy_mj: int | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many values of a metric were not used, and why."""

    metric: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Reading:
    samples: tuple[Sample, ...]
    cards: tuple[Card, ...]
    dropped: tuple[Dropped, ...]
    unattributed: int  # samples without a pod


@dataclass(frozen=True, slots=True)
class Owner:
    namespace: str
    pod: str
    container: str
    vgpu: str


Values = dict[str, float]


@dataclass(slots=True)
class Place:
    """A whole card or one MIG instance of it, with what was said about it."""

    host: str
    card: str
    gi: str
    profile: str = ""
    model: str = ""
    own: dict[Owner, Values] = field(default_factory=dict)
    board: Values = field(default_factory=dict)  # rows that name nobody
    uids: dict[Owner, str] = field(default_factory=dict)


def read(text: str) -> Reading:
    """The samples in an exposition."""
    return reading(from_text(text))


def read_prometheus(text: str) -> Reading:
    """The samples in the answer of a Prometheus query."""
    return reading(from_api(text))


def read_any(text: str) -> Reading:
    """Either of the two, by its first character: an exposition never begins with a brace."""
    return read_prometheus(text) if text.lstrip().startswith("{") else read(text)


def device(identity: str) -> Device:
    """The card behind a device id: `GPU-…::2`, `GPU-…-0`, `nvidia0/gi7/vgpu1`, `MIG-GPU-…/7/0`."""
    for form in CARD_FORMS:
        match = re.fullmatch(form, identity, re.ASCII)
        if match:
            found = match.groupdict()
            return Device(found["card"], found.get("gi") or "", found.get("vgpu") or "")
    return Device(identity)


def energy_between(before: int | None, after: int | None) -> int | None:
    """mJ spent between two readings of the counter; it starts again from 0 when the driver is loaded anew."""
    if before is None or after is None:
        return None
    return after - before if after >= before else after


def reading(points: Points) -> Reading:
    odd: dict[tuple[str, str], int] = {("", reason): number for reason, number in points.odd.items()}
    places: dict[tuple[str, str, str], Place] = {}
    exporters = exporters_among(points.points)
    for point in points.points:
        if point.metric in PLAUSIBLE:
            reason = put(places, point, exporters)
            if reason:
                odd[point.metric, reason] = odd.get((point.metric, reason), 0) + 1
    cards = cards_of(places.values())
    samples = tuple(samples_of(places.values(), cards))
    dropped = tuple(Dropped(metric, reason, number) for (metric, reason), number in sorted(odd.items()))
    return Reading(samples, tuple(cards.values()), dropped, sum(not sample.pod for sample in samples))


def put(places: dict[tuple[str, str, str], Place], point: Point, exporters: set[tuple[str, str]]) -> str:
    """Keep one value where it belongs; else the reason why not."""
    reason = why_not(point)
    if reason:
        return reason
    labels = point.labels
    identity = device(first(labels, CARD_KEYS))
    if not identity.card:
        return "names no card"
    gi = labels.get("GPU_I_ID") or identity.gi
    host = first(labels, HOST_KEYS).lower()
    place = places.setdefault((host, identity.card, gi), Place(host, identity.card, gi))
    place.profile = place.profile or labels.get("GPU_I_PROFILE", "")
    place.model = place.model or labels.get("modelName", "")
    owner = owner_of(labels, identity.vgpu, exporters)
    values = place.board if owner is None else place.own.setdefault(owner, {})
    if owner is not None:
        place.uids[owner] = place.uids.get(owner) or uid_of(labels)
    again = point.metric in values
    values[point.metric] = max(values[point.metric], point.value) if again else point.value
    return "said twice; the larger value counts" if again else ""


def why_not(point: Point) -> str:
    """Why this value is not believed; "" when it is."""
    value = point.value
    if isnan(value):
        return "not a number"
    if any(blank <= value <= blank + 16 for blank in BLANKS):
        return "not available"
    least, most = PLAUSIBLE[point.metric]
    if value < 0 <= least:
        return "negative"
    return "" if least <= value <= most else "out of range"


def owner_of(labels: Mapping[str, str], vgpu: str, exporters: set[tuple[str, str]]) -> Owner | None:
    """Whose value this is; Prometheus moves the pod to `exported_pod` when the scrape has a pod label of its own."""
    exported = bool(labels.get("exported_pod"))
    kind = "exported_" if exported else ""
    pod, namespace = labels.get(f"{kind}pod", ""), labels.get(f"{kind}namespace", "")
    if not pod or (not exported and (namespace, pod) in exporters):
        return None
    return Owner(namespace, pod, labels.get(f"{kind}container", ""), labels.get("vgpu") or vgpu)


def uid_of(labels: Mapping[str, str]) -> str:
    return labels.get("exported_pod_uid") or labels.get("pod_uid", "")


def exporters_among(points: Iterable[Point]) -> set[tuple[str, str]]:
    """The exporter's own pods: whoever stands beside an exported pod, or is called like the exporter."""
    found: set[tuple[str, str]] = set()
    for point in points:
        pod = point.labels.get("pod", "")
        if not pod:
            continue
        beside = bool(point.labels.get("exported_pod"))
        called = pod.startswith((EXPORTER, f"nvidia-{EXPORTER}")) or EXPORTER in point.labels.get("container", "")
        if beside or called:
            found.add((point.labels.get("namespace", ""), pod))
    return found


def cards_of(places: Iterable[Place]) -> dict[tuple[str, str], Card]:
    """Each board once, with the largest of its repeated values."""
    boards: dict[tuple[str, str], tuple[str, Values]] = {}
    for place in places:
        model, values = boards.get((place.host, place.card), ("", {}))
        for said in (place.board, *place.own.values()):
            for metric in (WATTS, HEAT, XID, ENERGY):
                if metric in said:
                    values[metric] = max(said[metric], values.get(metric, said[metric]))
        boards[place.host, place.card] = (model or place.model, values)
    return {
        (host, card): Card(
            host, card, model, values.get(WATTS), values.get(HEAT), whole(values.get(XID)), whole(values.get(ENERGY))
        )
        for (host, card), (model, values) in boards.items()
    }


def samples_of(places: Iterable[Place], cards: Mapping[tuple[str, str], Card]) -> list[Sample]:
    places = list(places)
    cut = {(place.host, place.card) for place in places if place.gi}
    samples: list[Sample] = []
    counted: set[tuple[str, str]] = set()
    for place in places:
        key = (place.host, place.card)
        if not place.gi and key in cut and not place.own:
            continue  # the board of a card that is cut: its slices are the samples
        owners: Iterable[Owner | None] = place.own or (None,)
        for owner in owners:
            samples.append(sample_of(place, owner, cards[key], first_of_card=key not in counted))
            counted.add(key)
    return samples


def sample_of(place: Place, owner: Owner | None, card: Card, *, first_of_card: bool) -> Sample:
    who = owner or Owner("", "", "", "")
    busy, divided = busy_of(place, owner)
    return Sample(
        host=place.host,
        card=place.card,
        gi=place.gi,
        profile=place.profile,
        model=place.model or card.model,
        namespace=who.namespace,
        pod=who.pod,
        pod_uid=place.uids.get(who, ""),
        container=who.container,
        vgpu=who.vgpu,
        busy=busy,
        memory_used_mib=whole(used_of(place, owner)),
        memory_total_mib=whole(total_of(place)),
        watts=card.watts if first_of_card else None,
        temperature=card.temperature,
        xid=card.xid,
        energy_mj=card.energy_mj if first_of_card else None,
        shared_by=len(place.own),
        divided=divided,
    )


def busy_of(place: Place, owner: Owner | None) -> tuple[float | None, bool]:
    """The part of the time that was computed, 0..1, and whether it is a card's number divided by its sharers."""
    for metric in (ENGINE, UTIL):
        if measured_each(place, metric):
            return ratio(place, owner, metric), False
    for metric in (ENGINE, UTIL):
        value = said(place, owner, metric)
        if value is not None:
            sharers = max(1, len(place.own))
            return min(1.0, value / PERCENT[metric]) / sharers, sharers > 1
    return None, False


PERCENT = {UTIL: 100, ENGINE: 1}


def ratio(place: Place, owner: Owner | None, metric: str) -> float | None:
    """A pod's own part; parts that sum to more than the card are scaled to it."""
    value = place.own.get(owner, {}).get(metric) if owner else None
    if value is None:
        return None
    together = sum(values.get(metric, 0) for values in place.own.values())
    return min(1.0, value / max(PERCENT[metric], together))


def used_of(place: Place, owner: Owner | None) -> float | None:
    if measured_each(place, USED):
        return place.own[owner].get(USED) if owner else None
    value = said(place, owner, USED)
    return None if value is None else value / max(1, len(place.own))


def total_of(place: Place) -> float | None:
    """The memory of the card or slice: what is used, free and reserved, unless the exporter says the sum itself."""
    anybody = next(iter(place.own), None)
    total = said(place, anybody, TOTAL)
    free = said(place, anybody, FREE)
    used = place.board.get(USED)
    if used is None and measured_each(place, USED):
        used = sum(values.get(USED, 0) for values in place.own.values())
    if used is None:
        used = said(place, anybody, USED)
    if total is not None or free is None or used is None:
        return total
    return used + free + (said(place, anybody, RESERVED) or 0)


def measured_each(place: Place, metric: str) -> bool:
    """Did the exporter measure this for each pod? Then the board has a row of its own, or the pods' values differ."""
    values = [own[metric] for own in place.own.values() if metric in own]
    return len(place.own) > 1 and bool(values) and (metric in place.board or len(set(values)) > 1)


def said(place: Place, owner: Owner | None, metric: str) -> float | None:
    """A pod's own row if there is one, else the board's."""
    value = place.own[owner].get(metric) if owner else None
    return place.board.get(metric) if value is None else value


def whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def first(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")
