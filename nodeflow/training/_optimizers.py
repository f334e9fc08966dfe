"""Optimisers and schedules of the learning rate by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from nodeflow.training._train_options import OptimizerSettings

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


def make_optimizer(
    settings: OptimizerSettings, parameters: Iterable[nn.Parameter], *, large: bool
) -> torch.optim.Optimizer:
    """Return the optimiser; for ``large`` tables of rows, the fused one, with one pass over the
    weights.
    """
    # other models take torch's default implementation, and so the bits that it gives
    options = {}
    if large and settings.name in _FUSED:
        options = {"fused": True}
    return OPTIMIZERS[settings.name](
        parameters, lr=settings.lr, weight_decay=settings.weight_decay, **options
    )


def make_scheduler(
    settings: OptimizerSettings,
    optimizer: torch.optim.Optimizer,
    epochs: int,
    num_batches: Callable[[int], int],
) -> torch.optim.lr_scheduler.LRScheduler:
    """Return the schedule, stepped after every step of the optimiser; ``num_batches`` are those
    of an epoch.
    """
    total = _steps(settings, epochs, num_batches)
    warmup = round(_steps(settings, settings.warmup, num_batches))

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        return SCHEDULES[settings.schedule](max(total - step, 0) / max(total - warmup, 1))

    return LambdaLR(optimizer, factor)


def _steps(settings: OptimizerSettings, epochs: float, num_batches: Callable[[int], int]) -> float:
    """Return the steps of the first epochs; a part of an epoch has its share of the steps of
    that one.
    """
    whole = math.ceil(epochs)
    steps = [math.ceil(num_batches(number) / settings.accumulate) for number in range(whole)]
    return sum(steps) - (whole - epochs) * (steps[-1] if steps else 0)
