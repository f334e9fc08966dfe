"""The rows of resident partitions: one slot per partition for every node column, and the files that they come from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from nodeflow._base.types import Array
from nodeflow._disk.arrays import ArrayFile, numpy_type
from nodeflow._disk.streams import ArrayWriter
from nodeflow._rows.rows import concat_rows, from_numpy
from nodeflow.partitions._partition_files import node_file, read_rows, read_sparse
from nodeflow.partitions._partitions import Partitions

_PIECE = 2**20  # bytes exchanged at a time


class NodeSlots:
    """Memory for the node columns of ``slots`` resident partitions, and of ``spare`` partitions that come or go.

    A partition that comes in is read into a spare place while the slots are in use. ``exchange`` puts it into its slot,
    and the one that was there into the spare place, from which ``write`` takes it. Writing makes files of a new
    generation, which nobody reads but this object until they are committed; ``written`` are those of this epoch, by
    their names in the manifest.

    Args:
        partitions: the folder.
        columns: names of the columns to hold.
        writable: those of them that are written back.
        slots, spare: numbers of partitions.
        page_cache: see ``PartitionBuffer``.
    """

    def __init__(
        self,
        partitions: Partitions,
        columns: Sequence[str],
        writable: Collection[str],
        slots: int,
        spare: int,
        *,
        page_cache: bool,
    ) -> None:
        self._partitions, self._page_cache, self.spare = partitions, page_cache, spare
        self._writable = [name for name in columns if name in writable]
        self._arrays = {name: partitions.node_array(name, 0) for name in columns}
        for name in self._writable:
            if self._arrays[name].csr is not None:
                raise TypeError(f"writable names column {name!r}, whose rows are sparse; learned rows are dense")
        self._slots, self._spare = (
            {name: _memory(count, array) for name, array in self._arrays.items()} for count in (slots, spare)
        )
        self.written: dict[str, ArrayFile] = {}

    def begin_epoch(self, partitions: Partitions) -> None:
        """Forget the files of the last epoch: what is read now are those that the folder names."""
        self._partitions, self.written = partitions, {}

    def read(self, partition: int, place: int, *, spare: bool = True) -> int:
        """Read a partition into a spare place, or into a slot; return the number of bytes."""
        folder, bytes_read = self._partitions.folder, 0
        for name, memory in (self._spare if spare else self._slots).items():
            key = f"ndata/{name}/{partition}"
            array = self.written.get(key) or self._partitions.node_array(name, partition)
            if array.csr is None:
                read_rows(folder / array.file, memory[place], page_cache=self._page_cache)
            else:
                memory[place] = read_sparse(folder, array, page_cache=self._page_cache)
            bytes_read += array.nbytes
        return bytes_read

    def write(self, partition: int, place: int, *, spare: bool = True) -> int:
        """Write the writable columns of a partition from a spare place, or from a slot, into files of this epoch.

        Returns the number of bytes. Raises OSError where the disk cannot hold them.
        """
        folder, bytes_written = self._partitions.folder, 0
        for name in self._writable:
            rows = (self._spare if spare else self._slots)[name][place]
            path = folder / node_file(name, partition, self._partitions.epoch + 1)
            try:
                writer = ArrayWriter(path, self._arrays[name].torch_type, rows.shape[1:], len(rows))
                writer.append(rows)
                self.written[f"ndata/{name}/{partition}"] = writer.finish(folder, flush=not self._page_cache)
            except OSError as error:
                why = f"{error.strerror}: partition {partition} of column {name!r}; the epoch is not committed"
                why += f", the folder stays as after epoch {self._partitions.epoch}"
                raise OSError(error.errno, why, str(path)) from error
            bytes_written += rows.nbytes
        return bytes_written

    def exchange(self, slot: int, place: int) -> None:
        """Put the rows at a spare place into a slot; the writable rows of the slot go to the spare place."""
        for name, memory in self._slots.items():
            inside, outside = memory[slot], self._spare[name][place]
            if self._arrays[name].csr:
                memory[slot], self._spare[name][place] = outside, None
            elif name not in self._writable:
                inside[:] = outside
            else:  # in pieces, so that no copy of a whole partition is needed
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
            if self._arrays[name].csr:
                columns[name] = concat_rows(memory)
            else:
                view: Array = memory.reshape(-1, *memory.shape[2:])
                view.flags.writeable = name in self._writable
                columns[name] = from_numpy(view, self._arrays[name].torch_type)
        return columns


def _memory(count: int, array: ArrayFile) -> Any:
    """Return places for the rows of partitions; sparse rows, which have no size of their own, are put there whole."""
    if array.csr is not None:
        return [None] * count
    return np.zeros((count, *array.shape), numpy_type(array.torch_type))
