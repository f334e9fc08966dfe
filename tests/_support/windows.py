"""Windows's rules for files, on Linux: a file that is open or mapped keeps its name, and a folder
cannot be opened.
"""

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from nodeflow._core.base import files

MISSING = ("posix_fallocate", "sysconf", "register_at_fork", "fork", "pread", "preadv", "O_DIRECT")
MISSING += ("sched_getaffinity", "posix_fadvise")


def files_in_use():
    """The files that this process has open or mapped."""
    maps = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines())
    used = {fields[5] for fields in maps if len(fields) == 6 and fields[5].startswith("/")}
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            used.add(os.readlink(descriptor))
        except FileNotFoundError:  # the one that lists them
            continue
    return used


def obey_windows(patch: pytest.MonkeyPatch):
    """Let the calls of ``os`` follow Windows's rules, and hide those that it has not."""
    replace = os.replace
    unlink = os.unlink
    open_ = os.open
    fsync = os.fsync

    def refuse(path, what):
        raise PermissionError(
            errno.EACCES, f"the process cannot access the file: {what}", str(path)
        )

    def check_free(path):
        place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        for used in files_in_use():
            if used == place or (used.startswith(f"{place}/") and os.path.isfile(used)):
                refuse(path, used)

    def replaced(source, target, **more):
        check_free(source)
        if os.path.isdir(target):
            refuse(target, "a folder is there")
        check_free(target)
        return replace(source, target, **more)

    def unlinked(path, **more):
        check_free(path)
        return unlink(path, **more)

    def opened(path, flags, *more, **names):
        if os.path.isdir(path) and not flags & os.O_TMPFILE & ~os.O_DIRECTORY:
            refuse(path, "it is a folder")
        return open_(path, flags, *more, **names)

    def flushed(descriptor):
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        fsync(descriptor)

    calls = {"replace": replaced, "rename": replaced, "unlink": unlinked, "remove": unlinked}
    for name, call in {**calls, "open": opened, "fsync": flushed}.items():
        patch.setattr(os, name, call)
    # which Python 3.14 asks once, when it chooses this function
    patch.setattr(shutil, "_use_fd_functions", False)
    patch.setattr(shutil, "_rmtree_impl", shutil._rmtree_unsafe, raising=False)
    for name in MISSING:
        patch.delattr(os, name, raising=False)
    patch.setattr(files, "USED_FILES_STAY", True)
