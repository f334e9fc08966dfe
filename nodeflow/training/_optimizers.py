"""Optimisers and schedules of the learning rate by name, and their settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from nodeflow.training._fields import Group, count, number, one_of

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
}
_FUSED = ("adam", "adamw", "adagrad", "sgd")
SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda left: 1.0,
    "cosine": lambda left: (1 - math.cos(math.pi * left)) / 2,
    "linear": lambda left: left,
}
"""Factors of the learning rate, as functions of the remaining share of steps."""


@dataclass(frozen=True, kw_only=True)
class OptimizerSettings(Group):
    """The optimiser, and the schedule of the learning rate."""

    name: str = one_of(OPTIMIZERS, "the optimiser", name="optimizer")
    lr: float = number(0.003, "learning rate, the highest of the schedule", above=0)
    weight_decay: float = number(0.0, "weight decay of the optimiser")
    schedule: str = one_of(
        SCHEDULES,
        "how the learning rate falls over the epochs: not, along a cosine, or linearly, to 0",
    )
    warmup: float = number(0.0, "epochs over which the learning rate rises from 0")
    clip: float = number(0.0, "largest norm of the gradient of all weights; 0: any")
    accumulate: int = count(1, "batches whose gradients are added up before a step", least=1)

    def optimizer(
        self, parameters: Iterable[nn.Parameter], *, large: bool
    ) -> torch.optim.Optimizer:
        """Return the optimiser; for ``large`` tables of rows, the fused one, with one pass over the
        weights.
        """
        # other models take torch's default implementation, and so the bits that it gives
        options = {"fused": True} if large and self.name in _FUSED else {}
        return OPTIMIZERS[self.name](
            parameters, lr=self.lr, weight_decay=self.weight_decay, **options
        )

    def scheduler(
        self, optimizer: torch.optim.Optimizer, epochs: int, num_batches: Callable[[int], int]
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """Return the schedule, stepped after every step of the optimiser; ``num_batches`` are those
        of an epoch.
        """
        total = self._steps(epochs, num_batches)
        warmup = round(self._steps(self.warmup, num_batches))

        def factor(step: int) -> float:
            if step < warmup:
                return (step + 1) / warmup
            return SCHEDULES[self.schedule](max(total - step, 0) / max(total - warmup, 1))

        return LambdaLR(optimizer, factor)

    def _steps(self, epochs: float, num_batches: Callable[[int], int]) -> float:
        """Return the steps of the first epochs; a part of an epoch has its share of the steps of
        that one.
        """
        whole = math.ceil(epochs)
        steps = [math.ceil(num_batches(number) / self.accumulate) for number in range(whole)]
        return sum(steps) - (whole - epochs) * (steps[-1] if steps else 0)
