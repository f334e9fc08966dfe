"""PyTorch Geometric's loader of neighbours, with pyg-lib: draws for ``judge.py``."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

warnings.filterwarnings("ignore")
answers = sys.stdout
sys.stdout = sys.stderr
import pyg_lib  # noqa: E402
import torch  # noqa: E402
import torch_geometric  # noqa: E402
from draws import Draw, serve  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.loader import NeighborLoader  # noqa: E402
from torch_geometric.sampler import NeighborSampler  # noqa: E402


def prepare(ends: torch.Tensor, num_nodes: int, columns: dict[str, torch.Tensor]) -> Draw:
    samplers: dict[str, tuple[Data, torch.Tensor, NeighborSampler]] = {}

    def prepared(options: dict[str, Any]) -> tuple[Data, torch.Tensor, NeighborSampler]:
        # in the order that is_sorted=True asks for: sorting needs more of pyg-lib than its samplers
        order = (
            columns["time"].argsort(stable=True)
            if "time_attr" in options
            else torch.arange(ends.shape[1])
        )
        order = order[ends[1, order].argsort(stable=True)]
        own = {name: column[order] for name, column in columns.items()}
        data = Data(edge_index=ends[:, order], num_nodes=num_nodes, **own)
        return data, order, NeighborSampler(data, is_sorted=True, **options)

    def draw(
        options: dict[str, Any], seeds: torch.Tensor, seed: int, times: torch.Tensor | None
    ) -> list[Any]:
        name = repr(options)
        data, order, sampler = samplers[name] = samplers.get(name) or prepared(options)
        torch.manual_seed(seed)
        more = {} if times is None else {"input_time": times, "time_attr": options["time_attr"]}
        loader = NeighborLoader(
            data,
            num_neighbors=options["num_neighbors"],
            input_nodes=seeds,
            batch_size=len(seeds),
            neighbor_sampler=sampler,
            **more,
        )
        batch = next(iter(loader))
        src, dst = batch.edge_index
        parts = [batch.n_id[src], batch.n_id[dst], order[batch.e_id]]
        if batch.get("batch") is not None:
            parts.append(batch.batch[dst])
        # hops begin at the seeds
        hops = zip(*(part.split(list(batch.num_sampled_edges)) for part in parts), strict=True)
        return [list(hop) for hop in hops][::-1]

    return draw


def pyg_lib_version() -> str:
    try:
        return version("pyg_lib")
    except PackageNotFoundError:  # compiled without its setup.py
        return pyg_lib.__version__


if __name__ == "__main__":
    serve(f"{torch_geometric.__version__}, pyg-lib {pyg_lib_version()}", prepare, answers)
