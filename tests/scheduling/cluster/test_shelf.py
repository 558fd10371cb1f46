"""What a word about an object changes, by how new it is."""

from itertools import permutations

import pytest

from scheduling.cluster import shelf as module
from scheduling.cluster.shelf import Change, Item, Shelf, number

A, B = ("ns", "a"), ("ns", "b")


def item(key=A, version=10, fact="old", uid="u"):
    return Item(key, uid, version, fact)


TAKEN = {  # what is held, what is said, what is held then
    "something new": (None, item(), "old"),
    "a newer word": (item(version=9, fact="older"), item(), "old"),
    "an older word": (item(version=11, fact="newer"), item(), "newer"),
    "the same word twice": (item(), item(fact="said again with the same version"), "old"),
    "a namesake made since": (item(version=9, uid="v", fact="theirs"), item(), "old"),
    "a namesake of before": (item(version=11, uid="v", fact="theirs"), item(), "theirs"),
    "versions that are no numbers: the latest counts": (item(version=None, fact="x"), item(version=None), "old"),
    "a version that is none after one that is": (item(version=9, fact="x"), item(version=None), "old"),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_held_after_a_word(case):
    held, said, after = TAKEN[case]
    shelf = Shelf()
    if held:
        shelf.take(held)

    change = shelf.take(said)

    assert shelf.facts == (after,)
    assert (change is not None) == (held is None or held.fact != after)


BURIED = {  # what is held, when and who was deleted, what is left
    "what is held": (item(), ("u", 11), ()),
    "a namesake that is older than what is held": (item(version=12), ("v", 11), ("old",)),
    "the same, told late, after it came back into view": (item(version=12), ("u", 11), ("old",)),
    "nobody": (None, ("u", 11), ()),
    "without a version": (item(), ("u", None), ()),
}


@pytest.mark.parametrize("case", BURIED)
def test_what_is_left_after_a_deletion(case):
    held, (uid, version), left = BURIED[case]
    shelf = Shelf()
    if held:
        shelf.take(held)

    shelf.bury(A, uid, version)

    assert shelf.facts == left


def test_an_older_word_does_not_raise_the_dead():
    shelf = Shelf()
    shelf.take(item(version=10))
    shelf.bury(A, "u", 12)

    assert shelf.take(item(version=11)) is None
    assert shelf.facts == ()
    assert shelf.take(item(version=13, uid="v", fact="its namesake")) == Change(None, "its namesake")


def test_what_the_server_told_us_to_be_gone_never_comes_back():
    """Between our deletion and the watch's word of it the watch may still say something newer than we held."""
    shelf = Shelf()
    shelf.take(item(version=10))
    shelf.bury(A, "u", None, final=True)

    assert shelf.take(item(version=99)) is None
    assert shelf.take(item(version=11, uid="v")) is not None


def test_any_order_of_the_same_words_ends_the_same():
    said = [item(version=version, fact=version) for version in (1, 2, 3)]
    for order in permutations([*said, *said]):
        shelf = Shelf()
        for one in order:
            shelf.take(one)
        assert shelf.facts == (3,)


# Lists


def test_a_list_removes_what_it_lacks_and_says_what_changed():
    shelf = Shelf()
    shelf.replace([item(A), item(B)], 10)

    changes = shelf.replace([item(B, version=12, fact="new")], 15)

    assert sorted(changes, key=str) == [Change("old", "new"), Change("old", None)]
    assert (shelf.facts, shelf.version) == (("new",), 15)


def test_a_list_does_not_undo_what_is_newer_than_it():
    """A list takes a while; meanwhile the watch goes on, and we write."""
    shelf = Shelf()
    shelf.replace([item(A), item(B)], 10)
    shelf.take(item(("ns", "c"), version=21, fact="made meanwhile"))
    shelf.take(item(A, version=22, fact="changed meanwhile"))
    shelf.bury(B, "u", 23)
    shelf.heard(23)

    shelf.replace([item(A), item(B)], 20)

    assert shelf.facts == ("changed meanwhile", "made meanwhile")
    assert shelf.version == 23


def test_what_a_list_lacked_is_not_raised_by_an_older_word():
    shelf = Shelf()
    shelf.replace([item(A)], 10)
    shelf.replace([], 20)

    assert shelf.take(item(A, version=15)) is None
    assert shelf.take(item(A, version=21)) is not None


def test_facts_are_in_the_order_of_lists_and_the_same_tuple_while_nothing_changes():
    shelf = Shelf()
    for key in (("b", "a"), ("a", "z"), ("a", "b")):
        shelf.take(item(key, fact=key))
    first = shelf.facts

    assert first == (("a", "b"), ("a", "z"), ("b", "a"))
    assert shelf.take(item(("a", "b"), version=11, fact=("a", "b"))) is None
    assert shelf.facts is first


MARKS = {
    "the first list counts as a whole": (lambda shelf: shelf.replace([item(version=5)], 20), 20),
    "a later one by its objects": (lambda shelf: (shelf.replace([], 1), shelf.replace([item(version=5)], 20)), 5),
    "one that lacks something as a whole": (lambda s: (s.replace([item(version=5)], 9), s.replace([], 20)), 20),
    "how far the stream was heard does not": (lambda shelf: (shelf.take(item(version=5)), shelf.heard(99)), 5),
    "a deletion does": (lambda shelf: (shelf.take(item(version=5)), shelf.bury(A, "u", 8)), 8),
}


@pytest.mark.parametrize("case", MARKS)
def test_how_far_another_mirror_has_to_have_come(case):
    act, mark = MARKS[case]
    shelf = Shelf()

    act(shelf)

    assert shelf.mark == mark


def test_another_cluster_may_say_anything():
    shelf = Shelf()
    shelf.replace([item(A, version=500)], 600)
    shelf.bury(B, "u", 601)

    shelf.forget()
    shelf.replace([item(B, version=3, fact="new")], 4)

    assert (shelf.facts, shelf.version, shelf.mark) == (("new",), 4, 4)


def test_the_dead_are_not_remembered_for_ever(monkeypatch):
    monkeypatch.setattr(module, "MOST_GRAVES", 3)
    shelf = Shelf()
    for number_ in range(10):
        shelf.take(item(("ns", str(number_)), version=number_))
        shelf.bury(("ns", str(number_)), "u", number_)

    assert [key for _, key in shelf.graves] == ["7", "8", "9"]
    assert shelf.items == {}


@pytest.mark.parametrize(
    ("text", "expected"), [("17", 17), ("0", 0), ("", None), ("abc", None), ("-1", None), ("٣", None), ("9" * 40, None)]
)
def test_a_version_is_a_number_or_cannot_be_compared(text, expected):
    assert number(text) == expected
