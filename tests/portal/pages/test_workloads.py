from __future__ import annotations

from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.cluster.port import ClusterError
from scheduling.models import Cluster, Sample, Transition, Workload
from tenants.services import counter as counter_offer
from tests.portal.pages.reading import as_person, look, send
from tests.world import World


def sample(row: Workload, at: Any, busy: float | None, memory: int | None = 5000) -> Sample:
    return Sample.objects.create(
        placement=row.placements.get(ended_at=None), at=at, busy=busy, memory_used_mib=memory, memory_total_mib=9856
    )


class TestList:
    def test_people_see_the_workloads_of_their_own_teams(self, world: World) -> None:
        world.workload("ours")
        world.workload("theirs", by=world.sasha, team=world.speech)

        seen = look(as_person(world.robin), "/workloads/").words
        everything = look(as_person(world.omar), "/workloads/").words

        assert "ours" in seen
        assert "theirs" not in seen
        assert "ours" in everything
        assert "theirs" in everything

    def test_what_has_ended_is_out_of_the_way_until_asked_for(self, world: World) -> None:
        world.workload("over-and-done", phase="ended")
        client = as_person(world.robin)

        assert "over-and-done" not in look(client, "/workloads/").words
        assert "over-and-done" in look(client, "/workloads/?phase=ended").words
        assert "over-and-done" in look(client, "/workloads/?phase=all").words

    FILTERS = {  # query: the names that are left
        "": {"alpha", "beta", "gamma"},
        "phase=running": {"alpha"},
        "kind=job": {"beta"},
        "owner=me": {"alpha", "beta"},
        "q=alp": {"alpha"},
        "q=Dana": {"gamma"},
        "q=quarter": {"gamma"},
        "q=nothing": set(),
        "phase=waiting&owner=me": {"beta"},
    }

    @pytest.mark.parametrize("query", FILTERS)
    def test_filters_narrow_the_list(self, world: World, query: str) -> None:
        world.workload("alpha", phase="running")
        world.workload("beta", kind="job")
        world.workload("gamma", by=world.dana, flavor="quarter")

        seen = look(as_person(world.robin), f"/workloads/?{query}")

        assert {name for name in ("alpha", "beta", "gamma") if name in seen.words} == self.FILTERS[query]

    @pytest.mark.parametrize(
        "query", ["phase=flying", "team=x", "kind=endpoint", "owner=root", "q=" + "x" * 81, "q=%00"]
    )
    def test_a_filter_that_makes_no_sense_is_said_at_its_field(self, world: World, query: str) -> None:
        world.workload("alpha")

        seen = look(as_person(world.robin), f"/workloads/?{query}")

        assert seen.status == 400
        assert 'class="wrong"' in seen.html
        assert "alpha" not in seen.words

    def test_the_team_of_somebody_else_cannot_be_filtered_for(self, world: World) -> None:
        assert look(as_person(world.robin), f"/workloads/?team={world.speech.pk}").status == 400
        assert look(as_person(world.robin), f"/workloads/?team={world.vision.pk}").status == 200

    def test_the_list_is_paged_and_an_odd_page_is_the_nearest(self, world: World) -> None:
        for number in range(30):
            world.workload(f"w-{number:02}", asked_at=world.now - td(minutes=number))
        client = as_person(world.robin)

        first, second = look(client, "/workloads/"), look(client, "/workloads/?page=2")

        assert "1–25 of 30" in first.words
        assert "w-29" not in first.words
        assert "w-29" in second.words
        for odd in ("0", "99", "x", "-1"):
            assert look(client, f"/workloads/?page={odd}").status == 200

    def test_a_running_workload_without_readings_is_unknown_and_not_idle(self, world: World) -> None:
        world.workload("silent", phase="running")
        busy = world.workload("busy", phase="running")
        stale = world.workload("stale", phase="running")
        sample(busy, world.now, 0.64)
        sample(stale, world.now - td(minutes=30), 0.64)

        words = look(as_person(world.robin), "/workloads/").words

        assert words.count("unknown") == 2
        assert "64 %" in words

    def test_the_page_listens_to_its_rows_and_teams(self, world: World) -> None:
        row = world.workload("alpha")

        html = look(as_person(world.robin), "/workloads/").html

        assert f"workload:{row.pk}" in html
        assert f"team:{world.vision.pk}" in html
        assert f"team:{world.speech.pk}" not in html


class TestOne:
    def test_an_outsider_does_not_learn_that_it_exists(self, world: World) -> None:
        row = world.workload("secret", phase="running")
        client = as_person(world.sasha)

        for address in ("", "samples/", "logs/"):
            assert look(client, f"/workloads/{row.pk}/{address}").status == 404
        for verb in ("sleep", "wake", "end"):
            assert send(client, f"/workloads/{row.pk}/{verb}/").status == 404

    def test_it_says_why_it_waits_and_what_would_change_it(self, world: World) -> None:
        row = world.workload("patient", phase_reason="WaitingForQuota", phase_text="Vision holds 16 of 16 cards.")

        words = look(as_person(world.robin), f"/workloads/{row.pk}/").words

        assert "Vision holds 16 of 16 cards." in words
        assert "ask for more quota" in words

    def test_it_tells_how_it_started(self, world: World) -> None:
        row = world.workload("notebook", phase="running")

        words = look(as_person(world.robin), f"/workloads/{row.pk}/").words

        assert "How it started 2 min from asking to running" in words
        assert "Pulls the image" in words

    def test_the_idle_rule_in_force_and_its_origin_are_shown(self, world: World) -> None:
        """Z13: never a setting that is silently not used."""
        row = world.workload("quiet", phase="running", idle_since=world.now - td(minutes=11))
        sample(row, world.now, 0.0)
        client, path = as_person(world.robin), f"/workloads/{row.pk}/"

        words = look(client, path).words
        assert "Idle for 11 min of 1 h 30 min" in words
        assert "Rule of pool h100-shared" in words

        type(world.pools["h100-shared"]).objects.update(idle_minutes=None)
        assert "workspaces never sleep by themselves" in look(client, path).words

    def test_a_job_has_no_idle_rule_and_says_so(self, world: World) -> None:
        row = world.workload("train", kind="job", phase="running")

        assert "Jobs do not sleep" in look(as_person(world.robin), f"/workloads/{row.pk}/").words

    def test_no_readings_means_unknown_and_is_not_counted_as_idle(self, world: World) -> None:
        row = world.workload("silent", phase="running")

        words = look(as_person(world.robin), f"/workloads/{row.pk}/").words

        assert "nobody reports its use, so it is not counted as idle" in words

    def test_the_command_to_connect_names_the_real_pod(self, world: World) -> None:
        row = world.workload("notebook", phase="running")
        asleep = world.workload("resting", phase="asleep")
        client = as_person(world.robin)

        words = look(client, f"/workloads/{row.pk}/").words

        assert "kubectl -n team-vision port-forward pod/notebook-0 8888:8888" in words
        assert "kubectl" not in look(client, f"/workloads/{asleep.pk}/").words

    def test_a_refresh_brings_every_moving_part_in_one_answer(self, world: World) -> None:
        row = world.workload("notebook", phase="running")

        part = look(as_person(world.robin), f"/workloads/{row.pk}/", **{"HX-Request": "true"})

        assert "<html" not in part.html
        for name in ("live", "state", "acts", "use-now", "memory-now", "side", "history"):
            assert part.ids[name] == 1
        assert part.html.count('data-hx-swap-oob="true"') == 6

    def test_the_history_is_paged(self, world: World) -> None:
        row = world.workload("flapping")
        Transition.objects.bulk_create(
            Transition(
                workload=row, version=number, at=world.now, after="waiting", reason="BackingOff", text=f"Try {number}."
            )
            for number in range(1, 30)
        )
        client = as_person(world.robin)

        assert "Try 29." in look(client, f"/workloads/{row.pk}/").words
        assert "Try 29." not in look(client, f"/workloads/{row.pk}/?history=2").words

    def test_the_readings_of_the_last_hour_come_as_columns(self, world: World) -> None:
        row = world.workload("notebook", phase="running", asked_at=world.now - td(hours=3))
        sample(row, world.now - td(minutes=61), 0.9)
        sample(row, world.now - td(minutes=2), 0.5, 2048)
        sample(row, world.now - td(minutes=1), None, None)

        found = as_person(world.robin).get(f"/workloads/{row.pk}/samples/").json()

        assert found["busy"] == [50.0, None]
        assert found["memory"] == [2.0, None]
        assert found["at"] == [(world.now - td(minutes=minutes)).timestamp() for minutes in (2, 1)]


class TestActions:
    @pytest.mark.parametrize("name", ["robin", "dana", "lena", "omar"])
    def test_owner_lead_and_operator_may_put_it_to_sleep(self, world: World, name: str) -> None:
        row = world.workload("notebook", phase="running")

        answer = as_person(getattr(world, name)).post(f"/workloads/{row.pk}/sleep/")

        row.refresh_from_db()
        assert (answer.status_code, row.desired, row.desired_by) == (302, "sleep", getattr(world, name))

    def test_a_team_mate_sees_it_but_may_not_steer_it(self, world: World) -> None:
        row = world.workload("hers", by=world.dana, phase="running")
        client = as_person(world.robin)

        page, refusal = look(client, f"/workloads/{row.pk}/"), send(client, f"/workloads/{row.pk}/end/")

        row.refresh_from_db()
        assert [form.action for form in page.forms if str(row.pk) in form.action] == []
        assert refusal.status == 403
        assert "Only Dana, a lead of Vision or the operator may do this." in refusal.words
        assert row.desired == "run"

    BUTTONS = {  # phase and kind: what the owner may do
        ("running", "workspace"): {"sleep", "end"},
        ("running", "job"): {"end"},
        ("waiting", "workspace"): {"sleep", "end"},
        ("asleep", "workspace"): {"wake", "end"},
        ("ended", "workspace"): set(),
    }

    @pytest.mark.parametrize("case", BUTTONS, ids=str)
    def test_only_what_is_possible_is_offered(self, world: World, case: tuple[str, str]) -> None:
        phase, kind = case
        row = world.workload("w", phase=phase, kind=kind, desired="sleep" if phase == "asleep" else "run")

        page = look(as_person(world.robin), f"/workloads/{row.pk}/")

        offered = {form.action.split("/")[-2] for form in page.forms if f"/workloads/{row.pk}/" in form.action}
        assert offered == self.BUTTONS[case]

    def test_what_is_not_possible_is_refused_in_a_sentence(self, world: World) -> None:
        row = world.workload("done", phase="ended")

        refusal = send(as_person(world.robin), f"/workloads/{row.pk}/end/")

        assert refusal.status == 400
        assert "done has already ended." in refusal.words

    def test_a_wish_that_is_not_done_yet_is_shown(self, world: World) -> None:
        row = world.workload("notebook", phase="running", desired="sleep")

        assert "It is going to sleep, as Robin asked" in look(as_person(world.robin), f"/workloads/{row.pk}/").words

    @pytest.mark.parametrize(("minutes", "told"), [(1, False), (3, True)])
    def test_what_takes_longer_to_stop_than_it_should_says_why(self, world: World, minutes: int, told: bool) -> None:
        row = world.workload("notebook", phase="stopping", desired="end")
        since = world.now - td(minutes=minutes)
        Workload.objects.filter(pk=row.pk).update(phase_text="A finalizer holds its pod.", phase_since=since)

        words = look(as_person(world.robin), f"/workloads/{row.pk}/").words

        assert ("A finalizer holds its pod." in words) is told


class TestLogs:
    class Port:
        def __init__(self, answer: str | Exception) -> None:
            self.answer = answer

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

        def logs(self, namespace: str, pod: str, *, lines: int) -> str:
            if isinstance(self.answer, Exception):
                raise self.answer
            return f"{namespace}/{pod}: {self.answer}"

    def told(self, world: World, monkeypatch: pytest.MonkeyPatch, answer: str | Exception) -> str:
        row = world.workload("notebook", phase="running")
        monkeypatch.setattr("scheduling.selectors.port_for", lambda cluster: self.Port(answer))
        return look(as_person(world.robin), f"/workloads/{row.pk}/logs/").words

    def test_the_last_lines_are_shown_as_text(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        words = self.told(world, monkeypatch, "<b>epoch 1</b>")

        assert "team-vision/notebook-0: <b>epoch 1</b>" in words

    def test_a_cluster_that_cannot_be_reached_is_said(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        words = self.told(world, monkeypatch, ClusterError("The API server does not answer."))

        assert "harbour-1 did not hand out the log: The API server does not answer." in words

    def test_without_a_pod_there_is_nothing_to_read(self, world: World) -> None:
        row = world.workload("resting", phase="asleep")

        assert "There is no pod" in look(as_person(world.robin), f"/workloads/{row.pk}/logs/").words

    def test_logs_are_for_owner_and_leads_only(self, world: World) -> None:
        row = world.workload("hers", by=world.dana, phase="running")

        assert look(as_person(world.robin), f"/workloads/{row.pk}/logs/").status == 403
        assert look(as_person(world.omar), f"/workloads/{row.pk}/logs/").status == 403


class TestNotes:
    def test_a_sleeper_is_being_woken_only_if_somebody_asked_since_it_fell_asleep(self, world: World) -> None:
        client = as_person(world.robin)
        idle = world.workload("idle", phase="asleep", phase_text="Asleep: its quota is free.")
        woken = world.workload("woken", phase="asleep")
        Workload.objects.filter(pk=woken.pk).update(desired_at=world.now)

        assert "Asleep: its quota is free." in look(client, f"/workloads/{idle.pk}/").words
        assert "It is being woken" not in look(client, f"/workloads/{idle.pk}/").words
        assert "It is being woken" in look(client, f"/workloads/{woken.pk}/").words

    def test_a_counter_offer_waits_for_its_asker_and_not_for_the_lead(self, world: World) -> None:
        asked = world.asks(world.robin, 2)
        counter_offer(asked, by=world.dana, amount=F(2), until=world.now + td(days=1), note="A day.", now=world.now)
        row = world.workload("large", quota_request=asked, phase_reason="WaitingForApproval")

        asker = look(as_person(world.robin), f"/workloads/{row.pk}/").words
        lead = look(as_person(world.dana), f"/workloads/{row.pk}/").words

        assert "It waits for your answer to the offer." in asker
        assert "instead of 2, open-ended." in asker
        assert "It waits for the answer of Robin to the offer that Dana made." in lead

    def test_what_a_paused_cluster_means_is_said(self, world: World) -> None:
        row = world.workload("waits")
        Cluster.objects.update(paused=True)

        assert (
            "is paused. Nothing starts, sleeps or ends there"
            in look(as_person(world.robin), f"/workloads/{row.pk}/").words
        )
