"""Checks of what a graph is made of; errors name the call that takes what other libraries take."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, strided

from nodeflow._core.base.checks import Ints, as_count, describe
from nodeflow._core.base.sizes import check_memory

_CONVERTERS = {
    "scipy": "from_scipy",
    "networkx": "from_networkx",
    "torch_geometric": "from_pyg",
    "dgl": "from_dgl",
    "igraph": "from_igraph",
}


def check_arrays(first: object, second: object, call: str, expected: str) -> None:
    """Raise TypeError for one argument, or a graph of another library, where two arrays are
    ``expected``.
    """
    if (hint := _foreign(first)) is not None:
        raise TypeError(f"{call} takes {expected}, got {type(first).__name__}; {hint}")
    if second is None:
        raise TypeError(f"{call} takes {expected}, got only {describe(first)}; {_single(first)}")


def holds_text(value: object) -> bool:
    """Return whether a list or array begins with a string, so that it may hold names."""
    if (
        isinstance(value, Tensor)
        or not isinstance(value, Iterable)
        or isinstance(value, (str, bytes))
    ):
        return False
    return isinstance(next(iter(value), None), str)


def size_of(num_nodes: int | None, src: Ints, dst: Ints) -> int:
    """Return the number of nodes of a list of edges, the largest id + 1 for None; raises ValueError
    beyond memory.
    """
    what = "num_nodes"
    if num_nodes is None:
        num_nodes = int(max(src.max(initial=-1), dst.max(initial=-1))) + 1
        what = "num_nodes, the largest id + 1,"
    size = as_count(num_nodes, "num_nodes")
    check_memory(
        16 * size,
        f"{what} of {size}",
        "ids count from 0 without large gaps: Graph.from_named_edges numbers others",
    )
    return size


def _foreign(value: object) -> str | None:
    library = type(value).__module__.partition(".")[0]
    if library in _CONVERTERS:
        return f"for this object use nodeflow.convert.{_CONVERTERS[library]}(...)"
    if type(value).__name__ in ("DataFrame", "Table"):
        return "for a table of edges use nodeflow.convert.from_edge_table(...)"
    if isinstance(value, Tensor) and value.layout != strided:
        return (
            "for a sparse adjacency use "
            "Graph.from_edges(*adjacency.to_sparse_coo().coalesce().indices())"
        )
    return None


def _single(value: object) -> str:
    shape = tuple(getattr(value, "shape", ()))
    if len(shape) == 2 and shape[0] == 2:
        return "for an edge_index of shape [2, num_edges] use Graph.from_edges(*edge_index)"
    if len(shape) == 2 and shape[1] == 2:
        return "for pairs of shape [num_edges, 2] use Graph.from_edges(*pairs.T)"
    return "from a list of edges make a graph with Graph.from_edges(src, dst)"
