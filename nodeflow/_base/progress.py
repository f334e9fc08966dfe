"""Progress bars, all of them made here."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


class Bar(tqdm):  # type: ignore[type-arg]  # generic for type checkers alone
    """A bar of this process.

    tqdm's own lock is shared with forked processes: one that is killed while it holds it would block all others.
    """


Bar.set_lock(threading.RLock())


def progress_bar(
    what: str,
    total: int,
    unit: str = "it",
    *,
    shown: bool,
    terminal_only: bool = False,
    pieces: Iterable[Any] | None = None,
    **options: Any,
) -> tqdm[Any]:
    """Return a bar on standard error that is removed at its end; hidden without ``shown``.

    It is hidden too where the process has no standard error, as a daemon, or with ``terminal_only`` no terminal. It
    iterates over ``pieces``. ``options`` are further ones of tqdm.
    """
    hidden = not shown or sys.stderr is None
    disable = True if hidden else None if terminal_only else False  # tqdm's words: None looks for a terminal
    return Bar(pieces, desc=what, total=total, unit=unit, disable=disable, leave=False, **options)
