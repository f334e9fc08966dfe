"""``Data`` of PyTorch Geometric: made of parts and columns, and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any

from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow.convert._columns import check_names, library

if TYPE_CHECKING:
    from torch_geometric.data import Data


def data_class() -> type[Data]:
    """Return the class ``Data``; raises ImportError, with the command that installs it, where it is missing."""
    how = "install it with: pip install torch-geometric"
    return library("torch_geometric.data", "PyTorch Geometric", how).Data  # type: ignore[no-any-return]


def edge_index(data: Any) -> Tensor:
    """Return the ends of the edges, int64 ``[2, E]``.

    Raises TypeError for anything but ``Data`` with one type of nodes and one of edges, ValueError for one without them.
    """
    if hasattr(data, "node_types"):
        raise TypeError(f"data must have one type of nodes, got {type(data).__name__}; pass data.to_homogeneous()")
    if not hasattr(data, "node_attrs"):
        raise TypeError(f"data must be a torch_geometric.data.Data, got {describe(data)}")
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"data must have an edge_index, got {describe(data)}")
    index: Tensor = data.edge_index
    # an EdgeIndex is a subclass whose operations depend on its sort order: its plain tensor is enough
    return index.as_tensor() if hasattr(index, "as_tensor") else index


def with_rows(value: object, num_rows: int) -> bool:
    """Return whether an attribute is a tensor with that many rows."""
    return isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == num_rows


def make_data(
    parts: Mapping[str, Any], ndata: Mapping[str, Tensor], edata: Mapping[str, Tensor], reserved: Set[str] = frozenset()
) -> Data:
    """Return ``Data`` with ``parts``, and columns of nodes and edges under their own names.

    Raises ValueError for names that cannot be told apart: those of ``parts`` and ``reserved``, the same name for nodes
    and edges, and those that ``Data`` keeps for itself.
    """
    if both := sorted(set(ndata) & set(edata)):
        raise ValueError(f"a node and an edge column share a name, which Data cannot hold: {both}")
    columns = {**ndata, **edata}
    if taken := sorted((reserved | set(parts)) & set(columns)):
        raise ValueError(f"Data keeps the names {taken} for itself; give the columns of these names other ones first")
    data = data_class()()
    for name, column in columns.items():
        try:
            setattr(data, name, column)
            held = data[name] is column and getattr(data, name) is column
        except (AttributeError, KeyError):
            held = False
        if not held:
            raise ValueError(f"Data cannot hold a column named {name!r}; give it another name first")
    for name, value in parts.items():
        setattr(data, name, value)
    return data


def check_attributes(data: Any, names: Iterable[str] | None, argument: str) -> None:
    """Raise KeyError for a named attribute that is not there, TypeError for a string in place of a list."""
    check_names(names, argument)
    if (unknown := next((name for name in names or () if name not in data), None)) is not None:
        raise KeyError(f"{argument}: data has no attribute {unknown!r}; it has {', '.join(data.keys())}")
