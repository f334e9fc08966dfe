"""Metrics of node tasks: a name, whether larger is better, and a function of outputs and targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from nodeflow._base.checks import check_one_of, describe
from nodeflow.metrics._among import auc, average_precision


@dataclass(frozen=True)
class Metric:
    """A metric: a name, a function, and which values are better. Give your own to a trainer.

    Called with ``outputs`` ``[n, ...]`` and ``targets`` ``[n, ...]`` of all rows that are evaluated, it returns a
    float. A mean over batches of most metrics is not the metric of all rows, so outputs are collected first.

    Args:
        name: what tables and curves call it.
        function: takes ``outputs`` and ``targets``, returns a number or a tensor of one.
        larger_is_better: False for errors.

    A call raises TypeError for what is no tensor; ValueError for outputs and targets of different lengths, for no rows
    at all, for NaN among the outputs, and where the value itself is NaN.

    >>> def share(outputs, targets):
    ...     return ((outputs.argmax(1) - targets).abs() <= 1).double().mean()
    >>> Metric("off by one", share)(torch.eye(3), torch.tensor([1, 1, 0]))
    0.6666666666666666
    """

    name: str
    function: Callable[[Tensor, Tensor], float | Tensor]
    larger_is_better: bool = True

    def __call__(self, outputs: Tensor, targets: Tensor) -> float:
        """Return the value of the metric; no gradients are kept."""
        for name, value in (("outputs", outputs), ("targets", targets)):
            if not isinstance(value, Tensor) or not value.ndim:
                raise TypeError(f"{name} must be a tensor with a row per node, got {describe(value)}")
        if len(outputs) != len(targets):
            raise ValueError(f"outputs and targets must be equally long, got {len(outputs)} and {len(targets)} rows")
        if not len(outputs):
            raise ValueError(f"{self.name} of no rows at all: there is nothing to evaluate")
        if (wrong := outputs.isnan().nonzero()).numel():
            raise ValueError(f"outputs{wrong[0].tolist()} is NaN, so there is no {self.name}")
        with torch.no_grad():
            found = float(self.function(outputs, targets))
        if math.isnan(found):
            raise ValueError(f"{self.name} is NaN for these targets")
        return found

    def is_better(self, value: float, than: float) -> bool:
        """Whether one value is better than another, neither equal nor worse."""
        return value > than if self.larger_is_better else value < than


def named(name: str, *, task: str | None = None) -> Metric:
    """Return a metric by its name.

    | name | of outputs and targets | value |
    |---|---|---|
    | accuracy | scores ``[n, C]``, classes ``[n]`` | share of rows whose highest score is right |
    | f1_micro, f1_macro | the same | F1 of all decisions; mean F1 of the classes in targets or predictions |
    | f1_micro, f1_macro | scores ``[n, L]``, labels ``[n, L]`` of 0 and 1 | likewise; a label is predicted above 0 |
    | average_precision, auc | the same | mean over the labels that have both ones and zeros |
    | mae, mse, rmse | numbers ``[n]`` or ``[n, k]``, both | mean absolute error, mean squared error, its root |
    | r2 | the same | 1 - squared error / squared distance to the mean of targets; the mean over columns |

    Args:
        name: one of these.
        task: "classification", "multilabel" or "regression": refuse a metric that does not fit it. None: the shapes of
            outputs and targets decide.

    Raises ValueError for an unknown name or one that does not fit the task. A call raises TypeError or ValueError for
    targets that do not fit the metric.

    Of equal highest scores the first counts. Values are computed in float64, except F1, which are torchmetrics'. AUC,
    average precision and R2 are not: that library squashes scores outside [0, 1] by a float32 sigmoid, which makes
    large scores equal, and takes R2 from a difference of large sums.

    >>> named("f1_macro")(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0]))
    0.3333333432674408
    >>> named("mae").larger_is_better
    False
    """
    check_one_of(name, "name", _FUNCTIONS)
    if task is not None:
        check_one_of(task, "task", _TASKS)
        if name not in _TASKS[task]:
            fitting = ", ".join(map(repr, _TASKS[task]))
            raise ValueError(f"metric {name!r} does not fit the task {task!r}; those that do are {fitting}")
    return Metric(name, _FUNCTIONS[name], larger_is_better=name not in ("mae", "mse", "rmse"))


def _classes(outputs: Tensor, targets: Tensor) -> Tensor:
    """Check classes against scores, and return the predicted ones."""
    if outputs.ndim != 2 or targets.ndim != 1 or targets.dtype.is_floating_point:
        raise ValueError(
            f"classes need scores [n, C] and integer targets [n], got {describe(outputs)} and {describe(targets)}"
        )
    wrong = ((targets < 0) | (targets >= outputs.shape[1])).nonzero()
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"targets[{i}] is {int(targets[i])}, but there are scores of classes 0 to {outputs.shape[1] - 1}; leave "
            "out nodes without a class"
        )
    return outputs.argmax(1)


def _labels(outputs: Tensor, targets: Tensor) -> Tensor:
    """Check labels against scores, and return them as bools."""
    if outputs.ndim != 2 or targets.shape != outputs.shape:
        raise ValueError(
            f"labels need scores [n, L] and targets of 0 and 1 of the same shape, got {tuple(outputs.shape)} and "
            f"{tuple(targets.shape)}"
        )
    wrong = ((targets != 0) & (targets != 1)).nonzero()
    if len(wrong):
        raise ValueError(f"targets{wrong[0].tolist()} is {targets[tuple(wrong[0])]}, but labels are 0 or 1")
    return targets.bool()


def _accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    return (_classes(outputs, targets) == targets).double().mean()


def _f1(outputs: Tensor, targets: Tensor, average: Literal["micro", "none"]) -> Tensor:
    """F1 by torchmetrics; for "none" the mean over what is in targets or predictions."""
    from torchmetrics.functional.classification import multiclass_f1_score, multilabel_f1_score

    size = outputs.shape[-1]
    if targets.ndim == 1:
        predicted = _classes(outputs, targets)
        present = torch.cat([predicted, targets]).bincount(minlength=size) > 0
        found = multiclass_f1_score(predicted, targets, max(size, 2), average=average)
    else:
        labels, predicted = _labels(outputs, targets), outputs > 0
        present = (predicted | labels).any(0)
        # decided before: scores that all lie between 0 and 1 would be taken for probabilities; and two labels at least
        decided, wanted = (pad(side.long(), (0, max(2 - size, 0))) for side in (predicted, labels))
        found = multilabel_f1_score(decided, wanted, max(size, 2), average=average)
    if average == "micro":
        return found
    if not present.any():
        raise ValueError("no label is in targets or predictions, so f1_macro has no value")
    return found.reshape(-1)[:size][present].mean()


def _over_labels(outputs: Tensor, targets: Tensor, value: Callable[[Tensor, Tensor], float]) -> Tensor:
    labels = _labels(outputs, targets)
    found = [value(outputs[has, i], outputs[~has, i]) for i, has in enumerate(labels.T) if has.any() and not has.all()]
    if not found:
        raise ValueError("no label has both ones and zeros among these targets, so there is nothing to order")
    return torch.tensor(found, dtype=torch.float64).mean()


def _numbers(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and targets as matrices of float64."""
    columns = [value.reshape(len(value), -1).double() for value in (outputs, targets)]
    if columns[0].shape != columns[1].shape or targets.is_complex() or outputs.is_complex():
        raise ValueError(
            f"outputs and targets must be as many numbers per node, got {describe(outputs)} and {describe(targets)}"
        )
    if not columns[1].isfinite().all():
        row = int((~columns[1].isfinite()).any(1).nonzero()[0])
        raise ValueError(f"targets[{row}] is not finite; leave out nodes without a target")
    return columns[0], columns[1]


def _mse(outputs: Tensor, targets: Tensor) -> Tensor:
    found, wanted = _numbers(outputs, targets)
    return (found - wanted).square().mean()


def _mae(outputs: Tensor, targets: Tensor) -> Tensor:
    found, wanted = _numbers(outputs, targets)
    return (found - wanted).abs().mean()


def _r2(outputs: Tensor, targets: Tensor) -> Tensor:
    found, wanted = _numbers(outputs, targets)
    spread = (wanted - wanted.mean(0)).square().sum(0)
    if (wanted == wanted[0]).all(0).any():
        raise ValueError("the targets of a column are all equal, so r2 has no value; use mse")
    return (1 - (found - wanted).square().sum(0) / spread).mean()


_FUNCTIONS: dict[str, Callable[[Tensor, Tensor], float | Tensor]] = {
    "accuracy": _accuracy,
    "f1_micro": lambda outputs, targets: _f1(outputs, targets, "micro"),
    "f1_macro": lambda outputs, targets: _f1(outputs, targets, "none"),
    "average_precision": lambda outputs, targets: _over_labels(outputs, targets, average_precision),
    "auc": lambda outputs, targets: _over_labels(outputs, targets, auc),
    "mae": _mae,
    "mse": _mse,
    "rmse": lambda outputs, targets: _mse(outputs, targets).sqrt(),
    "r2": _r2,
}

_TASKS = {
    "classification": ("accuracy", "f1_micro", "f1_macro"),
    "multilabel": ("f1_micro", "f1_macro", "average_precision", "auc"),
    "regression": ("mae", "mse", "rmse", "r2"),
}
"""The metrics that fit a task, by its name."""
