"""Training curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nodeflow._display.axes import require_matplotlib, whole_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Epoch(Protocol):
    """One point of the curves, such as a ``nodeflow.training.EpochRecord``."""

    @property
    def epoch(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def score(self) -> float: ...


def plot_curves(
    runs: Mapping[str, Sequence[_Epoch]], path: Path | str | None = None, *, metric: str = "score", title: str = ""
) -> Figure:
    """Plot training loss and validation score by epoch, side by side; returns the matplotlib Figure.

    Args:
        runs: the records of each run by its name; one name is not shown, more are in a legend. A record has ``epoch``,
            ``loss`` and ``score``, as those of ``nodeflow.training`` have. Epochs whose score is NaN have none.
        path: where to write the picture (PNG, SVG or PDF, by its ending), or None.
        metric: name of the score, for the axis.
        title: above the picture.

    Raises ImportError without matplotlib.

    >>> from nodeflow.training import EpochRecord
    >>> records = [EpochRecord(epoch, 1 / epoch, 0.5, 1.0, 10.0, 100.0) for epoch in (1, 2, 3)]
    >>> len(plot_curves({"sage": records}).axes)
    2
    """
    figure = require_matplotlib()(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, records in runs.items():
        scored = [record for record in records if not math.isnan(record.score)]
        for axis, shown, value in ((left, records, "loss"), (right, scored, "score")):
            points = [record.epoch for record in shown], [getattr(record, value) for record in shown]
            axis.plot(*points, marker="o", markersize=3, label=name)
    left.set(xlabel="epoch", ylabel="training loss")
    right.set(xlabel="epoch", ylabel=f"validation {metric.replace('_', ' ')}")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        whole_ticks(axis)
    if len(runs) > 1:
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(title)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure
