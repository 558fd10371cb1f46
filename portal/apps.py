from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        """Make the Celery application the one that tasks find, in every process that runs Django."""
        from portal import celery  # noqa: F401, PLC0415 (only once Django is ready)
