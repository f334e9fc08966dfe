"""Sizes of pieces, and system calls that fail."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A function that sets how many bytes, numbers or texts are read or written at a time."""

    def take(size: int) -> None:
        places = "arrays._PIECE checked._PIECE streams._PIECE streams._BYTES texts._TEXTS"
        for name in places.split():
            monkeypatch.setattr(f"nodeflow._files.disk.{name}", size)

    return take


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """A function that lets a function of ``os`` fail with an error of the system."""

    def fail_with(name: str, number: int) -> None:
        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, name, fail, raising=False)

    return fail_with
