"""Columns of a graph that is cut: chosen, read in order and piece by piece, and split over the files of the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, check_num_rows, check_type, describe
from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, describe_array, write_array
from nodeflow._disk.streams import column_writer
from nodeflow._rows.rows import Rows, fetch_rows, is_sparse, row_bytes, slice_rows, take_rows
from nodeflow.graph import Graph
from nodeflow.partitions._cut import Masters
from nodeflow.partitions._partitions import chosen_columns

Column = Tensor | Rows
NewColumn = Column | Callable[[Tensor], Tensor]
_BYTES = 2**23  # bytes of the rows of a piece, about


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
    columns: Mapping[str, NewColumn],
    masters: Masters,
    sizes: Ints,
    files: Sequence[Sequence[Path]],
    folders: Sequence[Path],
    bar: Any,
) -> dict[str, list[ArrayFile]]:
    """Split node columns over files, one per part, and describe these by column and part.

    ``files`` are those of each column by part, and ``sizes`` the rows of each part. Nodes of a part
    are in the order of their ids, so rows that are read in order, some at a time, are appended to the files.
    """
    written = {}
    num_nodes = len(masters.owner)
    for (name, column), own in zip(columns.items(), files, strict=True):
        sample = rows_of(column, name, torch.zeros(min(num_nodes, 1), dtype=torch.int64))
        out = SplitColumn(own, sample, sizes)
        kind = (sample.dtype, sample.shape[1:], sample.layout)
        step = 2**14 if is_sparse(sample) else max(_BYTES // max(row_bytes(sample), 1), 1)
        for first in range(0, num_nodes, step):
            ids = np.arange(first, min(first + step, num_nodes))
            rows = rows_of(column, name, torch.from_numpy(ids))
            if len(rows) != len(ids) or (rows.dtype, rows.shape[1:], rows.layout) != kind:
                raise ValueError(
                    f"column {name!r} must give rows of {sample.dtype} {list(sample.shape[1:])} for every node, as for "
                    f"node 0, but for nodes {ids[0]} to {ids[-1]} it gave {describe(rows)}"
                )
            begin, order = kernels.csr.sort_by_destination(masters.owner[ids], len(sizes))
            out.append(take_rows(rows, torch.from_numpy(order)), begin)
            bar.update(len(ids))
        written[name] = out.finish(folders)
    return written


def write_arrays(folder: Path, arrays: Mapping[str, Array]) -> dict[str, ArrayFile]:
    """Write arrays into files of their names, and describe these."""
    for name, array in arrays.items():
        write_array(folder / f"{name}.npy", array)
    return {name: describe_array(folder, f"{name}.npy") for name in arrays}


def rows_of(column: NewColumn, name: str, ids: Tensor) -> Tensor:
    """Return rows of a column, in main memory."""
    if isinstance(column, (Tensor, Rows)):
        return fetch_rows(column, ids).detach().cpu()
    values = column(ids)
    check_type(values, f"the result of columns[{name!r}]", Tensor, "a tensor")
    return values.detach().cpu()


def columns_of(
    graph: Graph, ndata: Sequence[str] | None, edata: Sequence[str] | None, more: Mapping[str, NewColumn] | None
) -> tuple[dict[str, NewColumn], dict[str, Column]]:
    """Return the columns of nodes and edges that were chosen, and ``more`` of nodes; see ``write_partitions``."""
    nodes: dict[str, NewColumn] = {
        name: graph.ndata[name] for name in chosen_columns(graph.ndata, ndata, "ndata", "the graph")
    }
    edges: dict[str, Column] = {
        name: graph.edata[name] for name in chosen_columns(graph.edata, edata, "edata", "the graph")
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
    return nodes, edges
