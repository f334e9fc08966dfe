"""PyTorch Geometric on the work of ``typed.py``.

pip install torch torch-geometric, and pyg-lib
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402
import pyg_lib  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402
from torch_geometric.nn import HeteroConv, SAGEConv  # noqa: E402
from typed_work import CLASSES, JOBS, SEED_TIME, WIDTH, Ids, make_edges, make_times, serve, sizes_of  # noqa: E402

torch.set_num_threads(1)
Columns = dict[str, torch.Tensor]


class Net(torch.nn.Module):
    def __init__(self, relations: list[tuple[str, str, str]], hidden: int = 64) -> None:
        super().__init__()
        widths = [(WIDTH, hidden), (hidden, hidden)]
        self.convs = torch.nn.ModuleList(
            HeteroConv({r: SAGEConv((i, i), o) for r in relations}) for i, o in widths
        )
        self.head = torch.nn.Linear(hidden, CLASSES)

    def forward(self, h: Columns, edges: dict[tuple[str, str, str], torch.Tensor]) -> torch.Tensor:
        for conv in self.convs:
            h = {name: rows.relu() for name, rows in conv(h, edges).items()}
        return self.head(h["paper"])


def prepare(scale: float) -> Callable[[str, Ids], int]:
    sizes = sizes_of(scale)
    times = make_times(scale)
    edges = make_edges(scale)
    colptr = {}
    row = {}
    for (s, r, d), (src, dst) in edges.items():
        order = np.lexsort((times[s][src], dst))
        key = f"{s}__{r}__{d}"
        colptr[key] = torch.from_numpy(
            np.concatenate([[0], np.cumsum(np.bincount(dst, minlength=sizes[d]))])
        )
        row[key] = torch.from_numpy(src[order])
    stamps = {kind: torch.from_numpy(each) for kind, each in times.items()}
    draw = np.random.default_rng(2)
    x = {
        kind: torch.from_numpy(draw.standard_normal((n, WIDTH), np.float32))
        for kind, n in sizes.items()
    }
    y = torch.from_numpy(draw.integers(0, CLASSES, sizes["paper"]))
    net = Net(list(edges))
    optimizer = torch.optim.Adam(net.parameters())

    def run(job: str, seeds: Ids) -> int:
        temporal = job == "temporal"
        fanouts = list(reversed(JOBS["temporal" if temporal else "static"][0]))  # from the seeds
        ids = torch.from_numpy(seeds)
        seed_time = None
        if temporal:
            seed_time = {"paper": torch.full((len(seeds),), SEED_TIME)}
        # rows, columns, nodes, edge ids; then no replacement, directed, disjoint where there are
        # times, uniform
        rest = (
            stamps if temporal else None,
            None,
            seed_time,
            None,
            True,
            False,
            True,
            temporal,
            "uniform",
            True,
        )
        numbers = dict.fromkeys(row, fanouts)
        out = torch.ops.pyg.hetero_neighbor_sample(
            list(sizes), list(edges), colptr, row, {"paper": ids}, numbers, *rest
        )
        if job == "step":
            index = {
                key: torch.stack([out[0]["__".join(key)], out[1]["__".join(key)]]) for key in edges
            }
            h = {kind: x[kind][nodes] for kind, nodes in out[2].items()}
            loss = torch.nn.functional.cross_entropy(net(h, index)[: len(seeds)], y[seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return sum(len(each) for each in out[0].values())

    return run


if __name__ == "__main__":
    serve(
        prepare,
        f"PyTorch Geometric {torch_geometric.__version__} with pyg-lib {pyg_lib.__version__}",
    )
