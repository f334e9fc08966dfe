"""Pictures, made with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodeflow.node_flow import NodeFlow
    from nodeflow.training import EpochRecord


def require_matplotlib() -> Any:
    """Return matplotlib's ``Figure`` class; raises ImportError with the line that installs it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('pictures need matplotlib; install it with: pip install "nodeflow[plot]"') from None
    return Figure


def draw_curves(records: Sequence[EpochRecord], path: Path | str, *, title: str = "") -> None:
    """Write a picture of loss and validation accuracy by epoch to ``path`` (PNG, SVG or PDF, by its ending)."""
    figure = require_matplotlib()(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = [record.epoch for record in records]
    left.plot(epochs, [record.loss for record in records], marker="o", markersize=3)
    left.set(xlabel="epoch", ylabel="training loss")
    right.plot(epochs, [100 * record.val_accuracy for record in records], marker="o", markersize=3, color="tab:green")
    right.set(xlabel="epoch", ylabel="validation accuracy (%)")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        axis.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)


def draw_node_flow(batch: NodeFlow, *, max_nodes: int = 200) -> Any:
    """Draw a small NodeFlow: one column of nodes per layer, one line per edge; returns the matplotlib Figure.

    Nodes carry their parent ids (local ids where they have none). ``savefig`` writes the figure; a notebook shows it
    after ``%matplotlib inline``.
    Raises ValueError for a NodeFlow with more than ``max_nodes`` nodes, ImportError without matplotlib.
    """
    if sum(batch.layer_sizes) > max_nodes:
        raise ValueError(f"{batch!r} has more than {max_nodes} nodes, too many to draw; raise max_nodes or slice it")
    tallest = max(batch.layer_sizes)
    figure = require_matplotlib()(figsize=(2.2 * batch.num_layers, 0.45 * max(tallest, 3) + 0.8), layout="constrained")
    axis = figure.subplots()
    places = [[(i, -row - (tallest - size) / 2) for row in range(size)] for i, size in enumerate(batch.layer_sizes)]
    for i, j in batch.flows.pairs():
        for src, dst in zip(*(ends.tolist() for ends in batch.flows[i, j].edges()), strict=True):
            (x0, y0), (x1, y1) = places[i][src], places[j][dst]
            axis.annotate(
                "", (x1, y1), (x0, y0), arrowprops={"arrowstyle": "-|>", "color": "0.6", "shrinkA": 9, "shrinkB": 9}
            )
    for i, layer in enumerate(batch.layers):
        names = layer.parent_nid.tolist() if layer.has_parent else range(layer.num_nodes)
        color = "tab:orange" if i == batch.num_layers - 1 else "tab:blue"
        for (x, y), name in zip(places[i], names, strict=True):
            axis.scatter(x, y, s=330, color=color, zorder=2)
            axis.text(x, y, str(name), ha="center", va="center", color="white", fontsize=8, zorder=3)
    axis.set_xticks(range(batch.num_layers), [f"layer {i}" for i in range(batch.num_layers)])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    axis.margins(0.12)
    return figure
