"""Optimisers of rows: SGD, Adagrad and Adam, with the formulas and names of ``torch.optim``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_number, check_one_of, check_type, describe
from nodeflow._base.types import Array

OPTIMIZERS = ("adagrad", "sgd", "adam")


class Rows(NamedTuple):
    """The rows of a step: they lie at ``places`` of ``rows``, their state at ``ids`` of ``states``.

    All are numbers of one type; ``grads`` has a row for each.
    """

    rows: Array
    places: Ints
    states: dict[str, Array]
    ids: Ints
    grads: Array


class RowOptimizer(Protocol):
    """Changes rows by their gradients, and the state that lies beside every row."""

    lr: float
    weight_decay: float

    @property
    def states(self) -> dict[str, float]:
        """Names of the state of a row, each as wide as the row, and the value that it has at first."""

    def update(self, of: Rows, step: int) -> None:
        """Change rows and states in place. ``step`` counts from 1."""


@dataclass
class SGD:
    """As ``torch.optim.SGD`` without momentum."""

    lr: float
    weight_decay: float
    states: dict[str, float] = field(default_factory=dict)

    def update(self, of: Rows, step: int) -> None:
        """Go against the gradients."""
        number = of.rows.dtype.type
        kernels.row_steps.sgd(of.rows, of.places, of.grads, number(self.lr), number(self.weight_decay))


@dataclass
class Adagrad:
    """As ``torch.optim.Adagrad``, for the rows of a step."""

    lr: float
    weight_decay: float
    eps: float
    initial_accumulator_value: float

    @property
    def states(self) -> dict[str, float]:
        """The sum of squared gradients."""
        return {"sum": self.initial_accumulator_value}

    def update(self, of: Rows, step: int) -> None:
        """Go against the gradients, each over the root of the sum of its squares."""
        settings = map(of.rows.dtype.type, (self.lr, self.eps, self.weight_decay))
        kernels.row_steps.adagrad(of.rows, of.places, of.states["sum"], of.ids, of.grads, *settings)


@dataclass
class Adam:
    """As ``torch.optim.SparseAdam``: moments change in the steps of their row, the correction counts all steps."""

    lr: float
    weight_decay: float
    eps: float
    betas: tuple[float, float]

    @property
    def states(self) -> dict[str, float]:
        """Moving means of gradients and of their squares."""
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def update(self, of: Rows, step: int) -> None:
        """Go against the mean gradients, each over the root of the mean of its squares."""
        first, second = self.betas
        size = self.lr * math.sqrt(1 - second**step) / (1 - first**step)
        settings = map(of.rows.dtype.type, (size, self.eps, self.weight_decay, 1 - first, 1 - second))
        means, squares = of.states["exp_avg"], of.states["exp_avg_sq"]
        kernels.row_steps.adam(of.rows, of.places, means, squares, of.ids, of.grads, *settings)


def row_optimizer(
    name: str,
    lr: float,
    betas: tuple[float, float] | None,
    eps: float | None,
    weight_decay: float,
    initial_accumulator_value: float,
) -> RowOptimizer:
    """Return an optimiser by its name; raises TypeError or ValueError for settings that it does not take."""
    check_one_of(name, "optimizer", OPTIMIZERS)
    lr, decay = check_lr(lr), as_number(weight_decay, "weight_decay", least=0)
    start = as_number(initial_accumulator_value, "initial_accumulator_value", least=0)
    for given, setting, takers in (
        (betas is not None, "betas", ("adam",)),
        (eps is not None, "eps", ("adam", "adagrad")),
        (start != 0, "initial_accumulator_value", ("adagrad",)),
    ):
        if given and name not in takers:
            raise ValueError(f"{setting} is for optimizer={' or '.join(map(repr, takers))}, not {name!r}; leave it out")
    if name == "sgd":
        return SGD(lr, decay)
    number = as_number({"adagrad": 1e-10, "adam": 1e-8}[name] if eps is None else eps, "eps", least=0)
    if name == "adagrad":
        return Adagrad(lr, decay, number, start)
    check_type(betas, "betas", tuple | list | None, "two numbers, as in (0.9, 0.999)")
    found = (0.9, 0.999) if betas is None else tuple(betas)
    if len(found) != 2:
        raise ValueError(f"betas must be two numbers, as in (0.9, 0.999), got {describe(betas)}")
    first, second = (as_number(beta, f"betas[{k}]", least=0, below=1) for k, beta in enumerate(found))
    return Adam(lr, decay, number, (first, second))


def check_lr(lr: object) -> float:
    """Return a learning rate as a float of at least 0."""
    return as_number(lr, "lr", least=0)
