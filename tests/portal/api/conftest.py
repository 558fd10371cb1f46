"""Everybody of the world as a caller of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.portal.api.asking import Caller


@pytest.fixture
def ask(world: Any) -> Callable[[str], Caller]:
    """`ask("robin").get("/me/")`; `ask("")` is nobody."""
    callers: dict[str, Caller] = {}

    def caller(name: str) -> Caller:
        if name not in callers:
            callers[name] = Caller(getattr(world, name) if name else None)
        return callers[name]

    return caller
