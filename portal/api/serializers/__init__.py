"""Shapes of what goes out and comes in. No rules: those are in the services."""
