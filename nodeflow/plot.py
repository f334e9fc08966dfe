"""Pictures, made with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nodeflow._base.checks import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nodeflow.distributed import PartsReport
    from nodeflow.flow import Layer, NodeFlow

__all__ = ["plot_curves", "plot_node_flow", "plot_parts"]


class _Epoch(Protocol):
    """One point of the curves, such as a ``nodeflow.training.EpochRecord``."""

    @property
    def epoch(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def score(self) -> float: ...


def require_matplotlib() -> type[Figure]:
    """Return matplotlib's ``Figure`` class; raises ImportError, with the command that installs matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib; install it with: pip install matplotlib") from None
    return Figure


def plot_curves(
    runs: Mapping[str, Sequence[_Epoch]], path: Path | str, *, metric: str = "score", title: str = ""
) -> None:
    """Write a picture of training loss and validation score by epoch to ``path`` (PNG, SVG or PDF, by its ending).

    Args:
        runs: the records of each run by its name; one name is not shown, more are in a legend.
        path: where to write it.
        metric: name of the score, for the axis.
        title: above the picture.

    Raises ImportError without matplotlib.

    >>> import tempfile
    >>> from nodeflow.training import EpochRecord
    >>> records = [EpochRecord(epoch, 1 / epoch, 0.1 * epoch, 1.0, 1000.0, 5000.0) for epoch in (1, 2, 3)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_curves({"sage": records}, Path(folder) / "curves.png", metric="accuracy")
    ...     print([path.name for path in Path(folder).iterdir()])
    ['curves.png']
    """
    figure = require_matplotlib()(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, records in runs.items():
        known = [record for record in records if not math.isnan(record.score)]
        for axis, shown, value in ((left, records, "loss"), (right, known, "score")):
            points = [record.epoch for record in shown], [getattr(record, value) for record in shown]
            axis.plot(*points, marker="o", markersize=3, label=name)
    left.set(xlabel="epoch", ylabel="training loss")
    right.set(xlabel="epoch", ylabel=f"validation {metric.replace('_', ' ')}")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    if len(runs) > 1:
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def plot_node_flow(batch: NodeFlow, path: Path | str | None = None, *, max_nodes: int = 200) -> Figure:
    """Draw a small NodeFlow: one column of nodes per layer, one arrow per edge; returns the matplotlib Figure.

    Args:
        batch: the NodeFlow. Nodes show their parent ids. Nodes without one (pooled) are hollow and show their local id,
            as ``#0``. A dotted line joins a node to its own row in the next layer, where both layers have parent ids.
        path: where to write the picture (PNG, SVG or PDF, by its ending), or None. A notebook shows the figure after
            ``%matplotlib inline``.
        max_nodes: how many nodes may be drawn.

    Raises TypeError for anything but a NodeFlow, ValueError for a NodeFlow with more than ``max_nodes`` nodes,
    ImportError without matplotlib.

    >>> from nodeflow import Graph, NeighborSampler
    >>> figure = plot_node_flow(NeighborSampler(Graph.from_edges([0, 1], [1, 2]), fanouts=[1, 1])([2]))
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['layer 0', 'layer 1', 'layer 2']
    """
    from nodeflow.flow import NodeFlow

    if not isinstance(batch, NodeFlow):
        raise TypeError(
            f"batch must be a NodeFlow, got {describe(batch)}; a sampler makes one from a graph and seeds, "
            "create_full_node_flow(graph, num_layers) one of the whole graph"
        )
    if sum(batch.layer_sizes) > max_nodes:
        raise ValueError(f"{batch!r} has more than {max_nodes} nodes, too many to draw; raise max_nodes or slice it")
    figure_class = require_matplotlib()
    tallest, last = max(batch.layer_sizes), batch.num_layers - 1
    skips = len(batch.flows.pairs()) > batch.num_flows
    margin = 1.2 if skips else 0.7  # above and below the nodes, in rows
    size = (1.5 * last + 1.5, 0.36 * (max(tallest, 1) + 2 * margin) + 0.4)
    figure = figure_class(figsize=size, layout="constrained")
    axis = figure.subplots()
    points = [[(i, -row - (tallest - size) / 2) for row in range(size)] for i, size in enumerate(batch.layer_sizes)]
    for i, flow in enumerate(batch.flows):
        if flow.src_layer.has_parent and flow.dst_layer.has_parent:
            for dst, src in enumerate(flow.dst_in_src.tolist()):
                if src >= 0:
                    ends = zip(points[i][src], points[i + 1][dst], strict=True)
                    axis.plot(*ends, ":", color="0.75", linewidth=1.2, zorder=0, label="the same node")
    for (i, j), flow in batch.flows.items():
        for src, dst in zip(*(ends.tolist() for ends in flow.edges()), strict=True):
            start, end = points[i][src], points[j][dst]
            # a line that skips layers goes around the nodes between, on its own side of the middle
            bend = 0.0 if j == i + 1 else -0.3 if start[1] + end[1] > 1 - tallest else 0.3
            _arrow(axis, start, end, bend)
    if skips:
        axis.plot([], [], color="tab:purple", label="skips layers")
    for i, layer in enumerate(batch.layers):
        _nodes(axis, layer, points[i], "tab:orange" if i == last else "tab:blue", "seeds" if i == last else "")
    axis.set_xticks(range(batch.num_layers), [f"layer {i}" for i in range(batch.num_layers)], fontsize=9)
    axis.tick_params(length=0)
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    axis.set(xlim=(-0.3, last + 0.3), ylim=(1 - max(tallest, 1) - margin, margin))
    kinds = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))  # one entry per kind
    figure.legend(
        kinds.values(), kinds, loc="outside lower center", ncols=2, fontsize=7, frameon=False, markerscale=0.4
    )
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def plot_parts(report: PartsReport, path: Path | str | None = None) -> Figure:
    """Draw the sizes of the parts of a graph, bars of masters and mirrors, and of edges; returns the Figure.

    Args:
        report: as ``GraphParts.report`` gives it.
        path: where to write the picture (PNG, SVG or PDF, by its ending), or None.

    Raises TypeError for anything but a report, ImportError without matplotlib.

    >>> from nodeflow.distributed import PartsReport
    >>> report = PartsReport(4, 4, 2, (2, 2), (2, 2), (1, 1), (1, 1), None)
    >>> figure = plot_parts(report)
    >>> len(figure.axes) > 0
    True
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
        axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    left.legend(fontsize=8, frameon=False)
    cut = f"replication factor {report.replication_factor:.2f}, {report.cut:.1%} of the edges cut"
    figure.suptitle(cut, fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=120)
    return figure


def _arrow(axis: Axes, start: tuple[float, float], end: tuple[float, float], bend: float) -> None:
    style = {"arrowstyle": "-|>", "color": "tab:purple" if bend else "0.5", "shrinkA": 9.5, "shrinkB": 9.5}
    style["connectionstyle"] = f"arc3,rad={bend}"
    axis.annotate("", end, start, arrowprops=style)


def _nodes(axis: Axes, layer: Layer, points: Sequence[tuple[float, float]], color: str, label: str) -> None:
    pooled = not layer.has_parent
    names = [f"#{i}" for i in range(layer.num_nodes)] if pooled else [str(v) for v in layer.parent_nid.tolist()]
    edge = color if not pooled or label else "0.5"
    face = "white" if pooled else color
    if points:
        own = label or ("without parent ids" if pooled else None)
        x, y = zip(*points, strict=True)
        axis.scatter(x, y, s=330, facecolor=face, edgecolor=edge, zorder=2, label=own)
    size = {1: 8.5, 2: 8.5, 3: 7.5, 4: 6}.get(max(map(len, names), default=1), 5)
    for point, name in zip(points, names, strict=True):
        axis.text(*point, name, ha="center", va="center", color="0.3" if pooled else "white", fontsize=size, zorder=3)
