"""Hypothesis strategies that tests of samplers share, beside those of ``nodeflow.testing``."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from nodeflow import Graph

calls = st.fixed_dictionaries({
    "epoch": st.integers(0, 2**40),
    "batch_number": st.none() | st.integers(0, 2**40),
})  # fmt: skip
"""Epochs and batch numbers of a call."""


def edge_ids(graph: Graph, most: int = 6) -> st.SearchStrategy[list[int]]:
    """Up to ``most`` edges of a graph, some repeatedly."""
    if not graph.num_edges:
        return st.just([])
    return st.lists(st.integers(0, graph.num_edges - 1), max_size=most)


def masks(graph: Graph) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """A boolean array with an entry per edge, often all True."""
    size = graph.num_edges
    some = st.lists(st.booleans(), min_size=size, max_size=size)
    return (st.just([True] * size) | some).map(lambda mask: np.array(mask, np.bool_))
