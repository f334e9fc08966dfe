"""PyTorch Geometric on the work of the benchmarks.

pip install torch torch-geometric, and pyg-lib, with which it samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

warnings.filterwarnings("ignore")
import pyg_lib  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.loader import NeighborLoader  # noqa: E402
from torch_geometric.nn import SAGEConv  # noqa: E402
from work import Work, data, load, seeds, serve  # noqa: E402

BACKEND = f"pyg-lib {pyg_lib.__version__}"  # NeighborLoader takes it where it is installed


class Net(torch.nn.Module):
    def __init__(self, work: Work) -> None:
        super().__init__()
        self.dropout = work.dropout
        self.convs = torch.nn.ModuleList([SAGEConv(i, o) for i, o in work.widths])

    def forward(self, h: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        for i, conv in enumerate(self.convs):
            h = conv(h, edge_index)
            if i < len(self.convs) - 1:
                h = torch.nn.functional.dropout(h.relu(), self.dropout)
        return h


def prepare(folder: str) -> Callable[[Work], Callable[[int], dict[str, Any]]]:
    indptr, indices = load(folder)
    num_nodes = len(indptr) - 1
    edges = torch.stack([indices, torch.repeat_interleave(torch.arange(num_nodes), indptr.diff())])

    def make(work: Work) -> Callable[[int], dict[str, Any]]:
        x, y = data(work, num_nodes) if work.job == "step" else (None, None)
        graph = Data(x=x, y=y, edge_index=edges, num_nodes=num_nodes)
        options = {
            "num_neighbors": list(work.fanouts_from_seeds),
            "batch_size": work.batch_size,
            "is_sorted": True,
        }
        loader = NeighborLoader(graph, input_nodes=seeds(work, num_nodes), **options)
        if work.job == "sample":

            def sample(_: int) -> dict[str, Any]:
                return {
                    "edges": sum(batch.edge_index.shape[1] for batch in loader),
                    "note": BACKEND,
                }

            return sample
        net = Net(work)
        optimizer = torch.optim.Adam(net.parameters())

        def step(_: int) -> dict[str, Any]:
            edges = 0
            for batch in loader:
                out = net(batch.x, batch.edge_index)[: batch.batch_size]
                loss = torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                edges += batch.edge_index.shape[1]
            return {"edges": edges, "note": BACKEND}

        return step

    return make


if __name__ == "__main__":
    serve(prepare, f"PyTorch Geometric {torch_geometric.__version__} with {BACKEND}")
