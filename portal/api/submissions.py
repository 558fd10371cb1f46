"""The same submission twice is one workload: `Idempotency-Key` is the row's `submission`."""

import re
from datetime import datetime
from typing import Any

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from portal.api.exceptions import OtherSubmission
from scheduling.models import Workload
from scheduling.services import IMAGES, Wish, open_workload
from tenants.errors import Refused

KEY_TEXT = "[!-~]{1,64}"
HEADER = "Idempotency-Key"
OURS = {"amount": "ask", "until": "ask_until"}
"""How the body calls the fields of the quota request that comes with a workload."""
PLAIN = ("name", "kind", "count", "command", "cpu_milli", "memory_mib", "storage_gib", "hours", "reason")


def submission_of(request: Request) -> str:
    """The client's key, or nothing: then each request is a submission of its own."""
    key = request.headers.get(HEADER)
    if key is None:
        return ""
    if not re.fullmatch(KEY_TEXT, key):
        raise ValidationError({HEADER: ["Send 1 to 64 printable characters without spaces, such as a UUID."]})
    return key


def submitted(wish: Wish, extras: dict[str, Any], now: datetime) -> tuple[Workload, bool]:
    """The workload of this submission, and whether it is new; `extras` are the other arguments of open_workload."""
    if first := told_again(wish, extras):
        return first, False
    try:
        made = open_workload(wish, now=now, **extras)
    except Refused as refusal:
        if refusal.field == "submission":
            told_again(wish, extras)
        refusal.field = OURS.get(refusal.field, refusal.field)
        raise
    told_again(wish, extras)  # the same key may have come twice at the same instant, with two bodies
    return made, True


def told_again(wish: Wish, extras: dict[str, Any]) -> Workload | None:
    """The workload that an earlier, equal submission opened; None where this is the first.

    Raises OtherSubmission where the earlier one said something else.
    """
    if not wish.submission:
        return None
    rows = Workload.objects.select_related("quota_request")
    first = rows.filter(owner=extras["by"], submission=wish.submission).first()
    if first is not None and not _equal(first, wish, extras):
        raise OtherSubmission(
            f"This {HEADER} was used for “{first.name}” with other values; use a new key for a new workload.",
            field=HEADER,
        )
    return first


def _equal(first: Workload, wish: Wish, extras: dict[str, Any]) -> bool:
    request = first.quota_request
    asked = (request.amount, request.until) if request else (None, None)
    return (
        all(getattr(first, name) == getattr(wish, name) for name in PLAIN)
        and first.flavor_id == wish.flavor.pk
        and first.image == (wish.image or IMAGES[wish.kind])
        and first.team_id == extras["team"].pk
        and asked == (extras["ask"], extras["until"] if extras["ask"] is not None else None)
    )
