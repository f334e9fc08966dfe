"""DGL's GraphBolt: draws for ``judge.py``."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

warnings.filterwarnings("ignore")
# the import prints to standard output, which carries the answers
answers = sys.stdout
sys.stdout = sys.stderr
os.environ.setdefault("DGLBACKEND", "pytorch")
import dgl  # noqa: E402
import dgl.graphbolt as gb  # noqa: E402
import torch  # noqa: E402
from draws import Draw, serve  # noqa: E402


def prepare(ends: torch.Tensor, num_nodes: int, columns: dict[str, torch.Tensor]) -> Draw:
    src, dst = ends
    order = dst.argsort(stable=True)
    indptr = torch.cat(
        [torch.zeros(1, dtype=torch.int64), dst.bincount(minlength=num_nodes).cumsum(0)]
    )
    attributes = {name: column[order] for name, column in columns.items()}
    graph = gb.fused_csc_sampling_graph(
        indptr, src[order], edge_attributes={gb.ORIGINAL_EDGE_ID: order, **attributes}
    )

    def draw(
        options: dict[str, Any], seeds: torch.Tensor, seed: int, times: torch.Tensor | None
    ) -> list[Any]:
        gb.seed(seed)
        torch.manual_seed(seed)  # draws with replacement are torch's
        if times is not None:
            return past(graph, options, seeds, times)
        pipe = gb.ItemSampler(gb.ItemSet(seeds, names="seed_nodes"), batch_size=len(seeds))
        settings = {name: value for name, value in options.items() if name != "kind"}
        batch = next(iter(getattr(pipe, options["kind"])(graph, **settings)))
        return [drawn(subgraph) for subgraph in batch.sampled_subgraphs]

    return draw


def drawn(subgraph: Any) -> list[torch.Tensor]:
    """Source, destination and id of every edge."""
    csc = subgraph.sampled_csc
    dst = subgraph.original_column_node_ids.repeat_interleave(csc.indptr.diff())
    return [subgraph.original_row_node_ids[csc.indices], dst, subgraph.original_edge_ids]


def past(
    graph: Any, options: dict[str, Any], seeds: torch.Tensor, times: torch.Tensor
) -> list[Any]:
    """Hop by hop: every node of a tree once, at the time of its seed."""
    trees = torch.arange(len(seeds))
    nodes = seeds
    flows = []
    for fanout in reversed(options["fanouts"]):
        sampled = graph.temporal_sample_neighbors(
            nodes,
            times[trees],
            torch.tensor([fanout]),
            options["replace"],
            edge_timestamp_attr_name="time",
        )
        counts = sampled.sampled_csc.indptr.diff()
        src = sampled.sampled_csc.indices
        dst = nodes.repeat_interleave(counts)
        tree = trees.repeat_interleave(counts)
        flows.append([src, dst, sampled.original_edge_ids, tree])
        reached = torch.stack([torch.cat([trees, tree]), torch.cat([nodes, src])]).unique(dim=1)
        # rows of a transposed tensor are misread
        trees, nodes = (row.contiguous() for row in reached)
    return flows[::-1]


if __name__ == "__main__":
    serve(dgl.__version__, prepare, answers)
