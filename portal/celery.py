"""Work in the background: `celery -A portal worker -B`. The tasks are in scheduling/tasks.py."""

import os
import threading

from celery import Celery, bootsteps
from celery.signals import beat_embedded_init

from portal.environment import envbool
from portal.processes import die_with

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

IMPORTED_BY = os.getpid()  # the worker, in a beat that it has forked

app = Celery("berth")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["scheduling"])


class Watch(bootsteps.StartStopStep):
    """Watches the clusters from within the worker. Several workers do no harm; BERTH_WATCH=False spares them."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: object, **options: object) -> None:
        super().__init__(worker, **options)
        self.enabled = envbool("BERTH_WATCH", default=True)

    def start(self, _worker: object) -> None:
        from scheduling.watch import Watching  # noqa: PLC0415  models are ready by now, and not before

        self.watching = Watching()
        threading.Thread(target=self.watching.run, name="watch", daemon=True).start()

    def stop(self, _worker: object) -> None:
        if watching := getattr(self, "watching", None):
            watching.stop.set()


app.steps["worker"].add(Watch)


@beat_embedded_init.connect
def end_with_the_worker(**_: object) -> None:
    """The beat of `worker -B` is a process of its own; left behind by a killed worker it would ring beside the next."""
    if os.getpid() != IMPORTED_BY:
        die_with(IMPORTED_BY)
