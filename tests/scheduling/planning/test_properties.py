"""What holds for any fleet, any line of work, any course of events."""

from dataclasses import replace
from datetime import timedelta as td
from fractions import Fraction as F
from functools import reduce
from operator import or_
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.planning import catalog
from scheduling.planning.actions import Note
from scheduling.planning.facts import Desired, Phase, Reason, Sharing, Snapshot
from scheduling.planning.plan import plan
from tests.scheduling.planning.builders import (
    A100,
    H100,
    NodeBuilder,
    Piece,
    PodBuilder,
    PoolBuilder,
    WorkloadBuilder,
    foreign,
    look,
    node,
    pool,
    quota,
    workload,
)
from tests.scheduling.planning.toy import Toy, check_answers, check_cuts, check_quota, check_sizes

LAYOUTS = ("all-1g.5gb", "all-3g.20gb", "all-balanced", "all-disabled")
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=60)

pools = st.tuples(
    st.builds(
        lambda cards, wished, least, spread: (
            pool("h100").h100(cards).nodes(wished, of=4, least=least).having(spread=spread)
        ),
        st.sampled_from([1, 2, 8]),
        st.one_of(st.none(), st.integers(0, 5)),
        st.integers(0, 2),
        st.booleans(),
    ),
    st.builds(
        lambda layout, wished: pool("mig").a100(1).mig(layout, *LAYOUTS).nodes(wished, of=3),
        st.sampled_from(LAYOUTS),
        st.one_of(st.none(), st.integers(0, 3)),
    ),
    st.builds(lambda wished: pool("part").a10g(1).time_sliced(4).nodes(wished, of=2), st.integers(0, 2)),
)


def _host(name: str, kind: PoolBuilder, layout: str) -> NodeBuilder:
    fact = kind.fact()
    plain = node(name, fact.name).cards(fact.model, fact.cards_per_node)
    if fact.sharing is Sharing.MIG:
        return plain.mig(layout)
    return plain.having(sharing=fact.sharing, replicas=fact.replicas)


CONDITIONS = {
    "well": lambda host: host,
    "new": lambda host: host.booting(),
    "never came": lambda host: host.booting(60),
    "cordoned": lambda host: host.cordoned(),
    "silent": lambda host: host.silent(3),
    "sick": lambda host: host.sick(1),
    "leaving": lambda host: host.leaving(),
    "given back": lambda host: host.dropped(),
    "small": lambda host: host.host(8, 32),
}


@st.composite
def wishes(draw: st.DrawFn) -> list[WorkloadBuilder]:
    found = []
    for number in range(draw(st.integers(0, 14))):
        wish = workload(f"w{number}").by(draw(st.integers(1, 2)), draw(st.sampled_from(["vision", "speech"])))
        kind = draw(st.sampled_from(["whole", "slice", "part"]))
        if kind == "whole":
            wish = wish.whole(draw(st.sampled_from([1, 2, 8])), model=draw(st.sampled_from([H100, A100])))
        elif kind == "slice":
            wish = wish.slice(draw(st.sampled_from(["1g.5gb", "2g.10gb", "3g.20gb"])), model=A100)
        else:
            wish = wish.part(4)
        found.append(wish.asked(draw(st.integers(0, 60))).having(priority=draw(st.integers(0, 1))))
    return found


@st.composite
def pictures(draw: st.DrawFn) -> Snapshot:
    """Any fleet in any state, some of it held by others, some of ours running there, more than fits if need be."""
    kinds = draw(pools)
    hosts = [
        CONDITIONS[draw(st.sampled_from(sorted(CONDITIONS)))](_host(f"n{number}", kind, draw(st.sampled_from(LAYOUTS))))
        for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=6)))
    ]
    pieces: list[Piece] = [*kinds, *hosts, *draw(squatters(hosts))]
    for wish in draw(wishes()):
        runs = bool(hosts) and draw(st.integers(0, 3)) == 0
        pieces.append(wish.running_on(draw(st.sampled_from(hosts)).fact().name) if runs else wish)
    for team in ("vision", "speech"):
        for model in (H100, A100, "a10g-24gb"):
            own = draw(st.dictionaries(st.integers(1, 2), st.integers(0, 3), max_size=1))
            pieces.append(quota(draw(st.integers(0, 12)), team=team, model=model, own={**own}))
    empty = {host.fact().name: float(draw(st.integers(0, 30))) for host in hosts if draw(st.booleans())}
    return look(*pieces, empty=empty)


@st.composite
def squatters(draw: st.DrawFn, hosts: list[NodeBuilder]) -> list[PodBuilder]:
    found = []
    for number, host in enumerate(hosts):
        devices = host.fact().devices
        if devices and number % 2 == draw(st.integers(0, 1)):
            device = draw(st.sampled_from(devices))
            units = draw(st.integers(0, device.capacity))
            found.append(foreign(f"x{number}", host.fact().name).holding(units, device.resource))
    return found


@CALM
@given(pictures())
def test_no_plan_breaks_a_rule(picture: Snapshot) -> None:
    found = plan(picture)

    check_answers(picture, found)
    check_quota(picture, found)
    check_cuts(picture, found)
    check_sizes(picture, found)


@CALM
@given(pictures(), st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_matter(picture: Snapshot, chance: Random) -> None:
    other = replace(
        picture,
        pools=tuple(chance.sample(picture.pools, len(picture.pools))),
        nodes=tuple(chance.sample(picture.nodes, len(picture.nodes))),
        pods=tuple(chance.sample(picture.pods, len(picture.pods))),
        workloads=tuple(chance.sample(picture.workloads, len(picture.workloads))),
        quotas=tuple(chance.sample(picture.quotas, len(picture.quotas))),
    )

    assert plan(other) == plan(picture)


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "end", "sleep", "wake", "finish", "delete", "lose", "squat", "leave", "wait"]),
        st.integers(0, 9),
        st.integers(0, 5),
    ),
    max_size=25,
)
SHAPES = (
    lambda name: workload(name).whole(1),
    lambda name: workload(name).whole(2).job(),
    lambda name: workload(name).slice("1g.5gb", model=A100),
    lambda name: workload(name).slice("3g.20gb", model=A100),
    lambda name: workload(name).part(4),
    lambda name: workload(name).whole(4),
)


def happen(toy: Toy, event: str, who: int, what: int) -> None:
    name, hosts = f"w{who}", sorted(toy.nodes)
    host = hosts[what % len(hosts)] if hosts else ""
    known = workload(name).fact().id in toy.workloads
    if event == "ask" and not known:
        toy.ask(SHAPES[what](name))
    elif event == "lose":
        toy.lose(host)
    elif event == "squat":
        toy.squat(f"x{who}", host)
    elif event == "leave":
        toy.pods.pop(f"x{who}", None)
    elif known:
        {
            "end": lambda: toy.want(name, Desired.END),
            "sleep": lambda: toy.want(name, Desired.SLEEP),
            "wake": lambda: toy.wake(name),
            "finish": lambda: toy.finish(name),
            "delete": lambda: toy.delete_outside(name),
        }.get(event, lambda: None)()


@settings(CALM, max_examples=40)
@given(EVENTS)
def test_whatever_happens_it_comes_to_rest(events: list[tuple[str, int, int]]) -> None:
    """Rules hold at each look (the toy checks); in the end all that can run runs, and what is empty is gone."""
    toy = Toy(
        pool("h100").h100(2).nodes(0, of=3).having(empty_after=td(minutes=2)),
        pool("mig")
        .a100(1)
        .mig("all-1g.5gb", "all-1g.5gb", "all-3g.20gb")
        .nodes(0, of=2)
        .having(empty_after=td(minutes=2)),
        pool("part").a10g(1).time_sliced(4).nodes(0, of=1).having(empty_after=td(minutes=2)),
        quotas=(quota(5), quota(2, model=A100), quota(1, model="a10g-24gb")),
    )
    for event, who, what in events:
        happen(toy, event, who, what)
        toy.look(times=1 + what)
    for visitor in [key for key, pod in toy.pods.items() if pod.workload is None]:
        del toy.pods[visitor]

    last = toy.look(times=120)

    assert {type(one) for one in last.actions} <= {Note}, str(last)
    assert {one.reason for one in toy.told.values()} <= {Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_CAPACITY}
    phases = {fact.phase for fact in toy.workloads.values()}
    assert phases <= {Phase.WAITING, Phase.RUNNING, Phase.ASLEEP, Phase.ENDED}
    used = {pod.node for pod in toy.pods.values()}
    assert set(toy.nodes) == used, "every node that is left holds something"


@CALM
@given(st.sampled_from([one for one in catalog.models() if one.mig]), st.data())
def test_slots_that_are_proven_do_not_overlap(model: catalog.Model, data: st.DataObject) -> None:
    board = model.mig
    assert board is not None
    wanted = data.draw(st.lists(st.sampled_from(board.profiles), max_size=8))

    places = catalog.legal_places(board, wanted)

    if places is None:
        return
    assert sum(place.mask for place in places) == reduce(or_, (place.mask for place in places), 0)
    assert sum((one.share for one in wanted), F(0)) <= 1
    fewer = data.draw(st.permutations(wanted))[:-1]
    assert catalog.legal_places(board, fewer) is not None
