"""What several processes cannot train together, and why."""

from __future__ import annotations

import torch
from torch import nn

from nodeflow.datasets import Dataset
from nodeflow.training._settings import Settings

_SUBGRAPHS = "whose batches are subgraphs: those of several processes together are none of a single process"
_SAMPLERS = {
    "saint": _SUBGRAPHS,
    "cluster": _SUBGRAPHS,
    "cv": "whose history each process would write for its own share only",
}


def check_processes(settings: Settings, dataset: Dataset, size: int) -> None:
    """Raise ValueError for settings and data that ``size`` processes cannot train with together."""
    if settings.share == "owned" and dataset.graph.peers is None:
        raise ValueError("share 'owned' needs parts of a graph, one in each process: give partitions; got none")
    if dataset.graph.peers is not None:
        _check_parts(settings)
    if size == 1:
        return
    if settings.sampler in _SAMPLERS:
        able = "neighbor, labor, bernoulli, fastgcn, ladies, random-walk or shadow"
        raise ValueError(
            f"sampler must be {able} with several processes, got {settings.sampler!r}, {_SAMPLERS[settings.sampler]}"
        )
    if settings.storage == "partitions":
        raise ValueError(
            "storage must not be 'partitions' with several processes, whose buffers would hold different states; give "
            "each a part instead: nodeflow partition --for processes, and --partitions without --storage"
        )
    if settings.task == "link" and settings.link_loss == "one-vs-all":
        raise ValueError("link_loss must not be 'one-vs-all' with several processes: its batches are not shared")
    train = dataset.train.sort().values
    again = (train[1:] == train[:-1]).nonzero()
    if settings.task != "link" and len(again):
        raise ValueError(
            f"training nodes must be given once with several processes, but node {int(train[again[0, 0]])} of data set "
            f"{dataset.name!r} is there repeatedly"
        )


def check_network(network: nn.Module, size: int) -> None:
    """Raise ValueError for a network that several processes cannot train together."""
    if size == 1:
        return
    for name, module in network.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and not isinstance(module, nn.SyncBatchNorm):  # noqa: SLF001
            raise ValueError(
                f"the model has batch normalisation ({name}), which several processes would take over their shares; "
                "take norm 'layer' or 'none', and another model than gin"
            )
    if not any(isinstance(value, torch.Tensor) and value.requires_grad for value in network.parameters()):
        raise ValueError("the network has no parameters to train")


def _check_parts(settings: Settings) -> None:
    """Raise ValueError for settings that parts of a graph cannot be trained with."""
    reasons = {
        "task": ("link" if settings.task == "link" else "", "ranks are among the rows of all nodes"),
        "storage": (settings.storage.replace("memory", ""), "features lie in the files of the parts"),
        "model": ("rgcn" if settings.model == "rgcn" else "", "the types of all edges are in no process"),
    }  # fmt: skip
    for name, (value, why) in reasons.items():
        if value:
            raise ValueError(f"{name} must not be {value!r} with parts of a graph: {why}; leave it out")
