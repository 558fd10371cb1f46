"""The portal's own settings with short patience, for the processes that tests break. The product knows none of it."""

from portal.settings import *  # noqa: F403
from portal.settings import CELERY_BROKER_TRANSPORT_OPTIONS, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.integration.points"]
CELERY_BROKER_TRANSPORT_OPTIONS = {**CELERY_BROKER_TRANSPORT_OPTIONS, "visibility_timeout": 2}
