"""Parts of a NodeFlow made without the checks of their classes, as samplers make them."""

from __future__ import annotations

from typing import Any

from nodeflow._core.base.frozen import Lazy


def unchecked(kind: type, *parts: Any, **others: Any) -> Any:
    """Make a NodeFlow, Flow, Layer or Structure of parts that its class would refuse."""
    return kind._trusted(*parts, **others)


def with_cells(kind: type, *parts: Any, cells: dict[str, Any], **others: Any) -> Any:
    """Do the same, where ``cells`` are values that are made when they are asked for."""
    made = {name: Lazy.of(value) for name, value in cells.items()}
    return unchecked(kind, *parts, **others, **made)
