"""Ages of the rows of a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nodeflow._base.checks import check_type
from nodeflow._display.axes import axes_for, whole_ticks
from nodeflow.control_variates import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_history_ages(history: History, *, ax: Axes | None = None) -> Axes:
    """Plot how old the rows of a history are, a line per layer; returns the axes.

    A point (a, s) says that a share s of the rows that were ever written is at most a steps old: 0 steps for rows of
    the last commit. The legend tells the share of nodes whose row was never written.

    Args:
        history: the history. Where its graph lies on several processes, the rows that this one holds.
        ax: the matplotlib axes to draw on; None: new ones.

    Raises TypeError for anything else, ImportError without matplotlib. Cost: 8 bytes read per node and layer.

    >>> import torch
    >>> from matplotlib.figure import Figure
    >>> from nodeflow import Graph
    >>> history = History(Graph.from_edges([0, 1], [1, 0]), {1: 4})
    >>> history.write(1, [0], torch.ones(1, 4))
    >>> history.commit()
    >>> axis = plot_history_ages(history, ax=Figure().subplots())
    >>> axis.get_legend().get_texts()[0].get_text()
    'layer 1 (50.0% never written)'
    """
    check_type(history, "history", History, "a History")
    axis = axes_for(ax, (5, 3.4))
    for layer in sorted(history.widths):
        ages = history.age(layer).cpu().numpy()
        written = np.sort(ages[ages >= 0])
        value, count = np.unique(written, return_counts=True)
        never = 1 - len(written) / max(len(ages), 1)
        share = np.cumsum(count) / max(len(written), 1)
        label = f"layer {layer} ({never:.1%} never written)"
        axis.step(value, share, where="post", marker="o", markersize=3, label=label)
    axis.set(xlabel="age of the row in steps", ylabel="share of written rows", ylim=(0, 1.05))
    whole_ticks(axis)
    axis.grid(alpha=0.3)
    axis.legend(loc="lower right", fontsize=8, frameon=False)
    return axis
