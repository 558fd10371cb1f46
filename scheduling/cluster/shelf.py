"""One kind of a cluster's objects as facts: what is held, how new it is, and what a word about it changes.

Pure. Nothing is kept of a document but its fact, so memory follows the number of objects and not the talk about them.
Versions are compared where they are whole numbers, as those of one API server are; where they are not, the latest word
counts.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

Fact = TypeVar("Fact")

Key = tuple[str, str]  # namespace and name: at any time one object bears them
MOST_GRAVES = 4_096  # objects that are remembered as gone


class Item(NamedTuple):
    """One object as it was told: who it is, of which version, and what it means to us."""

    key: Key
    uid: str
    version: int | None  # None where the server's versions are no numbers
    fact: object


class Grave(NamedTuple):
    """An object that is gone: an older word about that name does not count. A final one never comes back."""

    uid: str
    version: int | None
    final: bool


class Change(NamedTuple, Generic[Fact]):
    """A fact that is not what it was; None where there was or is none."""

    before: Fact | None
    after: Fact | None


@dataclass(slots=True)
class Shelf(Generic[Fact]):
    """`version` is how far the stream was heard; `mark` is the newest word that was taken, our own writes included."""

    version: int | None = None
    mark: int | None = None
    items: dict[Key, Item] = field(default_factory=dict)
    graves: OrderedDict[Key, Grave] = field(default_factory=OrderedDict)
    _facts: tuple[Fact, ...] | None = ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        """In the order of namespace and name, as lists come. The same tuple as long as nothing changes."""
        if self._facts is None:
            self._facts = tuple(item.fact for _, item in sorted(self.items.items()))  # type: ignore[misc]
        return self._facts

    def find(self, key: Key) -> Item | None:
        return self.items.get(key)

    def take(self, item: Item) -> Change[Fact] | None:
        """Put an object there, unless what is held, or was buried, is as new. None: no fact changed."""
        held, grave = self.items.get(item.key), self.graves.get(item.key)
        if grave is not None and (is_final_for(grave, item) or not newer(item.version, grave.version)):
            return None
        if held is not None and not newer(item.version, held.version):
            return None
        self.graves.pop(item.key, None)
        self.items[item.key] = item
        self.mark = highest(self.mark, item.version)
        return self._changed(held.fact if held else None, item.fact)

    def bury(self, key: Key, uid: str, version: int | None, *, final: bool = False) -> Change[Fact] | None:
        """The object is gone since `version`; what is newer stays. `final`: the server itself told us so."""
        held = self.items.get(key)
        if held is not None and (older(version, held.version) or (final and held.uid != uid)):
            return None
        self._dig(key, Grave(uid, highest(version, held.version if held else None), final))
        self.mark = highest(self.mark, version)
        if held is None:
            return None
        del self.items[key]
        return self._changed(held.fact, None)

    def replace(self, items: Iterable[Item], version: int | None) -> list[Change[Fact]]:
        """A whole list, as the collection stood at `version`: what it lacks is gone, unless it is newer."""
        first = self.version is None
        listed = {item.key: item for item in items}
        gone = [item for key, item in self.items.items() if key not in listed and not older(version, item.version)]
        changes = [self.bury(item.key, item.uid, version) for item in gone]
        changes += [self.take(item) for item in listed.values()]
        self.heard(version)
        if first or gone:  # nobody hears of what was not there: another mirror has to have come so far itself
            self.mark = highest(self.mark, version)
        return [change for change in changes if change is not None]

    def heard(self, version: int | None) -> None:
        """The stream has come so far."""
        self.version = highest(self.version, version)

    def forget(self) -> None:
        """The cluster is not what it was: nothing that was held counts against what it says now."""
        self.version = self.mark = None
        self.graves.clear()
        self.items = {key: item._replace(version=0) for key, item in self.items.items()}

    def _dig(self, key: Key, grave: Grave) -> None:
        self.graves[key] = grave
        self.graves.move_to_end(key)
        while len(self.graves) > MOST_GRAVES:
            self.graves.popitem(last=False)

    def _changed(self, before: object, after: object) -> Change[Fact] | None:
        if before == after:
            return None
        self._facts = None
        return Change(before, after)  # type: ignore[arg-type]


def number(version: str) -> int | None:
    """A resourceVersion as a number that can be compared; None when it is none."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < len(str(2**64)) else None


def newer(one: int | None, other: int | None) -> bool:
    """Is the first newer, as far as can be told? What cannot be compared counts as newer: it was said later."""
    return one is None or other is None or one > other


def older(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one < other


def highest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def is_final_for(grave: Grave, item: Item) -> bool:
    return grave.final and bool(grave.uid) and grave.uid == item.uid
