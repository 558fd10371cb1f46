"""Numbers, times and states in words and small pictures. Everything that a template shows goes through here once."""

from datetime import datetime
from datetime import timedelta as td
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction as F
from typing import Any
from zoneinfo import ZoneInfo

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.html import format_html

from scheduling.planning import catalog
from scheduling.planning.shares import isolation_of, parse_sku
from tenants.billing.selectors import month_name

register = template.Library()

NARROW = "\N{NARROW NO-BREAK SPACE}"
UNKNOWN = "unknown"
VULGAR = {
    F(1, 2): "½",
    F(1, 3): "⅓",
    F(2, 3): "⅔",
    F(1, 4): "¼",
    F(3, 4): "¾",
    F(1, 5): "⅕",
    F(2, 5): "⅖",
    F(3, 5): "⅗",
    F(4, 5): "⅘",
    F(1, 6): "⅙",
    F(5, 6): "⅚",
    F(1, 7): "⅐",
    F(1, 8): "⅛",
    F(3, 8): "⅜",
    F(5, 8): "⅝",
    F(7, 8): "⅞",
}
SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "KRW": "₩"}


PHASES = {
    "waiting": ("ring", "warn"),
    "placed": ("half", "info"),
    "starting": ("half", "info"),
    "running": ("dot", "ok"),
    "stopping": ("arrow-down", "warn"),
    "asleep": ("moon", "violet"),
    "ended": ("square", ""),
}
STATES = {
    "pending": ("clock", "warn"),
    "approved": ("check", "ok"),
    "denied": ("cross", "bad"),
    "countered": ("offer", "info"),
    "withdrawn": ("minus", ""),
}
ISOLATIONS = {
    "hardware": ("shield", "violet", "isolated in hardware"),
    "process": ("shield-half", "info", "isolated by process"),
    "none": ("shield-off", "warn", "no isolation"),
}
SENTENCES = {
    "whole": "The card is yours alone.",
    "mig": "Memory and compute of your own: the GPU itself keeps others out.",
    "mps": "Your memory is limited and apart, but a fault of one holder can end the work of all.",
    "time-slice": "You take turns on one card and share its memory: nobody enforces a limit, and a fault hits all.",
}


@register.filter
def cards(value: F | int | None) -> str:
    """An amount of cards as people write it: 7/2 -> "3½"; what has no such sign gets two decimal places."""
    if value is None:
        return UNKNOWN
    sign, exact = ("−" if value < 0 else ""), abs(F(value))
    units, rest = divmod(exact, 1)
    if not rest:
        return f"{sign}{units:,}"
    if rest in VULGAR:
        return f"{sign}{units or ''}{VULGAR[rest]}"
    return f"{sign}{Decimal(exact.numerator) / Decimal(exact.denominator):,.2f}"


@register.filter
def card_words(value: F | int | None) -> str:
    """ "⅛ card", "1 card", "3½ cards"."""
    if value is None:
        return UNKNOWN
    return f"{cards(value)} card{'' if 0 < value <= 1 else 's'}"


@register.filter
def number(value: F | float | None) -> str:
    """For attributes that scripts and meters read: a plain decimal number."""
    return "0" if value is None else f"{float(value):.4f}".rstrip("0").rstrip(".")


@register.filter
def money(amount: Decimal | None, places: int = 2) -> str:
    """ "13,237.08", half up, without the currency."""
    if amount is None:
        return UNKNOWN
    shown = amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{shown:,}".replace("-", "−")


@register.filter
def in_currency(amount: Decimal | None) -> str:
    """ "13,237.08 €" in the organisation's currency."""
    return UNKNOWN if amount is None else f"{money(amount)}{NARROW}{sign()}"


@register.filter
def per_hour(amount: Decimal | None) -> str:
    """A price: two decimal places, and more only where they are not zero: "0.525 €/h"."""
    if amount is None:
        return "no price"
    exact = amount.quantize(Decimal("0.0001"), ROUND_HALF_UP).normalize()
    places = max(2, -int(exact.as_tuple().exponent))
    return f"{money(amount, places)}{NARROW}{sign()}/h"


@register.filter
def times(amount: Decimal | None, factor: int | None) -> Decimal | None:
    """A price for so many hours."""
    return None if amount is None or factor is None else amount * factor


@register.filter
def per_second(per_hour: Decimal, rate: float) -> str:
    """For scripts: what a second of the reader's costs, where `rate` seconds pass in it."""
    return f"{float(per_hour) / 3600 * rate:.8f}"


@register.filter
def gib(mib: int | None) -> str:
    """ "9.6 GiB"; whole numbers from 100 GiB on."""
    if mib is None:
        return UNKNOWN
    value = mib / 1024
    return f"{value:,.0f}{NARROW}GiB" if value >= 100 or value == int(value) else f"{value:.1f}{NARROW}GiB"


@register.filter
def in_gib(mib: int) -> str:
    """For scripts: 9856 -> "9.625"."""
    return f"{mib / 1024:g}"


@register.filter
def cores(milli: int) -> str:
    return f"{milli / 1000:g}"


@register.filter
def number_or_zero(value: float | None) -> str:
    """For meters, which know no "unknown": the words beside them say it."""
    return number(F(value) if value is not None else None)


@register.filter
def percent(share: float | F | None) -> str:
    """0.64 -> "64 %"."""
    return UNKNOWN if share is None else f"{round(float(share) * 100)}{NARROW}%"


@register.filter
def duration(value: td | float | None) -> str:
    """Two units at most: "45 s", "3 min 29 s", "1 h 12 min", "2 days 3 h"."""
    if value is None:
        return UNKNOWN
    seconds = max(0, int(value.total_seconds() if isinstance(value, td) else value))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    if days:
        return _two(f"{days} day{'s' if days > 1 else ''}", f"{hours} h" if hours else "")
    if hours:
        return _two(f"{hours} h", f"{minutes} min" if minutes else "")
    if minutes:
        return _two(f"{minutes} min", f"{seconds % 60} s" if seconds % 60 else "")
    return f"{seconds} s"


@register.filter
def minutes_words(value: int | None) -> str:
    return "never" if value is None else duration(value * 60)


@register.simple_tag(takes_context=True)
def moment(context: template.Context, value: datetime | None, style: str = "") -> str:
    """A time in the organisation's zone: today only the clock, else the day too; `style` day has no clock."""
    if value is None:
        return UNKNOWN
    zone = ZoneInfo(settings.BERTH_ZONE)
    local = value.astimezone(zone)
    today = context["time"].now.astimezone(zone) if "time" in context else local
    full = f"{local:%A} {local.day} {local:%B %Y, %H:%M:%S} {settings.BERTH_ZONE}"
    shown = _shown(local, today, style)
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(timespec="seconds"), full, shown)


@register.simple_tag(takes_context=True)
def since(context: template.Context, value: datetime | None) -> str:
    """How long ago: "12 min 5 s"."""
    return UNKNOWN if value is None else duration(context["time"].now - value)


@register.simple_tag
def icon(name: str, label: str = "", extra: str = "") -> str:
    """A small picture from the sprite; without a label it is decoration and silent."""
    said = format_html('role="img" aria-label="{}"', label) if label else format_html('aria-hidden="{}"', "true")
    words = '<svg class="icon {}" {}><use href="{}#{}"></use></svg>'
    return format_html(words, extra, said, static("icons/sprite.svg"), name)


@register.filter
def model_title(key: str) -> str:
    """ "H100 80GB"; an unknown model keeps the name by which its node called it."""
    return catalog.title(key)


@register.filter
def sharing_words(pool: Any) -> str:
    """How a pool's cards are given out: "whole", "cut by MIG", "time-sliced ×4"."""
    kinds = {"whole": "whole", "mig": "cut by MIG", "time-slice": "time-sliced", "mps": "shared by MPS"}
    return kinds[pool.sharing] + (f" ×{pool.replicas}" if pool.replicas > 1 else "")


@register.filter
def sku_words(sku: str) -> str:
    """A flavor's name in a table: "H100 80GB, slice 1g.10gb, spot"; what is no sku of ours stays as it is."""
    try:
        parts = parse_sku(sku)
    except ValueError:
        return sku
    kind = {"whole": "whole", "mig": f"slice {parts.profile}"}.get(parts.sharing, f"{parts.sharing} ×{parts.replicas}")
    spot = ", spot" if parts.capacity == "spot" else ""
    return f"{catalog.title(parts.model)}, {kind}{spot}"


@register.filter
def month_words(period: str) -> str:
    return month_name(period)


@register.filter
def isolation(sharing: str) -> str:
    """hardware, process or none."""
    return str(isolation_of(sharing))


@register.filter
def before_colon(text: str) -> str:
    """The name in a flavor's words: "1g.10gb slice of an H100"."""
    return text.partition(":")[0]


@register.filter
def after_colon(text: str) -> str:
    """What is said of it: "10 GiB, isolated in hardware"."""
    return text.partition(": ")[2]


@register.filter
def get(mapping: Any, key: Any) -> Any:
    """A value out of a mapping by a variable key."""
    return mapping.get(key) if mapping else None


@register.filter
def pace(rate: float) -> str:
    """ "60×"."""
    return f"{rate:g}×"


@register.simple_tag(takes_context=True)
def clock_text(context: template.Context) -> str:
    """The time of the page in the organisation's zone: "Tue 1 Dec 2026, 09:00"."""
    local = _local_now(context)
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M}"


@register.simple_tag(takes_context=True)
def clock_iso(context: template.Context) -> str:
    """The same for scripts, as local time with its offset."""
    return _local_now(context).isoformat(timespec="seconds")


@register.simple_tag(takes_context=True)
def page_link(context: template.Context, name: str, number: int) -> str:
    """This page's address with another page of the list that the parameter `name` turns over."""
    query = context["request"].GET.copy()
    query[name] = str(number)
    return f"{_here(context)}?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def same_page(context: template.Context) -> str:
    """Where this page can be fetched anew: not where a form was sent to that was refused and is shown again."""
    query = context["request"].GET.urlencode()
    return f"{_here(context)}?{query}" if query else _here(context)


@register.inclusion_tag("parts/phase.html")
def phase_pill(phase: str) -> dict[str, str]:
    """A phase as icon and word; colour only helps."""
    picture, tone = PHASES.get(phase, ("ring", ""))
    return {"phase": phase, "picture": picture, "tone": tone}


@register.inclusion_tag("parts/phase.html")
def state_pill(state: str) -> dict[str, str]:
    """The state of a quota request as icon and word."""
    picture, tone = STATES.get(state, ("ring", ""))
    return {"phase": state, "picture": picture, "tone": tone}


@register.inclusion_tag("parts/isolation.html")
def isolation_pill(sharing: str) -> dict[str, str]:
    """What keeps the holders of one card apart, said as it is."""
    picture, tone, short = ISOLATIONS[str(isolation_of(sharing))]
    return {"picture": picture, "tone": tone, "short": short}


@register.filter
def isolation_sentence(sharing: str) -> str:
    return SENTENCES[sharing]


def sign() -> str:
    return SIGNS.get(settings.BERTH_CURRENCY, settings.BERTH_CURRENCY)


def _here(context: template.Context) -> str:
    return str(context.get("here") or context["request"].path)


def _local_now(context: template.Context) -> datetime:
    now: datetime = context["time"].now
    return now.astimezone(ZoneInfo(settings.BERTH_ZONE))


def _two(first: str, second: str) -> str:
    return f"{first} {second}".strip().replace(" ", "\N{NO-BREAK SPACE}")


def _shown(local: datetime, today: datetime, style: str) -> str:
    day = f"{local.day} {local:%b}" + ("" if local.year == today.year else f" {local.year}")
    if style == "day":
        return f"{local.day} {local:%B %Y}"
    if style == "seconds":
        return f"{local:%H:%M:%S}" if local.date() == today.date() else f"{day}, {local:%H:%M:%S}"
    return f"{local:%H:%M}" if local.date() == today.date() else f"{day}, {local:%H:%M}"
