from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import pytest

from scheduling.models import Cluster, Workload
from scheduling.offers import Offer, offers
from scheduling.planning.facts import Kind
from tenants.models import Grant, QuotaRequest
from tests.portal.pages.reading import Seen, as_person, look, send
from tests.world import H100, World

NEW = "/workloads/new/"


@pytest.fixture
def priced(world: World) -> World:
    world.publish()
    return world


def wish(world: World, **changes: Any) -> dict[str, Any]:
    """What the form sends when a whole card is requested."""
    return {
        "kind": "workspace", "team": str(world.vision.pk), "name": "notebook", "count": "1", "hours": "8",
        "command": "", "reason": "", "image": "", "storage_gib": "50", "cores": "4", "memory_gib": "16", "until": "",
        "submission": "abc", "flavor": str(world.flavors["whole"].pk), **changes,
    }  # fmt: skip


class TestOffers:
    def test_every_flavor_is_offered_in_words_with_isolation_price_and_outlook(self, priced: World) -> None:
        page = look(as_person(priced.robin), NEW)

        assert "1g.10gb slice of an H100" in page.words
        assert "isolated in hardware" in page.words
        assert "no isolation You take turns on one card" in page.words
        assert "0.525 €/h 4.20 € for 8 h" in page.words
        assert "Starts now" in page.words
        assert "⅛ card · 16 left" in page.words

    def test_the_cheapest_that_starts_now_stands_out(self, priced: World) -> None:
        page = look(as_person(priced.robin), NEW)

        assert page.words.count("Cheapest that starts now") == 1
        assert "Cheapest that starts now 1g.10gb slice of an H100" in page.words

    def test_a_pool_at_zero_makes_the_offer_wait_and_says_why(self, priced: World) -> None:
        page = look(as_person(priced.robin), NEW)

        waiting = page.words.partition("Quarter of an A10G")[2]
        assert "Waits" in waiting

    def test_what_the_quota_does_not_cover_needs_the_lead_by_name(self, priced: World) -> None:
        Grant.objects.filter(team=priced.vision, model=H100).update(amount=F(1, 2))

        page = look(as_person(priced.robin), NEW)

        assert "Needs Dana" in page.words
        assert "Ask Dana" in page.words
        assert "½ over your quota" in page.words
        assert ("ask", str(priced.flavors["whole"].pk)) in page.form_to(NEW).buttons

    def test_a_lead_asks_the_lead_above(self, priced: World) -> None:
        Grant.objects.filter(team=priced.vision, model=H100).update(amount=F(1, 2))

        assert "Ask Lena" in look(as_person(priced.dana), NEW).words

    def test_what_nobody_has_priced_cannot_be_chosen_and_says_so(self, world: World) -> None:
        world.publish({"whole": "4.20"})

        page = look(as_person(world.robin), NEW)

        assert page.words.count("nobody has priced it") == 2
        assert [value for name, value in page.form_to(NEW).buttons if name != "refresh"] == [
            str(world.flavors["whole"].pk)
        ]

    def test_offers_follow_the_form(self, priced: World) -> None:
        page = look(as_person(priced.robin), NEW + "offers/?count=2&hours=", **{"HX-Request": "true"})

        assert "2 × Whole H100" in page.words
        assert "2 × 1g.10gb" not in page.words
        assert "8.40 €/h 201.60 € a day" in page.words

    def test_too_many_for_any_node_leaves_only_what_fits(self, priced: World) -> None:
        page = look(as_person(priced.robin), NEW + "offers/?count=9")

        assert "Whole H100" not in page.words
        assert "1g.10gb slice" in page.words

    WRONG = {
        "count=0": "Cards: Write 1 or more.", "count=65": "Cards: Write 64 or less.",
        "count=x": "Cards: Write a whole number.", "hours=0": "For up to (hours): Write 1 or more.",
        "hours=99999": "For up to (hours):", "cores=-1": "CPU cores:", "cores=NaN": "CPU cores:",
        "memory_gib=0": "Memory (GiB):", "kind=endpoint": "What is it?:", "team=x": "Team:",
        "team=00000000-0000-0000-0000-000000000000": "Team:", "count=1e3": "Cards:", "count=%00": "Cards:",
    }  # fmt: skip

    @pytest.mark.parametrize("query", WRONG)
    def test_what_makes_no_sense_is_named_in_place_of_offers(self, priced: World, query: str) -> None:
        page = look(as_person(priced.robin), f"{NEW}offers/?{query}", **{"HX-Request": "true"})

        assert page.status == 400
        assert self.WRONG[query] in page.words
        assert "€/h" not in page.words

    def test_on_a_paused_cluster_nothing_is_said_to_start_now(self, priced: World) -> None:
        Cluster.objects.update(paused=True)

        words = look(as_person(priced.robin), NEW).words

        assert "Starts now" not in words
        assert "is paused; it starts when the operator resumes it." in words

    def test_somebody_without_a_team_is_told_whom_to_ask(self, world: World) -> None:
        page = look(as_person(world.farah), NEW)

        assert page.status == 403
        assert "ask a lead to take you in" in page.words


class TestSending:
    def test_a_request_opens_one_workload_and_leads_to_it(self, priced: World) -> None:
        answer = as_person(priced.robin).post(NEW, wish(priced, reason="A try."))

        row = Workload.objects.get()
        assert answer["Location"] == f"/workloads/{row.pk}/"
        assert (row.name, row.owner, row.team, row.flavor) == (
            "notebook",
            priced.robin,
            priced.vision,
            priced.flavors["whole"],
        )
        assert (row.cpu_milli, row.memory_mib, row.storage_gib, row.hours) == (4000, 16384, 50, 8)
        assert row.quota_request is None

    def test_a_double_click_opens_one_workload(self, priced: World) -> None:
        """A5."""
        client = as_person(priced.robin)

        first, second = (client.post(NEW, wish(priced)) for _ in range(2))

        assert Workload.objects.count() == 1
        assert first["Location"] == second["Location"]

    def test_each_form_has_a_submission_of_its_own(self, priced: World) -> None:
        client = as_person(priced.robin)

        keys = {look(client, NEW).form_to(NEW).fields["submission"] for _ in range(2)}

        assert len(keys) == 2

    def test_asking_the_lead_opens_the_workload_and_one_request(self, priced: World) -> None:
        Grant.objects.filter(team=priced.vision, model=H100).update(amount=F(1, 2))
        sent = wish(priced, flavor="", ask=str(priced.flavors["whole"].pk), reason="A deadline.", until="2027-03-31")

        as_person(priced.robin).post(NEW, sent)

        request = QuotaRequest.objects.get()
        assert Workload.objects.get().quota_request == request
        assert (request.amount, request.reason, request.state) == (F(1, 2), "A deadline.", "pending")
        assert request.until is not None
        assert f"{request.until:%Y-%m-%d %H:%M}" == "2027-04-01 00:00"

    def test_asking_without_a_reason_is_said_at_the_reason(self, priced: World) -> None:
        Grant.objects.filter(team=priced.vision, model=H100).update(amount=F(1, 2))

        page = send(as_person(priced.robin), NEW, **wish(priced, flavor="", ask=str(priced.flavors["whole"].pk)))

        self.check_refused(page, "Say in a sentence what it is for", field="reason")

    def test_a_request_that_meanwhile_needs_the_lead_asks_nobody_unasked(self, priced: World) -> None:
        Grant.objects.filter(team=priced.vision, model=H100).update(amount=F(1, 2))

        page = send(as_person(priced.robin), NEW, **wish(priced, reason="A try."))

        self.check_refused(page, "Your quota has been used up meanwhile")

    def test_an_unpriced_flavor_cannot_be_sent_for_either(self, world: World) -> None:
        world.publish({"slice": "4.20"})

        page = send(as_person(world.robin), NEW, **wish(world))

        self.check_refused(page, "Nobody has published a price")

    WRONG = {  # what is sent: (the sentence, its field)
        "no name": ({"name": ""}, "Give it a name", "name"),
        "a name in capitals": ({"name": "Note Book"}, "lower-case letters", "name"),
        "a hostile name": ({"name": "<script>alert(1)</script>"}, "lower-case letters", "name"),
        "a long name": ({"name": "x" * 41}, "1 to 40", "name"),
        "no cards": ({"count": "0"}, "", "count"),
        "half a card": ({"count": "0.5"}, "", "count"),
        "too long": ({"hours": "721"}, "", "hours"),
        "no image": ({"image": "not an image!"}, "container image", "image"),
        "a job without a command": ({"kind": "job"}, "Say which command", "command"),
        "a NUL": ({"command": "a\x00b"}, "", "command"),
        "a long reason": ({"reason": "x" * 501}, "", "reason"),
        "negative storage": ({"storage_gib": "-1"}, "", "storage_gib"),
        "more memory than any node": ({"memory_gib": "4096"}, "", ""),
        "another team": ({"team": "00000000-0000-0000-0000-000000000000"}, "Choose one of the teams", "team"),
        "no flavor": ({"flavor": ""}, "Choose one of the offers", ""),
        "no such flavor": ({"flavor": "999999"}, "Choose one of the offers", ""),
        "a flavor that is none": ({"flavor": "' OR 1=1"}, "Choose one of the offers", ""),
        "no day": ({"until": "31.3.2027"}, "2027-03-31", "until"),
        "a day beyond all calendars": ({"until": "9999-12-31"}, "before the year", "until"),
    }  # fmt: skip

    @pytest.mark.parametrize("case", WRONG)
    def test_what_is_wrong_is_said_at_its_field_and_nothing_is_written(self, priced: World, case: str) -> None:
        changes, sentence, field = self.WRONG[case]

        page = send(as_person(priced.robin), NEW, **wish(priced, **changes))

        self.check_refused(page, sentence, field=field)

    def test_the_team_of_somebody_else_is_none_of_yours(self, priced: World) -> None:
        page = send(as_person(priced.robin), NEW, **wish(priced, team=str(priced.speech.pk)))

        self.check_refused(page, "Choose one of the teams in which you run work", field="team")
        assert "Speech" not in page.words

    def test_what_was_written_is_kept(self, priced: World) -> None:
        page = send(
            as_person(priced.robin), NEW, **wish(priced, name="Bad Name", reason="Kept words", storage_gib="77")
        )

        assert page.form_to(NEW).fields["name"] == "Bad Name"
        assert page.form_to(NEW).fields["storage_gib"] == "77"
        assert page.form_to(NEW).fields["submission"] == "abc"
        assert "Kept words" in page.words

    def test_looking_at_the_offers_without_scripts_writes_nothing(self, priced: World) -> None:
        page = send(as_person(priced.robin), NEW, **wish(priced, count="2", refresh="1"))

        assert page.status == 200
        assert "2 × Whole H100" in page.words
        assert page.form_to(NEW).fields["name"] == "notebook"
        assert Workload.objects.count() == 0

    @pytest.mark.parametrize("query", ["count=x", "team=x", "kind=endpoint", "cores=", "hours=-1"])
    def test_a_link_that_makes_no_sense_says_so(self, priced: World, query: str) -> None:
        page = look(as_person(priced.robin), f"{NEW}?{query}")

        assert page.status == 400
        assert "€/h" not in page.words

    def test_a_link_fills_the_form_in(self, priced: World) -> None:
        page = look(as_person(priced.robin), NEW + "?kind=job&name=train&count=3")

        assert page.form_to(NEW).fields["name"] == "train"
        assert "3 × Whole H100" in page.words

    def check_refused(self, page: Seen, sentence: str, *, field: str = "") -> None:
        assert page.status == 400
        assert sentence in page.words
        if field:
            assert f'id="id_{field}_error"' in page.html
        assert Workload.objects.count() == 0
        assert QuotaRequest.objects.count() == 0


def test_page_and_offers_agree(priced: World) -> None:
    """The page shows the planner's own answers, no others."""
    from scheduling.offers import Sizes

    found: list[Offer] = offers(priced.vision, priced.robin, kind=Kind.WORKSPACE, sizes=Sizes(), now=priced.now)
    page = look(as_person(priced.robin), NEW)

    assert len(found) == 3
    assert all(offer.outlook.text.partition(": ")[2] or offer.outlook.text in page.words for offer in found)
