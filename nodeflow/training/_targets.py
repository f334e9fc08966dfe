"""What the outputs of nodes are compared with: classes, several labels, or numbers; and the loss of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from nodeflow.datasets import Dataset
from nodeflow.training._settings import LossSettings

Loss = Callable[[Tensor, Tensor], Tensor]
"""Takes outputs ``[n, width]`` and labels ``[n, ...]``; returns one loss per row, ``[n]``."""


class Target(NamedTuple):
    """What the outputs of nodes are compared with.

    Args:
        task: "classification", "multilabel" or "regression".
        width: number of outputs per node.
        loss: the loss of every row.
        metrics: names of the metrics (see ``nodeflow.metrics.named``); the first chooses the best epoch.
    """

    task: str
    width: int
    loss: Loss
    metrics: tuple[str, ...]


def task_of(dataset: Dataset, task: str) -> str:
    """Return the task of nodes, "auto" by the labels; raises ValueError for a data set without any."""
    if "label" not in dataset.graph.ndata:
        unread = f"; files that were not read: {', '.join(dataset.unread_files)}" if dataset.unread_files else ""
        raise ValueError(f"data set {dataset.name!r} has no labels, so a model cannot be trained on it{unread}")
    return _task_of(dataset.graph.ndata["label"]) if task == "auto" else task


def find_target(dataset: Dataset, task: str, settings: LossSettings) -> Target:
    """Return the target that ``task`` and the labels of a data set ask for; raises ValueError where they don't fit."""
    task, name, labels = task_of(dataset, task), dataset.name, dataset.graph.ndata["label"]
    if len(dataset.train) == 0:
        raise ValueError(f"data set {name!r} has no training nodes")
    if task == "classification":
        _check_classes(dataset, labels)
        balanced = settings.class_weights == "balanced"
        weight = _balanced(labels[dataset.train], dataset.num_classes) if balanced else None

        def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
            each = None if weight is None else weight.to(outputs)
            return functional.cross_entropy(
                outputs, labels, weight=each, reduction="none", label_smoothing=settings.label_smoothing
            )

        return Target(task, dataset.num_classes, cross_entropy, ("accuracy", "f1_macro"))
    if task == "multilabel":
        if labels.ndim != 2:
            raise ValueError(f"task 'multilabel' needs labels [nodes, labels] of 0 and 1, got {tuple(labels.shape)}")
        if ((labels != 0) & (labels != 1)).any():
            raise ValueError(f"the labels of data set {name!r} must be 0 and 1 for task 'multilabel'")
        return Target(task, labels.shape[1], _binary, ("f1_micro", "f1_macro", "average_precision"))
    numbers = labels.float()
    for part, nodes in dataset.splits.items():
        bad = (~torch.isfinite(numbers[nodes])).reshape(len(nodes), -1).any(1).nonzero()
        if len(bad):
            node = int(nodes[bad[0, 0]])
            raise ValueError(f"the {part} nodes of data set {name!r} must have finite labels, but node {node} has not")
    return Target("regression", 1 if labels.ndim == 1 else labels.shape[1], _squared, ("rmse", "mae", "r2"))


def _task_of(labels: Tensor) -> str:
    if not labels.is_floating_point() and labels.ndim == 1:
        return "classification"
    whole = ((labels == 0) | (labels == 1)).all()
    return "multilabel" if labels.ndim == 2 and bool(whole) else "regression"


def _check_classes(dataset: Dataset, labels: Tensor) -> None:
    if labels.ndim != 1 or labels.dtype != torch.int64:
        raise ValueError(
            f"task 'classification' needs one int64 label per node, got {labels.dtype} {tuple(labels.shape)} in data "
            f"set {dataset.name!r}"
        )
    for part, nodes in dataset.splits.items():
        bad = ((labels[nodes] < 0) | (labels[nodes] >= dataset.num_classes)).nonzero()
        if len(bad):
            node = int(nodes[bad[0, 0]])
            raise ValueError(
                f"the {part} nodes of data set {dataset.name!r} must have labels from 0 to {dataset.num_classes - 1}, "
                f"but node {node} has {int(labels[node])}; take it out of the split"
            )


def _balanced(labels: Tensor, num_classes: int) -> Tensor:
    """Weights of classes that are 1 on average over the labels, and the same in sum for every class that occurs."""
    counts = torch.bincount(labels, minlength=num_classes).double()
    return (len(labels) / (int((counts > 0).sum()) * counts.clamp(min=1))).float()


def _binary(outputs: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(outputs, labels.to(outputs.dtype), reduction="none").mean(1)


def _squared(outputs: Tensor, labels: Tensor) -> Tensor:
    return (outputs - labels.to(outputs.dtype).reshape(outputs.shape)).square().mean(1)
