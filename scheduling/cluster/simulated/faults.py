"""Trouble on request, for tests and for people who want to see what Berth does about it.

Every public method of `Faults` is one kind of trouble; `POST /simulation/faults {"fault": "<method>", ...}` calls it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

from .errors import ApiError, bad_request
from .kinds import Document

if TYPE_CHECKING:
    from .watching import Hub
    from .world import World

REASONS = {
    401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 429: "TooManyRequests",
    500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


@dataclass(slots=True)
class RequestFault:
    """What happens to the next `times` requests that match (for ever when None)."""

    effect: str  # answer, delay, lose
    method: str = ""  # empty: any
    path: str = ""  # a regular expression found anywhere in the path
    times: int | None = 1
    status: int = 0
    retry_after: int | None = None
    seconds: float = 0.0  # of the wall clock

    def matches(self, method: str, path: str) -> bool:
        return self.method.upper() in ("", method) and re.search(self.path, path) is not None

    def error(self) -> ApiError:
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after is not None else {}
        return ApiError(self.status, REASONS.get(self.status, "Unknown"), "a fault on request", headers=headers)


@dataclass(slots=True)
class Faults:
    world: World
    hub: Hub
    requests: list[RequestFault] = field(default_factory=list)
    silent: set[str] = field(default_factory=set)  # plurals whose watches say nothing
    refusals: dict[str, int] = field(default_factory=dict)  # node -> pods that its kubelet will still refuse
    unadvertised: set[str] = field(default_factory=set)  # nodes or pools whose GPUs never show
    stockouts: dict[str, str] = field(default_factory=dict)  # pool -> the provider's words
    dead: set[str] = field(default_factory=set)  # nodes whose kubelet is silent

    # Requests

    def answer(
        self, status: int, method: str = "", path: str = "", times: int | None = 1, retry_after: int | None = None
    ) -> None:
        """Answer matching requests with this status and do nothing."""
        self.requests.append(RequestFault("answer", method, path, times, status, retry_after))

    def delay(self, seconds: float, method: str = "", path: str = "", times: int | None = 1) -> None:
        """Let matching requests wait so many seconds of the wall clock."""
        self.requests.append(RequestFault("delay", method, path, times, seconds=seconds))

    def lose_reply(self, method: str = "", path: str = "", times: int | None = 1) -> None:
        """Do what matching requests ask for, then drop the connection instead of answering."""
        self.requests.append(RequestFault("lose", method, path, times))

    def cut_watches(self, kind: str = "") -> int:
        """End the open watches of a kind (plural; empty: all) in the middle of the stream."""
        return self.hub.end(kind, "cut")

    def expire_watches(self, kind: str = "") -> None:
        """Forget the history: open watches get an ERROR event 410, and new ones from old versions HTTP 410."""
        with self.world.lock:
            self.world.store.forget_history(kind)
        self.hub.ring(kind)

    def silence_watches(self, kind: str = "") -> None:
        """Watches of a kind stay open and say nothing any more, like a half-open connection."""
        self.silent.add(kind)

    # Nodes and cards

    def node_not_ready(self, node: str) -> None:
        """The kubelet of a node falls silent; its pods stay as they were last seen."""
        self.dead.add(node)
        self.touch_node(node)

    def node_ready(self, node: str) -> None:
        self.dead.discard(node)
        self.touch_node(node)

    def node_vanish(self, node: str) -> None:
        """The machine and its Node object disappear at once, pods running or not."""
        self.part("provider").vanish(node)

    def card_sick(self, node: str, card: int = 0, xid: int = 79) -> None:
        """A card reports an XID; the device plugin withdraws it from allocatable."""
        self.part("devices").mark_card(node, card, xid)

    def card_healthy(self, node: str, card: int = 0) -> None:
        self.part("devices").mark_card(node, card, 0)

    def refuse_admission(self, node: str, times: int = 1) -> None:
        """The kubelet of a node refuses the next pods with UnexpectedAdmissionError."""
        self.refusals[node] = times

    def never_advertise(self, name: str) -> None:
        """Fresh nodes of a pool, or one node, become Ready and never show their GPUs."""
        self.unadvertised.add(name)

    def stockout(self, pool: str, message: str = "the zone has no capacity of this machine type") -> None:
        """The provider cannot deliver machines for a pool."""
        self.stockouts[pool] = message
        self.part("provider").look_at_pools()

    def in_stock(self, pool: str) -> None:
        self.stockouts.pop(pool, None)
        self.part("provider").look_at_pools()

    def clear(self) -> None:
        """End all faults that last. What they have already broken stays broken."""
        nodes = list(self.dead)
        for lasting in (self.requests, self.silent, self.refusals, self.unadvertised, self.stockouts, self.dead):
            lasting.clear()
        for node in nodes:
            self.touch_node(node)
        self.part("provider").look_at_pools()

    # Doors

    def take(self, method: str, path: str, effect: str) -> RequestFault | None:
        """The fault that this request meets, counted down."""
        for fault in self.requests:
            if fault.effect == effect and fault.matches(method, path):
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times <= 0:
                        self.requests.remove(fault)
                return fault
        return None

    def by_name(self, order: Document) -> None:
        """Call the method that `fault` names with the other entries; BadRequest when there is no such trouble."""
        words = dict(order)
        name = str(words.pop("fault", ""))
        method = TROUBLES.get(name)
        if method is None:
            raise bad_request(f"no such fault: {name!r}; there are {', '.join(sorted(TROUBLES))}")
        try:
            signature(method).bind(self, **words)
        except TypeError as error:
            raise bad_request(f"fault {name}: {error}") from None
        with self.world.lock:
            try:
                method(self, **words)
            except (ValueError, TypeError) as error:
                raise bad_request(f"fault {name}: {error}") from None
            self.world.settle()

    def part(self, name: str) -> Any:
        return self.world.parts[name]

    def touch_node(self, node: str) -> None:
        with self.world.lock:
            self.part("nodes").look_at(node)
            self.world.settle()


TROUBLES: dict[str, Callable[..., Any]] = {
    name: getattr(Faults, name)
    for name in (
        "answer", "delay", "lose_reply", "cut_watches", "expire_watches", "silence_watches", "node_not_ready",
        "node_ready", "node_vanish", "card_sick", "card_healthy", "refuse_admission", "never_advertise", "stockout",
        "in_stock", "clear",
    )
}  # fmt: skip
