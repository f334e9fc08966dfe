"""Loops that draw: one file per law."""
