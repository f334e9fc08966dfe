"""Columns and edges of a graph, read in order and piece by piece, and split over the files of partitions or parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_num_rows, check_type, describe
from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile
from nodeflow._disk.streams import column_writer
from nodeflow._rows.rows import Rows, fetch_rows, is_sparse, row_bytes, slice_rows, take_rows
from nodeflow.graph import Graph
from nodeflow.partitions._partitions import chosen_columns

Column = Tensor | Rows
NewColumn = Column | Callable[[Tensor], Tensor]


class SplitColumn:
    """A column whose rows are appended to the files of several parts.

    Args:
        files: a file per part; sparse rows lie in three, beside it.
        like: rows of the type of the column.
        sizes: rows of each part, known before; those that do not come are zeros.

    Raises OSError where the disk cannot hold what is written.
    """

    def __init__(self, files: Sequence[Path], like: Tensor | Rows, sizes: Ints) -> None:
        self._writers = [column_writer(file, like, size) for file, size in zip(files, sizes.tolist(), strict=True)]
        self.dtype = like.dtype

    def append(self, rows: Tensor | Array, begin: Ints) -> None:
        """Append the rows ``begin[p]`` to ``begin[p + 1]`` of ``rows`` to part p, for every p."""
        rows = torch.from_numpy(rows).to(self.dtype) if isinstance(rows, np.ndarray) else rows
        for p in np.flatnonzero(np.diff(begin)).tolist():
            self._writers[p].append(slice_rows(rows, int(begin[p]), int(begin[p + 1])))

    def finish(self, folders: Iterable[Path]) -> list[ArrayFile]:
        """Flush the files to the disk, and describe the column of each part as one of its folder."""
        return [writer.finish(folder) for writer, folder in zip(self._writers, folders, strict=True)]


def split_nodes(
    column: NewColumn,
    name: str,
    num_nodes: int,
    number_of: Callable[[Ints], Array],
    files: Sequence[Path],
    sizes: Ints,
    num_bytes: int,
    bar: Any,
) -> SplitColumn:
    """Split a node column over files, one per part; ``number_of`` gives the parts of nodes.

    Nodes of a part are in the order of their ids, so rows that are read in order, about ``num_bytes`` at a time, are
    appended to the files.
    """
    sample = rows_of(column, name, torch.zeros(min(num_nodes, 1), dtype=torch.int64))
    out = SplitColumn(files, sample, sizes)
    kind = (sample.dtype, sample.shape[1:], sample.layout)
    step = 2**14 if is_sparse(sample) else max(num_bytes // max(row_bytes(sample), 1), 1)
    for first in range(0, num_nodes, step):
        ids = np.arange(first, min(first + step, num_nodes))
        rows = rows_of(column, name, torch.from_numpy(ids))
        if len(rows) != len(ids) or (rows.dtype, rows.shape[1:], rows.layout) != kind:
            raise ValueError(
                f"column {name!r} must give rows of {sample.dtype} {list(sample.shape[1:])} for every node, as for "
                f"node 0, but for nodes {ids[0]} to {ids[-1]} it gave {describe(rows)}"
            )
        begin, order = kernels.csr.sort_by_destination(number_of(ids), len(files))
        out.append(take_rows(rows, torch.from_numpy(order)), begin)
        bar.update(len(ids))
    return out


def rows_of(column: NewColumn, name: str, ids: Tensor) -> Tensor:
    """Return rows of a column, in main memory."""
    if isinstance(column, (Tensor, Rows)):
        return fetch_rows(column, ids).detach().cpu()
    values = column(ids)
    check_type(values, f"the result of columns[{name!r}]", Tensor, "a tensor")
    return values.detach().cpu()


def node_columns(
    graph: Graph, names: Sequence[str] | None, more: Mapping[str, NewColumn] | None
) -> dict[str, NewColumn]:
    """Return the node columns of a graph that were chosen, and ``more``; see ``write_partitions`` for the errors."""
    nodes: dict[str, NewColumn] = {
        name: graph.ndata[name] for name in chosen_columns(graph.ndata, names, "ndata", "the graph")
    }
    for name, column in ({} if more is None else more).items():
        check_type(name, "a column name", str, "a str")
        if isinstance(column, np.ndarray):
            column = torch.from_numpy(column)
        if isinstance(column, (Tensor, Rows)):
            check_num_rows(column.shape, f"columns[{name!r}]", graph.num_nodes, "node")
        elif not callable(column):
            raise TypeError(f"columns[{name!r}] must be a tensor, Rows or a function of ids, got {describe(column)}")
        nodes[name] = column
    return nodes


def edge_columns(graph: Graph, names: Sequence[str] | None) -> dict[str, Column]:
    """Return the edge columns of a graph that were chosen; KeyError for unknown ones."""
    return {name: graph.edata[name] for name in chosen_columns(graph.edata, names, "edata", "the graph")}


def edge_ranges(graph: Graph, size: int) -> Iterator[tuple[int, int, int]]:
    """The positions of the edges in pieces, ``first`` to ``last``, and the destination of the first edge of each."""
    for first in range(0, graph.num_edges, size):
        v = int(np.searchsorted(graph.indptr, first, side="right")) - 1
        yield first, min(first + size, graph.num_edges), v
