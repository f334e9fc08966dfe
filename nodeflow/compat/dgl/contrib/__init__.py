"""Contributed modules of DGL 0.4, of which there is ``sampling``."""

from __future__ import annotations

from typing import NoReturn

from nodeflow.compat.dgl._elsewhere import refuse
from nodeflow.compat.dgl.contrib import sampling as sampling

__all__ = ["sampling"]


def __getattr__(name: str) -> NoReturn:
    refuse("dgl.contrib", name)
