"""Threads of torch switched off, as users do it."""

from __future__ import annotations

import pytest


@pytest.fixture
def without_torchs_threads(monkeypatch):
    """Switch off torch's threads, and fail where they are asked for all the same."""
    threads = "nodeflow._core.runtime.threads._openmp"
    monkeypatch.setattr("nodeflow._core.runtime.process.torch_threads", False)
    monkeypatch.setattr(threads, lambda: pytest.fail("torch's threads were asked for"))
