"""The bench of slices: its fleet keeps what a real one keeps, and its yardsticks are what they say."""

from dataclasses import replace

import pytest

from portal.bench import slices
from portal.bench.bar import Bar, beside
from portal.bench.learning import Weighed
from portal.bench.slicing import BestFit, Counts, FirstFit, Fleet, System, play
from portal.management.console import CouldNot

SMALL, BIG = 0, 1
SEVEN, PAIR = (7, 0), (0, 2)  # layouts: small slices, big slices
POLICIES = [FirstFit, BestFit, Weighed]


@pytest.fixture
def system() -> System:
    return System(
        names=("1g.10gb", "3g.40gb"),
        compute=(1, 3),
        memory=(1, 4),
        layouts=(SEVEN, PAIR),
        nodes=20,
        cards=1,
        cut_minutes=5,
        weights=(3, 1),
        stay=60.0,
        a_minute=1.5,
    )


class Watched(Weighed):
    """Looks at each answer of the policy and at the fleet at the time."""

    fleets: list[Fleet]

    def give(self, profile, fleet):
        node = super().give(profile, fleet)
        assert node is None or (node not in fleet.cutting and fleet.free[node][profile] > 0)
        assert node is not None or not any(True for _ in fleet.with_free(profile))
        assert self.running == sum(held(fleet, node) for node in range(self.system.nodes) if node not in fleet.cutting)
        return node

    def cut_for(self, profile, fleet):
        found = super().cut_for(profile, fleet)
        if found is not None:
            node, layout = found
            assert held(fleet, node) == 0, "under a running slice"
            assert layout in self.system.layouts
        return found


def held(fleet: Fleet, node: int) -> int:
    return sum(fleet.layout[node]) - sum(fleet.free[node])


@pytest.mark.parametrize("cards", [1, 4])
def test_slices_that_are_given_are_there_and_nothing_is_cut_while_it_is_held(system, cards):
    layouts = tuple(tuple(count * cards for count in layout) for layout in system.layouts)

    outcome = play(replace(system, cards=cards, layouts=layouts), Watched(system), 1, warm=500, measured=2000)

    assert 0 < outcome.accepted <= outcome.offered
    assert outcome.cuts > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_fleet_that_is_large_enough_loses_nothing(system, policy):
    outcome = play(replace(system, nodes=200), policy(system), 1, warm=500, measured=2000)

    assert (outcome.part, outcome.lost) == (1, [0, 0])


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_is_the_same_course(system, policy):
    first, again = (play(system, policy(system), 7, warm=100, measured=900) for _ in range(2))

    assert first == again


def test_all_policies_are_offered_the_same(system):
    offered = {play(system, policy(system), 3, warm=100, measured=900).offered for policy in POLICIES}

    assert len(offered) == 1


def test_minutes_out_of_service_cost_something(system):
    parts = [
        play(replace(system, cut_minutes=minutes), BestFit(system), 2, warm=500, measured=4000).part
        for minutes in (0, 600)
    ]

    assert parts[1] < parts[0]


def shelf(system: System, *nodes: tuple[Counts, Counts]) -> Fleet:
    """Nodes by layout and what is free."""
    fleet = Fleet(replace(system, nodes=len(nodes)))
    for node, (layout, free) in enumerate(nodes):
        fleet.cut(node, layout)
        fleet.reopen(node)
        for profile, count in enumerate(layout):
            fleet.change(node, profile, free[profile] - count)
    return fleet


ANSWERS = {  # nodes; first fit's node, best fit's node
    "the first, or the fullest": ([(SEVEN, (5, 0)), (SEVEN, (2, 0))], 0, 1),
    "the first of equals": ([(SEVEN, (2, 0)), (SEVEN, (2, 0))], 0, 0),
    "another layout does not help": ([(PAIR, (0, 2)), (SEVEN, (1, 0))], 1, 1),
    "none": ([(SEVEN, (0, 0))], None, None),
}


@pytest.mark.parametrize(("nodes", "first", "best"), ANSWERS.values(), ids=ANSWERS)
def test_first_fit_and_best_fit_are_what_they_are_called(system, nodes, first, best):
    fleet = shelf(system, *nodes)

    assert FirstFit(system).give(SMALL, fleet) == first
    assert BestFit(system).give(SMALL, fleet) == best


CUTS = {  # nodes; first fit's cut for a big one, best fit's
    "an idle node": ([(SEVEN, (6, 0)), (SEVEN, (7, 0))], (1, PAIR), (1, PAIR)),
    "the first, or the one that offers least": ([(PAIR, (0, 2)), (SEVEN, (7, 0))], (0, PAIR), (1, PAIR)),
    "no idle node": ([(SEVEN, (6, 0))], None, None),
}


@pytest.mark.parametrize(("nodes", "first", "best"), CUTS.values(), ids=CUTS)
def test_they_cut_an_idle_node_for_what_finds_none(system, nodes, first, best):
    fleet = shelf(system, *nodes)

    assert FirstFit(system).cut_for(BIG, fleet) == first
    assert BestFit(system).cut_for(BIG, fleet) == best


def test_best_fit_prefers_a_layout_that_strands_nothing(system):
    layouts = ((0, 1), (3, 1), (0, 2))

    assert BestFit(replace(system, layouts=layouts)).cut_for(BIG, shelf(system, (SEVEN, (7, 0)))) == (0, (0, 2))
    assert FirstFit(replace(system, layouts=layouts)).cut_for(BIG, shelf(system, (SEVEN, (7, 0)))) == (0, (0, 1))


def test_nothing_is_usual_before_enough_has_ended(system):
    policy = Weighed(system)
    for minute in range(300):
        policy.asked(SMALL, float(minute))
        policy.ran(1, float(minute))
    assert policy.yard is None

    for minute in range(300, 400):
        policy.ran(-1, float(minute))
        policy.asked(SMALL, float(minute))

    assert policy.yard is not None


def test_the_mean_stay_is_not_that_of_the_short_ones_that_ended_first(system):
    """Two hundred run, one for each minute; a hundred ended after one minute each, the others go on."""
    policy = Weighed(system)
    for minute in range(100):
        policy.ran(1, float(minute))
        policy.ran(1, float(minute))
        policy.ran(-1, float(minute + 1))

    assert policy.held / policy.ended > 30


def test_the_optimum_is_never_below_what_was_served(monkeypatch):
    monkeypatch.setattr(slices, "CARDS", 20)

    for seed in range(5):
        served = len(list(slices.fitting(slices.mig(), seed)))
        most = slices.most_that_fit(slices.mig(), seed)
        assert 0.8 * most < served <= most


def test_one_card_more_holds_more(monkeypatch):
    most = []
    for cards in (20, 21):
        monkeypatch.setattr(slices, "CARDS", cards)
        most.append(slices.most_that_fit(slices.mig(), 1))

    assert most[0] < most[1]


def test_the_layouts_are_all_that_there_are_and_those_that_have_names():
    found = {name: len(layouts) for name, layouts in slices.choices().items()}

    assert found == {"any layout": 38, "the operator's own layouts": 7}


def test_the_load_is_what_is_asked_for_over_the_memory_that_there_is():
    system = slices.system_of(slices.choices()["any layout"])
    memory = sum(system.memory) / len(system.memory)

    assert system.a_minute * system.stay * memory / (system.nodes * 8) == pytest.approx(1.15)


def test_the_bars_on_a_small_fleet(monkeypatch):
    monkeypatch.setattr(slices, "CARDS", 50)
    monkeypatch.setattr(slices, "CUT_CARDS", 10)
    monkeypatch.setattr(slices, "SEEDS", (1,))
    monkeypatch.setattr(slices, "WARM", 300)
    monkeypatch.setattr(slices, "MEASURED", 300)

    found = slices.bars()

    assert [bar.bar for bar in found] == [0.97, 1.05, 1.05]
    assert all(bar.yardstick > 0 and bar.words.endswith(" yardsticks") for bar in found)


def test_a_model_that_is_not_known_cannot_be_measured(monkeypatch):
    monkeypatch.setattr(slices, "MODEL", "z9000")
    with pytest.raises(CouldNot, match="does not know z9000"):
        slices.bars()

    monkeypatch.setattr(slices, "MODEL", "t4-16gb")
    with pytest.raises(CouldNot, match="how t4-16gb is cut"):
        slices.bars()


def test_a_bar_beside_another_figure():
    assert beside("x", 97.0, 0.97, 100.0, whose="the optimum's") == Bar(
        "x, beside the optimum's", 97.0, 100.0, 0.97, 0.97, holds=True
    )
    assert not beside("x", 96.9, 0.97, 100.0, whose="the optimum's").holds
