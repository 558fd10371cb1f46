from __future__ import annotations

from celery import current_app
from django.conf import settings

from portal.celery import app


def test_the_portal_s_application_is_the_current_one() -> None:
    assert current_app.main == app.main == "berth"


def test_every_scheduled_task_exists() -> None:
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert scheduled <= set(app.tasks)


def test_results_are_not_kept() -> None:
    assert app.conf.task_ignore_result is True
    assert app.conf.result_backend is None


def test_no_page_waits_long_for_a_message_server_that_hangs() -> None:
    """A server that takes the connection and says nothing: without these a submit would hang with it."""
    options = app.conf.broker_transport_options

    assert options["socket_connect_timeout"] + options["socket_timeout"] <= 3
    assert options["max_retries"] == 0
