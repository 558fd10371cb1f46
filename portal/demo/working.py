"""The first half of the story: a fleet, an ask, a decision, work that starts, a meter that moves, sleep and waking."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta as td
from itertools import groupby
from typing import Any

from portal.demo.stage import Stage
from portal.demo.visitor import DidNotHappen, Heard, expect
from portal.demo.witness import Witness

H100, A100 = "h100-80gb", "a100-40gb"
BURST = f"{A100}/whole/on-demand"
HALF = f"{H100}/mig-3g.40gb/on-demand"
REASON = "Two cards to render the depth maps for Friday's review."
SHORT_WORK = "start-notebook.py --busy-minutes 0.1"  # where nobody can wait for a lunch break
BRISK, SWIFT = 120.0, 600.0  # simulated seconds per second: while things start; while nothing happens for 90 minutes
ENOUGH, MOST_READINGS = 4, 60  # of a meter, until it is said to move or to stand still
SOON = 1.0  # seconds within which an open page knows what the cluster says
TIME_BOX = td(hours=12)


def the_fleet(stage: Stage) -> str:
    """Omar reads the fleet: whole cards, MIG, time-slices, and a pool at zero nodes."""
    fleet = stage.fleet()
    pools = {pool["name"]: pool for pool in fleet["pools"]}
    kinds = {pool["sharing"] for pool in pools.values()}
    expect(kinds >= {"whole", "mig", "time-slice"}, f"The fleet shares its cards only by {sorted(kinds)}.")
    empty = [name for name in pools if not stage.nodes(name)]
    expect(empty == ["a100-burst"], f"Pools without a node are {empty}; only a100-burst should be at zero.")
    page = stage.omar.get("/fleet/").text
    expect(all(name in page for name in pools), "The page of the fleet does not show every pool.")
    cards = sum(node["cards"] for node in fleet["nodes"]["results"])
    return f"{fleet['nodes']['count']} nodes with {cards} cards in {len(pools)} pools; a100-burst sleeps."


def the_offers(stage: Stage) -> str:
    """Robin reads what is offered: in words, with isolation, price, what is free, and what would happen."""
    stage.ids["vision"] = stage.vision()["id"]
    offers = stage.robin.get(f"/api/v1/offers/?team={stage.ids['vision']}").data["offers"]
    by_start = {offer["starts"] for offer in offers}
    expect(
        {"now", "lead"} <= by_start, f"The offers only {sorted(by_start)}; some should start now, some need the lead."
    )
    isolation = {offer["flavor"]["isolation"] for offer in offers}
    expect(isolation >= {"hardware", "none"}, f"The offers name only the isolation {sorted(isolation)}.")
    for offer in offers:
        told = offer["flavor"]["words"] and offer["text"] and offer["per_hour"] and float(offer["per_hour"]) > 0
        expect(told, f"The offer {offer['flavor']['sku']} has no words, no outlook or no price: {offer}")
    page = stage.robin.get("/workloads/new/").text
    expect(
        "1g.10gb slice of an H100: 10 GiB, isolated in hardware" in page, "The form does not offer the slice in words."
    )
    lead = next(offer for offer in offers if offer["flavor"]["sku"] == BURST)
    expect(lead["starts"] == "lead", f"The A100 {lead['starts']}, though Vision has no quota of it: {lead['text']}")
    return f"now: {offer_that(offers, 'now')['text']} waits: {offer_that(offers, 'waits')['text']} lead: {lead['text']}"


def the_ask(stage: Stage) -> str:
    """Robin asks for more than the quota, and watches the page."""
    body = {
        "name": "depth-maps", "kind": "workspace", "team": stage.ids["vision"], "flavor": BURST, "count": 2,
        "storage_gib": 20, "reason": REASON, "ask": "2", "command": SHORT_WORK if stage.demo.is_real else "",
    }  # fmt: skip
    made = stage.robin.post("/api/v1/workloads/", body, 201, **{"Idempotency-Key": "story-1"}).data
    again = stage.robin.post("/api/v1/workloads/", body, 200, **{"Idempotency-Key": "story-1"}).data
    expect(again["id"] == made["id"], "A double click made two workloads.")
    stage.ids |= {"depth-maps": made["id"], "request": made["quota_request"]}
    stage.ear.watch(f"workload:{made['id']}", f"team:{stage.ids['vision']}")
    waits = reason(stage, "depth-maps", "WaitingForApproval")
    stage.robin.get(f"/api/v1/quota-requests/{made['quota_request']}/approve/", 405)
    stage.robin.post(f"/api/v1/quota-requests/{made['quota_request']}/approve/", status=403)
    return f"{waits['phase_text']} A double click made one workload; Robin cannot decide."


def the_inbox(stage: Stage) -> str:
    """Dana sees the request, its reason and what approving it would do."""
    pending = stage.dana.get("/api/v1/quota-requests/?state=pending&asked_by=others").data["results"]
    found = next((one for one in pending if one["id"] == stage.ids["request"]), None)
    expect(found, "Dana's inbox does not hold the request.")
    effect = stage.dana.get(f"/api/v1/quota-requests/{stage.ids['request']}/").data["effect"]
    numbers = (effect["own_before"], effect["own_after"], effect["possible"])
    expect(numbers == ("0", "2", True), f"Its effect is {effect}.")
    page = stage.dana.get("/approvals/").text
    expect(REASON.replace("'", "&#x27;") in page, "The page of approvals does not show the reason.")
    left = f"{effect['parent_left_before']} to {effect['parent_left_after']}"
    return f"{len(pending)} wait; this one takes Robin from 0 to 2 cards and the department's rest from {left}."


def the_decision(stage: Stage) -> str:
    """Dana approves for a time; who decides second is told who was first."""
    stage.hurry(BRISK)
    heard = len(stage.ear.heard)
    until = (stage.now() + TIME_BOX).isoformat()
    path = f"/api/v1/quota-requests/{stage.ids['request']}/approve/"
    decided = stage.dana.post(path, {"until": until, "note": "Until Friday's review."}).data["request"]
    expect(decided["state"] == "approved", f"The request is {decided['state']}.")
    stage.ear.next(lambda event: event["what"] == "request" and event["state"] == "approved", since=heard)
    second = stage.lena.post(path, status=409).refusal
    expect("Dana Okafor" in second, f"The second decider is told: {second}")
    grants = stage.dana.get(f"/api/v1/grants/?team={stage.ids['vision']}&in_force=true&model={A100}").data["results"]
    expect(grants and grants[0]["ends_at"], f"No time-boxed grant is in force: {grants}")
    return f"A grant of {grants[0]['amount']} cards until {grants[0]['ends_at']}. Second decision: “{second}”"


def the_pool_wakes(stage: Stage) -> str:
    """The cycle asks for a node, places the workload, and every phase reaches the open page."""
    witness = Witness(stage.demo.place, stage.ids["depth-maps"])
    phases = heard_until(stage, "depth-maps", "running", since=0)
    late = lateness(witness, phases[-1])
    stage.measured("running_late", late)
    seen = [heard.event["phase"] for heard in phases]
    expect(in_order(seen, ["placed", "starting", "running"]), f"The page heard the phases {seen}.")
    nodes = stage.nodes("a100-burst")
    expect(len(nodes) == 1 and held(nodes[0]) == 2, f"a100-burst shows {[(n['name'], n['devices']) for n in nodes]}.")
    steps = stage.robin.get(f"/api/v1/workloads/{stage.ids['depth-maps']}/transitions/").data["results"]
    expect(any(step["reason"] == "WaitingForNode" for step in steps), "Nothing said that a node was on its way.")
    heard = " → ".join(dict.fromkeys(seen))
    return f"Heard {heard}; running on {nodes[0]['name']} {late:.2f} s after the cluster said so."


def the_cut(stage: Stage) -> str:
    """A half of a card that no node offers: the plan cuts an empty MIG node."""
    before = {node["name"]: node["mig_config"] for node in stage.nodes("h100-mig")}
    body = {"name": "depth-half", "kind": "workspace", "team": stage.ids["vision"], "flavor": HALF}
    made = stage.robin.post("/api/v1/workloads/", body, 201).data
    stage.ids["depth-half"] = made["id"]
    witness = Witness(stage.demo.place, made["id"])
    stage.ear.watch(*(f"workload:{stage.ids[name]}" for name in ("depth-maps", "depth-half")))
    phases = heard_until(stage, "depth-half", "running", since=0)
    late = lateness(witness, phases[-1])
    stage.measured("running_late", late)
    after = {node["name"]: node["mig_config"] for node in stage.nodes("h100-mig")}
    cut = {name: (before.get(name), config) for name, config in after.items() if before.get(name) != config}
    expect(cut, f"No node was cut: the layouts are {after}.")
    reports = [line for report in stage.fleet()["reports"] for line in report["actions"]]
    expect(any(line.startswith("cut node") for line in reports), "The operator's page does not tell of the cut.")
    (name, (old, new)) = next(iter(cut.items()))
    return f"{name} went from {old} to {new}; running {late:.2f} s after the cluster said so."


def the_meter(stage: Stage) -> str:
    """What the card does arrives by the socket, and moves."""
    topic = f"workload:{stage.ids['depth-maps']}"
    busy: list[float] = []
    since = len(stage.ear.heard)
    while len(busy) < ENOUGH or (len(set(busy)) == 1 and len(busy) < MOST_READINGS):
        heard = stage.ear.next(lambda event: meter_of(event, topic), since=since, patience=10)
        since = stage.ear.heard.index(heard) + 1
        busy.append(heard.event["busy"])
    expect(len(set(busy)) > 1, f"The meter stands still: {busy}")
    shown = [f"{value:.0%}" for value, _ in groupby(busy)]
    memory = f"{heard.event['memory_used_mib']} of {heard.event['memory_total_mib']} MiB"
    samples = stage.robin.get(f"/api/v1/workloads/{stage.ids['depth-maps']}/samples/").data["samples"]
    expect(samples, "The chart has no sample.")
    cost = stage.workload("depth-maps")["cost"]["amount"]
    return f"Busy {', '.join(shown)} in {len(busy)} readings; {memory}; so far {cost} EUR."


def the_quiet(stage: Stage) -> str:
    """Quiet for as long as its pool allows: asleep, quota free, the pool back at zero."""
    held_before = stage.quota(A100)["held"]
    asleep = fast_asleep(stage)
    expect(asleep["phase_reason"] == "Idle", f"It sleeps because of {asleep['phase_reason']}: {asleep['phase_text']}")
    quota = stage.quota(A100)
    expect(
        (held_before, quota["held"], quota["left"]) == ("2", "0", "2"), f"The quota is {quota}, before {held_before}."
    )
    stage.wait(
        lambda: not stage.nodes("a100-burst") and stage.pool("a100-burst")["wished_nodes"] == 0,
        lambda: f"a100-burst still has {[node['name'] for node in stage.nodes('a100-burst')]}",
        20,
    )
    stage.hurry(BRISK)
    return f"{why_asleep(stage)} Quota free again: {quota['left']} cards. a100-burst is back at zero nodes."


def the_waking(stage: Stage) -> str:
    """Wake goes through the quota check: refused in words while the grant is gone, then granted again, then running."""
    grants = stage.dana.get(f"/api/v1/grants/?team={stage.ids['vision']}&in_force=true&model={A100}").data["results"]
    for grant in grants:
        stage.dana.post(f"/api/v1/grants/{grant['id']}/end/")
    stage.robin.post(f"/api/v1/workloads/{stage.ids['depth-maps']}/wake/")
    waits = reason(stage, "depth-maps", "WaitingForQuota")
    body = {"team": stage.ids["vision"], "model": A100, "amount": "2", "reason": "One more evening, please."}
    asked = stage.robin.post("/api/v1/quota-requests/", body, 201).data["request"]
    stage.dana.post(f"/api/v1/quota-requests/{asked['id']}/approve/")
    stage.hurry(SWIFT / 2)
    stage.phase("depth-maps", "running")
    stage.hurry(BRISK)
    return f"Without a grant: “{waits['phase_text']}” With a new one it runs again, on a node that woke for it."


def the_walls(stage: Stage) -> str:
    """What is none of Robin's business is not there; what makes no sense is told with its field."""
    others = stage.omar.get("/api/v1/workloads/?page_size=200").data["results"]
    foreign = next(one for one in others if one["team"]["slug"] != "vision")
    stage.robin.get(f"/api/v1/workloads/{foreign['id']}/", 404)
    stage.robin.get(f"/workloads/{foreign['id']}/", 404)
    body = {"name": "No Such Name!", "kind": "job", "team": stage.ids["vision"], "flavor": HALF, "command": "true"}
    told = stage.robin.post("/api/v1/workloads/", body, 400).data["error"]
    expect(told["field"] == "name", f"The refusal names {told}.")
    stage.robin.get("/chargeback/", 403)
    return f"Another team's workload: 404. A bad name: “{told['text']}”"


def fast_asleep(stage: Stage) -> Mapping[str, Any]:
    """The workload once it sleeps. Readings too far apart prove no quiet, so a slow machine gets slower time."""
    stage.hurry(SWIFT)
    if stage.demo.is_real:
        return stage.phase("depth-maps", "asleep", patience=100)
    try:
        return stage.phase("depth-maps", "asleep", patience=25)
    except DidNotHappen:
        stage.hurry(SWIFT / 4)
        return stage.phase("depth-maps", "asleep", patience=60)


def reason(stage: Stage, name: str, wanted: str) -> Mapping[str, Any]:
    """The workload once it waits for that reason."""
    seen: dict[str, Any] = {}

    def look() -> bool:
        seen.update(stage.workload(name))
        return bool(seen["phase_reason"] == wanted)

    stage.wait(look, lambda: f"{name} stands at {seen['phase_reason']} ({seen['phase_text']}), not {wanted}", 15)
    return seen


def heard_until(stage: Stage, name: str, phase: str, *, since: int) -> list[Heard]:
    """Every phase of the workload that the socket told, up to that one."""
    pk = stage.ids[name]

    def of_it(event: Mapping[str, Any]) -> bool:
        return bool(event["what"] == "phase" and event["workload"] == pk)

    last = stage.ear.next(lambda event: of_it(event) and event["phase"] == phase, since=since, patience=25)
    return [heard for heard in stage.ear.heard if of_it(heard.event) and heard.at <= last.at]


def lateness(witness: Witness, heard: Heard) -> float:
    """Seconds from the cluster's word to the open page. Raises DidNotHappen above SOON."""
    deadline = time.monotonic() + 2
    while witness.ran_at is None and time.monotonic() < deadline:
        time.sleep(0.01)
    witness.stop()
    expect(witness.ran_at is not None, "The cluster itself does not say that the pod runs.")
    late = heard.at - (witness.ran_at or 0.0)
    expect(
        late <= SOON,
        f"The open page heard of it {late:.2f} s after the cluster said so; at most {SOON:g} s are allowed.",
    )
    return max(0.0, late)


def in_order(seen: list[str], wanted: list[str]) -> bool:
    """Whether the wanted phases occur in this order."""
    rest = iter(seen)
    return all(phase in rest for phase in wanted)


def held(node: Mapping[str, Any]) -> int:
    return sum(device["held"] for device in node["devices"])


def meter_of(event: Mapping[str, Any], topic: str) -> bool:
    return event["what"] == "meter" and event["topic"] == topic and event["busy"] is not None


def offer_that(offers: list[Mapping[str, Any]], starts: str) -> Mapping[str, Any]:
    return next(offer for offer in offers if offer["starts"] == starts)


def why_asleep(stage: Stage) -> str:
    steps = stage.robin.get(f"/api/v1/workloads/{stage.ids['depth-maps']}/transitions/").data["results"]
    return str(next(step["text"] for step in steps if step["after"] == "stopping"))


Scene = tuple[str, Callable[[Stage], str]]
BEGINNING: tuple[Scene, ...] = (
    ("Omar reads the fleet", the_fleet),
    ("Robin reads the offers", the_offers),
    ("Robin asks for more than the quota", the_ask),
    ("Dana sees the request and its effect", the_inbox),
    ("Dana approves for a time, and nobody decides twice", the_decision),
    ("A pool wakes from zero and the workload runs", the_pool_wakes),
)
CUT: Scene = ("A node is cut for half a card", the_cut)
METER: Scene = ("The meter moves", the_meter)
WALLS: Scene = ("What is not allowed is said", the_walls)
WAKING: Scene = ("Waking passes the quota check", the_waking)
