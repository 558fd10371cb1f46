"""What counts as the same finding, what an accepted entry covers, and when it has to go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.judge import ACCEPTED, read_options, tell
from tools.judges.findings import Accepted, CouldNotJudge, Finding, read_accepted, shape, verdict

SHAPES = {
    "an id": ("/workloads/0d3f1c5e-8a52-4c1b-9d1e-1f0a2b3c4d5e/log/", "/workloads/*/log/"),
    "a number": ("/teams/12/", "/teams/*/"),
    "a month": ("/chargeback/2026-11/", "/chargeback/*/"),
    "a day": ("/chargeback/2026-11-30/", "/chargeback/*/"),
    "a query keeps its names": ("/fleet/?page=2&model=H100&page=3", "/fleet/?model&page"),
    "words stay": ("/workloads/new/", "/workloads/new/"),
}


@pytest.mark.parametrize(("path", "expected"), SHAPES.values(), ids=SHAPES)
def test_pages_of_one_kind_have_one_shape(path: str, expected: str) -> None:
    assert shape(path) == expected


IMAGE = Finding("axe", "image-alt", "/rows/*/", "ada: img")
COVERS = {
    "the same": (Accepted("axe", "image-alt", "/rows/*/", "why"), True),
    "any rule": (Accepted("axe", "*", "/rows/*/", "why"), True),
    "any place": (Accepted("axe", "image-alt", "*", "why"), True),
    "another judge": (Accepted("vnu", "image-alt", "/rows/*/", "why"), False),
    "another place": (Accepted("axe", "image-alt", "/fleet/", "why"), False),
}


@pytest.mark.parametrize(("entry", "expected"), COVERS.values(), ids=COVERS)
def test_an_entry_covers(entry: Accepted, expected: bool) -> None:
    assert entry.covers(IMAGE) is expected


def test_one_complaint_in_four_roles_is_one_finding() -> None:
    same = [Finding("axe", "image-alt", "/rows/*/", f"{role}: img") for role in ("ada", "bo", "cy", "di")]
    assert len(verdict(same, [], ["axe"])[0]) == 1


def test_an_accepted_finding_is_not_reported() -> None:
    assert verdict([IMAGE], [Accepted("axe", "image-alt", "*", "why")], ["axe"]) == ([], [])


def test_an_entry_that_nothing_needs_is_reported() -> None:
    entry = Accepted("axe", "label", "*", "why")
    assert verdict([IMAGE], [entry], ["axe"]) == ([IMAGE], [entry])


def test_an_entry_of_a_judge_who_stayed_at_home_is_not_missed() -> None:
    assert verdict([], [Accepted("axe", "label", "*", "why")], ["vnu"]) == ([], [])


@pytest.mark.parametrize(
    ("found", "stale", "expected"),
    [([], [], 0), ([IMAGE], [], 1), ([], [Accepted("axe", "label", "*", "why")], 1)],
    ids=["nothing", "a finding", "a stale entry"],
)
def test_the_exit_code(found: list[Finding], stale: list[Accepted], expected: int) -> None:
    assert tell(found, stale) == expected


BROKEN = {
    "no reason": 'judge = "axe"\nrule = "x"\nwhere = "y"',
    "an empty reason": 'judge = "axe"\nrule = "x"\nwhere = "y"\nreason = " "',
    "a key too many": 'judge = "axe"\nrule = "x"\nwhere = "y"\nreason = "z"\nuntil = "2027"',
}


@pytest.mark.parametrize("entry", BROKEN.values(), ids=BROKEN)
def test_an_entry_without_a_reason_is_refused(tmp_path: Path, entry: str) -> None:
    (tmp_path / "accepted.toml").write_text(f"[[accepted]]\n{entry}\n")
    with pytest.raises(CouldNotJudge, match="an entry needs judge, reason, rule, where"):
        read_accepted(tmp_path / "accepted.toml")


def test_our_own_list_can_be_read() -> None:
    assert all(entry.reason for entry in read_accepted(ACCEPTED))


def test_a_judge_that_does_not_exist_cannot_be_called(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_options(["--only", "vnu,oracle"])
    assert "no such judge: oracle" in capsys.readouterr().err
