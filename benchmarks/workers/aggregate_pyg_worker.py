"""PyTorch Geometric on the work of ``aggregate.py``: ``MessagePassing`` on an ``edge_index``.

pip install torch torch-geometric torch-scatter (the last is used where it is installed)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

warnings.filterwarnings("ignore")
import torch  # noqa: E402
import torch_geometric  # noqa: E402
import torch_geometric.typing  # noqa: E402
from aggregate_work import Edges, serve  # noqa: E402
from torch import Tensor  # noqa: E402
from torch_geometric.nn import MessagePassing  # noqa: E402
from torch_geometric.utils import softmax  # noqa: E402


class Sum(MessagePassing):
    """Rows of the sources, times a weight of the edge where there is one, reduced."""

    def forward(
        self, h: Tensor, w: Tensor | None, edge_index: Tensor, size: tuple[int, int]
    ) -> Tensor:
        return self.propagate(edge_index, x=(h, None), w=w, size=size)

    def message(self, x_j: Tensor, w: Tensor | None) -> Tensor:
        return x_j if w is None else x_j * w


def make(edges: Edges) -> tuple[Callable[[], Tensor], Callable[..., Tensor], str]:
    layers = {name: Sum(aggr=name, node_dim=0) for name in ("sum", "mean", "max")}
    dst = torch.repeat_interleave(torch.arange(edges.num_dst), edges.indptr.diff())
    edge_index = torch.stack([edges.indices, dst])
    size = (edges.num_src, edges.num_dst)

    def run(flow: Tensor, op: str, h: Tensor, at_edges: Tensor | None = None) -> Tensor:
        if op == "gat":
            at_edges = softmax(at_edges, flow[1], num_nodes=edges.num_dst)
        elif at_edges is not None:
            at_edges = at_edges.unsqueeze(1)
        return layers.get(op, layers["sum"])(h, at_edges, flow, size)

    backend = "torch-scatter" if torch_geometric.typing.WITH_TORCH_SCATTER else "torch"
    return edge_index.clone, run, f"pyg {torch_geometric.__version__}, edge_index, {backend}"


if __name__ == "__main__":
    serve(make)
