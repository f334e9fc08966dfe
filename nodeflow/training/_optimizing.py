"""The optimiser of a run, and the schedule of its learning rate."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from nodeflow.training._settings import OPTIMIZERS, Settings
from nodeflow.training._task import Task


def make_optimizer(settings: Settings, task: Task, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser of the settings."""
    make = OPTIMIZERS[settings.optimizer]
    # One pass over each weight, which counts for tables of rows; else rather the bits that torch gives by default.
    large = settings.precision != "float32" or task.inputs.table is not None
    fused = large and settings.optimizer in ("adam", "adamw", "adagrad", "sgd")
    made: torch.optim.Optimizer = make(
        parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, **({"fused": True} if fused else {})
    )
    return made


def make_scheduler(
    settings: Settings, task: Task, optimizer: torch.optim.Optimizer
) -> torch.optim.lr_scheduler.LRScheduler:
    """Return the schedule of the settings, stepped after every step of the optimiser."""
    if settings.schedule == "constant" and not settings.warmup:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    total, warmup = _steps(settings, task, settings.epochs), round(_steps(settings, task, settings.warmup))

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        left = max(total - step, 0) / max(total - warmup, 1)
        return {"constant": 1.0, "linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2}[settings.schedule]

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def _steps(settings: Settings, task: Task, epochs: float) -> float:
    """Return the number of steps of the first epochs; a part of an epoch has its share of the steps of that one."""
    whole = math.ceil(epochs)
    steps = [math.ceil(task.num_batches(number) / settings.accumulate) for number in range(whole)]
    return sum(steps) - (whole - epochs) * (steps[-1] if steps else 0)
