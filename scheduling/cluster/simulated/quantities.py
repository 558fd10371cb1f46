"""Kubernetes quantities as whole thousandths, and what a pod asks for in sum."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from math import ceil
from typing import Any

from .kinds import Document

SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
SHAPE = re.compile(r"^([+-]?\d*\.?\d*)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$")


@lru_cache(maxsize=4096)
def milli(quantity: str | float) -> int:
    """The quantity in thousandths, rounded up as Kubernetes does; ValueError when it is none."""
    text = str(quantity).strip()
    match = SHAPE.match(text)
    if not match or not any(character.isdigit() for character in match[1]):
        raise ValueError(f"{text!r} is no quantity")
    suffix = match[2] or ""
    exponent = suffix[1:] if suffix[:1] in "eE" and suffix[1:].lstrip("+-").isdigit() else ""
    factor = Decimal(10) ** int(exponent) if exponent else SUFFIXES[suffix]
    return ceil(Decimal(match[1]) * factor * 1000)


def written(thousandths: int) -> str:
    """The shortest quantity without a unit: `2`, or `250m`."""
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else str(whole)


def is_extended(resource: str) -> bool:
    """Extended resources carry a domain other than kubernetes.io; they are counted in whole pieces."""
    return "/" in resource and not resource.partition("/")[0].endswith("kubernetes.io")


def container_requests(container: Document) -> dict[str, int]:
    """Thousandths by resource; where only a limit is given, the limit is the request."""
    resources: dict[str, Any] = container.get("resources") or {}
    asked = dict(resources.get("limits") or {}) | dict(resources.get("requests") or {})
    return {name: milli(quantity) for name, quantity in asked.items()}


def pod_requests(spec: Document) -> dict[str, int]:
    """What a pod takes of a node: the sum of its containers, or its largest init container where that is more."""
    total: dict[str, int] = {"pods": 1000}
    for container in spec.get("containers") or []:
        for name, amount in container_requests(container).items():
            total[name] = total.get(name, 0) + amount
    for container in spec.get("initContainers") or []:
        for name, amount in container_requests(container).items():
            total[name] = max(total.get(name, 0), amount)
    return total


def amounts(quantities: Document | None) -> dict[str, int]:
    """A capacity or allocatable map in thousandths; entries that are no quantities are left out."""
    result: dict[str, int] = {}
    for name, quantity in (quantities or {}).items():
        try:
            result[name] = milli(quantity)
        except ValueError:
            continue
    return result
