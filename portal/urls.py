from django.urls import path

from portal import health

urlpatterns = [
    path("health", health.health, name="health"),
    path("ready", health.ready, name="ready"),
]
