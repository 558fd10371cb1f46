"""When a cluster is left alone, on a clock turned by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scheduling.cluster.circuit import FAILURES, LONGEST_PAUSE, TRIAL_PATIENCE, Circuit
from scheduling.cluster.port import ClusterError


class Hand:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Highest:
    """Dice that always give the longest pause."""

    def random(self) -> float:
        return 0.0


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def circuit(hand: Hand) -> Circuit:
    """One whose cluster has answered."""
    return proven(hand)


def proven(hand: Hand) -> Circuit:
    made = Circuit(clock=hand, dice=Highest())
    call(made)
    return made


SILENT = ClusterError("The cluster at x does not answer: timed out.")


def call(circuit: Circuit, error: ClusterError | None = None, path: str = "/api/v1/nodes", **options: Any) -> float:
    """One call that ends so; answers the patience that it was given."""
    with circuit.call(path, **options) as most:
        if error is not None:
            raise error
    return most


def fail(circuit: Circuit, times: int, error: ClusterError = SILENT) -> None:
    for _ in range(times):
        with pytest.raises(ClusterError) as found:
            call(circuit, error)
        assert found.value is error, "the call was made"


def refusal(circuit: Circuit, **options: Any) -> ClusterError:
    with pytest.raises(ClusterError) as found:
        call(circuit, **options)
    return found.value


def overloaded(status: int = 429, after: float | None = 7.0) -> ClusterError:
    return ClusterError(f"The cluster refused ({status}): too many.", status=status, after=after)


def test_a_well_cluster_is_called_with_the_usual_patience(circuit):
    assert call(circuit) == math.inf


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_kept_to_the_second(circuit, hand, status):
    fail(circuit, 1, overloaded(status))
    hand.now += 6.9

    told = refusal(circuit)
    assert told.retry
    assert told.after == pytest.approx(0.1)
    assert str(told).startswith(f"The cluster refused ({status}): too many. It asked not to be called before ")

    hand.now += 0.2
    assert call(circuit) == math.inf


def test_an_answer_to_an_earlier_call_does_not_shorten_what_was_asked(circuit, hand):
    with circuit.call():
        fail(circuit, 1, overloaded())
    assert refusal(circuit).after == 7.0


def test_the_longer_of_two_wishes_counts(circuit, hand):
    frame = circuit.call()
    frame.__enter__()
    fail(circuit, 1, overloaded(after=60.0))
    shorter = overloaded(after=2.0)
    frame.__exit__(type(shorter), shorter, None)

    assert refusal(circuit).after == 60.0


@pytest.mark.parametrize(
    "error",
    [
        overloaded(after=None),
        ClusterError("no", status=500),
        ClusterError("no", status=403, retry=False),
        ClusterError("no", status=404, retry=False),
        ClusterError("no", status=409),
    ],
    ids=["429 without a time", "500", "403", "404", "409"],
)
def test_an_answer_is_a_sign_of_life_whatever_it_says(circuit, error):
    fail(circuit, FAILURES - 1)
    fail(circuit, 1, error)
    fail(circuit, FAILURES - 1)

    assert call(circuit) == TRIAL_PATIENCE, "it is not open: two failures are not three"


@pytest.mark.parametrize("error", [SILENT, ClusterError("who?", status=401, retry=False)], ids=["silence", "401"])
def test_it_opens_after_some_failures_in_a_row(circuit, error):
    fail(circuit, FAILURES, error)

    told = refusal(circuit)
    assert told.after == 1.0
    assert str(told).startswith(f"{error} It is asked again at ")


def test_while_it_is_open_it_says_the_same_words(circuit, hand):
    fail(circuit, FAILURES)
    first = str(refusal(circuit))
    hand.now += 0.5

    assert str(refusal(circuit)) == first


def test_the_pause_grows_up_to_a_bound(circuit, hand):
    fail(circuit, FAILURES)
    pauses = []
    for _ in range(9):
        pauses.append(refusal(circuit).after or 0.0)
        hand.now += pauses[-1]
        fail(circuit, 1)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert max(pauses) == LONGEST_PAUSE


def test_one_call_at_a_time_tries_and_with_little_patience(circuit, hand):
    fail(circuit, FAILURES)
    hand.now += 1.0

    with circuit.call() as most:
        assert most == TRIAL_PATIENCE
        assert refusal(circuit).after == 1.0

    assert call(circuit) == math.inf, "its success closes the circuit"


@pytest.mark.parametrize("failures", [0, 1, FAILURES], ids=["never asked", "failed once", "open"])
def test_of_all_clusters_in_doubt_two_are_waited_for_at_a_time(hand, failures):
    """Many hanging clusters cost a process two threads, not all."""
    well, first, second, third = (
        proven(hand) if failures or not number else Circuit(clock=hand) for number in range(4)
    )
    for one in (first, second, third):
        fail(one, failures)
    hand.now += 1.0

    with first.call(), second.call() as most:
        assert most == TRIAL_PATIENCE
        assert refusal(third).after == 1.0
        assert call(well) == math.inf, "one that is well is called meanwhile"
    assert call(third) == TRIAL_PATIENCE
    assert call(third) == math.inf


def test_a_cluster_in_doubt_may_be_asked_several_things_at_once(hand):
    """As by a mirror that lists five kinds; it takes one of the two places."""
    fresh, other, third = (Circuit(clock=hand) for _ in range(3))
    with fresh.call(), fresh.call(), fresh.call(), other.call():
        assert "other clusters that do not answer are being tried first" in str(refusal(third))
    assert call(third) == TRIAL_PATIENCE


def test_a_watch_takes_no_place(hand):
    with Circuit(clock=hand).call(tries=False) as most:
        assert most == math.inf


def test_a_trial_that_breaks_otherwise_lets_the_next_one_try(circuit, hand):
    fail(circuit, FAILURES)
    hand.now += 1.0
    with pytest.raises(KeyError), circuit.call():
        raise KeyError

    assert call(circuit) == TRIAL_PATIENCE


def test_a_watch_does_not_try(circuit, hand):
    fail(circuit, FAILURES)
    hand.now += 1.0

    assert refusal(circuit, tries=False).retry
    call(circuit)
    assert call(circuit, tries=False) == math.inf


@pytest.mark.parametrize("path", ["/api/v1/namespaces/a/pods/b:9400/proxy/metrics", "/api/v1/namespaces/a/pods/b/log"])
@pytest.mark.parametrize("error", [SILENT, overloaded(503)], ids=["silence", "503 with Retry-After"])
def test_what_answers_behind_the_server_says_nothing_of_it(circuit, path, error):
    for _ in range(FAILURES):
        with pytest.raises(ClusterError):
            call(circuit, error, path)

    assert call(circuit) == math.inf


def test_late_failures_of_calls_from_before_do_not_make_the_pause_longer(circuit, hand):
    for _ in range(8):  # made at once, and all in vain
        circuit._failed(SILENT)

    assert refusal(circuit).after == 1.0
