from __future__ import annotations

from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from tenants.models import Grant, QuotaRequest
from tests.portal.pages.reading import as_person, look, send
from tests.world import H100, World


def decide(world: World, request: QuotaRequest, verb: str, person: Any = None, **data: Any) -> Any:
    return send(as_person(person or world.dana), f"/approvals/{request.pk}/{verb}/", **data)


class TestInbox:
    def test_a_lead_sees_who_asks_for_what_why_and_what_a_yes_would_do(self, world: World) -> None:
        world.asks(world.robin, 2, waits_for_it="notebook: Whole H100")
        world.workload("segmentation", phase="running", flavor="whole")

        words = look(as_person(world.dana), "/approvals/").words

        assert "Approvals 1 to decide" in words
        assert "Robin asks for 2 cards of H100 80GB" in words
        assert "A deadline in March." in words
        assert "Waits for it: notebook: Whole H100" in words
        assert "Vision holds now 1 of 16" in words
        assert "Vision may hold 16 →becomes 18" in words.replace(" → becomes", " →becomes")
        assert "Robin alone 0" in words
        assert "Research has left to give 24" in words

    def test_a_yes_that_the_parent_cannot_cover_is_marked_before_it_is_tried(self, world: World) -> None:
        world.asks(world.robin, 30)

        assert "That is more than Research has left to give" in look(as_person(world.dana), "/approvals/").words

    def test_the_lead_above_sees_both_teams_and_the_lead_only_the_own(self, world: World) -> None:
        world.asks(world.robin)
        world.asks(world.sasha, team=world.speech)

        assert "Sasha" in look(as_person(world.lena), "/approvals/").words
        assert "Sasha" not in look(as_person(world.dana), "/approvals/").words

    def test_the_operator_reads_but_gets_no_buttons(self, world: World) -> None:
        request = world.asks(world.robin)

        page = look(as_person(world.omar), "/approvals/")

        assert "Robin asks" in page.words
        assert "The leads of Vision decide this." in page.words
        assert [form for form in page.forms if str(request.pk) in form.action] == []
        assert decide(world, request, "approve", world.omar).status == 403

    def test_researchers_are_sent_to_their_own_requests(self, world: World) -> None:
        page = look(as_person(world.robin), "/approvals/")

        assert page.status == 403
        assert "Your own requests stand under Quotas." in page.words

    def test_the_own_request_waits_for_somebody_else(self, world: World) -> None:
        request = world.asks(world.dana)

        page, refusal = look(as_person(world.dana), "/approvals/"), decide(world, request, "approve")

        assert "This is your own request" in page.words
        assert refusal.status == 400
        assert Grant.objects.filter(request=request).count() == 0

    def test_decided_ones_are_listed_with_the_answer(self, world: World) -> None:
        world.asks(world.robin, 8, state="denied", decided_by=world.dana, decided_at=world.now, note="Use two.")

        words = look(as_person(world.dana), "/approvals/").words

        assert "Nothing to decide" in words
        assert "8 cards of H100 80GB" in words
        assert "denied “Use two.”" in words

    def test_decisions_are_narrowed_by_answer_and_asker(self, world: World) -> None:
        answered = {"decided_by": world.lena, "decided_at": world.now, "note": "So."}
        world.asks(world.robin, 8, state="denied", **answered)
        world.asks(world.dana, 7, state="approved", **answered)
        client = as_person(world.lena)

        denied, danas = look(client, "/approvals/?state=denied").words, look(client, "/approvals/?q=dan").words

        assert "8 cards" in denied
        assert "7 cards" not in denied
        assert "7 cards" in danas
        assert "8 cards" not in danas
        assert look(client, "/approvals/?state=eaten").status == 400


class TestDecisions:
    def test_approving_grants_what_was_asked_for(self, world: World) -> None:
        request = world.asks(world.robin, 2)

        answer = as_person(world.dana).post(f"/approvals/{request.pk}/approve/")

        grant = Grant.objects.get(request=request)
        assert answer["Location"] == "/approvals/"
        assert (grant.amount, grant.member, grant.ends_at) == (F(2), world.robin, None)

    def test_approving_less_and_for_a_time(self, world: World) -> None:
        request = world.asks(world.robin, 2)

        decide(world, request, "approve", amount="1/2", until="2026-12-24", note="Over the holidays.")

        grant = Grant.objects.get(request=request)
        assert grant.amount == F(1, 2)
        assert grant.ends_at is not None
        assert f"{grant.ends_at:%Y-%m-%d %H:%M}" == "2026-12-25 00:00"

    def test_denying_tells_the_asker_why_and_ends_what_waited(self, world: World) -> None:
        request = world.asks(world.robin)
        row = world.workload("patient", quota_request=request)

        decide(world, request, "deny", note="Not this month.")

        row.refresh_from_db()
        assert row.desired == "end"
        assert "“Not this month.”" in look(as_person(world.robin), "/quotas/").words

    def test_countering_offers_something_else(self, world: World) -> None:
        request = world.asks(world.robin, 4)

        decide(world, request, "counter", amount="1", until="", note="One now.")

        request.refresh_from_db()
        assert (request.state, request.offered_amount) == ("countered", F(1))
        assert Grant.objects.filter(request=request).count() == 0

    WRONG = {  # verb and what is sent: the sentence and its field
        "deny without a reason": ("deny", {"note": " "}, "Give the asker a reason", "note"),
        "more than asked": ("approve", {"amount": "3"}, "Asked were 2 cards", "amount"),
        "no number": ("approve", {"amount": "all"}, "Write a number of cards", "amount"),
        "nothing at all": ("approve", {"amount": "0"}, "more than 0", "amount"),
        "a past end": ("approve", {"until": "2020-01-01"}, "lies in the past", "until"),
        "an offer of nothing": ("counter", {"amount": ""}, "Say how many cards you offer", "amount"),
        "an offer that is the request": ("counter", {"amount": "2"}, "approve it instead", "amount"),
        "more than the parent has": ("counter", {"amount": "40"}, "left to give", "amount"),
        "a long note": ("deny", {"note": "x" * 501}, "", "note"),
    }  # fmt: skip

    @pytest.mark.parametrize("case", WRONG)
    def test_what_is_wrong_is_said_beside_its_request(self, world: World, case: str) -> None:
        verb, data, sentence, field = self.WRONG[case]
        request = world.asks(world.robin, 2)
        world.asks(world.robin, 3, reason="Another.")

        page = decide(world, request, verb, **data)

        request.refresh_from_db()
        assert page.status == 400
        assert sentence in page.words
        assert f'id="{verb}-{request.pk.hex[:12]}-{field}_error"' in page.html
        assert request.state == "pending"
        assert 'data-hx-get="/approvals/"' in page.html  # the page is fetched anew from its own address

    def test_who_comes_second_reads_who_was_first(self, world: World) -> None:
        request = world.asks(world.robin)
        decide(world, request, "approve", world.dana)
        world.clock.advance(minutes=2)

        page = decide(world, request, "deny", world.lena, note="No.")

        request.refresh_from_db()
        assert page.status == 409
        assert "Somebody was first. Robin’s request: Already approved by Dana" in page.words
        assert request.state == "approved"

    @pytest.mark.parametrize(("name", "status"), [("robin", 403), ("sasha", 404), ("farah", 404), ("lena", 302)])
    def test_only_leads_decide(self, world: World, name: str, status: int) -> None:
        request = world.asks(world.robin)

        answer = as_person(getattr(world, name)).post(f"/approvals/{request.pk}/approve/")

        assert answer.status_code == status

    def test_a_decision_by_link_does_nothing(self, world: World) -> None:
        """A4."""
        request = world.asks(world.robin)

        assert as_person(world.dana).get(f"/approvals/{request.pk}/approve/").status_code == 405
        request.refresh_from_db()
        assert request.state == "pending"

    def test_a_grant_of_the_past_is_over_on_every_page(self, world: World) -> None:
        """A2: two pages never disagree."""
        world.grant(world.vision, H100, 8, member=world.robin, ends_at=world.now - td(minutes=1))

        words = look(as_person(world.robin), "/quotas/").words

        assert "0 of 16 held" in words
        assert "for Robin alone" not in words
