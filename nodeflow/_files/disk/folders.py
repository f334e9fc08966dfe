"""New folders that appear whole or not at all, and the lock of a folder that one process writes."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nodeflow._core.base import files
from nodeflow._files.disk.arrays import making, naming
from nodeflow._files.disk.manifest import MANIFEST, REPLACED, sync_folder

if TYPE_CHECKING:
    from filelock import BaseFileLock

_DRAFT = ".unfinished-"
LOCK = ".lock"
# seconds: far longer than another process needs to remove a draft
_PATIENCE = 1.0
# constants of Linux: paths are absolute, and the folders are exchanged
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def new_folder(path: Path, *, overwrite: bool = False, alone: bool = False) -> Iterator[Path]:
    """Yield a draft of a folder, empty but for its lock, which becomes ``path`` at the end of the
    block.

    If anything raises, the draft is removed and ``path`` is as it was. Drafts that killed processes
    left in the folder around ``path`` are removed. ``overwrite`` replaces a folder that has a
    manifest; with ``alone`` its lock is taken, so that nobody writes into it meanwhile. Raises
    FileExistsError for a path that exists, BlockingIOError where another process is writing the
    same folder, PermissionError where the system does not replace a folder whose files are in use,
    OSError where the disk is full.
    """
    path = Path(os.path.abspath(path))
    check_free(path, overwrite=overwrite)
    draft = _draft(path)
    with making(path.parent), ExitStack() as locks:
        if alone and overwrite and (path / MANIFEST).is_file():
            locks.enter_context(locked(path))
        # Before the draft is made: the disk may be full of what killed processes left.
        remove_drafts(path.parent)
        with naming(path):
            lock = _begin(draft, path)
            try:
                if overwrite:
                    _end_replacing(path)  # which a killed process had begun
                # another process may have finished it in between
                check_free(path, overwrite=overwrite)
                for entry in draft.iterdir():
                    if entry.is_dir():
                        shutil.rmtree(entry)
                    elif entry.name != LOCK:
                        entry.unlink()
                yield draft
                # Entries of the draft reach the disk before its new name does: a power cut leaves
                # one whole folder.
                sync_folder(draft)
                check_free(path, overwrite=overwrite)
                if files.USED_FILES_STAY:
                    locks.close()
                    _let_go(lock, draft)
                _replace(draft, path)
                sync_folder(path.parent)
                with suppress(OSError):
                    (path / LOCK).unlink()
            finally:
                _let_go(lock, draft)
                _end_replacing(path)
                shutil.rmtree(draft, ignore_errors=True)
                lock.release()


def _replace(draft: Path, path: Path) -> None:
    """Give a draft the name of a folder, which may be there; ``_end_replacing`` ends it, or takes
    it back.
    """
    if _exchange(draft, path):
        return
    if (path / MANIFEST).is_file():
        path.replace(_replaced(path))
    elif path.is_symlink():
        path.unlink()
    elif path.exists():
        path.rmdir()
    draft.replace(path)


def _exchange(draft: Path, path: Path) -> bool:
    """Exchange two folders in one step, so that a killed process leaves one of them; False where
    that cannot be.
    """
    if sys.platform != "linux" or files.USED_FILES_STAY or path.is_symlink():
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    # The old folder has the name of the draft then, and is removed as one.
    status = rename(_AT_FDCWD, os.fsencode(draft), _AT_FDCWD, os.fsencode(path), _RENAME_EXCHANGE)
    return bool(status == 0)


def _end_replacing(path: Path) -> None:
    """Bring back the folder that was to be replaced where there is no new one, else remove it."""
    old = _replaced(path)
    if (path / MANIFEST).is_file():
        shutil.rmtree(old, ignore_errors=True)
    elif (old / MANIFEST).is_file():
        old.replace(path)


def _begin(draft: Path, name: Path) -> BaseFileLock:
    """Make a draft, and take its lock."""
    while True:
        draft.mkdir(exist_ok=True)
        # another writer in this parent folder may hold or remove the draft before it is locked, see
        # remove_drafts
        with suppress(FileNotFoundError):
            return take_lock(draft, name, shared=False, patience=_PATIENCE)


def _let_go(lock: BaseFileLock, folder: Path) -> None:
    """Release a lock in a folder where its open file would keep the folder from being renamed and
    removed.
    """
    if files.USED_FILES_STAY and lock.is_locked:
        lock.release()
        # a draft without it has just been made, and is left alone
        (folder / LOCK).unlink(missing_ok=True)


def remove_drafts(parent: Path) -> None:
    """Remove what killed processes left of new folders: drafts that nobody writes, and folders that
    were replaced.
    """
    for draft in parent.glob(f"{_DRAFT}*"):
        # else it has just been made; without a lock, a manifest is that of a folder that was
        # exchanged for its draft
        if (draft / LOCK).is_file() or (not files.USED_FILES_STAY and (draft / MANIFEST).is_file()):
            with suppress(OSError), locked(draft) as lock:
                _let_go(lock, draft)
                shutil.rmtree(draft, ignore_errors=True)
    for old in parent.glob(f"{REPLACED}*"):
        path = old.with_name(old.name.removeprefix(REPLACED))
        # without the new one it is the only copy
        if (old / MANIFEST).is_file() and (path / MANIFEST).is_file() and not _draft(path).exists():
            shutil.rmtree(old, ignore_errors=True)


def _draft(path: Path) -> Path:
    return path.with_name(f"{_DRAFT}{path.name}")


def _replaced(path: Path) -> Path:
    return path.with_name(f"{REPLACED}{path.name}")


def check_free(path: Path, *, overwrite: bool) -> None:
    """Raise FileExistsError where ``path`` is there and may not be replaced; an empty folder may
    always be.
    """
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        return
    if not overwrite:
        raise FileExistsError(
            f"{path} exists; pass overwrite=True to replace it (nodeflow: --overwrite), or choose "
            "another path"
        )
    if not (path / MANIFEST).is_file():
        raise FileExistsError(
            f"{path} is not replaced: it was not written by nodeflow, since it has no {MANIFEST}"
        )


@contextmanager
def locked(folder: Path, name: Path | None = None) -> Iterator[BaseFileLock]:
    """Hold the lock of a folder, which belongs to one process at a time; the lock of a killed
    process is free.

    ``name`` is what the error calls the folder. Raises BlockingIOError where another process, or
    another place in this one, holds it.
    """
    lock = take_lock(folder, name or folder, shared=False)
    try:
        yield lock
    finally:
        lock.release()


def take_lock(folder: Path, name: Path, *, shared: bool, patience: float = 0) -> BaseFileLock:
    """Take the lock of a folder until ``release`` is called, or the result is no longer referred
    to; see ``locked``.

    ``shared``: further calls of this process get the same lock, which is free once all of them have
    released it. ``patience``: seconds to wait for another holder.
    """
    from filelock import FileLock, Timeout  # late: importing the package must stay quick

    # a finalizer may release it
    lock = FileLock(folder / LOCK, is_singleton=shared, thread_local=False)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise BlockingIOError(f"{name} is being written by another process") from None
    return lock
