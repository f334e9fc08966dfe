"""What lies at a path: every reader asks here first, so that nothing but a file is ever opened or
taken for missing.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

USED_FILES_STAY = os.name == "nt"
"""Whether files that are open or mapped cannot be replaced or removed, nor folders that hold them
be renamed.
"""
_KINDS = ((stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))


def is_file(path: Path) -> bool:
    """Return whether a file lies at ``path``, or a link to one; False where nothing is at all.

    Raises OSError, which names the path, for anything else in its place: a link that leads nowhere,
    a folder (IsADirectoryError), a FIFO, whose reader would wait for a writer, a socket, a device.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if not path.is_symlink():
            return False
        raise OSError(
            f"{path} is a link to {os.readlink(path)}, where nothing is; put the file there, or "
            "remove the link"
        ) from None
    if stat.S_ISREG(mode):
        return True
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} must be a file, but it is a folder")
    kind = next((words for holds, words in _KINDS if holds(mode)), "a device")
    raise OSError(f"{path} must be a file, but it is {kind}")
