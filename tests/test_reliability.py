"""docs/reliability.md names tests that exist."""

from tests.test_cases import NAMED, ROOT, text_of

FAULTS = (*range(1, 17), *range(26, 46))  # on workers and messages, on the Kubernetes API


def test_every_test_that_the_table_of_faults_names_exists():
    named = NAMED.findall(page())
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in text_of(file)]

    assert len(named) >= len(FAULTS)
    assert missing == []


def test_every_fault_has_a_row():
    lines = page().splitlines()

    assert [number for number in FAULTS if not any(line.startswith(f"| {number} ") for line in lines)] == []


def page() -> str:
    return (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
