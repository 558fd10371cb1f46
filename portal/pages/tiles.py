"""A node as a small picture: one square per card, cut into its units. Geometry only; the template draws it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction as F
from uuid import UUID

from scheduling.fleet import NodeSeen, Unit
from scheduling.models import Placement, Workload
from scheduling.stuck import may_know, stuck_words
from tenants.access import Standing

SIDE = 28  # of a card
GAP = 5
COLUMNS = 4
UNKNOWN_BUSY = "nobody says how busy"

Box = tuple[float, float, float, float]  # x, y, width, height


@dataclass(frozen=True, slots=True)
class Rect:
    """One rectangle: where, how large, what it means, and what it says when pointed at."""

    x: str
    y: str
    width: str
    height: str
    kind: str
    title: str = ""
    rounded: bool = False


@dataclass(frozen=True, slots=True)
class Tile:
    """One node, drawn."""

    name: str
    width: int
    height: int
    rects: list[Rect]
    words: str  # the picture in a sentence
    condition: str

    @property
    def short(self) -> str:
        """The name without its domain."""
        return self.name.partition(".")[0]


def tile_of(node: NodeSeen, stand: Standing) -> Tile:
    rects: list[Rect] = []
    for index, card in enumerate(node.cards):
        x, y = place_of(index)
        rects += card_rects(card, x, y, stand, node.behind)
    rows = -(-max(1, len(node.cards)) // COLUMNS)
    columns = min(COLUMNS, max(1, len(node.cards)))
    return Tile(
        name=node.row.name,
        width=columns * (SIDE + GAP) - GAP,
        height=rows * (SIDE + GAP) - GAP,
        rects=rects,
        words=words_of(node),
        condition=node.condition,
    )


def waking_tile(cards: int) -> Tile:
    """A node that the provider has been asked for."""
    rects = [rect((*place_of(index), SIDE, SIDE), "waking", rounded=True) for index in range(cards)]
    rows, columns = -(-cards // COLUMNS), min(COLUMNS, cards)
    size = columns * (SIDE + GAP) - GAP, rows * (SIDE + GAP) - GAP
    return Tile("waking", *size, rects, f"a node with {cards} cards is waking", "waking")


def place_of(index: int) -> tuple[float, float]:
    return index % COLUMNS * (SIDE + GAP), index // COLUMNS * (SIDE + GAP)


def card_rects(card: list[Unit], x: float, y: float, stand: Standing, behind: Mapping[UUID, Workload]) -> list[Rect]:
    """The units of one card from top to bottom, a hair apart; a held one is filled as far as it is busy."""
    rects: list[Rect] = []
    hair = 1.0 if len(card) > 1 else 0.0
    height_left = SIDE - hair * (len(card) - 1)
    total = sum((unit.share for unit in card), F(0)) or F(1)
    top = y
    for unit in card:
        height = float(unit.share / total) * height_left
        title = title_of(unit, stand, behind)
        rects += unit_rects(unit, (x, top, float(SIDE), height), title)
        top += height + hair
    return rects


def unit_rects(unit: Unit, box: Box, title: str) -> list[Rect]:
    if unit.state != "held":
        return [rect(box, unit.state, title, rounded=unit.share == 1)]
    if unit.busy is None:
        return [rect(box, "held-unknown", title, rounded=unit.share == 1)]
    x, y, width, height = box
    if unit.share == 1:
        filled = height * unit.busy
        inner = (x, y + height - filled, width, filled)
    else:
        inner = (x, y, width * unit.busy, height)
    kind = "busy" if unit.share == 1 else "busy-part"
    outer = rect(box, "held" if unit.share == 1 else "held-part", title, rounded=unit.share == 1)
    return [outer, rect(inner, kind)]


def title_of(unit: Unit, stand: Standing, behind: Mapping[UUID, Workload]) -> str:
    """What a unit says when pointed at. Whose it is, only to those who may see that team."""
    if unit.stuck is not None:
        return stuck_words(unit.stuck, known=may_know(unit.stuck, stand, behind))
    if unit.placement is None:
        return {"foreign": "held outside Berth", "stranded": "stranded: no slice fits here"}.get(unit.state, unit.state)
    busy = UNKNOWN_BUSY if unit.busy is None else f"{round(unit.busy * 100)} % busy"
    return f"{holder_of(unit.placement, stand)}, {busy}"


def holder_of(placement: Placement, stand: Standing) -> str:
    workload = placement.workload
    if not stand.may_read(workload.team_id):
        return "held by another team"
    return f"{workload.name} of {workload.owner}, {workload.team}"


def words_of(node: NodeSeen) -> str:
    units = [unit for card in node.cards for unit in card if unit.state != "stranded"]
    held = sum(unit.state in ("held", "foreign") for unit in units)
    stuck = sum(unit.state == "lingering" for unit in units)
    kind = "cards" if len(units) == len(node.cards) else "units"
    said = f"{node.row.name}: {held} of {len(units)} {kind} held"
    said += f", {stuck} more by pods that do not go" if stuck else ""
    return f"{said}, {node.words}" if node.words else said


def rect(box: Box, kind: str, title: str = "", *, rounded: bool = False) -> Rect:
    x, y, width, height = (f"{value:.2f}".rstrip("0").rstrip(".") for value in box)
    return Rect(x, y, width, height, kind, title, rounded)
