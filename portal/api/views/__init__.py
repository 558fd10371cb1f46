"""Doormen, a module per word of the address."""
