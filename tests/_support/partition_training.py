"""What the tests of training on partitions share: folders of the planted graph, settings, and batches by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from nodeflow import NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.partitions import PartitionBuffer
from nodeflow.training import Settings

from .cli_tools import status
from .training_tools import FAST, planted

Fixed = dict[str, Path]


def write_folders(place: Path) -> Fixed:
    """The planted data set as a graph folder, dense and sparse; its partitions along its edges, and both ways."""
    planted().save(place / "data")
    planted(sparse=True).save(place / "sparse")
    for name, data, direction, parts in (
        ("in", "data", "in", "6"), ("both", "data", "both", "6"), ("out", "data", "out", "6"),
        ("sparse-in", "sparse", "in", "6"), ("seven", "data", "in", "7"),
    ):  # fmt: skip
        words = ["partition", str(place / data), "--parts", parts, "--direction", direction]
        assert status([*words, "--output", str(place / name)]) == 0
    return {path.name: path for path in place.iterdir()}


def partitioned(folder: Path, **change: Any) -> Settings:
    """FAST on 2 of the partitions of a folder, in batches of 5: states have several of them, and few or none."""
    usual = {"storage": "partitions", "partitions": str(folder), "slots": 2, "batch_size": 5, "epochs": 3}
    return FAST.replace(**{**usual, **change})


def contents(batch: NodeFlow) -> list[Any]:
    ends = [[end.tolist() for end in flow.edges()] for flow in batch.flows]
    columns = [batch.layers[0].data["feat"].tolist(), batch.layers[-1].data["label"].tolist()]
    return [[layer.parent_nid.tolist() for layer in batch.layers], ends, *columns]


def by_hand(settings: Settings, epoch: int) -> Iterator[tuple[list[Any], torch.Tensor]]:
    """The batches of an epoch, and the nodes that local ids are, from a loop over a buffer."""
    storage, sampler = settings.storage, settings.sampler
    buffer = PartitionBuffer(
        storage.partitions, storage.slots, order=storage.order, seed=settings.run.seed, epoch=epoch
    )
    for state in buffer:
        loader = NodeFlowLoader(
            NeighborSampler(state.graph, sampler.fanouts, seed=state.seed), state.seeds, sampler.batch_size, True,
            seed=state.seed, ndata={0: ["feat"], -1: ["label"]},
        )  # fmt: skip
        for batch in loader:
            yield contents(batch), state.nodes
