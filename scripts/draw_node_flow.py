"""Draws docs/pictures/node-flow.svg: the NodeFlow of the README and of the start page, by
``plot_node_flow``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib import rc_context

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nodeflow import Graph, NeighborSampler  # noqa: E402
from nodeflow.plot import plot_node_flow  # noqa: E402

PICTURE = ROOT / "docs" / "pictures" / "node-flow.svg"

if __name__ == "__main__":
    graph = Graph.from_edges([2, 3, 5, 8, 9], [7, 8, 7, 5, 2])  # 3 -> 8 -> 5 -> 7 <- 2 <- 9
    figure = plot_node_flow(NeighborSampler(graph, fanouts=[2, 2])([7]))
    with rc_context({"svg.hashsalt": "nodeflow"}):  # the same file in every run
        figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})
    PICTURE.write_text("\n".join(line.rstrip() for line in PICTURE.read_text().splitlines()) + "\n")
