"""Sizes of pieces, and system calls that fail."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def small_pieces(monkeypatch):
    """A function that sets how many bytes, numbers or texts are read or written at a time."""

    def take(size):
        places = "arrays._PIECE checked._PIECE streams._PIECE streams._BYTES texts._TEXTS"
        for name in places.split():
            monkeypatch.setattr(f"nodeflow._files.disk.{name}", size)

    return take


@pytest.fixture
def failing(monkeypatch):
    """A function that lets a function of ``os`` fail with an error of the system."""

    def fail_with(name, number):
        def fail(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, name, fail, raising=False)

    return fail_with
