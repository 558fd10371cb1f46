"""What the cluster itself says, asked directly: the yardstick for how soon the portal tells it."""

from __future__ import annotations

import json
import threading
import time
from ssl import SSLContext
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from portal.demo.place import Place
from scheduling.cluster import names

GLANCE = 0.02  # seconds between two looks


class Witness:
    """Looks at one workload's pod until it is seen to run; `ran_at` is that instant on the monotonic clock."""

    def __init__(self, place: Place, workload: str) -> None:
        self.address = f"{place.server}/api/v1/pods?labelSelector={quote(f'{names.WORKLOAD}={workload}')}"
        self.admin = place.as_admin()
        self.ran_at: float | None = None
        self.looking = True
        threading.Thread(target=self._look, name="witness", daemon=True).start()

    def stop(self) -> None:
        self.looking = False

    def _look(self) -> None:
        while self.looking and self.ran_at is None:
            if any(is_ready(pod) for pod in listed(self.address, self.admin)):
                self.ran_at = time.monotonic()
            time.sleep(GLANCE)


def listed(address: str, admin: SSLContext | None) -> list[dict[str, Any]]:
    """The items of a list of the cluster's API; none while it does not answer."""
    try:
        with urlopen(address, timeout=5, context=admin) as answer:  # noqa: S310 (an address of our own making)
            return list(json.load(answer)["items"])
    except OSError:
        return []


def is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")
