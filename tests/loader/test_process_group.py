"""Two processes under torch.distributed: loaders take their part of it, and DistributedDataParallel reaches the end."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from _support.loader_tools import random_graph
from torch import Tensor, nn

from nodeflow import NeighborSampler, NodeFlowLoader
from nodeflow.nn import GraphSAGE

SEEDS = [*range(60), *range(5)]  # 65 on two ranks: steps of 32, 32 and 1 seeds


def _train(model: nn.Module, batch_size: int) -> tuple[list[float], int]:
    """Two epochs; returns this process's part of the loss of every step, and the number of steps of an epoch."""
    graph = random_graph()
    x, label = graph.ndata["x"].double() / 60, graph.ndata["label"]
    loader = NodeFlowLoader(NeighborSampler(graph, [2, 3]), SEEDS, batch_size, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch, x[batch.front.parent_nid])[batch.seed_index]
            wanted = label[batch.seeds[batch.seed_index]]
            loss = F.cross_entropy(out, wanted, reduction="sum") * loader.seed_weight
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, len(loader)


def _model() -> GraphSAGE:
    torch.manual_seed(0)
    return GraphSAGE(2, 8, 3).double()


def _process(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    try:
        model = _model()
        losses, steps = _train(nn.parallel.DistributedDataParallel(model), 16)
        weights = [parameter.tolist() for parameter in model.parameters()]
        Path(folder, f"{rank}.json").write_text(json.dumps([losses, steps, weights]))
    finally:
        dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_end_as_one_does(tmp_path):
    torch.multiprocessing.spawn(_process, (str(tmp_path),), nprocs=2)
    model = _model()
    losses, steps = _train(model, 32)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert [number for _, number, _ in found] == [steps] * 2 == [3, 3]
    mean = (torch.tensor(found[0][0], dtype=torch.float64) + torch.tensor(found[1][0], dtype=torch.float64)) / 2
    torch.testing.assert_close(mean, torch.tensor(losses, dtype=torch.float64), rtol=0, atol=1e-10)
    for _, _, weights in found:
        for mine, parameter in zip(weights, model.parameters(), strict=True):
            tensor: Tensor = torch.tensor(mine, dtype=torch.float64)
            torch.testing.assert_close(tensor, parameter.detach(), rtol=0, atol=1e-10)


@pytest.fixture
def group(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_the_default_group_is_asked(monkeypatch):
    sampler = NeighborSampler(random_graph(), [2])
    assert NodeFlowLoader(sampler, range(9)).world_size == 1
    monkeypatch.setattr(dist, "get_rank", lambda: 2)
    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    loader = NodeFlowLoader(sampler, range(9), 2)
    assert (loader.rank, loader.world_size, len(loader)) == (2, 3, 2)
    assert NodeFlowLoader(sampler, range(9), 2, rank=0, world_size=1).world_size == 1
