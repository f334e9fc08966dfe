"""DGL's GraphBolt on the work of the benchmarks.

An environment of its own, since it is tied to an old torch:
pip install 'torch==2.2.1' 'numpy<2' 'pandas<2.3' scipy networkx 'dgl==2.1.0' pydantic pyyaml requests tqdm \\
    'torchdata==0.7.1'
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

warnings.filterwarnings("ignore")
# the import prints to standard output, which carries the answers
answers = sys.stdout
sys.stdout = sys.stderr
os.environ.setdefault("DGLBACKEND", "pytorch")
import dgl  # noqa: E402
import dgl.graphbolt as gb  # noqa: E402
import torch  # noqa: E402
from dgl.nn import SAGEConv  # noqa: E402
from work import Work, data, load, seeds, serve, wait_for  # noqa: E402

sys.stdout = answers


class Net(torch.nn.Module):
    def __init__(self, work: Work) -> None:
        super().__init__()
        self.dropout = work.dropout
        self.convs = torch.nn.ModuleList([SAGEConv(i, o, "mean") for i, o in work.widths])

    def forward(self, blocks: Any, h: torch.Tensor) -> torch.Tensor:
        for i, (conv, block) in enumerate(zip(self.convs, blocks, strict=True)):
            h = conv(block, h)
            if i < len(self.convs) - 1:
                h = torch.nn.functional.dropout(h.relu(), self.dropout)
        return h


def prepare(folder: str) -> Callable[[Work], Callable[[int], dict[str, Any]]]:
    indptr, indices = load(folder)
    num_nodes = len(indptr) - 1
    graph = gb.fused_csc_sampling_graph(indptr, indices)

    def make(work: Work) -> Callable[[int], dict[str, Any]]:
        batches = seeds(work, num_nodes)
        if work.job != "step":
            placed = graph.to(work.device) if work.device else graph
            draw = (
                placed.sample_neighbors if work.job == "sample" else placed.sample_layer_neighbors
            )

            def sample(_: int) -> dict[str, Any]:
                edges = 0
                for part in batches.split(work.batch_size):
                    nodes = part.to(work.device) if work.device else part
                    for fanout in work.fanouts_from_seeds:
                        drawn = draw(nodes, torch.tensor([fanout])).sampled_csc
                        nodes, compact = gb.unique_and_compact_csc_formats(drawn, nodes)
                        edges += len(compact.indices)
                wait_for(work.device)
                return {"edges": edges}

            return sample
        x, y = data(work, num_nodes)
        items = gb.ItemSet((batches, y[batches]), names=("seed_nodes", "labels"))
        pipe = gb.ItemSampler(items, batch_size=work.batch_size)
        pipe = pipe.sample_neighbor(graph, list(work.fanouts_from_seeds)[::-1])
        store = gb.BasicFeatureStore({("node", None, "feat"): gb.TorchBasedFeature(x)})
        loader = gb.DataLoader(pipe.fetch_feature(store, node_feature_keys=["feat"]), num_workers=0)
        net = Net(work)
        optimizer = torch.optim.Adam(net.parameters())

        def step(_: int) -> dict[str, Any]:
            edges = 0
            for batch in loader:
                out = net(batch.blocks, batch.node_features["feat"])
                loss = torch.nn.functional.cross_entropy(out, batch.labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                edges += sum(block.num_edges() for block in batch.blocks)
            return {"edges": edges}

        return step

    return make


if __name__ == "__main__":
    serve(prepare, f"GraphBolt of DGL {dgl.__version__}")
