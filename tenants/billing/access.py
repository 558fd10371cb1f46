"""Who may see which charges, and who closes a month."""

from uuid import UUID

from tenants.access import Standing
from tenants.errors import NotAllowed


def teams_in_view(stand: Standing) -> list[UUID] | None:
    """The teams whose charges the person may see; None for all of them and the platform's own lines."""
    if stand.sees_all_charges():
        return None
    found = stand.billed()
    if not found:
        raise NotAllowed("Charges are for finance, team leads and the operator; ask one of them.")
    return found


def check_closes_months(stand: Standing) -> None:
    if not stand.closes_months():
        raise NotAllowed("Only finance of the whole organisation closes a month.")
