"""One error for whatever a damaged file causes in a reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Raise one ValueError that names the file, for any error that a damaged file causes in a reader."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, MemoryError):
        raise
    except Exception as error:  # damage comes out of zipfile, zlib, gzip and numpy as a dozen types
        pickled = "pickle" in str(error)  # numpy's word for object arrays, and for whatever has no header it knows
        why = "it holds pickled objects, which are never loaded, or no numbers at all" if pickled else f"{error}"
        raise ValueError(
            f"{path} must be {expected}, but it cannot be read; it may be cut short or of another format ({why}). "
            "Write or copy it again"
        ) from error
