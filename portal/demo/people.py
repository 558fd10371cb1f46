"""Who there is in the demo. All of them are invented. Pure data: nothing here asks a table."""

from __future__ import annotations

from dataclasses import dataclass

PASSWORD = "berth-demo-only"  # noqa: S105 (of the demo's invented people, printed on its log-in page)
ORGANISATION = "meridian"


@dataclass(frozen=True, slots=True)
class TeamFact:
    """One team of the tree; a parent comes before its children."""

    slug: str
    name: str
    parent: str = ""


@dataclass(frozen=True, slots=True)
class PersonFact:
    """One person, and what the person is in which team; the operator of the platform has no role in a team."""

    username: str
    first_name: str
    last_name: str
    roles: tuple[tuple[str, str], ...] = ()  # (team's slug, researcher | lead | finance)
    operator: bool = False

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def email(self) -> str:
        return f"{self.username}@meridian.example"


@dataclass(frozen=True, slots=True)
class Guise:
    """One of the four people that a visitor of the demo can be, with what there is to do as that person."""

    username: str
    role: str
    does: str


TEAMS = (
    TeamFact(ORGANISATION, "Meridian Institute"),
    TeamFact("perception", "Machine Perception", ORGANISATION),
    TeamFact("systems", "Embodied Systems", ORGANISATION),
    TeamFact("vision", "Vision", "perception"),
    TeamFact("speech", "Speech", "perception"),
    TeamFact("robotics", "Robotics", "systems"),
    TeamFact("language", "Language", "systems"),
)

PEOPLE = (
    PersonFact("robin", "Robin", "Vale", (("vision", "researcher"),)),
    PersonFact("dana", "Dana", "Okafor", (("vision", "lead"),)),
    PersonFact("farah", "Farah", "Lindqvist", ((ORGANISATION, "finance"),)),
    PersonFact("omar", "Omar", "Reyes", operator=True),
    PersonFact("mina", "Mina", "Castellan", (("vision", "researcher"),)),
    PersonFact("tomas", "Tomas", "Hale", (("vision", "researcher"),)),
    PersonFact("lena", "Lena", "Brook", (("perception", "lead"),)),
    PersonFact("priya", "Priya", "Nordin", (("speech", "lead"), ("speech", "researcher"))),
    PersonFact("jonas", "Jonas", "Weld", (("speech", "researcher"),)),
    PersonFact("kofi", "Kofi", "Marchetti", (("robotics", "lead"), ("robotics", "researcher"))),
    PersonFact("sana", "Sana", "Petrak", (("robotics", "researcher"),)),
    PersonFact("ivo", "Ivo", "Storm", (("language", "lead"), ("language", "researcher"))),
    PersonFact("noor", "Noor", "Ashdown", (("language", "researcher"),)),
)

FOUR = (
    Guise("robin", "Researcher in Vision", "asks for GPUs and works on them"),
    Guise("dana", "Lead of Vision", "decides who in the team may hold how much"),
    Guise("farah", "Finance of the Meridian Institute", "reads what each month cost, and closes it"),
    Guise("omar", "Operator of the platform", "watches the fleet and the cycle"),
)


def person(username: str) -> PersonFact:
    """The person of that name. Raises LookupError for anybody else."""
    found = next((fact for fact in PEOPLE if fact.username == username), None)
    if found is None:
        raise LookupError(f"Nobody in the demo is called {username}.")
    return found


def four() -> list[tuple[PersonFact, Guise]]:
    """The four people of the log-in page, in the order of the story."""
    return [(person(guise.username), guise) for guise in FOUR]
