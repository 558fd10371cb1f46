"""Days in the life of a toy cluster, told look by look."""

from datetime import timedelta as td

from scheduling.planning.facts import Desired, Phase, Reason
from tests.scheduling.planning.builders import A100, pool, quota, workload
from tests.scheduling.planning.toy import Toy

H100S = pool("h100").h100(2).nodes(0, of=3).having(empty_after=td(minutes=5))
MIG = pool("mig").a100(1).mig("all-1g.5gb", "all-1g.5gb", "all-3g.20gb").nodes(1, of=1, least=1)
QUOTAS = (quota(6), quota(4, model=A100))
MINUTE = 6  # looks


def test_a_morning_from_zero_and_an_evening_back_to_it() -> None:
    toy = Toy(H100S, quotas=QUOTAS)
    toy.ask(workload("train").whole(2).job())

    toy.look()
    assert (toy.phase("train"), toy.reason("train")) == (Phase.WAITING, Reason.WAITING_FOR_NODE)
    toy.look(times=8)
    assert (toy.size("h100"), toy.pools["h100"].wished_nodes) == (1, 1)
    toy.look(times=6)
    assert toy.phase("train") is Phase.RUNNING
    toy.finish("train")
    toy.look()
    assert toy.phase("train") is Phase.ENDED
    assert toy.size("h100") == 1
    toy.look(times=6 * MINUTE)
    assert (toy.size("h100"), toy.pools["h100"].wished_nodes) == (0, 0)
    assert toy.history["Resize"] == 2


def test_a_quiet_workspace_sleeps_frees_its_quota_and_wakes_through_it() -> None:
    toy = Toy(pool("h100").h100(1).nodes(1, of=1, least=1), quotas=(quota(1),))
    toy.ask(workload("notebook").having(idle_limit=td(minutes=90)))
    toy.look(times=2 * MINUTE)
    toy.ask(workload("next"))
    toy.look()
    assert (toy.phase("notebook"), toy.reason("next")) == (Phase.RUNNING, Reason.WAITING_FOR_QUOTA)

    toy._change(workload("notebook").fact().id, idle_since=toy.now - td(minutes=90))
    toy.look(times=MINUTE)
    assert toy.phase("notebook") is Phase.ASLEEP
    toy.look(times=MINUTE)
    assert toy.phase("next") is Phase.RUNNING
    toy.wake("notebook")
    toy.look()
    assert (toy.phase("notebook"), toy.reason("notebook")) == (Phase.WAITING, Reason.WAITING_FOR_QUOTA)
    toy.want("next", Desired.END)
    toy.look(times=MINUTE)
    assert (toy.phase("next"), toy.phase("notebook")) == (Phase.ENDED, Phase.RUNNING)


def test_a_node_is_cut_for_halves_and_back_for_small_slices() -> None:
    toy = Toy(MIG, quotas=QUOTAS)
    toy.look(times=2 * MINUTE)
    toy.ask(workload("half").slice("3g.20gb", model=A100))
    toy.look()
    assert toy.reason("half") is Reason.WAITING_FOR_CUT
    toy.look(times=2 * MINUTE)
    assert toy.phase("half") is Phase.RUNNING
    toy.ask(workload("small").slice("1g.5gb", model=A100))
    toy.look(times=MINUTE)
    assert toy.reason("small") is Reason.WAITING_FOR_CAPACITY
    toy.want("half", Desired.END)
    toy.look(times=3 * MINUTE)
    assert toy.phase("small") is Phase.RUNNING
    assert toy.history["Cut"] == 2


def test_cancelled_while_its_node_boots() -> None:
    toy = Toy(H100S, quotas=QUOTAS)
    toy.ask(workload("train").whole(2))
    toy.look(times=3)
    toy.want("train", Desired.END)
    toy.look(times=2)
    assert toy.phase("train") is Phase.ENDED
    toy.look(times=9 * MINUTE)
    assert toy.size("h100") == 0
    assert toy.history["Place"] == 0


def test_a_lost_node_brings_its_work_back_in_line() -> None:
    toy = Toy(H100S, quotas=QUOTAS)
    toy.ask(workload("notebook"))
    toy.look(times=3 * MINUTE)
    assert toy.phase("notebook") is Phase.RUNNING
    toy.lose("h100-1")
    toy.look()
    assert toy.phase("notebook") is Phase.WAITING
    toy.look(times=3 * MINUTE)
    assert toy.phase("notebook") is Phase.RUNNING
    assert toy.workloads[workload("notebook").fact().id].attempt == 2


def test_work_removed_from_outside_ends_and_frees_its_quota() -> None:
    toy = Toy(pool("h100").h100(1).nodes(1, of=1), quotas=(quota(1),))
    toy.ask(workload("a"))
    toy.look(times=2 * MINUTE)
    toy.ask(workload("b"))
    toy.delete_outside("a")
    toy.look(times=MINUTE)
    assert toy.phase("a") is Phase.ENDED
    assert toy.workloads[workload("a").fact().id].reason is Reason.REMOVED_OUTSIDE
    toy.look(times=MINUTE)
    assert toy.phase("b") is Phase.RUNNING


def test_a_pod_that_lands_on_a_withdrawn_node_keeps_it() -> None:
    toy = Toy(H100S.nodes(1, of=3), quotas=QUOTAS)
    toy.look(times=2 * MINUTE)
    while not toy.nodes["h100-1"].leaving:
        toy.look()
    toy.squat("visitor", "h100-1")
    toy.look(times=3 * MINUTE)
    assert toy.size("h100") == 1
    assert toy.nodes["h100-1"].schedulable
    del toy.pods["visitor"]
    toy.look(times=8 * MINUTE)
    assert toy.size("h100") == 0


def test_forty_ask_at_once_and_forty_nodes_are_bought_once() -> None:
    toy = Toy(pool("one").h100(1).nodes(0, of=80), quotas=(quota(40),))
    for number in range(40):
        toy.ask(workload(f"w{number}"))
    toy.look(times=3 * MINUTE)
    assert {toy.phase(f"w{number}") for number in range(40)} == {Phase.RUNNING}
    assert toy.size("one") == 40
    assert toy.history["Resize"] == 1
