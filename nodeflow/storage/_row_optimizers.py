"""Initial rows, and their optimisers: SGD, Adagrad and Adam, with the formulas and names of
``torch.optim``.
"""

from __future__ import annotations

import math

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints, as_number, check_one_of, check_type, describe
from nodeflow._core.base.types import Array, Floats
from nodeflow._core.random import Random

INITS = ("normal", "uniform", "zeros")
_PIECE = 2**20  # numbers made at a time
_STATES = {"adagrad": ("sum",), "sgd": (), "adam": ("exp_avg", "exp_avg_sq")}
"""By name of an optimiser, the state of a row: numbers as wide as the row."""
_EPS = {"sgd": 0.0, "adagrad": 1e-10, "adam": 1e-8}


class RowOptimizer:
    """Changes rows by their gradients, and the state that lies beside every row.

    ``EmbeddingTable`` says which formulas. ``states`` has the names of the state of a row, and its
    value at first. Raises TypeError or ValueError for settings that the optimiser does not take.
    """

    def __init__(
        self,
        name: str,
        lr: float,
        betas: tuple[float, float] | None,
        eps: float | None,
        weight_decay: float,
        initial_accumulator_value: float,
    ) -> None:
        check_one_of(name, "optimizer", _STATES)
        start = as_number(initial_accumulator_value, "initial_accumulator_value", least=0)
        for is_set, setting, takers in (
            (betas is not None, "betas", ("adam",)),
            (eps is not None, "eps", ("adam", "adagrad")),
            (start != 0, "initial_accumulator_value", ("adagrad",)),
        ):
            if is_set and name not in takers:
                takers_of_it = " or ".join(map(repr, takers))
                raise ValueError(
                    f"{setting} is for optimizer={takers_of_it}, not {name!r}; leave it out"
                )
        check_type(betas, "betas", tuple | list | None, "two numbers, as in (0.9, 0.999)")
        pair: tuple[float, ...] = (0.9, 0.999)
        if betas is not None:
            pair = tuple(betas)
        if len(pair) != 2:
            raise ValueError(
                f"betas must be two numbers, as in (0.9, 0.999), got {describe(betas)}"
            )
        self.name = name
        self.lr = as_number(lr, "lr", least=0)
        self.weight_decay = as_number(weight_decay, "weight_decay", least=0)
        self.eps = as_number(_EPS[name] if eps is None else eps, "eps", least=0)
        self.betas = [
            as_number(beta, f"betas[{k}]", least=0, below=1) for k, beta in enumerate(pair)
        ]
        self.states = dict.fromkeys(_STATES[name], start)

    def update(
        self,
        rows: Array,
        places: Ints,
        states: dict[str, Array],
        ids: Ints,
        grads: Array,
        step: int,
    ) -> None:
        """Change rows, which lie at ``places`` of ``rows``, and their states at ``ids`` of
        ``states``, in place.

        All are numbers of one type; ``grads`` has a row for each. ``step`` counts from 1.
        """
        number = rows.dtype.type
        decay = number(self.weight_decay)
        eps = number(self.eps)
        if self.name == "sgd":
            kernels.row_steps.sgd(rows, places, grads, number(self.lr), decay)
        elif self.name == "adagrad":
            kernels.row_steps.adagrad(
                rows, places, states["sum"], ids, grads, number(self.lr), eps, decay
            )
        else:
            first, second = self.betas
            # Both corrections of the bias in one number, in float64, as torch computes it.
            size = number(self.lr * math.sqrt(1 - second**step) / (1 - first**step))
            kernels.row_steps.adam(
                rows=rows,
                places=places,
                means=states["exp_avg"],
                squares=states["exp_avg_sq"],
                ids=ids,
                grads=grads,
                size=size,
                eps=eps,
                decay=decay,
                first=number(1 - first),
                second=number(1 - second),
            )


def initial_rows(init: str, scale: float, key: int, ids: Ints, width: int) -> Floats:
    """Return rows ``[len(ids), width]`` in float64; a row is the same whatever other ids are asked
    for.
    """
    rows = np.zeros((len(ids), width))
    if init == "zeros":
        return rows
    random = Random(key)
    number = width
    if init == "normal":  # two numbers of 64 bits
        number = math.ceil(width / 2)
    step = max(1, _PIECE // number)
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        # Each row has counters of its own, so that it is the same whoever asks for it, and when.
        counters = part[:, None] * number + np.arange(number)
        bits = random.bits(counters.ravel()).reshape(counters.shape)
        out = rows[start : start + step]
        if init == "uniform":
            np.multiply((bits >> np.uint64(11)) * 2.0**-52 - 1, scale, out=out)
        else:
            _normal_pairs(bits, scale, out)
    return rows


def _normal_pairs(
    bits: np.ndarray[tuple[int, ...], np.dtype[np.uint64]], scale: float, out: Floats
) -> None:
    """Write two independent normal numbers for every 64 bits (Box and Muller 1958), the second half
    to the right.
    """
    # Half a step above zero, whose logarithm would be infinite.
    radius = ((bits >> np.uint64(32)) + 0.5) * 2.0**-32
    radius = np.sqrt(np.log(radius) * (-2 * scale**2))
    angle = (bits & np.uint64(0xFFFFFFFF)) * (2 * math.pi * 2.0**-32)
    half = bits.shape[1]
    others = out.shape[1] - half  # one less where the width is odd
    np.multiply(radius, np.cos(angle), out=out[:, :half])
    np.multiply(radius[:, :others], np.sin(angle[:, :others]), out=out[:, half:])
