from django.urls import include, path

from portal import health

urlpatterns = [
    path("health", health.health, name="health"),
    path("ready", health.ready, name="ready"),
    path("api/", include("portal.api.urls")),
    path("", include("portal.pages.urls")),
]
