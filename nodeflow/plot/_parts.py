"""Sizes of the parts of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nodeflow._base.checks import describe
from nodeflow._display.axes import require_matplotlib, whole_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nodeflow.distributed import PartsReport


def plot_parts(report: PartsReport, path: Path | str | None = None) -> Figure:
    """Draw the sizes of the parts of a graph, bars of masters and mirrors, and of edges; returns the Figure.

    Args:
        report: as ``GraphParts.report`` gives it.
        path: where to write the picture (PNG, SVG or PDF, by its ending), or None.

    Raises TypeError for anything but a report, ImportError without matplotlib.

    >>> from nodeflow.distributed import PartsReport
    >>> report = PartsReport(4, 4, 2, (2, 2), (2, 2), (1, 1), (1, 1), None)
    >>> [axis.get_ylabel() for axis in plot_parts(report).axes]
    ['nodes', 'edges']
    """
    from nodeflow.distributed import PartsReport

    if not isinstance(report, PartsReport):
        raise TypeError(f"report must be a PartsReport, as parts.report() gives it, got {describe(report)}")
    figure = require_matplotlib()(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    parts = range(len(report.masters))
    left.bar(parts, report.masters, color="tab:blue", label="masters")
    left.bar(parts, report.mirrors, bottom=report.masters, color="tab:orange", label="mirrors")
    right.bar(parts, report.edges, color="0.5", label="edges")
    for axis, word in ((left, "nodes"), (right, "edges")):
        axis.set(xlabel="part", ylabel=word)
        whole_ticks(axis)
    left.legend(fontsize=8, frameon=False)
    cut = f"replication factor {report.replication_factor:.2f}, {report.cut:.1%} of the edges cut"
    figure.suptitle(cut, fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure
