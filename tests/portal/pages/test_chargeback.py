from __future__ import annotations

import csv
from datetime import UTC, datetime
from datetime import timedelta as td
from decimal import Decimal
from fractions import Fraction as F
from io import StringIO
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.handover import hand_over
from scheduling.models import CardSpan, Cluster, Placement
from tenants.billing.models import Charge, PoolHour, Statement
from tests.portal.pages.reading import as_person, look, send
from tests.world import H100, World

EVENING = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)  # two hours later November ends: the zone of the tests is UTC


@pytest.fixture
def ledger(world: World) -> World:
    """Twelve hours of two nodes around the turn of the month, with work of Vision and Speech, posted."""
    world.publish()
    for node, cards in (("train-1", 8), ("shared-1", 2)):
        pool = "h100-train" if node == "train-1" else "h100-shared"
        CardSpan.objects.create(
            cluster=world.cluster, pool=pool, node=node, node_uid=f"uid-{node}", model=H100, cards=cards,
            out_of_service="0", stranded="1/4" if node == "shared-1" else "0", foreign="0", started_at=EVENING,
        )  # fmt: skip
    ran(world, "segmentation", "whole", hours=6)
    ran(world, "notebook", "slice", hours=3)
    ran(world, "voices", "whole", hours=2, by=world.sasha, team=world.speech)
    Cluster.objects.update(seen_at=world.now)
    hand_over(world.now)
    return world


def ran(world: World, name: str, flavor: str, *, hours: int, **whose: Any) -> None:
    """A workload that was placed in the evening, ran from twenty minutes later on, and ended after some hours."""
    row = world.workload(name, flavor=flavor, phase="ended", asked_at=EVENING, **whose)
    Placement.objects.filter(workload=row).update(
        placed_at=EVENING, running_at=EVENING + td(minutes=20), ended_at=EVENING + td(hours=hours, minutes=20)
    )


class TestMonth:
    def test_finance_reads_the_month_by_team_person_model_and_flavor(self, ledger: World) -> None:
        words = look(as_person(ledger.farah), "/chargeback/2026-11/").words

        for part in ("By team", "By person", "By GPU model", "By flavor", "Borne by the platform", "November 2026"):
            assert part in words
        assert "UTC · all amounts EUR" in words
        assert "Vision 4.04 1.01 66.9 % 16.98" in words
        assert "H100 80GB, whole" in words
        assert "Robin" in words

    def test_the_sums_are_those_of_the_ledger(self, ledger: World) -> None:
        lines = Charge.objects.filter(period="2026-11", kind="use")
        total = sum((line.amount for line in lines), Decimal(0))

        words = look(as_person(ledger.farah), "/chargeback/2026-11/").words

        assert f"Charged to teams {total:.2f}" in words

    def test_what_nobody_pays_for_has_lines_of_its_own(self, ledger: World) -> None:
        words = look(as_person(ledger.farah), "/chargeback/2026-11/").words

        for bucket in ("Unallocated", "Stranded", "Cold start", "Out of service", "Foreign"):
            assert bucket in words.partition("Borne by the platform")[2]

    def test_a_lead_sees_the_own_teams_and_none_of_the_platforms_lines(self, ledger: World) -> None:
        words = look(as_person(ledger.dana), "/chargeback/2026-11/").words

        assert "Vision" in words
        assert "Speech" not in words
        assert "Borne by the platform" not in words
        assert "Sasha" not in words

    def test_researchers_are_told_who_sees_charges(self, ledger: World) -> None:
        page = look(as_person(ledger.robin), "/chargeback/2026-11/")

        assert page.status == 403
        assert "Charges are for finance, team leads and the operator" in page.words

    def test_the_word_in_the_menu_leads_to_the_latest_month(self, ledger: World) -> None:
        assert as_person(ledger.farah).get("/chargeback/")["Location"] == "/chargeback/2026-12/"

    def test_without_any_month_the_present_one_is_shown_empty(self, world: World) -> None:
        client = as_person(world.farah)

        assert client.get("/chargeback/")["Location"] == "/chargeback/2026-12/"
        assert "Nothing in this month." in look(client, "/chargeback/2026-12/").words

    @pytest.mark.parametrize("period", ["2026-13", "2026-00", "26-11", "x", "2026-1", "99999-01"])
    def test_what_is_no_month_is_not_there(self, ledger: World, period: str) -> None:
        assert look(as_person(ledger.farah), f"/chargeback/{period}/").status == 404

    def test_what_has_no_price_is_set_aside_and_said(self, world: World) -> None:
        world.publish({"whole": "4.20"})
        ran(world, "notebook", "slice", hours=1)
        Cluster.objects.update(seen_at=world.now)
        hand_over(world.now)

        words = look(as_person(world.farah), "/chargeback/2026-11/").words

        assert "no price covers" in words
        assert "Charged to teams 0.00" in words

    def test_today_so_far_counts_what_is_not_posted_yet(self, ledger: World) -> None:
        row = ledger.workload("fresh", flavor="whole", phase="running", asked_at=ledger.now - td(minutes=12))
        Placement.objects.filter(workload=row).update(running_at=ledger.now - td(minutes=10))

        words = look(as_person(ledger.dana), "/chargeback/2026-12/").words

        assert "Today so far" in words
        posted = sum((line.amount for line in Charge.objects.filter(period="2026-12", team=ledger.vision)), Decimal(0))
        assert f"{posted + Decimal('0.70'):.2f} used until now" in words
        assert "Today so far" not in look(as_person(ledger.dana), "/chargeback/2026-11/").words


class TestBalance:
    def test_a_sound_ledger_reconciles(self, ledger: World) -> None:
        page = look(as_person(ledger.farah), "/chargeback/2026-11/balance/")
        pill = look(as_person(ledger.farah), "/chargeback/2026-11/balance/", **{"HX-Request": "true"})

        assert "Yes: to the last digit." in page.words
        assert "card-seconds reconcile" in pill.words

    def test_what_does_not_add_up_is_said(self, ledger: World) -> None:
        PoolHour.objects.filter(pool="h100-train").update(used=F(1))

        page = look(as_person(ledger.farah), "/chargeback/2026-11/balance/")

        assert "do not add up" in page.words
        assert "h100-train" in page.words


class TestDrillDown:
    def test_from_the_team_down_to_the_lines_of_a_placement(self, ledger: World) -> None:
        client = as_person(ledger.farah)
        month = look(client, "/chargeback/2026-11/")
        team = next(link for link in month.links if f"team={ledger.vision.pk}" in link)
        workloads = look(client, team)
        workload = next(link for link in workloads.links if "/workloads/" in link and link.count("/") > 4)
        placements = look(client, workload)
        placement = next(link for link in placements.links if "/placements/" in link)
        lines = look(client, placement)

        assert "Vision: workloads of November 2026" in workloads.words
        assert "segmentation" in placements.words
        assert "train-1" in placements.words
        assert "use" in lines.words
        assert "cold start" in lines.words
        assert "3600" in lines.words

    def test_a_workload_that_began_with_a_cold_start_is_still_its_persons(self, ledger: World) -> None:
        line = Charge.objects.filter(kind="cold-start", workload_name="segmentation").first()
        assert line is not None
        assert line.member_name == ""

        words = look(as_person(ledger.farah), f"/chargeback/2026-11/workloads/{line.workload_id}/").words

        assert "Robin, Vision · " in words

    @pytest.mark.parametrize(
        ("query", "heading"),
        [
            ("sku=h100-80gb/mig-1g.10gb/on-demand", "H100 80GB, slice 1g.10gb: workloads of November 2026"),
            ("model=h100-80gb", "H100 80GB: workloads of November 2026"),
            ("", "Workloads of November 2026"),
        ],
    )
    def test_flavors_and_models_lead_to_workloads_too(self, ledger: World, query: str, heading: str) -> None:
        words = look(as_person(ledger.farah), f"/chargeback/2026-11/workloads/?{query}").words

        assert heading in words
        assert "notebook" in words
        assert ("segmentation" in words) == ("mig" not in query)

    def test_a_person_leads_to_their_workloads(self, ledger: World) -> None:
        words = look(as_person(ledger.farah), f"/chargeback/2026-11/workloads/?member={ledger.sasha.pk}").words

        assert "Sasha: workloads of November 2026" in words
        assert "voices" in words
        assert "notebook" not in words

    def test_the_charges_of_another_team_are_not_there(self, ledger: World) -> None:
        client = as_person(ledger.dana)
        line = Charge.objects.filter(kind="use", team=ledger.speech).first()
        assert line is not None

        assert look(client, f"/chargeback/2026-11/workloads/?team={ledger.speech.pk}").status == 404
        assert look(client, f"/chargeback/2026-11/workloads/{line.workload_id}/").status == 404
        assert look(client, f"/chargeback/2026-11/placements/{line.resource_id}/").status == 404
        assert "voices" not in look(client, "/chargeback/2026-11/workloads/").words

    @pytest.mark.parametrize("query", ["team=x", "member=x", "member=-1", "model=" + "x" * 61, "sku=%00"])
    def test_a_filter_that_makes_no_sense_is_refused(self, ledger: World, query: str) -> None:
        assert look(as_person(ledger.farah), f"/chargeback/2026-11/workloads/?{query}").status == 400

    def test_the_lists_cost_the_same_whatever_their_length(self, ledger: World) -> None:
        """November has three workloads, December then thirty more."""
        client = as_person(ledger.farah)
        small = self.queries(client, "/chargeback/2026-12/")
        for number in range(30):
            row = ledger.workload(f"more-{number}", flavor="quarter", phase="ended", by=ledger.dana)
            midnight = EVENING + td(hours=4)
            times = {"placed_at": midnight, "running_at": midnight, "ended_at": midnight + td(hours=10)}
            Placement.objects.filter(workload=row).update(**times)
        ledger.clock.advance(hours=4)
        Cluster.objects.update(seen_at=ledger.now)
        hand_over(ledger.now)

        few, many = (self.queries(client, f"/chargeback/{period}/workloads/") for period in ("2026-11", "2026-12"))
        large = self.queries(client, "/chargeback/2026-12/")

        assert "more-29" in look(client, "/chargeback/2026-12/workloads/").words
        assert many == few
        assert large <= small

    def queries(self, client: Any, path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        return len(queries)


class TestFile:
    def read(self, client: Any, period: str = "2026-11") -> list[dict[str, str]]:
        answer = client.get(f"/chargeback/{period}/lines.csv")
        assert answer["Content-Disposition"] == f'attachment; filename="berth-{period}.csv"'
        return list(csv.DictReader(StringIO(b"".join(answer.streaming_content).decode())))

    def test_every_line_of_the_month_is_in_it(self, ledger: World) -> None:
        rows = self.read(as_person(ledger.farah))

        assert len(rows) == Charge.objects.filter(period="2026-11").count()
        assert sum(Decimal(row["amount"]) for row in rows) == sum(
            (line.amount for line in Charge.objects.filter(period="2026-11")), Decimal(0)
        )

    def test_a_leads_file_has_the_own_teams_only(self, ledger: World) -> None:
        assert {row["team"] for row in self.read(as_person(ledger.dana))} == {"Vision"}

    def test_researchers_get_none(self, ledger: World) -> None:
        assert as_person(ledger.robin).get("/chargeback/2026-11/lines.csv").status_code == 403

    async def test_an_event_loop_does_not_wait_for_it(self) -> None:
        from django.test import AsyncRequestFactory

        from portal.pages.download import download

        request = AsyncRequestFactory().get("/")
        answer: Any = download(request, iter([f"{number}\n" for number in range(2500)]), "a.csv", "text/csv")

        assert answer.is_async
        blocks = [block async for block in answer.streaming_content]
        assert len(blocks) == 3
        assert b"".join(blocks).count(b"\n") == 2500


class TestClosing:
    def test_finance_of_the_organisation_closes_a_month_that_is_over(self, ledger: World) -> None:
        client = as_person(ledger.farah)

        answer = client.post("/chargeback/2026-11/close/")
        words = look(client, "/chargeback/2026-11/").words

        statement = Statement.objects.get(period="2026-11")
        assert answer["Location"] == "/chargeback/2026-11/"
        assert (statement.state, statement.closed_by) == ("closed", ledger.farah)
        assert "closed by Farah" in words
        assert "Close month" not in words

    def test_the_present_month_is_not_closed_and_the_page_says_why(self, ledger: World) -> None:
        page = send(as_person(ledger.farah), "/chargeback/2026-12/close/")

        assert page.status == 400
        assert "The month was not closed. December 2026 ends on" in page.words
        assert not Statement.objects.filter(state="closed").exists()

    def test_closing_twice_says_who_was_first(self, ledger: World) -> None:
        client = as_person(ledger.farah)
        client.post("/chargeback/2026-11/close/")

        page = send(client, "/chargeback/2026-11/close/")

        assert page.status in (400, 409)
        assert "Farah closed" in page.words

    @pytest.mark.parametrize("name", ["robin", "dana", "omar"])
    def test_nobody_else_closes_it(self, ledger: World, name: str) -> None:
        client = as_person(getattr(ledger, name))

        assert client.post("/chargeback/2026-11/close/").status_code == 403
        assert not Statement.objects.filter(state="closed").exists()
        assert "Close month" not in look(client, "/chargeback/2026-11/").words
