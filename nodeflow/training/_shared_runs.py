"""Tasks that several processes cannot train together, beside those that their settings exclude."""

from __future__ import annotations

import torch
from torch import nn

from nodeflow.training._task import Task


def check_shared(task: Task) -> None:
    """Raise ValueError for training nodes and networks that several processes cannot share."""
    train = task.dataset.train.sort().values
    again = (train[1:] == train[:-1]).nonzero()
    if task.settings.run.task != "link" and len(again):
        raise ValueError(
            f"training nodes must be given once with several processes, but node {int(train[again[0, 0]])} of data set "
            f"{task.dataset.name!r} is there repeatedly"
        )
    for name, module in task.network.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and not isinstance(module, nn.SyncBatchNorm):  # noqa: SLF001
            raise ValueError(
                f"the model has batch normalisation ({name}), which several processes would take over their shares; "
                "take norm 'layer' or 'none', and another model than gin"
            )
    if not any(isinstance(value, torch.Tensor) and value.requires_grad for value in task.network.parameters()):
        raise ValueError("the network has no parameters to train")
