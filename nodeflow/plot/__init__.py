"""Pictures, made with matplotlib: of NodeFlows, graphs, samplers, histories and training runs.

``batch.plot()`` and ``graph.plot()`` draw one object. The functions here compare several, or need
more than one. Those with an argument ``ax`` draw on these matplotlib axes and return them; for None
they make a new ``pyplot`` figure. The others make a figure of several axes, write it to ``path``
(as PNG, SVG or PDF, by its ending) if that is not None, and return it. All raise ImportError
without matplotlib.
"""

from nodeflow.plot._figures import (
    plot_curves,
    plot_degrees,
    plot_history_ages,
    plot_inclusion,
    plot_layer_growth,
    plot_node_flow,
    plot_parts,
    plot_samplers,
)

__all__ = [
    "plot_curves",
    "plot_degrees",
    "plot_history_ages",
    "plot_inclusion",
    "plot_layer_growth",
    "plot_node_flow",
    "plot_parts",
    "plot_samplers",
]
