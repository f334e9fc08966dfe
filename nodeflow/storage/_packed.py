"""Rows of the steps of a plan: read when a step needs them, or packed beforehand in the order of
the steps.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from errno import EIO, ENOSPC
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, check_type
from nodeflow._core.rows.rows import Rows, fetch_rows, move_rows, new_rows, row_bytes, take_rows
from nodeflow.storage._plan import ReadStep

_PIECE = 2**26  # bytes of rows that are packed at a time


Served = tuple[ReadStep, dict[str, Tensor], int]
"""A step, the rows that it reads by column, and how many rows were packed for it."""


class OnDemand:
    """Reads the rows of every step when it comes."""

    # whether steps are taken from a plan before their rows are served
    runs_ahead = False

    def __init__(self, columns: Mapping[str, Tensor | Rows]) -> None:
        self.columns = columns

    def serve(self, advance: Callable[[], ReadStep | None]) -> Iterator[Served]:
        """Yield the steps that ``advance`` gives, until there is none, and their rows."""
        for step in iter(advance, None):
            yield step, self._read(step), 0

    def _read(self, step: ReadStep) -> dict[str, Tensor]:
        ids = torch.from_numpy(step.new)
        return {name: fetch_rows(rows, ids).cpu() for name, rows in self.columns.items()}


class Packed(OnDemand):
    """Writes the rows of coming steps one step after another, so that each step reads one range of
    a file.

    It takes as many steps at a time as fit into ``space`` bytes of ``folder``, at most ``limit``.
    Their rows are read once, in the order of the column, and written once for every step that reads
    them. The file has no name, so nothing is left of it. Where reading on demand would take fewer
    blocks of the disk, they are not packed.
    """

    runs_ahead = True

    def __init__(
        self, columns: Mapping[str, Tensor | Rows], folder: Path, space: int, limit: int
    ) -> None:
        super().__init__(columns)
        self.folder = folder
        self.space = space
        self.limit = limit
        self._row = sum(map(row_bytes, columns.values()))

    def serve(self, advance: Callable[[], ReadStep | None]) -> Iterator[Served]:
        step = advance()
        while step is not None:
            steps = list[ReadStep]()
            # As many steps as fit are packed together: a row that several of them read is fetched
            # once.
            free = self.space // max(self._row, 1)
            while step is not None:
                # one step at least, whatever it takes
                if steps and (len(step.new) > free or len(steps) == self.limit):
                    break
                steps.append(step)
                free -= len(step.new)
                step = advance()
            yield from self._serve_all(steps)

    def _serve_all(self, steps: list[ReadStep]) -> Iterator[Served]:
        new = [np.sort(step.new) for step in steps]
        if not all(self._pays(rows, new) for rows in self.columns.values()):
            yield from ((step, self._read(step), 0) for step in steps)
            return
        with ExitStack() as opened:
            files = {
                name: opened.enter_context(closing(_PackedFile(rows, new, self.folder)))
                for name, rows in self.columns.items()
            }
            for i, step in enumerate(steps):
                # The file has rows of a step by ascending id; the batch wants them in its own
                # order.
                order = np.argsort(step.new, kind="stable")
                rows_of_step = {name: file.rows_of(i, order) for name, file in files.items()}
                yield step, rows_of_step, len(order)

    def _pays(self, rows: Tensor | Rows, new: list[Ints]) -> bool:
        """Return whether packing takes fewer bytes of the disk than reading the rows ``new`` of
        each step on demand.
        """
        blocks: Callable[[Ints], int] | None = getattr(rows, "blocks", None)
        # how these are read is not known, and packing fetches no row twice
        if blocks is None:
            return True
        copied = 2 * sum(map(len, new)) * row_bytes(rows)
        return blocks(np.unique(np.concatenate(new))) + copied < sum(map(blocks, new))


class _PackedFile:
    """The rows of steps in a file without a name: each step has a range of it, in ascending order
    of its ids.
    """

    def __init__(self, rows: Tensor | Rows, new: list[Ints], folder: Path) -> None:
        self._shape = rows.shape[1:]
        self._dtype = rows.dtype
        self._row = row_bytes(rows)
        self._first = np.cumsum([0, *map(len, new)])
        check_space(folder, int(self._first[-1]) * self._row)
        self._file: Any = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by ``close``
        try:
            self._write(rows, new)
        except BaseException:
            self.close()
            raise

    def _write(self, rows: Tensor | Rows, new: list[Ints]) -> None:
        """Read the rows of all steps in order, pieces of them at a time, and write them where the
        steps have them.
        """
        # each row is fetched once, in the order of the column, and goes to all steps that read it
        ids = np.concatenate(new)
        order = np.argsort(ids, kind="stable")
        step = np.repeat(np.arange(len(new)), np.diff(self._first))[order]
        distinct, index = np.unique(ids[order], return_inverse=True)
        written = self._first[:-1].copy()
        size = max(_PIECE // max(self._row, 1), 1)
        for start in range(0, len(distinct), size):
            piece = fetch_rows(rows, torch.from_numpy(distinct[start : start + size])).cpu()
            part = slice(*np.searchsorted(index, [start, start + size]))
            by_step = np.argsort(step[part], kind="stable")
            counts = np.bincount(step[part], minlength=len(new))
            local = torch.from_numpy(index[part][by_step] - start).split(counts.tolist())
            for i in np.flatnonzero(counts):
                self._copy(self._file.write, take_rows(piece, local[i]), int(written[i]))
            written += counts

    def rows_of(self, step: int, order: Ints) -> Tensor:
        """Return the rows of a step; ``order`` sorts its ids."""
        first = int(self._first[step])
        count = len(order)
        packed = new_rows(count, self._shape, self._dtype)
        out = new_rows(count, self._shape, self._dtype)
        self._copy(self._file.readinto, packed, first)
        move_rows(packed, np.arange(count), out, order)
        return out

    def _copy(self, move: Callable[[memoryview], int | None], rows: Tensor, first: int) -> None:
        """Write rows to the file, or read them from it, from row ``first`` on."""
        numbers = rows.contiguous().view(-1)
        left = numbers.view(torch.uint8).numpy().data
        self._file.seek(first * self._row)
        while len(left):  # a signal may cut it short
            moved = move(left)
            if not moved:
                raise OSError(EIO, f"the file of packed rows ends {len(left):,} bytes early")
            left = left[moved:]

    def close(self) -> None:
        self._file.close()


def as_place(folder: object, space: int) -> Path:
    """Return a folder to which files of ``space`` bytes can be written; raises TypeError or OSError
    for another.
    """
    check_type(folder, "pack", str | Path, "the path of a folder")
    place = Path(str(folder))
    with TemporaryFile(dir=place):  # raises what it raises
        check_space(place, space)
    return place


def check_space(folder: Path, size: int) -> None:
    """Raise OSError unless ``size`` bytes are free in a folder."""
    if (free := shutil.disk_usage(folder).free) < size:
        raise OSError(
            ENOSPC, f"packed rows take {size:,} bytes, but {free:,} are free", str(folder)
        )
