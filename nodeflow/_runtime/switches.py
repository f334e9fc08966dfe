"""Off-switches of the two optimisations that outlive a single call; see the room's docstring."""

from __future__ import annotations

import os
from typing import Final

_OFF: Final = ("0", "false", "no", "off")


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


reuse_buffers = _is_on("NODEFLOW_REUSE_BUFFERS")
"""Whether results and batches use memory that earlier ones have freed."""
torch_threads = _is_on("NODEFLOW_TORCH_THREADS")
"""Whether the threads that torch keeps share the work; else threads are started for every call."""
