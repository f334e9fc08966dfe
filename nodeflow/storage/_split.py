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
from nodeflow._disk.arrays import ArrayFile, numpy_type
from nodeflow._rows.rows import Rows, fetch_rows
from nodeflow.graph import Graph
from nodeflow.storage._partition_files import append_rows, begin_file
from nodeflow.storage._partitions import chosen_columns

Column = Tensor | Rows
NewColumn = Column | Callable[[Tensor], Tensor]


class SplitArray:
    """An array whose rows are appended to several ``.npy`` files.

    Args:
        files: a file per partition.
        dtype: type of the numbers, in torch's words.
        row: shape of a row.
        sizes: rows of each file, known before.

    Raises OSError where the disk cannot hold what is written.
    """

    def __init__(self, files: Sequence[Path], dtype: torch.dtype, row: tuple[int, ...], sizes: Ints) -> None:
        self.files, self.dtype, self.row, self.sizes = files, dtype, row, sizes
        self.written = np.zeros(len(files), np.int64)
        self._checksums = [
            begin_file(file, self.number_type, (size, *row)) for file, size in zip(files, sizes.tolist(), strict=True)
        ]

    def append(self, rows: Array, begin: Ints) -> None:
        """Append the rows ``begin[p]`` to ``begin[p + 1]`` of ``rows`` to file p, for every p."""
        for p in np.flatnonzero(np.diff(begin)).tolist():
            self._checksums[p] = append_rows(self.files[p], rows[begin[p] : begin[p + 1]], self._checksums[p])
        self.written += np.diff(begin)

    @property
    def number_type(self) -> np.dtype[Any]:
        """Type of the numbers in the files, in numpy's words."""
        return numpy_type(self.dtype)

    def finish(self, folders: Iterable[Path]) -> list[ArrayFile]:
        """Fill the files with rows of zeros, flush them to the disk, and describe each as a file of its folder."""
        described, kind = [], str(self.dtype).removeprefix("torch.")
        for p, (file, folder) in enumerate(zip(self.files, folders, strict=True)):
            padding = np.zeros((self.sizes[p] - self.written[p], *self.row), self.number_type)
            checksum = append_rows(file, padding, self._checksums[p], flush=True)
            shape = (int(self.sizes[p]), *self.row)
            described.append(ArrayFile(file.relative_to(folder).as_posix(), kind, shape, checksum))
        return described


def split_nodes(
    column: NewColumn,
    name: str,
    num_nodes: int,
    number_of: Callable[[Ints], Array],
    files: Sequence[Path],
    sizes: Ints,
    num_bytes: int,
    bar: Any,
) -> SplitArray:
    """Split a node column over files, one per partition; ``number_of`` gives the partitions of nodes.

    Nodes of a partition are in the order of their ids, so rows that are read in order, about ``num_bytes`` at a time,
    are appended to the files.
    """
    sample = rows_of(column, name, torch.zeros(min(num_nodes, 1), dtype=torch.int64))
    row, kind = tuple(sample.shape[1:]), sample.dtype
    out = SplitArray(files, kind, row, sizes)
    step = max(num_bytes // max(sample.nbytes, 1), 1)
    for first in range(0, num_nodes, step):
        ids = np.arange(first, min(first + step, num_nodes))
        values = rows_of(column, name, torch.from_numpy(ids))
        if values.shape != (len(ids), *row) or values.dtype != kind:
            raise ValueError(
                f"column {name!r} must give rows of {kind} {list(row)} for every node, as for node 0, but for "
                f"nodes {ids[0]} to {ids[-1]} it gave {describe(values)}"
            )
        begin, order = kernels.csr.sort_by_destination(number_of(ids), len(files))
        out.append(plain(values)[order], begin)
        bar.update(len(ids))
    return out


def rows_of(column: NewColumn, name: str, ids: Tensor) -> Tensor:
    """Return rows of a column, dense and in main memory."""
    if isinstance(column, (Tensor, Rows)):
        return fetch_rows(column, ids).detach().cpu()
    values = column(ids)
    check_type(values, f"the result of columns[{name!r}]", Tensor, "a tensor")
    return dense(values.detach().cpu(), name)  # type: ignore[return-value]


def plain(values: Tensor) -> Array:
    """Return the array of a dense tensor, bfloat16 as uint16."""
    values = values.detach().cpu().contiguous()
    array: Array = (values.view(torch.uint16) if values.dtype == torch.bfloat16 else values).numpy()
    return array


def node_columns(
    graph: Graph, names: Sequence[str] | None, more: Mapping[str, NewColumn] | None
) -> dict[str, NewColumn]:
    """Return the node columns of a graph that were chosen, and ``more``; see ``write_partitions`` for the errors."""
    nodes: dict[str, NewColumn] = {
        name: dense(graph.ndata[name], name) for name in chosen_columns(graph.ndata, names, "ndata", "the graph")
    }
    for name, column in ({} if more is None else more).items():
        check_type(name, "a column name", str, "a str")
        if isinstance(column, np.ndarray):
            column = torch.from_numpy(column)
        if isinstance(column, (Tensor, Rows)):
            check_num_rows(column.shape, f"columns[{name!r}]", graph.num_nodes, "node")
            column = dense(column, name)
        elif not callable(column):
            raise TypeError(f"columns[{name!r}] must be a tensor, Rows or a function of ids, got {describe(column)}")
        nodes[name] = column
    return nodes


def edge_columns(graph: Graph, names: Sequence[str] | None) -> dict[str, Column]:
    """Return the edge columns of a graph that were chosen; TypeError for sparse ones, KeyError for unknown ones."""
    return {name: dense(graph.edata[name], name) for name in chosen_columns(graph.edata, names, "edata", "the graph")}


def dense(column: Column, name: str) -> Column:
    """Return a column; TypeError for a sparse one."""
    if isinstance(column, Tensor) and column.layout != torch.strided:
        raise TypeError(
            f"column {name!r} is sparse, and partitions hold dense rows; leave it out with ndata=[...], and pass "
            f"columns={{{name!r}: lambda ids: ...}} with a function that returns dense rows"
        )
    return column


def edge_ranges(graph: Graph, size: int) -> Iterator[tuple[int, int, int]]:
    """The positions of the edges in pieces, ``first`` to ``last``, and the destination of the first edge of each."""
    for first in range(0, graph.num_edges, size):
        v = int(np.searchsorted(graph.indptr, first, side="right")) - 1
        yield first, min(first + size, graph.num_edges), v
