"""Checkers that others wrote, let loose on the running demo and on the files that we ship."""
