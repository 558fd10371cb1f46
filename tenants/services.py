"""Changing grants and requests: one transaction each, the decided row is the trace, the database picks the first."""

from datetime import datetime
from fractions import Fraction as F

from django.db import transaction

from tenants.errors import AlreadyDecided, NotAllowed, Refused
from tenants.models import Grant, LendingLimit, QuotaRequest, RequestState, Team, User
from tenants.selectors import left_to_give

MOST_CARDS = F(10_000)


@transaction.atomic
def ask_quota(
    *,
    team: Team,
    by: User,
    model: str,
    amount: F,
    reason: str,
    now: datetime,
    until: datetime | None = None,
    waits_for_it: str = "",
) -> QuotaRequest:
    """Ask the team's leads for a grant to oneself. Refuses nonsense amounts, a past end and an empty reason."""
    _check_amount(amount)
    _check_until(until, now)
    if not reason.strip():
        raise Refused("Say in a sentence what the cards are for: the lead decides by it.", field="reason")
    return QuotaRequest.objects.create(
        team=team,
        asked_by=by,
        asked_at=now,
        model=model,
        amount=amount,
        until=until,
        reason=reason.strip(),
        waits_for_it=waits_for_it,
    )


@transaction.atomic
def approve(
    request: QuotaRequest,
    *,
    by: User,
    now: datetime,
    amount: F | None = None,
    until: datetime | None = None,
    note: str = "",
) -> Grant:
    """Grant what was asked for, or less, or until a date; within what the parent has left to give."""
    given = request.amount if amount is None else amount
    ends = request.until if until is None else until
    _check_amount(given, field="amount")
    _check_until(ends, now)
    if given > request.amount:
        raise Refused(f"Asked were {request.amount} cards; approve that or less.", field="amount")
    _check_parent(request.team, request.model, given, now, ends)
    _decide(
        request,
        RequestState.PENDING,
        RequestState.APPROVED,
        by=by,
        now=now,
        note=note,
        offered_amount=given,
        offered_until=ends,
    )
    return _grant(request, given, ends, by=by, now=now)


@transaction.atomic
def deny(request: QuotaRequest, *, by: User, now: datetime, note: str) -> None:
    """Say no, with the reason that the asker will read."""
    if not note.strip():
        raise Refused("Give the asker a reason for the denial.", field="note")
    _decide(request, RequestState.PENDING, RequestState.DENIED, by=by, now=now, note=note.strip())


@transaction.atomic
def counter(
    request: QuotaRequest, *, by: User, now: datetime, amount: F, until: datetime | None, note: str = ""
) -> None:
    """Offer something else: nothing is granted until the asker accepts."""
    _check_amount(amount, field="amount")
    _check_until(until, now)
    if amount == request.amount and until == request.until:
        raise Refused("The offer equals what was asked for; approve it instead.", field="amount")
    _check_parent(request.team, request.model, amount, now, until)
    _decide(
        request,
        RequestState.PENDING,
        RequestState.COUNTERED,
        by=by,
        now=now,
        note=note.strip(),
        offered_amount=amount,
        offered_until=until,
    )


@transaction.atomic
def accept_counter(request: QuotaRequest, *, by: User, now: datetime) -> Grant:
    """The asker takes the offer: it becomes a grant, made by the lead who offered it."""
    if request.asked_by_id != by.pk:
        raise Refused(f"Only {request.asked_by} can accept the offer.")
    amount, lead = request.offered_amount, request.decided_by
    if amount is None or lead is None:
        raise Refused("There is no offer to accept.")
    _check_until(request.offered_until, now)
    _check_parent(request.team, request.model, amount, now, request.offered_until)
    taken = QuotaRequest.objects.filter(pk=request.pk, state=RequestState.COUNTERED).update(state=RequestState.APPROVED)
    if not taken:
        raise _already(request)
    request.refresh_from_db()
    return _grant(request, amount, request.offered_until, by=lead, now=now)


@transaction.atomic
def withdraw(request: QuotaRequest, *, by: User, now: datetime) -> None:
    """The asker no longer wants it, or does not want the offer."""
    if request.asked_by_id != by.pk:
        raise Refused(f"Only {request.asked_by} can withdraw the request.")
    open_states = [RequestState.PENDING, RequestState.COUNTERED]
    done = QuotaRequest.objects.filter(pk=request.pk, state__in=open_states).update(
        state=RequestState.WITHDRAWN, decided_by=by, decided_at=now
    )
    if not done:
        raise _already(request)


@transaction.atomic
def give_grant(
    *,
    team: Team,
    model: str,
    amount: F,
    by: User,
    now: datetime,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    member: User | None = None,
    reason: str = "",
) -> Grant:
    """A grant without a request, by the operator or a lead of the parent; bounded by the parent's numbers."""
    _check_amount(amount, field="amount")
    begins = starts_at or now
    if ends_at is not None and ends_at <= begins:
        raise Refused("A grant ends after it starts; choose a later end.", field="ends_at")
    _check_parent(team, model, amount, begins, ends_at)
    return Grant.objects.create(
        team=team,
        member=member,
        model=model,
        amount=amount,
        starts_at=begins,
        ends_at=ends_at,
        made_by=by,
        made_at=now,
        reason=reason,
    )


@transaction.atomic
def end_grant(grant: Grant, *, now: datetime) -> None:
    """End a grant now. What is held above the quota afterwards shows as over-quota; nothing is killed by it."""
    ended = Grant.objects.filter(pk=grant.pk, ends_at=None).update(ends_at=max(now, grant.starts_at))
    ended = ended or Grant.objects.filter(pk=grant.pk, ends_at__gt=now).update(ends_at=max(now, grant.starts_at))
    if not ended:
        raise Refused("This grant has already ended.")


def set_lending_limit(*, team: Team, model: str, borrowing: F | None, lending: F | None) -> LendingLimit:
    """How many cards a team may borrow and lend; None: as many as there are. Nothing that runs is stopped by it."""
    if any(cards is not None and cards < 0 for cards in (borrowing, lending)):
        raise Refused("Nobody can borrow or lend less than 0 cards.")
    limits = {"borrowing": borrowing, "lending": lending}
    found, _ = LendingLimit.objects.update_or_create(team=team, model=model, defaults=limits)
    return found


def _grant(request: QuotaRequest, amount: F, until: datetime | None, *, by: User, now: datetime) -> Grant:
    return Grant.objects.create(
        team_id=request.team_id,
        member_id=request.asked_by_id,
        model=request.model,
        amount=amount,
        starts_at=now,
        ends_at=until,
        request=request,
        made_by=by,
        made_at=now,
        reason=request.reason,
    )


def _decide(request: QuotaRequest, before: str, after: str, *, by: User, now: datetime, **facts: object) -> None:
    """The guarded update that makes two decisions impossible: who comes second changes no row."""
    if by.pk == request.asked_by_id:
        raise NotAllowed("Nobody decides the own request; another lead has to.")
    decided = QuotaRequest.objects.filter(pk=request.pk, state=before).update(
        state=after, decided_by=by, decided_at=now, **facts
    )
    if not decided:
        raise _already(request)
    request.refresh_from_db()


def _already(request: QuotaRequest) -> AlreadyDecided:
    request.refresh_from_db()
    words = request.get_state_display().lower()
    if request.decided_by is None or request.decided_at is None:
        return AlreadyDecided(f"The request is {words}; this step does not apply to it.")
    return AlreadyDecided(f"Already {words} by {request.decided_by} at {request.decided_at:%H:%M:%S} UTC.")


def _check_parent(team: Team, model: str, amount: F, starts_at: datetime, ends_at: datetime | None) -> None:
    """Within what the parent has left. The parent's row is locked, so that two approvals cannot spend it twice."""
    if team.parent_id is None:
        return
    parent = Team.objects.select_for_update().get(pk=team.parent_id)
    left = left_to_give(parent.pk, model, starts_at, ends_at)
    if amount > left:
        raise Refused(
            f"{parent.name} has {max(left, F(0))} cards of {model} left to give in that time; this needs {amount}. "
            f"Offer less, or ask the operator for more for {parent.name}.",
            field="amount",
        )


def _check_amount(amount: F, *, field: str = "amount") -> None:
    if amount <= 0:
        raise Refused("The amount must be more than 0 cards.", field=field)
    if amount > MOST_CARDS:
        raise Refused(f"The amount must be at most {MOST_CARDS} cards.", field=field)
    if amount.denominator > 1000:
        raise Refused("The amount must be a plain fraction such as 7/8, 1 or 2.5.", field=field)


def _check_until(until: datetime | None, now: datetime) -> None:
    if until is not None and until <= now:
        raise Refused("The end lies in the past; choose a later one.", field="until")
