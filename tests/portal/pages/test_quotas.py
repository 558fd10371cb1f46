from __future__ import annotations

from datetime import timedelta as td
from fractions import Fraction as F
from typing import Any

import pytest

from tenants.models import Grant, QuotaRequest
from tests.portal.pages.reading import as_person, look, send
from tests.world import A10G, H100, World


def question(world: World, **changes: Any) -> dict[str, Any]:
    return {"team": str(world.vision.pk), "model": H100, "amount": "2", "until": "", "reason": "A deadline.", **changes}


class TestNumbers:
    def test_a_researcher_sees_the_own_team_and_not_the_tree_above(self, world: World) -> None:
        page = look(as_person(world.robin), "/quotas/")

        assert "Vision" in page.words
        assert "H100 80GB 0 of 16 held 16 free" in page.words
        assert "Speech" not in page.words
        assert "Meridian" not in page.words

    def test_a_lead_of_a_department_sees_what_is_given_on(self, world: World) -> None:
        page = look(as_person(world.lena), "/quotas/")

        assert "24 of 48 given on 24 left to give" in page.words
        assert page.words.index("Research and the teams below it") < page.words.index("Speech A10G")

    def test_what_is_held_is_told_by_whom(self, world: World) -> None:
        world.workload("mine", phase="running")
        world.workload("hers", by=world.dana, flavor="whole", phase="running")

        page = look(as_person(world.robin), "/quotas/")

        assert "1⅛ of 16 held 14⅞ free" in page.words
        assert 'class="mine" x="0" y="0" width="0.7812"' in page.html
        assert 'class="others" x="0.7812" y="0" width="6.25"' in page.html

    def test_over_quota_is_said_with_both_numbers_and_nothing_is_free(self, world: World) -> None:
        """Q6: never a negative number, nothing killed."""
        for number in range(6):
            world.workload(f"w{number}", flavor="whole", phase="running")
        Grant.objects.filter(team=world.vision, model=H100).update(amount=F(4))

        page = look(as_person(world.robin), "/quotas/")

        assert "6/4 over by 2 0 free" in page.words
        assert "−" not in page.words

    def test_a_members_own_grant_is_beside_the_teams(self, world: World) -> None:
        world.grant(world.vision, H100, 2, member=world.robin)

        page = look(as_person(world.robin), "/quotas/")

        assert "0 of 18 held 16 free · 18 left for you · 2 of it to single members" in page.words
        assert "for Robin alone" in page.words

    def test_what_sleeps_frees_its_quota(self, world: World) -> None:
        world.workload("resting", phase="asleep")

        assert "0 of 16 held" in look(as_person(world.robin), "/quotas/").words


class TestGrantFilter:
    def test_grants_are_narrowed_by_team_and_model(self, world: World) -> None:
        client = as_person(world.omar)

        def rows(query: str) -> int:
            return sum("/end/" in form.action for form in look(client, f"/quotas/?{query}").forms)

        assert (rows(""), rows(f"team={world.vision.pk}"), rows(f"model={A10G}")) == (8, 2, 4)
        assert rows(f"team={world.vision.pk}&model={A10G}") == 1

    @pytest.mark.parametrize("query", ["team=x", "model=h9000"])
    def test_a_filter_that_makes_no_sense_is_said(self, world: World, query: str) -> None:
        page = look(as_person(world.omar), f"/quotas/?{query}")

        assert page.status == 400
        assert 'id="which_' in page.html

    def test_the_team_of_somebody_else_is_no_filter(self, world: World) -> None:
        assert look(as_person(world.robin), f"/quotas/?team={world.speech.pk}").status == 400


class TestAsking:
    def test_a_request_goes_to_the_lead(self, world: World) -> None:
        answer = as_person(world.robin).post("/quotas/ask/", question(world, amount="2,5", until="2027-01-31"))

        request = QuotaRequest.objects.get()
        assert answer["Location"] == "/quotas/"
        assert (request.amount, request.asked_by, request.team) == (F(5, 2), world.robin, world.vision)
        assert "2½ cards of H100 80GB for you in Vision" in look(as_person(world.robin), "/quotas/").words

    def test_asking_twice_the_same_is_one_request(self, world: World) -> None:
        """A5."""
        client = as_person(world.robin)
        for _ in range(3):
            client.post("/quotas/ask/", question(world))

        assert QuotaRequest.objects.count() == 1

    WRONG = {  # what is sent: the sentence, the field
        "nothing": ({"amount": ""}, "Say how many cards", "amount"),
        "no number": ({"amount": "many"}, "Write a number of cards", "amount"),
        "zero": ({"amount": "0"}, "more than 0", "amount"),
        "less than nothing": ({"amount": "-1"}, "Write a number of cards", "amount"),
        "a number that would take all memory": ({"amount": "1e999999"}, "Write a number of cards", "amount"),
        "through zero": ({"amount": "1/0"}, "Write a number of cards", "amount"),
        "through many zeros": ({"amount": "1/000"}, "Write a number of cards", "amount"),
        "too many": ({"amount": "99999"}, "at most", "amount"),
        "no reason": ({"reason": "  "}, "what the cards are for", "reason"),
        "a long reason": ({"reason": "x" * 501}, "", "reason"),
        "a past day": ({"until": "2020-01-01"}, "lies in the past", "until"),
        "no model": ({"model": "h9000"}, "Choose a GPU model", "model"),
        "no team": ({"team": "1"}, "Choose one of the teams", "team"),
    }  # fmt: skip

    @pytest.mark.parametrize("case", WRONG)
    def test_what_is_wrong_is_said_at_its_field(self, world: World, case: str) -> None:
        changes, sentence, field = self.WRONG[case]

        page = send(as_person(world.robin), "/quotas/ask/", **question(world, **changes))

        assert page.status == 400
        assert sentence in page.words
        assert f'id="id_{field}_error"' in page.html
        assert 'data-hx-get="/quotas/"' in page.html
        assert QuotaRequest.objects.count() == 0

    def test_nobody_asks_for_another_team(self, world: World) -> None:
        page = send(as_person(world.robin), "/quotas/ask/", **question(world, team=str(world.speech.pk)))

        assert page.status == 400
        assert QuotaRequest.objects.count() == 0


class TestOwnRequests:
    def countered(self, world: World, **facts: Any) -> QuotaRequest:
        return world.asks(
            world.robin, 4, state="countered", decided_by=world.dana, decided_at=world.now, offered_amount=F(1),
            offered_until=world.now + td(days=7), note="One for a week.", **facts,
        )  # fmt: skip

    def test_an_offer_can_be_accepted(self, world: World) -> None:
        request = self.countered(world)
        client = as_person(world.robin)

        words = look(client, "/quotas/").words
        client.post(f"/quotas/requests/{request.pk}/accept/")

        assert "Dana offers 1 card until 8 Dec" in words
        grant = Grant.objects.get(request=request)
        assert (grant.amount, grant.member, grant.ends_at) == (F(1), world.robin, request.offered_until)

    def test_a_request_can_be_withdrawn_once(self, world: World) -> None:
        request = world.asks(world.robin)
        client = as_person(world.robin)

        first = client.post(f"/quotas/requests/{request.pk}/withdraw/")
        second = send(client, f"/quotas/requests/{request.pk}/withdraw/")

        assert first.status_code == 302
        assert second.status == 409
        assert "Already withdrawn by Robin" in second.words

    def test_only_the_asker_answers_an_offer(self, world: World) -> None:
        request = self.countered(world)

        assert send(as_person(world.dana), f"/quotas/requests/{request.pk}/accept/").status == 403
        assert send(as_person(world.sasha), f"/quotas/requests/{request.pk}/accept/").status == 404
        assert Grant.objects.filter(request=request).count() == 0


class TestGrants:
    def test_a_lead_ends_a_grant_and_nothing_is_stopped(self, world: World) -> None:
        row = world.workload("notebook", phase="running")
        grant = Grant.objects.get(team=world.vision, model=H100)

        answer = as_person(world.dana).post(f"/quotas/grants/{grant.pk}/end/")

        grant.refresh_from_db()
        row.refresh_from_db()
        assert answer.status_code == 302
        assert (grant.ends_at, row.phase, row.desired) == (world.now, "running", "run")

    @pytest.mark.parametrize(("name", "status"), [("robin", 403), ("farah", 403), ("sasha", 404), ("omar", 302)])
    def test_who_else_may(self, world: World, name: str, status: int) -> None:
        grant = Grant.objects.get(team=world.vision, model=A10G)

        assert as_person(getattr(world, name)).post(f"/quotas/grants/{grant.pk}/end/").status_code == status

    def test_the_button_is_there_only_for_who_may(self, world: World) -> None:
        def ends(person: Any) -> int:
            return sum("/end/" in form.action for form in look(as_person(person), "/quotas/").forms)

        assert (ends(world.robin), ends(world.dana), ends(world.farah), ends(world.omar)) == (0, 2, 0, 8)
