"""The rows of resident partitions: one slot per partition for every node column, and the files that they come from."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from torch import Tensor

from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, numpy_type
from nodeflow._disk.streams import ArrayWriter
from nodeflow._rows.rows import concat_rows, from_numpy
from nodeflow.partitions._buffer_counters import BufferCounters
from nodeflow.partitions._partition_files import node_file, read_rows, read_sparse
from nodeflow.partitions._partitions import Partitions

_PIECE = 2**20  # bytes exchanged at a time


class NodeSlots:
    """Memory for the node columns of ``slots`` resident partitions, and of ``spare`` partitions that come or go.

    A partition that comes in is read into a spare place while the slots are in use. ``exchange`` puts it into its slot,
    and the one that was there into the spare place, from which ``write`` takes it. Writing makes files of a new
    generation, which nobody reads but this object until they are committed.

    Args:
        partitions: the folder.
        columns: names of the columns to hold.
        writable: those of them that are written back.
        slots, spare: numbers of partitions.
        page_cache: see ``PartitionBuffer``.
    """

    def __init__(
        self, partitions: Partitions, columns: Sequence[str], writable: Collection[str], slots: int, spare: int, *,
        page_cache: bool,
    ) -> None:  # fmt: skip
        self._partitions, self._page_cache, self.spare = partitions, page_cache, spare
        self._writable = [name for name in columns if name in writable]
        first = {name: partitions.node_array(name, 0) for name in columns}
        for name in self._writable:
            if first[name].csr is not None:
                raise TypeError(f"writable names column {name!r}, whose rows are sparse; learned rows are dense")
        self._dtypes = {name: array.torch_type for name, array in first.items()}
        dense = {name: array for name, array in first.items() if array.csr is None}
        self._slots, self._spare = (
            {name: np.zeros((count, *array.shape), numpy_type(array.torch_type)) for name, array in dense.items()}
            for count in (slots, spare)
        )
        # sparse rows have no size of their own: a slot holds the matrix of its partition
        sparse = [name for name in columns if name not in dense]
        self._sparse_slots, self._sparse_spare = (
            {name: list[Tensor | None]([None] * count) for name in sparse} for count in (slots, spare)
        )
        self._written: dict[str, ArrayFile] = {}

    @property
    def written(self) -> dict[str, ArrayFile]:
        """The new files of this epoch, by their names in the manifest."""
        return self._written

    def begin_epoch(self, partitions: Partitions) -> None:
        """Forget the files of the last epoch: what is read now are those that the folder names."""
        self._partitions, self._written = partitions, {}

    def read(self, partition: int, place: int, counters: BufferCounters, *, spare: bool = True) -> None:
        """Read a partition into a spare place, or into a slot."""
        folder = self._partitions.folder
        for name, memory in (self._spare if spare else self._slots).items():
            key = f"ndata/{name}/{partition}"
            array = self._written.get(key) or self._partitions.node_array(name, partition)
            counters.bytes_read += read_rows(folder / array.file, memory[place], page_cache=self._page_cache)
        for name, matrices in (self._sparse_spare if spare else self._sparse_slots).items():
            array = self._partitions.node_array(name, partition)
            matrices[place] = read_sparse(folder, array, page_cache=self._page_cache)
            counters.bytes_read += array.nbytes

    def write(self, partition: int, place: int, counters: BufferCounters, *, spare: bool = True) -> None:
        """Write the writable columns of a partition from a spare place, or from a slot, into files of this epoch.

        Raises OSError where the disk cannot hold them.
        """
        folder = self._partitions.folder
        for name in self._writable:
            rows = (self._spare if spare else self._slots)[name][place]
            path = folder / node_file(name, partition, self._partitions.epoch + 1)
            try:
                writer = ArrayWriter(path, self._dtypes[name], rows.shape[1:], len(rows))
                writer.append(rows)
                self._written[f"ndata/{name}/{partition}"] = writer.finish(folder, flush=not self._page_cache)
            except OSError as error:
                raise OSError(
                    error.errno, f"{error.strerror}: partition {partition} of column {name!r}; the epoch is not "
                    f"committed, the folder stays as after epoch {self._partitions.epoch}", str(path),
                ) from error  # fmt: skip
            counters.bytes_written += rows.nbytes

    def exchange(self, slot: int, place: int) -> None:
        """Put the rows at a spare place into a slot; the writable rows of the slot go to the spare place."""
        for name, matrices in self._sparse_slots.items():
            matrices[slot], self._sparse_spare[name][place] = self._sparse_spare[name][place], None
        for name, memory in self._slots.items():
            inside, outside = memory[slot], self._spare[name][place]
            if name not in self._writable:
                inside[:] = outside
                continue
            step = max(_PIECE // max(inside[:1].nbytes, 1), 1)
            for first in range(0, len(inside), step):
                piece = slice(first, first + step)
                kept = inside[piece].copy()
                inside[piece] = outside[piece]
                outside[piece] = kept

    def columns(self) -> dict[str, Tensor]:
        """Return new tensors ``[slots * size, ...]`` that share the memory of the slots; read-only unless writable.

        Sparse columns are copies.
        """
        columns = {}
        for name, memory in self._slots.items():
            view: Array = memory.reshape(-1, *memory.shape[2:])
            view.flags.writeable = name in self._writable
            columns[name] = from_numpy(view, self._dtypes[name])
        for name, matrices in self._sparse_slots.items():
            columns[name] = concat_rows([matrix for matrix in matrices if matrix is not None])
        return columns
