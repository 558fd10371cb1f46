"""Asking, deciding and granting, as small stories."""

from datetime import timedelta as td
from fractions import Fraction as F

import pytest
from django.db import IntegrityError, transaction

from tenants import services
from tenants.access import standing
from tenants.errors import AlreadyDecided, Refused
from tenants.models import Grant, QuotaRequest
from tenants.quota import Quota
from tenants.selectors import effect_of, left_to_give, quota_of, requests_for

H100 = "h100-80gb"


def test_an_approved_request_becomes_a_grant_of_the_asker(world):
    request = world.asks(world.robin, 2)

    grant = services.approve(request, by=world.dana, now=world.now, note="For the paper.")

    assert (grant.member, grant.amount, grant.ends_at, grant.request) == (world.robin, 2, None, request)
    assert (request.state, request.decided_by, request.note) == ("approved", world.dana, "For the paper.")
    assert quota_of(world.vision.pk, H100, world.now) == Quota(F(16), {world.robin.pk: F(2)})


def test_an_approval_may_be_smaller_and_time_boxed(world):
    request = world.asks(world.robin, 2)
    friday = world.now + td(days=3)

    grant = services.approve(request, by=world.dana, now=world.now, amount=F(1), until=friday)

    assert (grant.amount, grant.ends_at) == (1, friday)
    assert quota_of(world.vision.pk, H100, friday) == Quota(F(16))


def test_the_second_decider_is_told_who_was_first(world):
    request = world.asks(world.robin)
    stale = QuotaRequest.objects.get(pk=request.pk)
    services.approve(request, by=world.dana, now=world.now)

    with pytest.raises(AlreadyDecided, match=r"Already approved by Dana at 08:00:00 UTC\."):
        services.deny(stale, by=world.lena, now=world.now, note="No.")

    assert Grant.objects.filter(request=request).count() == 1


def test_nobody_decides_the_own_request(world):
    request = world.asks(world.dana)

    with pytest.raises(Refused, match="Nobody decides the own request"):
        services.approve(request, by=world.dana, now=world.now)


def test_the_table_itself_refuses_a_decision_by_the_asker(world):
    request = world.asks(world.dana)

    with pytest.raises(IntegrityError), transaction.atomic():
        QuotaRequest.objects.filter(pk=request.pk).update(state="approved", decided_by=world.dana, decided_at=world.now)


def test_an_approval_is_bounded_by_what_the_parent_has_left(world):
    request = world.asks(world.robin, 25)

    with pytest.raises(Refused, match="Research has 24 cards of h100-80gb left to give in that time; this needs 25"):
        services.approve(request, by=world.dana, now=world.now)

    request.refresh_from_db()
    assert request.state == "pending"
    assert not Grant.objects.filter(request=request).exists()


def test_a_denial_needs_a_reason(world):
    request = world.asks(world.robin)

    with pytest.raises(Refused) as refusal:
        services.deny(request, by=world.dana, now=world.now, note="  ")

    assert refusal.value.field == "note"


def test_an_offer_becomes_a_grant_when_the_asker_accepts(world):
    request = world.asks(world.robin, 4)
    services.counter(request, by=world.dana, now=world.now, amount=F(1), until=None, note="One now.")

    assert not Grant.objects.filter(request=request).exists()
    grant = services.accept_counter(request, by=world.robin, now=world.now)

    assert (grant.amount, grant.member, grant.made_by) == (1, world.robin, world.dana)


def test_an_offer_is_accepted_once_and_only_by_its_asker(world):
    request = world.asks(world.robin, 4)
    services.counter(request, by=world.dana, now=world.now, amount=F(1), until=None)

    with pytest.raises(Refused, match="Only Robin can accept"):
        services.accept_counter(request, by=world.dana, now=world.now)
    services.accept_counter(request, by=world.robin, now=world.now)
    with pytest.raises(AlreadyDecided):
        services.accept_counter(request, by=world.robin, now=world.now)


def test_a_withdrawn_request_cannot_be_approved(world):
    request = world.asks(world.robin)
    services.withdraw(request, by=world.robin, now=world.now)

    with pytest.raises(AlreadyDecided, match="Already withdrawn by Robin"):
        services.approve(request, by=world.dana, now=world.now)


NONSENSE = {
    "nothing": {"amount": F(0)},
    "less than nothing": {"amount": F(-1)},
    "beyond all measure": {"amount": F(10**9)},
    "a fraction that no card has": {"amount": F(1, 10**9)},
    "an end in the past": {"until": -1},
    "no reason": {"reason": "   "},
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_refused_and_writes_nothing(world, case):
    facts = {"amount": F(1), "reason": "A paper.", **NONSENSE[case]}
    if "until" in facts:
        facts["until"] = world.now + td(seconds=facts["until"])

    with pytest.raises(Refused):
        services.ask_quota(team=world.vision, by=world.robin, model=H100, now=world.now, **facts)

    assert not QuotaRequest.objects.exists()


def test_an_ended_grant_leaves_over_quota_and_cannot_end_twice(world):
    grant = Grant.objects.get(team=world.vision, model=H100)
    services.end_grant(grant, now=world.now)

    assert quota_of(world.vision.pk, H100, world.now) == Quota()
    with pytest.raises(Refused, match="already ended"):
        services.end_grant(grant, now=world.now)


def test_a_grant_without_request_is_bounded_by_the_parent_too(world):
    with pytest.raises(Refused, match="Research has 24 cards"):
        services.give_grant(team=world.speech, model=H100, amount=F(30), by=world.omar, now=world.now)

    services.give_grant(team=world.organisation, model=H100, amount=F(100), by=world.omar, now=world.now)
    assert left_to_give(world.research.pk, H100, world.now, None) == 24


def test_the_effect_shows_the_numbers_before_and_after(world):
    request = world.asks(world.robin, 2)

    effect = effect_of(request, request.amount, None, world.now)

    assert (effect.granted_before, effect.granted_after) == (16, 18)
    assert (effect.own_before, effect.own_after) == (0, 2)
    assert (effect.parent_left_before, effect.parent_left_after) == (24, 22)
    assert effect.possible
    assert not effect_of(request, F(25), None, world.now).possible


def test_requests_are_seen_by_asker_leads_and_operator_only(world):
    request = world.asks(world.robin)
    seers = [
        who.username
        for who in (world.robin, world.dana, world.lena, world.omar, world.sasha, world.farah)
        if request in requests_for(standing(who))
    ]

    assert seers == ["robin", "dana", "lena", "omar"]
