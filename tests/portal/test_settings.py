"""The settings as a whole, read afresh for each case."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

ROOT = Path(__file__).resolve().parent.parent.parent
SECRET = "0123456789" * 6
SERVED = {
    "DATABASE_URL": "postgres://berth@db.example/berth",
    "SECRET_KEY": SECRET,
    "BERTH_URL": "https://berth.example.org",
}


def settings_of(monkeypatch: pytest.MonkeyPatch, folder: Path, variables: dict[str, str]) -> dict[str, Any]:
    for name in [*SERVED, "REDIS_URL"]:
        monkeypatch.delenv(name, raising=False)
    for name, value in {"BERTH_FOLDER": str(folder), **variables}.items():
        monkeypatch.setenv(name, value)
    return runpy.run_path(str(ROOT / "portal" / "settings.py"))


def test_without_variables_it_is_the_embedded_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = settings_of(monkeypatch, tmp_path / "var", {})

    assert found["DATABASES"]["default"]["NAME"] == tmp_path / "var" / "berth.sqlite3"
    assert found["DEBUG"] is False
    assert found["SECRET_KEY"] == (tmp_path / "var" / "secret_key").read_text()
    assert found["REDIS_URL"] == "redis://127.0.0.1:6379/0"
    assert "berth.example.org" not in found["ALLOWED_HOSTS"]
    assert found["SESSION_COOKIE_SECURE"] is False  # http on the loopback address has no other way


def test_a_served_portal_is_locked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = settings_of(monkeypatch, tmp_path, SERVED)

    assert found["ALLOWED_HOSTS"] == ["berth.example.org"]
    assert found["SESSION_COOKIE_NAME"] == "__Host-session"
    assert all(found[name] for name in ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT"))
    assert list(tmp_path.iterdir()) == []  # nothing is written beside it


def test_nothing_inline_is_allowed_on_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    policy = settings_of(monkeypatch, tmp_path, {})["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]
    assert policy["default-src"] == ["'none'"]
    assert not {"'unsafe-inline'", "'unsafe-eval'"} & {source for sources in policy.values() for source in sources}


def test_tasks_travel_as_json_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = settings_of(monkeypatch, tmp_path, {})
    assert (found["CELERY_ACCEPT_CONTENT"], found["CELERY_TASK_SERIALIZER"]) == (["json"], "json")


def test_the_rhythm_of_the_periodic_tasks_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    schedule = settings_of(monkeypatch, tmp_path, {"BERTH_TICK_SECONDS": "0.5"})["CELERY_BEAT_SCHEDULE"]
    assert {name: entry["schedule"] for name, entry in schedule.items()} == {
        "scheduling.tick": 0.5,
        "scheduling.sample": 30,
        "scheduling.rate": 60,
    }


REFUSED = {
    "a served portal without a secret": ({**SERVED, "SECRET_KEY": ""}, "SECRET_KEY is not set"),
    "a short secret": ({"SECRET_KEY": "changeme"}, "SECRET_KEY has 8 characters"),
    "a served portal without its address": ({**SERVED, "BERTH_URL": ""}, "BERTH_URL is not set"),
    "a served portal on plain http": ({**SERVED, "BERTH_URL": "http://berth.example.org"}, "BERTH_URL is"),
    "another kind of message server": ({"REDIS_URL": "amqp://x"}, "REDIS_URL begins with 'amqp://'"),
    "a tick without end": ({"BERTH_TICK_SECONDS": "inf"}, "BERTH_TICK_SECONDS is inf"),
}


@pytest.mark.parametrize(("variables", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_run_safely_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=sentence):
        settings_of(monkeypatch, tmp_path, variables)


def manage(*words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "BERTH_FOLDER": str(folder), **variables}
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


@pytest.mark.slow
def test_a_served_portal_passes_the_deployment_check(tmp_path: Path) -> None:
    checked = manage("check", "--deploy", "--fail-level", "WARNING", folder=tmp_path, **SERVED)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_a_refused_setting_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    refused = manage("check", folder=tmp_path, BERTH_DEBUG="perhaps")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "BERTH_DEBUG is 'perhaps'; write true or false.\n"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "BERTH_TIK_SECONDS",
            "BERTH_TIK_SECONDS is no setting of Berth; did you mean BERTH_TICK_SECONDS? docs/settings.md lists them.",
        ),
        ("BERTH_NOTHING_LIKE_IT", "BERTH_NOTHING_LIKE_IT is no setting of Berth. docs/settings.md lists them."),
    ],
    ids=["misspelt", "unknown"],
)
def test_z13_an_unknown_setting_is_not_silently_unused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, sentence: str
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        settings_of(monkeypatch, tmp_path, {name: "5"})
    assert str(refused.value) == sentence


def test_what_kubernetes_says_of_a_service_called_berth_is_no_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = {"BERTH_SERVICE_HOST": "10.0.0.1", "BERTH_PORT_8000_TCP_PORT": "8000", "BERTH_WEB_PORT": "tcp://10.0.0.1"}
    assert settings_of(monkeypatch, tmp_path, told)["BERTH_DEMO"] is False
