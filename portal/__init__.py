"""The door: settings, routing, pages, API, sockets. No rules live here."""

__version__ = "0.1.0"
