"""Errors for arguments that other libraries make a graph of; each names the call that takes them here."""

from __future__ import annotations

from typing import NoReturn

from torch import Tensor, strided

from nodeflow._base.checks import describe

_CONVERTERS = {"scipy": "from_scipy", "networkx": "from_networkx", "torch_geometric": "from_pyg", "dgl": "from_dgl"}


def refuse_single(value: object, call: str, expected: str) -> NoReturn:
    """Raise TypeError for a call with one argument where two arrays are needed."""
    raise TypeError(f"{call} takes {expected}, got only {describe(value)}{_hint(value)}")


def refuse_foreign(value: object, call: str, expected: str) -> None:
    """Raise TypeError for a graph or sparse adjacency of another library in place of an array."""
    sparse = isinstance(value, Tensor) and value.layout != strided
    if sparse or type(value).__module__.partition(".")[0] in _CONVERTERS:
        raise TypeError(f"{call} takes {expected}, got {type(value).__name__}{_hint(value)}")


def _hint(value: object) -> str:
    library = type(value).__module__.partition(".")[0]
    if library in _CONVERTERS:
        return f"; for this object use nodeflow.convert.{_CONVERTERS[library]}(...)"
    if isinstance(value, Tensor) and value.layout != strided:
        return "; for a sparse adjacency use Graph.from_edges(*adjacency.to_sparse_coo().coalesce().indices())"
    shape = tuple(getattr(value, "shape", ()))
    if len(shape) == 2 and shape[0] != 2 and shape[1] == 2:
        return "; for pairs of shape [num_edges, 2] use Graph.from_edges(*pairs.T)"
    if len(shape) == 2 and shape[0] == 2:
        return "; for an edge_index of shape [2, num_edges] use Graph.from_edges(*edge_index)"
    return "; from a list of edges make a graph with Graph.from_edges(src, dst)"
