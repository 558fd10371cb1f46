from django.urls import path

from portal.live.consumers import LiveConsumer

urlpatterns = [path("live/", LiveConsumer.as_asgi(), name="live")]
