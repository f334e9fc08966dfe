"""The graph along whose edges messages go, and its features in the form that a run reads; hashes of
tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, describe
from nodeflow._core.base.sizes import as_bytes
from nodeflow._core.base.types import Array
from nodeflow._core.random import derive_key, hash_ids, hash_pieces
from nodeflow._core.rows.base import RowsBase, decoded, stored, summary, with_stored
from nodeflow._core.rows.rows import (
    as_array,
    as_dense,
    entries_of,
    fetch_rows,
    first_not_finite,
    from_numpy,
    is_collective,
    is_sparse,
    layout_of,
    slice_rows,
    to_arrays,
    whole_column,
)
from nodeflow.datasets import Dataset, features_of
from nodeflow.distributed import DistributedGraph, DistributedRows
from nodeflow.graph import Graph, with_frames
from nodeflow.storage import Cached, Rows, mean_bytes, opened
from nodeflow.transform import add_reverse_edges, is_symmetric, reverse

Words: TypeAlias = "list[str] | None"
"""The name of each number; None where numbers are names of their own, as in arrays."""
_PIECE = 2**24  # bytes that are read and hashed at a time
_CHECKED = 2**16  # rows of tensors that are checked at a time


class FeatureRows(RowsBase):
    """Features that are fetched by id; dense ones become ``dtype``, sparse ones keep theirs:
    products convert it.
    """

    def __init__(self, rows: Tensor | Rows, dtype: torch.dtype) -> None:
        self.rows = rows
        self.shape = tuple(rows.shape)
        self.layout = layout_of(rows)
        self.dtype = rows.dtype if is_sparse(rows) else dtype
        self.collective = is_collective(rows)

    @property
    def stored(self) -> Tensor | Rows:
        rows = stored(self.rows)
        if rows is self.rows:
            return self
        return rows

    def like(self, rows: Tensor | Rows) -> Tensor | Rows:
        if self.stored is self:
            return rows
        return FeatureRows(with_stored(self.rows, lambda _: rows), self.dtype)

    def decoded(self, rows: Tensor) -> Tensor:
        if self.stored is self:
            return rows
        return decoded(self.rows, rows).to(self.dtype)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return fetch_rows(self.rows, torch.from_numpy(ids)).to(self.dtype)

    @property
    def blocks(self) -> Callable[[Ints], int] | None:
        """Block size of the underlying ``FileRows``, if any."""
        return getattr(self.rows, "blocks", None)

    @cached_property
    def scan(self) -> tuple[int | None, int]:
        """The number of the first row with NaN or inf, or None, and ``hash_of`` of all rows.

        They are read once, in order: a file must not change while it is open.
        """
        sparse = is_sparse(self)
        row_bytes = 512
        if not sparse:
            row_bytes = self.shape[1] * max(self.dtype.itemsize, self.rows.dtype.itemsize)
        # so that each piece but the last is whole 64-bit words
        step = max(_PIECE // max(row_bytes, 1) // 8, 1) * 8
        bad: list[int] = []

        def finite_pieces() -> Iterator[Tensor]:
            for start, piece in _pieces(self.rows, step):
                if (wrong := first_not_finite(piece)) is not None:
                    bad.append(start + wrong)
                    return
                yield piece.to(self.dtype)

        # values alone would not tell matrices apart that have them in other places
        if sparse:
            arrays = (array for piece in finite_pieces() for array in to_arrays(piece))
            digest = derive_key(*map(hash_of, arrays))
        else:
            digest = hash_of_pieces(finite_pieces(), math.prod(self.shape) * self.dtype.itemsize)
        return next(iter(bad), None), digest

    def _details(self) -> str:
        return f"of {summary(self.rows)}"


class Beside(RowsBase):
    """Two columns concatenated, as ``Rows``: features that are fetched by id, and learned rows."""

    def __init__(self, left: Rows, right: Tensor) -> None:
        self.left = left
        self.right = right
        self.collective = is_collective(left)
        self.shape = (right.shape[0], left.shape[1] + right.shape[1])
        self.dtype = torch.promote_types(left.dtype, right.dtype)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        chosen = torch.from_numpy(ids)
        left = fetch_rows(self.left, chosen)
        right = fetch_rows(self.right.detach(), chosen)
        return torch.cat([as_dense(left).cpu(), as_dense(right).cpu()], 1)


def stays_in_file(graph: Graph) -> bool:
    """Return whether the features of a graph can stay in a file."""
    columns = features_of(graph).values()
    return bool(columns) and all(
        not isinstance(x, Tensor) or opened(x) is not None for x in columns
    )


def check_features(dataset: Dataset, node_type: str, x: Tensor | Rows) -> None:
    """Raise ValueError for features that are no rows, or not finite; collective where several
    processes hold them.
    """
    graph = dataset.graph
    if len(x.shape) != 2:
        raise ValueError(
            f"data set {dataset.name!r} must have a row of features per node, got {tuple(x.shape)}"
        )
    with graph.peers.together("check of features"):
        bad = _first_bad(x)
        if bad is not None:
            # rows are those of the nodes that are here, where several processes hold the graph
            ids = graph.nodes[node_type].ids
            masters = graph.held_part.masters
            node = int(masters[(masters >= ids.start) & (masters < ids.stop)][bad]) - ids.start
            of_type = ""
            if len(graph.nodes) > 1:
                of_type = f" of type {node_type!r}"
            raise ValueError(
                f"the features{of_type} of data set {dataset.name!r} must be finite, but row {node} has "
                "NaN or inf"
            )
        graph.peers.gather("check of features", [])


def _first_bad(x: Tensor | Rows) -> int | None:
    """Return the number of the first row here with NaN or inf; None if there is none."""
    if isinstance(x, FeatureRows):
        if not x.collective:
            return x.scan[0]  # read once, for the fingerprint too
        x = x.rows
    for start, piece in _pieces(with_stored(x, _held), _CHECKED):
        wrong = first_not_finite(piece)
        if wrong is not None:
            return start + wrong
    return None


def _held(rows: Any) -> Tensor | Rows:
    """Return those of some rows that are here, where several processes hold them."""
    return cast("Tensor | Rows", rows.held_rows if is_collective(rows) else rows)


def _pieces(rows: Tensor | Rows, step: int) -> Iterator[tuple[int, Tensor]]:
    """Yield ``step`` rows at a time, with the number of the first, for rows larger than memory."""
    for start in range(0, rows.shape[0], step):
        stop = min(start + step, rows.shape[0])
        if isinstance(rows, Tensor):
            yield start, slice_rows(rows, start, stop)
        else:
            yield start, fetch_rows(rows, torch.from_numpy(np.arange(start, stop)))


def hash_of(values: Tensor | Array | FeatureRows) -> int:
    """Return a hash of the bits of a tensor (of a sparse one, its values), an array, or features
    fetched by id.
    """
    if isinstance(values, FeatureRows):
        return values.scan[1]
    tensor = entries_of(values if isinstance(values, Tensor) else from_numpy(np.asarray(values)))
    return hash_of_pieces([tensor], tensor.nbytes)


def hash_of_pieces(pieces: Iterable[Tensor], size: int) -> int:
    """Return ``hash_of`` of a tensor of ``size`` bytes in pieces; each but the last is whole 64-bit
    words.
    """
    remainder = np.zeros(0, np.uint8)  # bytes after the last whole word

    def words() -> Iterator[Array]:
        nonlocal remainder
        for piece in pieces:
            array = as_array(piece.contiguous())
            bits = array.reshape(-1).view(np.uint8)
            end = len(bits) // 8 * 8
            remainder = bits[end:]
            yield bits[:end].view(np.int64)

    of_words = hash_pieces(words(), size // 8)
    return derive_key(of_words, hash_ids(remainder.astype(np.int64)), size)


def keys_of_types(graph: Graph) -> list[str]:
    """Return what a fingerprint has of the types of a graph; nothing where there is only one, as
    none was before.
    """
    schema = graph.schema
    if schema == schema.of_one_type(graph.num_nodes, graph.num_edges):
        return []
    return [repr(schema)]


EDGE_TYPES = ("relation", "etype", "type", "kind")  # usual names of the column of edge types


def directed(
    graph: Graph,
    direction: str,
    edge_type: str = "",
    categories: Mapping[str, Words] = MappingProxyType({}),
) -> Graph:
    """Return the graph with the edges along which messages go: "in", its own, "out", their
    reverses, or "both".

    Parts of a graph are written along the edges of messages, and stay as they are. Added edges get
    types of their own, after those in the column and those of which ``categories`` has names.
    """
    if graph.peers.size > 1:
        return graph
    if direction == "out":
        return reverse(graph)
    if direction == "in" or is_symmetric(graph):
        return graph
    both = add_reverse_edges(graph)
    column = edge_types(graph, edge_type)
    if column is not None and graph.num_edges:
        types = graph.edata[column].long()
        count = max(int(types.max()) + 1, len(categories.get(column) or ()))
        both.edata[column] = torch.cat(
            [types, both.edata[column][graph.num_edges :].long() + count]
        )
    return both


def with_features(graph: Graph, storage: str, dtype: torch.dtype) -> Graph:
    """Return the graph with features of a type as "feat"; ``FeatureRows`` where they stay in a
    file.
    """
    columns = {name: _as_read(x, storage, dtype) for name, x in features_of(graph).items()}
    frames = {name: graph.nodes[name].data for name in columns}
    if all(x is frames[name].get("feat") for name, x in columns.items()):
        return graph
    ready = with_columns(graph, {})
    for name, x in columns.items():
        ready.nodes[name].data["feat"] = x
    return ready


def cache_features(graph: Graph, heat: Tensor, memory: int | str) -> None:
    """Keep the rows of features in memory that are likely to be read most, by ``heat``: whole
    columns of small types first.
    """
    columns = {name: x for name, x in features_of(graph).items() if not isinstance(x, Tensor)}
    sizes = {name: mean_bytes(stored(x)) for name, x in columns.items()}
    room = memory
    # small columns are read as often as large ones, and fit whole
    for name in sorted(columns, key=lambda name: columns[name].shape[0] * sizes[name]):
        # what is left for a further type
        if isinstance(room, int) and room < sizes[name]:
            room = 0
        part = graph.nodes[name]
        cached = Cached(columns[name], heat[part.ids.start : part.ids.stop], room)
        part.data["feat"] = cached
        taken = len(cached.ids) * sizes[name]
        room = max(as_bytes(room, "memory", 0) - taken, 0)


def _as_read(x: Tensor | Rows, storage: str, dtype: torch.dtype) -> Tensor | Rows:
    """Return a column of features in the form that a run with ``storage`` reads."""
    rows = None if storage == "memory" else opened(x)  # read without the map
    if rows is not None or not isinstance(x, Tensor):
        return FeatureRows(x if rows is None else rows, dtype)
    # training reads partitions, and the rest of a run the features of the data set where they lie
    if storage not in ("memory", "partitions"):
        raise ValueError(
            f"storage {storage!r} needs features in a file, and those of the data set are in "
            "memory: save it as a graph folder with Dataset.save(folder) or nodeflow build, and "
            "train on the folder"
        )
    if not is_sparse(x):
        return x.to(dtype)
    # where a quarter or more are not zero, dense products are faster, in about the same memory;
    # sparse products convert their values
    if x.ndim != 2 or 4 * x.values().numel() < x.numel() or x.numel() == 0:
        return x
    return x.to_dense().to(dtype)


def edge_types(graph: Graph, name: str) -> str | None:
    """Return the edge column of types, ``name`` or a usual one, or None; raises ValueError for one
    without types.
    """
    column = name or next((usual for usual in EDGE_TYPES if usual in graph.edata), None)
    if column is None:
        return None
    if column not in graph.edata:
        raise ValueError(
            f"edge_type={column!r} is no edge column; the graph has "
            f"{', '.join(graph.edata) or 'none'}"
        )
    types = whole_column(graph.held_part.edata[column])
    if types.ndim != 1 or types.is_floating_point() or (len(types) and int(types.min()) < 0):
        raise ValueError(
            f"edge column {column!r} must hold types from 0, one integer per edge, got "
            f"{describe(types)}"
        )
    return column


def relations_of(
    graph: Graph, edge_type: str, categories: Mapping[str, Words], *, reverses: bool
) -> tuple[str, int]:
    """Return the column of edge types and their number, for a relational model; ``reverses`` have
    types of their own.

    Types that ``categories`` names count also where no edge has them. "" and 0 without a column in
    a graph of several relations: these are the types.
    """
    with graph.peers.together("types of edges"):
        column = edge_types(graph, edge_type)
        if column is None and graph.schema.has_several:
            return "", 0
        if column is None:
            raise ValueError(
                "model 'rgcn' needs an edge column with types from 0: name it with edge_type"
            )
        types = whole_column(graph.held_part.edata[column])
        largest = np.array([int(types.max()) if len(types) else 0])
        of_all = graph.peers.gather("types of edges", [largest])
    num_named = len(categories.get(column) or ())
    if reverses:
        num_named *= 2
    return column, max(int(np.max(of_all)) + 1, num_named)


def with_columns(
    graph: Graph, columns: Mapping[str, Tensor | Rows], edata: Mapping[str, Any] | None = None
) -> Graph:
    """Return a graph of the same edges with further node columns, and ``edata``, None for the same
    edge columns.
    """
    return with_frames(graph, {**graph.ndata, **columns}, graph.edata if edata is None else edata)


def with_mean_weights(graph: DistributedGraph, name: str) -> Graph:
    """Return the graph with one edge column, 1 / in-degree of the destination."""
    # each part has all in-edges of its nodes, in the order of its edge columns, so local counts are
    # the in-degrees
    counts = np.diff(graph.held_part.csc()[0])
    weights = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    column = DistributedRows(graph.peers, graph.parts, "edge", name, torch.from_numpy(weights))
    return with_columns(graph, {}, edata={name: column})
