"""TypedLinear, dense rows of the nodes of all types, and RelativeTime, rows of differences of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nodeflow._base.calls import Explained
from nodeflow._base.checks import as_count, check_type, describe
from nodeflow._rows.rows import fetch_rows
from nodeflow.flow import Layer, LayerPart, NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn._conv import linear_map
from nodeflow.nn._typed_conv import assembled, module_name
from nodeflow.ops import sparse_linear

_PIECE = 2**16  # rows of a graph that are encoded at a time


class TypedLinear(nn.Module, metaclass=Explained):
    """Rows of one width for the nodes of all types: a linear map of the features of each type, or learned rows.

    Args:
        widths: for each node type the width of its features, which get a matrix and a bias; or, for a type without
            features, a module that returns learned rows ``[k, out_features]`` for ids within the type, such as
            ``torch.nn.Embedding(num_nodes, out_features)``, or a ``learned.EmbeddingTable``, whose ``step`` is called
            after ``backward``.
        out_features: width of the rows.
        column: the column with the features, ``layer.of(name).data[column]``, dense or sparse CSR.

    Raises TypeError and ValueError for other arguments; when called, ValueError for a type that ``widths`` does not
    have and for rows of another width, KeyError where the features were not copied into the batch.

    >>> from nodeflow import FullSampler
    >>> nodes = {"author": 3, "paper": {"x": torch.ones(2, 8)}}
    >>> graph = Graph.typed(nodes, {("author", "writes", "paper"): ([0, 2], [1, 1])})
    >>> batch = FullSampler(graph, 1)(graph.nodes["paper"].to_graph([1]))
    >>> batch.copy_from_parent(["x"])
    >>> encoder = TypedLinear({"author": torch.nn.Embedding(3, 16), "paper": 8}, 16)
    >>> encoder(batch).shape, encoder(graph).shape
    (torch.Size([3, 16]), torch.Size([5, 16]))
    """

    def __init__(self, widths: Mapping[str, Any], out_features: int, *, column: str = "x") -> None:
        super().__init__()
        check_type(widths, "widths", Mapping, "a dict from node types to widths or tables")
        check_type(column, "column", str, "the name of a column")
        self.out_features, self.column = as_count(out_features, "out_features", 1), column
        self.maps, self._tables = nn.ModuleDict(), {}
        for name, width in widths.items():
            if callable(getattr(width, "pull", None)):
                self._tables[name] = width
                continue
            count = width if isinstance(width, nn.Module) else as_count(width, f"widths[{name!r}]", 1)
            module = count if isinstance(count, nn.Module) else linear_map(count, out_features, bias=True)
            self.maps[module_name(name)] = module

    def forward(self, where: NodeFlow | Layer | Graph) -> Tensor:
        """Return rows of the nodes of a layer, by default the inputs of a batch, or of a graph.

        ``[num_nodes, out_features]``, differentiable; those of a graph without gradient, on the device of the maps.
        """
        if isinstance(where, Graph):
            rows = EncodedRows(self, where)
            with torch.no_grad():
                return torch.cat([rows.fetch(ids) for ids in torch.arange(where.num_nodes).split(_PIECE)])
        if not isinstance(where, NodeFlow | Layer):
            raise TypeError(f"call TypedLinear with a NodeFlow, a layer or a graph, got {describe(where)}")
        layer = where.layers[0] if isinstance(where, NodeFlow) else where
        return self.rows_of(layer, lambda name, part: part.data[self.column])

    def rows_of(self, layer: Layer, features: Callable[[str, LayerPart], Tensor]) -> Tensor:
        """Return rows of the nodes of a layer, with the features of each type from a function."""
        blocks = {}
        for name in layer.schema.nodes:
            part, key = layer.of(name), module_name(name)
            if name in self._tables:
                rows = self._tables[name].pull(part.parent_nid)
            elif key not in self.maps:
                raise ValueError(f"widths has no node type {name!r}, and the graph does: give its width, or a table")
            elif isinstance(module := self.maps[key], nn.Linear):
                x = features(name, part)
                if x.shape[1:] != (module.in_features,):
                    words = f"of width {module.in_features}, as widths says, got shape {tuple(x.shape)}"
                    raise ValueError(f"the column {self.column!r} of {name!r} must have rows {words}")
                rows = sparse_linear(x.to(module.weight.device, module.weight.dtype), module.weight, module.bias)
            else:
                rows = module(part.parent_nid)
            if rows.shape != (len(part), self.out_features):
                shape = f"{tuple(rows.shape)} for {len(part)} nodes"
                raise ValueError(f"rows of {name!r} must be {self.out_features} wide (out_features), got {shape}")
            blocks[name] = rows
        return assembled(layer, blocks)


class EncodedRows:
    """The rows that an encoder makes of the nodes of a graph, made when fetched: ``Rows`` for full passes."""

    def __init__(self, encoder: TypedLinear, graph: Graph) -> None:
        self.encoder, self.graph = encoder, graph

    @property
    def shape(self) -> tuple[int, int]:
        return self.graph.num_nodes, self.encoder.out_features

    @property
    def dtype(self) -> torch.dtype:
        return self.fetch(torch.zeros(0, dtype=torch.int64)).dtype

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows of nodes, ``[k, out_features]``."""
        nodes, column = self.graph.nodes, self.encoder.column
        layer = Layer._trusted(len(ids), ids, schema=self.graph.schema)
        rows = self.encoder.rows_of(layer, lambda name, part: fetch_rows(nodes[name].data[column], part.parent_nid))
        return rows if out is None else out.copy_(rows)


class RelativeTime(nn.Module):
    """Relative time encoding (Hu et al. 2020, equation 6): a row for every difference of time.

    Sine (even entries) and cosine (odd ones) of ``difference / 10000^(i / width)`` for entry ``i``, then a linear map.
    Differences are in a unit of which there are thousands at most, such as days or years. ``HGTConv(edge_time=)`` has
    one; rows of nodes get it as ``h + RelativeTime(64)(seed_time - time)``.

    >>> RelativeTime(4)(torch.tensor([0, 3, -1])).shape
    torch.Size([3, 4])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = linear_map(width, width, bias=True)

    def forward(self, difference: Tensor) -> Tensor:
        """Return ``[k, width]`` for numbers ``[k]``."""
        weight = self.linear.weight
        entry = torch.arange(len(weight), device=weight.device)
        angle = difference.to(weight).unsqueeze(1) * 10000.0 ** (-entry.to(weight) / len(weight))
        rows: Tensor = self.linear(torch.where(entry % 2 == 0, angle.sin(), angle.cos()))
        return rows
