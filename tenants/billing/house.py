"""The organisation's zone and currency, as the settings say."""

from zoneinfo import ZoneInfo

from django.conf import settings


def zone() -> ZoneInfo:
    """Days and months are cut in this zone."""
    return ZoneInfo(settings.BERTH_ZONE)


def currency() -> str:
    return str(settings.BERTH_CURRENCY)
