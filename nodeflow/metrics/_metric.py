"""Metrics by name: whether larger is better, and a function of outputs and targets; an entry here
adds one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nodeflow._core.base.checks import as_flag, check_one_of, check_type, describe
from nodeflow.metrics._ranks import auroc, average_precision


@dataclass(frozen=True)
class Metric:
    """A metric: a name, a function, and whether larger is better. A trainer takes metrics of your
    own.

    Called with ``outputs`` ``[n, ...]`` and ``targets`` ``[n, ...]`` of all rows that are
    evaluated, it returns a float. A mean over batches of most metrics is not the metric of all
    rows, so outputs are collected first.

    Args:
        name: for tables and curves.
        function: takes ``outputs`` and ``targets``, returns a number or a tensor of one.
        larger_is_better: False for errors.

    A call raises TypeError for what is no tensor; ValueError for outputs and targets of different
    lengths, for no rows at all, for NaN among the outputs, and where the value itself is NaN.

    >>> def share(outputs, targets):
    ...     return ((outputs.argmax(1) - targets).abs() <= 1).double().mean()
    >>> Metric("off by one", share)(torch.eye(3), torch.tensor([1, 1, 0]))
    0.6666666666666666
    """

    name: str
    function: Callable[[Tensor, Tensor], float | Tensor]
    larger_is_better: bool = True

    def __post_init__(self) -> None:
        check_type(self.name, "name", str, "a str")
        check_type(self.function, "function", Callable, "a function of outputs and targets")
        as_flag(self.larger_is_better, "larger_is_better")

    def __call__(self, outputs: Tensor, targets: Tensor) -> float:
        """Return the value of the metric; no gradients are kept."""
        for name, rows in (("outputs", outputs), ("targets", targets)):
            if not isinstance(rows, Tensor) or not rows.ndim:
                raise TypeError(
                    f"{name} must be a tensor with a row per node, got {describe(rows)}"
                )
        if len(outputs) != len(targets):
            raise ValueError(
                f"outputs and targets must be equally long, got {len(outputs)} and {len(targets)} "
                "rows"
            )
        if not len(outputs):
            raise ValueError(f"{self.name} of no rows at all: there is nothing to evaluate")
        if (wrong := outputs.isnan().nonzero()).numel():
            raise ValueError(f"outputs{wrong[0].tolist()} is NaN, so there is no {self.name}")
        with torch.no_grad():
            value = float(self.function(outputs, targets))
        if math.isnan(value):
            raise ValueError(f"{self.name} is NaN for these targets")
        return value

    def is_better(self, value: float, than: float) -> bool:
        """Whether one value is better than another, neither equal nor worse."""
        if self.larger_is_better:
            return value > than
        return value < than


def named(name: str, *, task: str | None = None) -> Metric:
    """Return a metric by its name.

    | name | of outputs and targets | value |
    |---|---|---|
    | accuracy | scores ``[n, C]``, classes ``[n]`` | share of rows whose highest score is right |
    | f1_micro, f1_macro | the same | F1 of all decisions; mean F1 of the classes in targets or predictions |
    | f1_micro, f1_macro | scores ``[n, L]``, labels ``[n, L]`` of 0 and 1 | likewise; a label is predicted above 0 |
    | average_precision, auroc | the same | mean over the labels that have both ones and zeros |
    | mae, mse, rmse | numbers ``[n]`` or ``[n, k]``, both | mean absolute error, mean squared error, its root |
    | r2 | the same | 1 - squared error / squared distance to the mean of targets; the mean over columns |
    | mrr | scores ``[n, C]`` of candidates, labels ``[n, C]`` or right ones ``[n]`` | mean of 1 / best rank |
    | map@10, or another k | the same | mean over rows of the average precision among the best 10 |

    Args:
        name: one of these.
        task: "classification", "multilabel" or "regression": refuse a metric that does not fit it.
            None: the shapes of outputs and targets decide. With "classification", scores ``[n, 1]``
            are those of the only class.

    Raises ValueError for an unknown name or one that does not fit the task. A call raises TypeError
    or ValueError for targets that do not fit the metric.

    One label, 0 or 1, has scores and labels of shape ``[n]`` or ``[n, 1]``, in "accuracy" too,
    where a score above 0 predicts 1. Both F1 then are that of the ones.

    Of equal highest scores the first counts. In "mrr" equal scores share their mean rank, as in
    ``rank_links``. "map@k" adds up the precisions at the right ones among the best k, and divides
    by how many of them could be there. Rows without a right candidate do not count. Values are
    computed in float64.

    >>> named("f1_macro")(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0]))
    0.3333333333333333
    >>> named("mae").larger_is_better
    False
    >>> named("map@2")(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([1]))
    0.5
    """
    if match := re.fullmatch(r"map@([1-9]\d*)", str(name)):
        entry = _Entry(partial(_mean_average_precision, k=int(match[1])))
    else:
        check_one_of(name, "name", (*_METRICS, "map@10"))
        entry = _METRICS[name]
    if task is not None:
        check_one_of(task, "task", _TASKS)
        if task not in entry.tasks:
            fitting = [repr(other) for other, one in _METRICS.items() if task in one.tasks]
            raise ValueError(
                f"metric {name!r} does not fit the task {task!r}; those that do are "
                f"{', '.join(fitting)}"
            )
    function = entry.function
    if task == "classification":
        function = partial(_of_classes, function=function)
    return Metric(name, function, entry.larger_is_better)


def _of_classes(
    outputs: Tensor, targets: Tensor, function: Callable[[Tensor, Tensor], float | Tensor]
) -> Any:
    """Return a metric of classes; a score each of one class is no score of a label, below 0 of
    which says no.
    """
    # a second class that no row can have turns the label question into one of classes
    if outputs.ndim == 2 and targets.ndim == 1 and outputs.shape[1] == 1:
        _classes(outputs, targets)
        outputs = torch.cat([outputs, torch.full_like(outputs, -torch.inf)], 1)
    return function(outputs, targets)


def _classes(outputs: Tensor, targets: Tensor) -> Tensor:
    """Check classes against scores, and return the predicted ones."""
    if outputs.ndim != 2 or targets.ndim != 1 or targets.dtype.is_floating_point:
        raise ValueError(
            f"classes need scores [n, C] and integer targets [n], got {describe(outputs)} and "
            f"{describe(targets)}"
        )
    wrong = ((targets < 0) | (targets >= outputs.shape[1])).nonzero()
    if len(wrong):
        i = int(wrong[0])
        raise ValueError(
            f"targets[{i}] is {int(targets[i])}, but there are scores of classes 0 to "
            f"{outputs.shape[1] - 1}; leave out nodes without a class"
        )
    return outputs.argmax(1)


def _labels(outputs: Tensor, targets: Tensor) -> Tensor:
    """Check labels against scores, and return them as bools."""
    if outputs.ndim != 2 or targets.shape != outputs.shape:
        raise ValueError(
            "labels need scores [n, L] and targets of 0 and 1 of the same shape, got "
            f"{tuple(outputs.shape)} and {tuple(targets.shape)}"
        )
    wrong = ((targets != 0) & (targets != 1)).nonzero()
    if len(wrong):
        raise ValueError(
            f"targets{wrong[0].tolist()} is {targets[tuple(wrong[0])]}, but labels are 0 or 1"
        )
    return targets.bool()


def _as_columns(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores and targets of one label, ``[n]`` or ``[n, 1]``, as ``[n, 1]`` both; others as
    they are.
    """
    if all(value.ndim == 1 or value.shape[1:] == (1,) for value in (outputs, targets)):
        return outputs.reshape(-1, 1), targets.reshape(-1, 1)
    return outputs, targets


def _accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    outputs, targets = _as_columns(outputs, targets)
    if outputs.shape[1:] == targets.shape[1:] == (1,):
        return ((outputs > 0) == _labels(outputs, targets)).double().mean()
    return (_classes(outputs, targets) == targets).double().mean()


def _f1_parts(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Per class or label, twice the number of right decisions, and the number of decisions and
    targets together.
    """
    outputs, targets = _as_columns(outputs, targets)
    if targets.ndim == 1:
        predicted = _classes(outputs, targets)
        size = outputs.shape[1]
        hits = predicted[predicted == targets].bincount(minlength=size)
        total = torch.cat([predicted, targets]).bincount(minlength=size)
        return 2 * hits.double(), total.double()
    labels = _labels(outputs, targets)
    decided = outputs > 0
    hits = (decided & labels).sum(0)
    total = decided.sum(0) + labels.sum(0)
    return 2 * hits.double(), total.double()


def _f1_micro(outputs: Tensor, targets: Tensor) -> Tensor:
    hits, total = _f1_parts(outputs, targets)
    return hits.sum() / total.sum().clamp(min=1)


def _f1_macro(outputs: Tensor, targets: Tensor) -> Tensor:
    hits, total = _f1_parts(outputs, targets)
    if not total.any():
        raise ValueError("no label is in targets or predictions, so f1_macro has no value")
    return (hits / total)[total > 0].mean()


def _over_labels(
    outputs: Tensor, targets: Tensor, value: Callable[[Tensor, Tensor], float]
) -> Tensor:
    outputs, targets = _as_columns(outputs, targets)
    labels = _labels(outputs, targets)
    values = []
    for scores, label in zip(outputs.T, labels.T, strict=True):
        if label.any() and not label.all():
            values.append(value(scores, label))
    if not values:
        raise ValueError(
            "no label has both ones and zeros among these targets, so there is nothing to order"
        )
    return torch.tensor(values, dtype=torch.float64).mean()


def _numbers(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and targets as matrices of float64."""
    columns = [value.reshape(len(value), -1).double() for value in (outputs, targets)]
    if columns[0].shape != columns[1].shape or targets.is_complex() or outputs.is_complex():
        raise ValueError(
            f"outputs and targets must be as many numbers per node, got {describe(outputs)} and "
            f"{describe(targets)}"
        )
    is_wrong = ~columns[1].isfinite()
    if is_wrong.any():
        row = int(is_wrong.any(1).nonzero()[0])
        raise ValueError(f"targets[{row}] is not finite; leave out nodes without a target")
    return columns[0], columns[1]


def _mean_error(outputs: Tensor, targets: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
    values, wanted = _numbers(outputs, targets)
    return loss(values - wanted).mean()


def _root(outputs: Tensor, targets: Tensor) -> Tensor:
    return _mean_error(outputs, targets, torch.square).sqrt()


def _r2(outputs: Tensor, targets: Tensor) -> Tensor:
    values, wanted = _numbers(outputs, targets)
    # compared as given: a column of equal values may get a tiny spread by rounding
    spread = (wanted - wanted.mean(0)).square().sum(0)
    if (wanted == wanted[0]).all(0).any():
        raise ValueError("the targets of a column are all equal, so r2 has no value; use mse")
    errors = (values - wanted).square().sum(0)
    return (1 - errors / spread).mean()


def _relevant(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of candidates and which of them are right, of the rows that have a right one."""
    if targets.ndim == 1:
        _classes(outputs, targets)
        classes = torch.arange(outputs.shape[1], device=targets.device)
        return outputs, targets[:, None] == classes
    right = _labels(outputs, targets)
    rows = right.any(1)
    if not rows.any():
        raise ValueError(
            "no row has a right candidate among these targets, so there is nothing to rank"
        )
    return outputs[rows], right[rows]


def _mean_reciprocal_rank(outputs: Tensor, targets: Tensor) -> Tensor:
    scores, right = _relevant(outputs, targets)
    # the best right candidate alone counts: others right beside it are no competitors
    best = scores.masked_fill(~right, -torch.inf).max(1, keepdim=True).values
    above = (scores > best).sum(1)
    equal = (scores == best).sum(1)
    rank = 1 + above + (equal - 1) / 2
    return (1 / rank.double()).mean()


def _mean_average_precision(outputs: Tensor, targets: Tensor, k: int) -> Tensor:
    scores, right = _relevant(outputs, targets)
    # stable, so that of equal scores the first counts, on every device
    best = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    hits = right.gather(1, best).double()
    places = torch.arange(1, hits.shape[1] + 1, device=hits.device)
    precision = hits.cumsum(1) / places
    possible = right.sum(1).clamp(max=k)
    return ((hits * precision).sum(1) / possible).mean()


class _Entry(NamedTuple):
    """A metric by name: its function, the tasks that it fits, and which values are better."""

    function: Callable[[Tensor, Tensor], float | Tensor]
    tasks: tuple[str, ...] = ()
    larger_is_better: bool = True


_TASKS = ("classification", "multilabel", "regression")
_DECIDED = ("classification", "multilabel")

_METRICS = {
    "accuracy": _Entry(_accuracy, ("classification",)),
    "f1_micro": _Entry(_f1_micro, _DECIDED),
    "f1_macro": _Entry(_f1_macro, _DECIDED),
    "average_precision": _Entry(partial(_over_labels, value=average_precision), ("multilabel",)),
    "auroc": _Entry(partial(_over_labels, value=auroc), ("multilabel",)),
    "mae": _Entry(partial(_mean_error, loss=torch.abs), ("regression",), larger_is_better=False),
    "mse": _Entry(partial(_mean_error, loss=torch.square), ("regression",), larger_is_better=False),
    "rmse": _Entry(_root, ("regression",), larger_is_better=False),
    "r2": _Entry(_r2, ("regression",)),
    "mrr": _Entry(_mean_reciprocal_rank),
}
