"""Stores in a folder, whose rows outlive the process."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import Ints, with_article
from nodeflow._core.base.sizes import check_memory
from nodeflow._core.base.types import FileLike
from nodeflow._core.peers.peers import ALONE, Peers
from nodeflow._files.disk.arrays import (
    ArrayFile,
    checksum,
    create_array,
    draft_of,
    map_array,
    numpy_type,
)
from nodeflow._files.disk.folders import new_folder, take_lock
from nodeflow._files.disk.manifest import MANIFEST, Manifest, sync_arrays
from nodeflow._files.store.journal import Journal
from nodeflow._files.store.store import MemoryStore, Shapes, Store, as_rows

if TYPE_CHECKING:
    from filelock import BaseFileLock

_JOURNAL = "journal"


class FileStore(Store):
    """Named arrays in a folder, mapped for writing, which may be larger than memory.

    A process that is killed at any moment leaves a folder with the rows of some whole commit: of
    the last one that ended, or the one after it. After a power cut the same holds if ``flush`` was
    called since the last commit; else rows of several commits may be mixed, since the system writes
    pages in an order of its own.

    ``close`` writes checksums of the arrays into the manifest, which the next opening compares and
    takes out again: what changes while no store has the folder open is found. A folder that was not
    closed has none.

    One process at a time has the store of a folder, and a child made by fork may read. Within it,
    several stores share the rows until one replaces all arrays; only one may commit at a time.

    Args:
        folder: made when missing. Arrays that are there must be of the same kind, names, shapes,
            types and facts.
        kind, version: what the arrays are, as "history", and the version of their layout.
        shapes: of all arrays; new ones are zeros.
        facts: what else must agree when the folder is opened again, as JSON has it.
        words: by the name of a fact, how an error says that it is another one.
        peers: the processes, each with a folder of its own; making one ends what was interrupted
            alike on all.
        counter: the array that counts commits, where there are several processes.

    Raises ValueError for a folder of something else, damaged files, and folders of processes that
    are not of one commit; BlockingIOError where another process has it; OSError, and the folder is
    as it was, where the disk is full.
    """

    folder: Path

    def __init__(
        self,
        folder: Path,
        kind: str,
        version: int,
        shapes: Shapes,
        facts: Mapping[str, Any],
        words: Mapping[str, str] | None = None,
        *,
        peers: Peers = ALONE,
        counter: str = "",
    ) -> None:
        super().__init__(peers, f"the {kind}")
        self.folder = folder
        self.shapes = dict(shapes)
        self._kind = kind
        self._version = version
        self._facts = dict(facts)
        self._process = os.getpid()
        if not (folder / MANIFEST).exists():
            self._create()
        # The lock of the folder itself, also where the path is a link to it.
        self._lock: BaseFileLock | None = take_lock(folder.resolve(), folder, shared=True)
        self._doubt = False
        self.number = self._read(words or {})
        if self._is_alone(self._lock):
            for name in (MANIFEST, _JOURNAL):
                # of a killed process
                draft_of(folder / name).unlink(missing_ok=True)
        self.arrays = self._map(self.number)
        self._journal = Journal(folder / _JOURNAL)
        self._settle(counter)

    def _settle(self, counter: str) -> None:
        """Complete or undo an interrupted commit, the same on all processes.

        A commit that any process has completed is kept, since all had written their rows by then;
        else it is undone. Arrays that one process has replaced are replaced on all.
        """
        commits = int(self.arrays[counter]) if counter else 0
        stated = np.array([self.number, self._journal.marked, commits], np.int64)
        answers = self.peers.gather(f"commits of {self.what}", [stated])
        # All processes see the same table of facts, and so decide alike.
        gathered: Ints = np.stack([facts for (facts,) in answers])
        ended = gathered[gathered[:, 1] == 0, 2]
        latest = int(gathered[:, 0].max())
        # else a folder of another run, reported below
        if latest - self.number <= 1:
            if latest != self.number:
                if not (self.folder / str(latest)).is_dir():
                    raise ValueError(
                        f"{self.folder} has no set {latest} of arrays, only {self.number}"
                    )
                self._manifest(latest).write(self.folder)
                self.number = latest
                self.arrays = self._map(latest)
            # a set that was never finished, or that a finished one replaced
            for other in self.folder.iterdir():
                if other.is_dir() and other.name != str(self.number):
                    self._remove(other.name)
            # A commit writes its counter first, so that a torn one is ahead of all finished
            # processes and is undone.
            if len(ended) and commits == ended.max():
                self._journal.erase()
            else:
                self._undo()
        counts = {"number of its arrays": str(self.number)}
        if counter:
            counts = {counter: str(int(self.arrays[counter])), **counts}
        self.peers.agree(f"the commit of {self.what}, whose folders belong together,", counts)

    def _keep(self, arrays: Mapping[str, Tensor], ids: Sequence[tuple[str, Tensor]]) -> None:
        self._check_process()
        if self._doubt:
            raise RuntimeError(
                f"it is unknown whether the last commit to {self.folder} ended on the other "
                "processes; start all of them again"
            )
        # of a commit whose own undoing was interrupted
        self._undo()
        self._journal.record(arrays, ids)

    def _take_back(self, *, in_doubt: bool) -> None:
        self._doubt = self._doubt or in_doubt
        if not self._doubt and self._lock is not None and os.getpid() == self._process:
            self._undo()

    def _let_go(self) -> None:
        self._journal.erase()

    def successor(self) -> dict[str, Tensor]:
        self._check_process()
        number = self.number + 1
        self._remove(number)  # of a pass that did not end
        try:
            self._make(self.folder, number)
        except OSError:
            self._remove(number)
            raise
        return self._map(number)

    def _replace(self, successor: Mapping[str, Tensor]) -> None:
        self._check_process()
        manifest = self._manifest(self.number + 1)
        manifest.publish(self.folder, manifest.arrays.values())
        self.number = self.number + 1
        self.arrays = dict(successor)
        self._remove(self.number - 1)

    def flush(self) -> None:
        sync_arrays(self.folder, self._manifest(self.number).arrays.values())

    def close(self) -> None:
        if self._lock is not None and os.getpid() == self._process:
            lock = self._lock
            self._lock = None
            try:
                self._journal.close()
                if self._is_alone(lock) and not self._doubt and not self._journal.marked:
                    self._seal()
            finally:
                lock.release()

    def _is_alone(self, lock: BaseFileLock) -> bool:
        """Whether no other store of this process has the folder open."""
        return lock.lock_counter == 1

    def _seal(self) -> None:
        """Write checksums of the arrays into the manifest, after the rows are on the disk."""
        manifest = Manifest.read(self.folder, self._kind, self._version)
        # Rows first: a checksum of rows that a power cut loses would call the folder damaged.
        sync_arrays(self.folder, manifest.arrays.values())
        arrays = {
            name: replace(array, checksum=checksum(self.folder / array.file))
            for name, array in manifest.arrays.items()
        }
        replace(manifest, arrays=arrays).write(self.folder)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"the {self._kind} in {self.folder} belongs to one process and cannot be pickled or "
            "copied; fetch the rows that are needed elsewhere"
        )

    def _undo(self) -> None:
        if self._journal.marked:
            self._journal.undo({name: as_rows(array) for name, array in self.arrays.items()})

    def _check_process(self) -> None:
        if self._lock is None:
            raise ValueError(f"the {self._kind} in {self.folder} is closed; open it again to write")
        if os.getpid() != self._process:
            raise BlockingIOError(
                f"{self.folder} was opened by the process that forked this one, which alone may "
                "write it"
            )

    def _create(self) -> None:
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise ValueError(
                f"{self.folder} holds other files, or {with_article(self._kind)} of an earlier "
                f"layout; {with_article(self._kind)} needs a folder of its own: choose another "
                "one, or delete that one"
            )
        with new_folder(self.folder) as draft:
            self._make(draft, 0)
            self._manifest(0).write(draft)

    def _make(self, folder: Path, number: int) -> None:
        for array, (shape, dtype) in self.shapes.items():
            create_array(folder / str(number) / f"{array}.npy", numpy_type(dtype), shape)

    def _remove(self, number: int | str) -> None:
        shutil.rmtree(self.folder / str(number), ignore_errors=True)

    def _manifest(self, number: int) -> Manifest:
        # no checksum while the store is open: rows change
        arrays = {
            array: ArrayFile(
                f"{number}/{array}.npy", str(dtype).removeprefix("torch."), tuple(shape), 0
            )
            for array, (shape, dtype) in self.shapes.items()
        }
        return Manifest(self._kind, self._version, arrays, {**self._facts, "set": str(number)})

    def _read(self, words: Mapping[str, str]) -> int:
        """Check that the folder has such arrays, and take out their checksums; return the number of
        the present set.
        """
        manifest = Manifest.read(self.folder, self._kind, self._version)
        number = manifest.facts.get("set")
        if not (isinstance(number, str) and number.isdecimal() and len(number) < 19):
            raise ValueError(
                f"{self.folder / MANIFEST} is damaged: it does not say which arrays are the "
                "present ones"
            )
        expected = self._manifest(int(number))
        stored = {**manifest.facts, "arrays": _in_words(manifest)}
        for fact, value in {**self._facts, "arrays": _in_words(expected)}.items():
            if stored.get(fact) != value:
                how = words.get(fact, f"with {fact} {stored.get(fact)}, not {value}")
                raise ValueError(
                    f"{self.folder} holds {with_article(self._kind)} {how}; choose another "
                    "folder, or delete that one"
                )
        if manifest.arrays != expected.arrays:  # rows may change from here on
            expected.write(self.folder)
        return int(number)

    def _map(self, number: int) -> dict[str, Tensor]:
        return {
            name: torch.from_numpy(map_array(self.folder, array, "r+")).view(array.torch_type)
            for name, array in self._manifest(number).arrays.items()
        }


def make_store(
    folder: FileLike | None,
    kind: str,
    shapes: Shapes,
    peers: Peers,
    device: torch.device | None = None,
    **layout: Any,
) -> Store:
    """Return arrays of zeros in memory, or those of a ``FileStore`` where there is a folder, with
    its further arguments.
    """
    if folder is not None:
        return FileStore(Path(folder), kind, shapes=shapes, peers=peers, **layout)
    size = sum(math.prod(shape) * dtype.itemsize for shape, dtype in shapes.values())
    title = with_article(kind)
    check_memory(size, f"{title} in memory", "pass folder= to keep it in files")
    arrays = {
        name: torch.zeros(shape, dtype=dtype, device=device)
        for name, (shape, dtype) in shapes.items()
    }
    return MemoryStore(arrays, peers, f"the {kind}")


def _in_words(manifest: Manifest) -> dict[str, list[Any]]:
    """Return the shape and type of every array, as an error says them."""
    return {name: [list(array.shape), array.dtype] for name, array in manifest.arrays.items()}
