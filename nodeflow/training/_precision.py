"""Precision: which numbers of a run are bfloat16."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from nodeflow.ops import product_type
from nodeflow.training._choices import SAMPLERS
from nodeflow.training._models import kind_of
from nodeflow.training._settings import Settings


@dataclass(frozen=True)
class Precision:
    """Where a run computes, and in which types.

    Attributes: products, rows: whether products are computed, and rows between layers lie, in
    bfloat16. features: the type of the features that enter the network.
    """

    device: torch.device
    products: bool
    rows: bool
    features: torch.dtype

    @classmethod
    def of(cls, settings: Settings, device: torch.device, *, own_model: bool) -> Precision:
        """Return the precision of a run; ``own_model``: whether the model is of the user's own."""
        low = settings.compute.precision != "float32"
        kind = kind_of(settings.model.name)
        has_history = SAMPLERS[settings.sampler.name].has_history
        products = low and product_type(device) == torch.bfloat16
        rows = products
        # with products in float32, it is dropout that takes half the time: without it nothing
        # would be gained
        if low and kind.pieces and not own_model and not has_history:
            rows = rows or settings.model.dropout > 0
        # a history, a decoder and models of users read float32; and where products are in float32,
        # features would be rounded in every step
        reads_float32 = own_model or has_history or settings.model.name == "none"
        features = torch.float32
        if rows and not reads_float32:
            features = torch.bfloat16
        return cls(device, products, rows, features)

    def context(self) -> AbstractContextManager[Any]:
        """Return the context in which the network computes."""
        if self.rows:
            return torch.autocast(self.device.type, torch.bfloat16)
        return nullcontext()

    def in_float32(self) -> AbstractContextManager[Any]:
        """Return the context in which a decoder compares, within that of the network."""
        return torch.autocast(self.device.type, enabled=False)

    def __str__(self) -> str:
        if self.products:
            return "rows and products in bfloat16"
        rows = "all in float32"
        if self.rows:
            rows = "rows in bfloat16, products in float32"
        return f"{rows}: products in bfloat16 are slower on this processor"
