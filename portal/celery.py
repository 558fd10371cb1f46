"""Work in the background: `celery -A portal worker -B`. The tasks are in scheduling/tasks.py."""

import os

from celery import Celery
from celery.signals import beat_embedded_init

from portal.processes import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("berth")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["scheduling"])


@beat_embedded_init.connect
def end_with_the_worker(**_: object) -> None:
    """The beat of `worker -B` is a process of its own. Left behind by a killed worker it would ring beside the next one."""
    die_with_parent()
