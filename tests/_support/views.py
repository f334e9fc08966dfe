"""Samplers, histories and sums of which a table of cases says the view of edges too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodeflow.graph import EdgeView

_WORDS = ("direction", "edge_filter", "weight")


def view_of(edges: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the view that options say, of a graph or a view, and the other options."""
    said = {name: options[name] for name in _WORDS if name in options}
    if not said:
        return edges, options
    view = edges if isinstance(edges, EdgeView) else edges.view()
    words = view.settings | said
    view = view.graph.view(
        words["direction"], where=words.get("edge_filter"), weight=words.get("weight")
    )
    return view, {name: value for name, value in options.items() if name not in said}


def viewed(make: Callable[..., Any], edges: Any, *sizes: Any, **options: Any) -> Any:
    """Return ``make(view, *sizes, **options)`` with the view of edges that the options say."""
    view, others = view_of(edges, options)
    return make(view, *sizes, **others)
