"""docs/cases.md names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMED = re.compile(r"`([\w…/.]+\.py)::(test_\w+)`")


def test_every_test_that_the_table_of_cases_names_exists():
    named = NAMED.findall((ROOT / "docs" / "cases.md").read_text(encoding="utf-8"))
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in text_of(file)]

    assert len(named) > 60
    assert missing == []


def text_of(file: str) -> str:
    path = ROOT / "tests" / file.replace("…", "scheduling/")
    return path.read_text(encoding="utf-8") if path.exists() else ""
