"""Rows of a user's own, which follow the protocol of columns and nothing else."""

from __future__ import annotations

import torch
from torch import Tensor


class OwnRows:
    """Rows over a tensor that count what is fetched; call number ``fail_at`` fails."""

    def __init__(self, values: Tensor, fail_at: int | None = None) -> None:
        self.values = values
        self.shape = tuple(values.shape)
        self.dtype = values.dtype
        self.fail_at = fail_at
        self.fetched = self.calls = self.most = 0

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        self.calls += 1
        if self.calls == self.fail_at:
            raise ConnectionError("the store is gone")
        self.fetched, self.most = self.fetched + len(ids), max(self.most, len(ids))
        return torch.index_select(self.values, 0, ids, out=out)
