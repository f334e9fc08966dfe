"""``dgl.nn``, which has no stand-in: what is imported from it says where to go."""

from __future__ import annotations

from typing import NoReturn

from nodeflow.compat.dgl._elsewhere import refuse_import


def __getattr__(name: str) -> NoReturn:
    refuse_import("nn", name)
