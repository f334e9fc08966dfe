"""Rows: the protocol of columns that are fetched by id, such as files with a reader of their own."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


@runtime_checkable
class Rows(Protocol):
    """Rows of a dense column that are fetched by id.

    A column of a graph, the features that enter a full pass and the inputs of a history are a tensor or such an object.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole column, ``(num_rows, ...)``."""

    @property
    def dtype(self) -> torch.dtype:
        """Type of the numbers."""

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]`` on the CPU, as a tensor ``[k, ...]``.

        With ``out``, a tensor of that shape and type, they are written there, and ``out`` is returned.
        """
