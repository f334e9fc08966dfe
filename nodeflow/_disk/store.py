"""Stores: named arrays whose rows change by commits, all of a commit or nothing of it; in memory, or in a folder."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import with_article
from nodeflow._disk.arrays import ArrayFile, create_array, numpy_type
from nodeflow._disk.folders import lock_of_process, new_folder
from nodeflow._disk.journal import Journal
from nodeflow._disk.manifest import MANIFEST, Manifest, sync_folder
from nodeflow._rows.rows import take_rows
from nodeflow._runtime import locks

if TYPE_CHECKING:
    from filelock import BaseFileLock

Shapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""By name, the shape and type of every array."""
Changes = Mapping[str, tuple[Tensor, Tensor]]
"""By name of an array, ids int64 ``[k]`` and their new rows; an array of one number has the id 0."""
Change = Callable[[Mapping[str, Tensor]], None]
"""A function of arrays by name; arrays of one number are ``[1]``."""

_JOURNAL = "journal"


def write_rows(arrays: Mapping[str, Tensor], changes: Changes) -> None:
    """Write rows into arrays in memory. If anything raises, the old rows are put back."""
    change_rows(arrays, {name: ids for name, (ids, _) in changes.items()}, lambda found: copy_rows(found, changes))


def change_rows(arrays: Mapping[str, Tensor], ids: Mapping[str, Tensor], change: Change) -> None:
    """Call ``change``, which changes the rows ``ids`` of arrays in memory. If it raises, the old rows are put back."""
    found = {name: _as_rows(arrays[name]) for name in ids}
    undo = [(found[name], which, take_rows(found[name], which)) for name, which in ids.items()]
    try:
        change(found)
    except BaseException:
        for array, which, old in undo:
            array.index_copy_(0, which, old)
        raise


class Store:
    """Named arrays in a folder, mapped for writing, which may be larger than memory.

    ``commit`` changes rows, ``replace`` all arrays at once. A process that is killed at any moment leaves a folder with
    the rows of some whole commit: of the last one that ended, or the one after it. After a power cut the same holds if
    ``flush`` was called since the last commit; else rows of several commits may be mixed, since the system writes
    pages in an order of its own.

    One process at a time has the store of a folder. Within it, several stores of one folder share the rows until one
    of them replaces all arrays; only one may commit at a time. A child made by fork may read.

    Args:
        folder: made when missing. Arrays that are there must be of the same kind, names, shapes, types and facts.
        kind: what the arrays are, as "history".
        version: of their layout.
        shapes: of all arrays; new ones are zeros.
        facts: what else must agree when the folder is opened again, as JSON has it.
        words: by the name of a fact, how an error says that it is another one.

    Raises ValueError for a folder of something else and for damaged files; BlockingIOError where another process has
    it; OSError when the disk cannot hold the arrays, which leaves the folder as it was.

    ``settled=False`` leaves a commit that did not end as it is, until ``settle`` is called: for stores on several
    processes, which must end it alike.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        version: int,
        shapes: Shapes,
        facts: Mapping[str, Any],
        words: Mapping[str, str] | None = None,
        *,
        settled: bool = True,
    ) -> None:
        self.folder, self.shapes = folder, dict(shapes)
        self._kind, self._version, self._facts = kind, version, dict(facts)
        self._process = os.getpid()
        if not (folder / MANIFEST).exists():
            self._create()
        self._lock: BaseFileLock | None = lock_of_process(folder)
        manifest = self._read(words or {})
        self._set, self._doubt = str(manifest.facts["set"]), False
        self.arrays = self._map(self._set)
        self._journal = Journal(folder / _JOURNAL)
        if settled:
            self.settle(self.number, undo=True)

    @property
    def number(self) -> int:
        """The number of the present set of arrays, which counts how often all of them were replaced."""
        return int(self._set)

    @property
    def interrupted(self) -> bool:
        """Whether there is a commit that did not end."""
        return self._journal.marked

    def settle(self, number: int, *, undo: bool) -> None:
        """End what was interrupted: take the set of arrays ``number``, and undo or keep a commit that did not end.

        Raises ValueError for a set that is not there.
        """
        if number != self.number:
            if not (self.folder / str(number)).is_dir():
                raise ValueError(f"{self.folder} has no set {number} of arrays, only {self.number}")
            self._manifest(str(number)).write(self.folder)
            self._set, self.arrays = str(number), self._map(str(number))
        for other in self.folder.iterdir():  # a set that was never finished, or that a finished one replaced
            if other.is_dir() and other.name != self._set:
                shutil.rmtree(other)
        if undo:
            self._undo()
        else:
            self._journal.erase()

    def commit(self, changes: Changes) -> None:
        """Write rows, all of them or none: if anything raises, or the process is killed, the old rows come back.

        Raises OSError where the disk cannot hold the old rows meanwhile.
        """
        self.change({name: ids for name, (ids, _) in changes.items()}, lambda found: copy_rows(found, changes))

    def change(
        self, ids: Mapping[str, Tensor], change: Change, in_doubt: Callable[[BaseException], bool] | None = None
    ) -> None:
        """Commit what a function does to the rows ``ids`` of some arrays, whose arguments are these arrays by name.

        If it raises, the old rows come back, unless ``in_doubt(error)`` says that stores on other processes may have
        ended their part of the commit. Then this one can only be opened again, together with the others.
        """
        self._check_process()
        if self._doubt:
            raise RuntimeError(
                f"it is unknown whether the last commit to {self.folder} ended on the other processes; start all of "
                "them again"
            )
        self._undo()  # of a commit whose own undoing was interrupted
        found = {name: _as_rows(self.arrays[name]) for name in ids}
        try:
            self._journal.record(found, list(ids.items()))
            change(found)
        except BaseException as error:
            self._doubt = in_doubt is not None and in_doubt(error)
            if not self._doubt:
                self._undo()
            raise
        self._journal.erase()

    def successor(self) -> tuple[str, dict[str, Tensor]]:
        """Make a second set of arrays, all zeros. Return its name and the arrays."""
        self._check_process()
        name = str(int(self._set) + 1)
        shutil.rmtree(self.folder / name, ignore_errors=True)  # of a pass that did not end
        try:
            self._make(self.folder, name)
        except OSError:
            shutil.rmtree(self.folder / name, ignore_errors=True)
            raise
        return name, self._map(name)

    def replace(self, name: str) -> None:
        """Replace the present set by the set ``name``, and flush its rows to the disk."""
        self._check_process()
        new = self._map(name)
        self._flush(name)
        self._manifest(name).write(self.folder)
        old, self._set, self.arrays = self._set, name, new
        shutil.rmtree(self.folder / old, ignore_errors=True)

    def flush(self) -> None:
        """Wait until all rows are on the disk, so that they outlive a power cut."""
        self._flush(self._set)

    def close(self) -> None:
        """Let another process have the folder. The arrays must not be written any more."""
        if self._lock is not None and os.getpid() == self._process:
            self._journal.close()
            self._lock.release()
            self._lock = None

    def _undo(self) -> None:
        if self._journal.marked:
            self._journal.undo({name: _as_rows(array) for name, array in self.arrays.items()})

    def _check_process(self) -> None:
        if self._lock is None:
            raise ValueError(f"the {self._kind} in {self.folder} is closed; open it again to write")
        if os.getpid() != self._process:
            raise BlockingIOError(
                f"{self.folder} was opened by the process that forked this one, which alone may write it"
            )

    def _create(self) -> None:
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ValueError(
                f"{self.folder} holds other files, or {with_article(self._kind)} of an earlier layout; "
                f"{with_article(self._kind)} needs a folder of its own: choose another one, or delete that one"
            )
        with new_folder(self.folder) as draft:
            self._make(draft, "0")
            self._manifest("0").write(draft)

    def _make(self, folder: Path, name: str) -> None:
        try:
            for array, (shape, dtype) in self.shapes.items():
                create_array(folder / name / f"{array}.npy", numpy_type(dtype), shape)
        except OSError as error:
            total = sum(math.prod(shape) * dtype.itemsize for shape, dtype in self.shapes.values())
            what = f"{os.strerror(error.errno or 0)}: {with_article(self._kind)} of {total:,} bytes"
            raise OSError(error.errno, what, str(self.folder)) from None

    def _manifest(self, name: str) -> Manifest:
        # rows change, so there is no checksum of them
        arrays = {
            array: ArrayFile(f"{name}/{array}.npy", str(dtype).removeprefix("torch."), tuple(shape), 0)
            for array, (shape, dtype) in self.shapes.items()
        }
        return Manifest(self._kind, self._version, arrays, {**self._facts, "set": name})

    def _read(self, words: Mapping[str, str]) -> Manifest:
        manifest = Manifest.read(self.folder, self._kind, self._version)
        name = manifest.facts.get("set")
        if not (isinstance(name, str) and name.isdecimal()):
            raise ValueError(f"{self.folder / MANIFEST} is damaged: it does not say which arrays are the present ones")
        expected = self._manifest(name)
        differs = None
        for fact, value in self._facts.items():
            known = manifest.facts.get(fact)
            if known != value:
                differs = words.get(fact, f"with {fact} {known}, not {value}")
                break
        if differs is None and manifest.arrays != expected.arrays:
            found, ours = ({n: [list(a.shape), a.dtype] for n, a in m.arrays.items()} for m in (manifest, expected))
            differs = f"with arrays {found}, not {ours}"
        if differs is not None:
            raise ValueError(
                f"{self.folder} holds {with_article(self._kind)} {differs}; choose another folder, or delete that one"
            )
        return manifest

    def _map(self, name: str) -> dict[str, Tensor]:
        return {array: self._map_one(name, array, *kind) for array, kind in self.shapes.items()}

    def _map_one(self, name: str, array: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        if 0 in shape:  # nothing to map
            return torch.zeros(shape, dtype=dtype)
        with locks.syntax:
            mapped = torch.from_numpy(np.lib.format.open_memmap(self.folder / name / f"{array}.npy", "r+"))
        return mapped.view(dtype).view(shape)

    def _flush(self, name: str) -> None:
        for array in self.shapes:
            sync_folder(self.folder / name / f"{array}.npy")
        for folder in (self.folder / name, self.folder):
            sync_folder(folder)


def copy_rows(arrays: Mapping[str, Tensor], changes: Changes) -> None:
    """Write rows into arrays, in the order of ``changes``."""
    for name, (ids, rows) in changes.items():
        arrays[name].index_copy_(0, ids, rows)


def _as_rows(array: Tensor) -> Tensor:
    return array if array.ndim else array.view(1)
