"""What was promised of MIG slices: how many find room as they come, and how much work where cards are cut anew."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction as F
from random import Random

from portal.bench.bar import Bar, beside
from portal.bench.learning import Weighed
from portal.bench.slicing import BestFit, FirstFit, Policy, System, play
from portal.management.console import CouldNot
from scheduling.planning import catalog
from scheduling.planning.catalog import MigBoard, Model
from scheduling.planning.layouts import known
from scheduling.planning.slices import Usefulness, axis, needed

MODEL = "h100-80gb"
CARDS = 1_000
SEEDS = (42, 43, 44)
OF_OPTIMUM = 0.97
LEARN_EACH = 250  # requests after which what is usually asked for is learned anew
CUT_CARDS, CUT_MINUTES, STAY = 300, 5, 120
LOAD = F(23, 20)
WARM, MEASURED = 20 * STAY, 14 * STAY
MORE_COMPUTE = 1.05


def bars() -> list[Bar]:
    """Profiles are drawn alike, each as often as any other."""
    return [first_refusal(), *(recut(name, layouts) for name, layouts in choices().items())]


def first_refusal() -> Bar:
    """Slices one after the other until one fits on no card, beside the most of the same requests that any packing could
    hold: each way to fill a card found by search, the number of cards by linear programme, so by fractions of ways."""
    board = mig()
    served = sum(len(list(fitting(board, seed))) for seed in SEEDS)
    most = sum(most_that_fit(board, seed) for seed in SEEDS)
    name = f"{CARDS:,} cards until the first slice that fits nowhere: slices served"
    return beside(name, served / len(SEEDS), OF_OPTIMUM, most / len(SEEDS), whose="the optimum's")


def recut(name: str, layouts: list[Mapping[str, int]]) -> Bar:
    """Work comes and goes at more than the fleet can hold; idle cards are cut anew, at the minutes that this takes."""
    system = system_of(layouts)
    ours = accepted(system, Weighed)
    theirs = max(accepted(system, policy) for policy in (FirstFit, BestFit))
    where = f"{CUT_CARDS} cards at {float(LOAD * 100):g} % load, cuts of {CUT_MINUTES} min, {name}"
    what = f"{where}: part of the compute accepted"
    return beside(what, ours, MORE_COMPUTE, theirs, whose="the better of first and best fit")


def choices() -> dict[str, list[Mapping[str, int]]]:
    """The layouts that a card may be cut to: every one that there is, and those that the GPU operator comes with."""
    named = [found for name in known(model()) if (found := catalog.layout(model(), name))]
    return {
        "any layout": axis(mig()).ways(axis(mig()).base),
        "the operator's own layouts": [found.counts for found in named if not found.whole],
    }


def fitting(board: MigBoard, seed: int) -> Iterator[str]:
    """The profiles of the requests that were served before the first that was not."""
    memory = axis(board)
    states = Counter({0: CARDS})  # cards by what is taken of them
    seen: Counter[str] = Counter()
    useful = Usefulness(memory, seen)
    for number, profile in enumerate(requests(board, seed), start=1):
        choice = useful.choose(profile, states)
        if choice is None:
            return
        states[choice.taken] -= 1
        states += Counter({choice.taken | choice.spot.mask: 1})  # and drops states that no card is in any more
        seen[profile] += 1
        yield profile
        if number % LEARN_EACH == 0:
            useful = Usefulness(memory, seen)


def most_that_fit(board: MigBoard, seed: int) -> int:
    """How many of the first requests need no more cards than there are, by bisection."""
    memory = axis(board)
    few, many = 0, CARDS * board.memory_slices
    while few < many:
        middle = (few + many + 1) // 2
        wanted = Counter(profile for profile, _ in zip(requests(board, seed), range(middle), strict=False))
        few, many = (middle, many) if needed(memory, wanted).total <= CARDS else (few, middle - 1)
    return few


def requests(board: MigBoard, seed: int) -> Iterator[str]:
    """Without end; the same for the same seed."""
    chance = Random(seed)  # noqa: S311  chance, not secrecy
    base = axis(board).base
    while True:
        yield chance.choice(base)


def accepted(system: System, policy: Callable[[System], Policy]) -> float:
    """The part of the offered compute that found a slice, on average."""
    parts = [play(system, policy(system), seed, warm=WARM, measured=MEASURED).part for seed in SEEDS]
    return sum(parts) / len(parts)


def system_of(layouts: list[Mapping[str, int]]) -> System:
    profiles = [profile for profile in mig().profiles if profile.base]
    mean = sum((profile.share for profile in profiles), F(0)) / len(profiles)  # of a card, of one request
    return System(
        names=tuple(profile.name for profile in profiles),
        compute=tuple(profile.compute_slices for profile in profiles),
        memory=tuple(profile.memory_slices for profile in profiles),
        layouts=tuple(tuple(layout.get(profile.name, 0) for profile in profiles) for layout in layouts),
        nodes=CUT_CARDS,
        cards=1,
        cut_minutes=CUT_MINUTES,
        weights=(1,) * len(profiles),
        stay=STAY,
        a_minute=float(LOAD * CUT_CARDS / mean / STAY),
    )


def mig() -> MigBoard:
    if (board := model().mig) is None:
        raise CouldNot(f"The catalog does not say how {MODEL} is cut.")
    return board


def model() -> Model:
    found = catalog.model(MODEL)
    if found is None:
        raise CouldNot(f"The catalog does not know {MODEL}.")
    return found
