from __future__ import annotations

import json
from datetime import timedelta as td
from pathlib import Path
from typing import Any

import pytest

from scheduling.clusters import PAUSED
from scheduling.models import CardSpan, Cluster, CycleReport, Node, NodePool, Removal, Workload
from scheduling.planning.facts import Problem
from tenants import clock as clocks
from tests.portal.pages.reading import as_person, look, send
from tests.scheduling.lingering import linger
from tests.world import World


def rules(**changes: Any) -> dict[str, Any]:
    return {"min_nodes": "0", "max_nodes": "3", "idle_minutes": "90", "empty_minutes": "15", "layout": "all-1g.10gb",
            "layouts": "all-1g.10gb\nall-3g.40gb", **changes}  # fmt: skip


class TestPicture:
    def test_the_fleet_is_told_in_cards(self, world: World) -> None:
        world.workload("a", flavor="whole", phase="running")
        world.workload("b", phase="running")

        words = look(as_person(world.robin), "/fleet/").words

        assert "Cards 10 on 2 nodes" in words
        assert "Held 1⅛ by workloads" in words
        assert "Unallocated 8⅞" in words

    def test_every_node_says_in_words_what_its_picture_shows(self, world: World) -> None:
        world.workload("a", flavor="whole", phase="running")

        html = look(as_person(world.robin), "/fleet/").html

        assert 'aria-label="train-1: 1 of 8 cards held"' in html
        assert 'aria-label="shared-1: 0 of 14 units held"' in html

    def test_a_pool_at_zero_says_that_it_costs_nothing(self, world: World) -> None:
        assert "At zero: no node, no cost." in look(as_person(world.robin), "/fleet/").words

    def test_a_node_that_is_asked_for_is_drawn_as_waking(self, world: World) -> None:
        NodePool.objects.filter(name="a10g-burst").update(wished_nodes=2)

        page = look(as_person(world.robin), "/fleet/")

        assert "2 nodes waking" in page.words
        assert "Waking 8 cards asked of the provider" in page.words
        assert page.html.count('aria-label="a node with 4 cards is waking"') == 2

    def test_trouble_is_told_in_sentences(self, world: World) -> None:
        NodePool.objects.filter(name="a10g-burst").update(trouble="No capacity in the zone.")
        Cluster.objects.update(trouble="The API server does not answer.")
        problem = Problem("train-2", "status.allocatable", "One card is withheld.")
        world.node("train-2", "h100-train", sick_cards=1, problems=(problem,))

        words = look(as_person(world.omar), "/fleet/").words

        assert "The provider says: No capacity in the zone." in words
        assert "harbour-1: The API server does not answer." in words
        assert "train-2: One card is withheld." in words
        assert "1 card sick" in words

    def test_addresses_and_files_in_a_trouble_are_the_operators_business(self, world: World) -> None:
        Cluster.objects.update(trouble="The token file /run/secrets/berth cannot be read.")

        page = look(as_person(world.robin), "/fleet/")

        assert "harbour-1: It cannot be used now; the operator sees why." in page.words
        assert "/run/secrets" not in page.html

    def test_why_no_meter_can_be_read_is_told_to_the_operator_alone(self, world: World) -> None:
        Cluster.objects.update(meters_trouble="The cluster does not let us.")

        assert "No meter can be read. The cluster does not let us." in look(as_person(world.omar), "/fleet/").words
        assert "does not let us" not in look(as_person(world.robin), "/fleet/").words

    def test_one_trouble_is_told_once(self, world: World) -> None:
        Cluster.objects.update(trouble="The server does not answer.", meters_trouble="The server does not answer.")

        assert look(as_person(world.omar), "/fleet/").words.count("The server does not answer.") == 1

    @pytest.mark.parametrize(("trouble", "told"), [(PAUSED, 0), ("The server does not answer.", 1)])
    def test_a_pause_is_no_trouble_and_hides_none(self, world: World, trouble: str, told: int) -> None:
        Cluster.objects.update(paused=True, trouble=trouble)

        words = look(as_person(world.robin), "/fleet/").words

        assert words.count("It cannot be used now") == told
        assert words.count("harbour-1 is paused.") == 1

    @pytest.mark.parametrize(("heard", "how"), [(True, "as its watches last spoke"), (False, "by a list")])
    def test_how_old_the_picture_is_and_where_it_is_from(self, world: World, heard: bool, how: str) -> None:
        Cluster.objects.update(seen_at=world.now - td(seconds=44), heard_at=world.now if heard else None)

        assert f"harbour-1 seen 44 s ago, {how}." in look(as_person(world.robin), "/fleet/").words

    def test_a_pool_that_keeps_no_empty_node_says_so(self, world: World) -> None:
        NodePool.objects.filter(name="h100-train").update(empty_minutes=0)
        pool = f"/fleet/pools/{world.pools['h100-train'].pk}/"

        assert "empty nodes go at once." in look(as_person(world.robin), "/fleet/").words
        assert "Empty nodes go at once" in look(as_person(world.robin), pool).words

    def test_a_node_of_no_pool_is_seen(self, world: World) -> None:
        Node.objects.filter(name="train-1").update(pool=None)

        assert "Nodes of no pool" in look(as_person(world.robin), "/fleet/").words

    def test_how_sure_we_are_of_the_slices_is_said(self, world: World) -> None:
        assert "Slices: seen in a real nvidia-smi listing" in look(as_person(world.robin), "/fleet/").words

    def test_names_of_other_teams_stay_with_them(self, world: World) -> None:
        world.workload("speech-secret", by=world.sasha, team=world.speech, flavor="whole", phase="running")
        world.workload("our-own", flavor="whole", phase="running")
        report(world, actions=["place speech-secret on train-1"])

        ours, theirs = (look(as_person(who), "/fleet/").html for who in (world.robin, world.omar))
        pool = look(as_person(world.robin), f"/fleet/pools/{world.pools['h100-train'].pk}/").html

        assert "held by another team" in ours
        assert "our-own of Robin, Vision" in ours
        for html in (ours, pool):
            assert "speech-secret" not in html
            assert "Sasha" not in html
        assert "speech-secret of Sasha, Speech" in theirs

    def test_many_nodes_are_drawn_in_part_and_all_on_the_pools_page(self, world: World) -> None:
        for number in range(40):
            world.node(f"many-{number:02}", "h100-train")

        fleet = look(as_person(world.robin), "/fleet/")
        pool = look(as_person(world.robin), f"/fleet/pools/{world.pools['h100-train'].pk}/")

        assert "and 17 more" in fleet.words
        assert "many-39" in pool.words


def report(world: World, **facts: Any) -> CycleReport:
    return CycleReport.objects.create(cluster=world.cluster, at=world.now, milliseconds=12, **facts)


class TestReports:
    def test_the_operator_reads_what_was_done_with_names_for_keys(self, world: World) -> None:
        row = world.workload("notebook")
        report(world, actions=[f"place {row.pk} on train-1: 1 x nvidia.com/gpu"], failures=["The pod was refused."])

        words = look(as_person(world.omar), "/fleet/").words

        assert "Place notebook on train-1" in words
        assert "The pod was refused." in words

    def test_others_see_that_something_was_done_and_no_more(self, world: World) -> None:
        report(world, actions=["place x on train-1"])

        words = look(as_person(world.robin), "/fleet/").words

        assert "1 done" in words
        assert "train-1: 1" not in words
        assert "Place x" not in words

    def test_a_refusal_of_the_guard_is_shown_to_all(self, world: World) -> None:
        report(world, refusal="It would stop 20 of 25 workloads.")

        assert "Nothing was done: It would stop 20 of 25" in look(as_person(world.robin), "/fleet/").words

    def test_all_reports_are_the_operators(self, world: World) -> None:
        for number in range(30):
            report(world, actions=[f"action {number}"])

        assert look(as_person(world.robin), "/fleet/reports/").status == 403
        assert "1–25 of 30 looks" in look(as_person(world.omar), "/fleet/reports/").words


class TestRules:
    def test_the_operator_changes_the_rules_of_a_pool(self, world: World) -> None:
        pool = world.pools["h100-shared"]

        sent = rules(max_nodes="5", idle_minutes="", layouts="all-1g.10gb", spread="on")
        answer = as_person(world.omar).post(f"/fleet/pools/{pool.pk}/", sent)

        pool.refresh_from_db()
        assert answer.status_code == 302
        assert (pool.max_nodes, pool.idle_minutes, pool.layouts, pool.spread) == (5, None, ["all-1g.10gb"], True)

    def test_empty_nodes_may_go_at_once(self, world: World) -> None:
        """As in the demo's pool that sleeps at zero: its form can be sent back as it was shown."""
        pool = world.pools["h100-shared"]

        answer = as_person(world.omar).post(f"/fleet/pools/{pool.pk}/", rules(empty_minutes="0"))

        pool.refresh_from_db()
        assert (answer.status_code, pool.empty_minutes) == (302, 0)

    WRONG = {  # what is sent: the sentence, the field
        "more at least than at most": ({"min_nodes": "4"}, "do not go together", "min_nodes"),
        "less than no nodes": ({"min_nodes": "-1"}, "", "min_nodes"),
        "no number": ({"max_nodes": "many"}, "whole number", "max_nodes"),
        "far too many": ({"max_nodes": "100000"}, "choose 0 to", "max_nodes"),
        "asleep at once": ({"idle_minutes": "1"}, "choose 5 to", "idle_minutes"),
        "never empty": ({"empty_minutes": ""}, "required", "empty_minutes"),
        "a layout of another card": ({"layouts": "all-1g.5gb"}, "no such MIG layout", "layouts"),
        "a layout that is no list": ({"layouts": "devices: 7"}, "no such MIG layout", "layouts"),
        "a layout that nobody knows": ({"layout": "all-9g.90gb"}, "no such MIG layout", "layout"),
    }  # fmt: skip

    @pytest.mark.parametrize("case", WRONG)
    def test_nonsense_is_said_at_its_field_and_not_kept(self, world: World, case: str) -> None:
        """S12: a layout that the cards cannot take is refused here, not on the node."""
        changes, sentence, field = self.WRONG[case]
        pool = world.pools["h100-shared"]

        page = send(as_person(world.omar), f"/fleet/pools/{pool.pk}/", **rules(**changes))

        pool.refresh_from_db()
        assert page.status == 400
        assert sentence in page.words
        assert f'id="id_{field}_error"' in page.html
        assert (pool.max_nodes, pool.layouts) == (3, ["all-1g.10gb", "all-3g.40gb"])

    @pytest.mark.parametrize("name", ["robin", "dana", "farah"])
    def test_others_read_the_rules(self, world: World, name: str) -> None:
        path = f"/fleet/pools/{world.pools['h100-shared'].pk}/"
        client = as_person(getattr(world, name))

        page = look(client, path)

        assert "Idle workspaces sleep after 1 h 30 min" in page.words
        assert [form for form in page.forms if form.method == "post" and "pools" in form.action] == []
        assert send(client, path, **rules(max_nodes="9")).status == 403

    def test_a_pool_that_is_not_there(self, world: World) -> None:
        assert look(as_person(world.omar), "/fleet/pools/999999/").status == 404


class TestPausing:
    def test_the_operator_pauses_and_resumes_a_cluster(self, world: World) -> None:
        client = as_person(world.omar)

        client.post(f"/fleet/clusters/{world.cluster.pk}/pause/")
        paused = look(client, "/fleet/").words
        client.post(f"/fleet/clusters/{world.cluster.pk}/resume/")

        assert "harbour-1 is paused. Berth looks, but places, stops, cuts and resizes nothing." in paused
        assert not Cluster.objects.get().paused

    @pytest.mark.parametrize("name", ["robin", "dana", "farah"])
    def test_nobody_else_does(self, world: World, name: str) -> None:
        client = as_person(getattr(world, name))

        assert client.post(f"/fleet/clusters/{world.cluster.pk}/pause/").status_code == 403
        assert not Cluster.objects.get().paused
        assert "Pause harbour-1" not in look(client, "/fleet/").words


class TestPace:
    @pytest.fixture
    def file(self, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        path = tmp_path / "clock.json"
        clocks.write_pace(path, clocks.Pace(wall=world.now, simulated=world.now, rate=60.0))
        monkeypatch.setenv("BERTH_CLOCK", str(path))
        settings.BERTH_DEMO = True
        return path

    def test_the_speed_of_the_demos_time_is_shown_to_everybody(self, world: World, file: Path) -> None:
        assert "simulated time, 60×" in look(as_person(world.robin), "/").words

    def test_the_operator_chooses_it(self, world: World, file: Path) -> None:
        answer = as_person(world.omar).post("/fleet/pace/", {"rate": "300"})

        assert answer.status_code == 302
        assert json.loads(file.read_text())["rate"] == 300.0

    def test_every_open_page_is_told_of_it(self, world: World, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[Any] = []
        monkeypatch.setattr("portal.pages.fleet.send", told.extend)

        as_person(world.omar).post("/fleet/pace/", {"rate": "300"})

        assert {"topic": f"person:{world.robin.pk}", "what": "pace"} in told
        assert {event["what"] for event in told} == {"pace"}

    @pytest.mark.parametrize("rate", ["", "0", "-1", "2", "nan", "1e9", "60.0"])
    def test_only_the_offered_speeds_exist(self, world: World, file: Path, rate: str) -> None:
        page = send(as_person(world.omar), "/fleet/pace/", rate=rate)

        assert page.status == 400
        assert "Choose one of 1×, 10×, 60×, 300×." in page.words
        assert json.loads(file.read_text())["rate"] == 60.0

    def test_nobody_else_chooses_it(self, world: World, file: Path) -> None:
        assert send(as_person(world.robin), "/fleet/pace/", rate="1").status == 403
        assert "The demo’s clock" not in look(as_person(world.robin), "/fleet/").words

    def test_outside_the_demo_there_is_no_such_thing(self, world: World, file: Path, settings: Any) -> None:
        settings.BERTH_DEMO = False

        assert send(as_person(world.omar), "/fleet/pace/", rate="1").status == 404


class TestPodsThatDoNotGo:
    def test_the_card_is_no_free_card(self, world: World) -> None:
        row = world.workload("stuck", flavor="whole", phase="ended")
        linger(row, world.now - td(minutes=5))
        CardSpan.objects.create(
            cluster=world.cluster, pool="h100-train", node="train-1", node_uid="u", model="h100-80gb", cards=8,
            out_of_service=1, stranded=0, foreign=0, started_at=world.now,
        )  # fmt: skip

        page = look(as_person(world.robin), "/fleet/")

        assert "Unallocated 9 free" in page.words
        assert "1 out of service, some held by 1 pod that does not go" in page.words
        assert 'aria-label="train-1: 0 of 8 cards held, 1 more by pods that do not go"' in page.html
        assert "1 of 8 cards held" in page.words, "the pool's own line"

    def test_a_pod_that_holds_nothing_any_more_keeps_no_card_from_anybody(self, world: World) -> None:
        linger(world.workload("kept", flavor="whole", phase="ended"), world.now - td(minutes=5), units=0)

        assert "that does not go" not in look(as_person(world.robin), "/fleet/").words

    def test_the_pools_page_names_the_pod_and_says_what_to_do(self, world: World) -> None:
        row = world.workload("stuck", flavor="whole", phase="ended")
        linger(row, world.now - td(minutes=5))
        address = f"/fleet/pools/{world.pools['h100-train'].pk}/"

        page = look(as_person(world.robin), address)

        assert "Held by pod stuck-0, told to go at" in page.words
        assert "and still there; the operator can remove it by force from" in page.words
        assert f"/workloads/{row.pk}/" in page.html

    def test_another_teams_pod_has_no_name(self, world: World) -> None:
        row = world.workload("secret", flavor="whole", phase="ended")
        linger(row, world.now - td(minutes=5))

        for address in ("/fleet/", f"/fleet/pools/{world.pools['h100-train'].pk}/"):
            page = look(as_person(world.sasha), address)
            assert "secret" not in page.html
        assert "Held by a pod of another team, told to go at" in page.words

    def test_the_operator_reads_of_it_on_the_first_page(self, world: World) -> None:
        row = world.workload("stuck", flavor="whole", phase="ended")
        linger(row, world.now - td(minutes=5))

        assert "Node train-1: held by pod stuck-0" in look(as_person(world.omar), "/").words
        assert "stuck-0" not in look(as_person(world.sasha), "/").words


class TestRemovingByForce:
    @pytest.fixture
    def stuck(self, world: World) -> Workload:
        row = world.workload("stuck", flavor="whole", phase="stopping")
        linger(row, world.now - td(minutes=5))
        return row

    def test_the_button_is_the_operators_and_says_what_it_risks(self, world: World, stuck: Workload) -> None:
        address = f"/workloads/{stuck.pk}/"

        assert "Remove by force" not in look(as_person(world.robin), address).words
        words = look(as_person(world.omar), address).words
        assert "Remove by force… Pod stuck-0 on node train-1 was told to go at" in words
        assert "its container may still run" in words

    def test_no_button_while_it_may_go_by_itself(self, world: World) -> None:
        row = world.workload("going", flavor="whole", phase="stopping")
        linger(row, world.now - td(minutes=1))

        assert "Remove by force" not in look(as_person(world.omar), f"/workloads/{row.pk}/").words

    def test_it_is_ordered_once_the_operator_is_sure(self, world: World, stuck: Workload) -> None:
        address = f"/workloads/{stuck.pk}/force/"

        unsure = send(as_person(world.omar), address)
        assert (unsure.status, Removal.objects.count()) == (400, 0)
        assert "Say that you are sure" in unsure.words
        send(as_person(world.omar), address, sure="yes")

        assert Removal.objects.get().pod == "stuck-0"
        page = look(as_person(world.robin), f"/workloads/{stuck.pk}/")
        assert "Omar has had pod stuck-0 removed by force" in page.words
