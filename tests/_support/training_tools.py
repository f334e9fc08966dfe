"""What the tests of training and of checkpoints share: a planted graph, fast settings, and a run of
them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from nodeflow import Graph, NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.datasets import Dataset
from nodeflow.distributed import PartitionBuffer
from nodeflow.training import Checkpoints, EpochRecord, Result, Settings, Stopped, Trainer

Fixed = dict[str, Path]
FAST = Settings(
    fanouts=(4, 4), batch_size=64, hidden=16, dropout=0.2, lr=0.02, epochs=6, seed=0, direction="in"
)


def without(settings: Settings, *names: str) -> Settings:
    """Settings with the defaults of some, such as those that a part of the user's own replaces."""
    return Settings({name: value for name, value in settings.chosen.items() if name not in names})


def slow(*case: Any) -> Any:
    """A second case of a law."""
    return pytest.param(*case, marks=pytest.mark.slow)


def with_columns(data: Dataset, /, *, edges: Any = None, **columns: Any) -> Dataset:
    """The data set with other node columns, None for none of a name; ``edges``: (src, dst) in place
    of its own.
    """
    graph = data.graph
    merged = {
        name: column for name, column in {**graph.ndata, **columns}.items() if column is not None
    }
    edata = graph.edata if edges is None else {}
    ends = graph.edges() if edges is None else edges
    return replace(
        data, graph=Graph.from_edges(*ends, num_nodes=graph.num_nodes, ndata=merged, edata=edata)
    )


def train(
    data: Dataset, settings: Settings, report: Callable[[EpochRecord], None] = lambda _: None
) -> Result:
    """A whole run."""
    return Trainer(data, settings).run(report)


def stop_after(trainer: Trainer, batches: int) -> None:
    """Let a trainer stop after so many more batches."""
    step = trainer.step
    left = [batches]

    def counted(batch: Any) -> float:
        left[0] -= 1
        if not left[0]:
            trainer.stop()
        return step(batch)

    trainer.step = counted  # type: ignore[method-assign]


def stopped_at(trainer: Trainer, step: int) -> bool:
    """Run until the given step; return whether the run had so many."""
    stop_after(trainer, step)
    try:
        trainer.run()
    except Stopped:
        return True
    return False


def check_goes_on(
    make: Callable[[], Dataset], run: Settings, steps: Iterable[int], folder: Path, **change: Any
) -> None:
    """Check that a run which stops after a step goes on, with changed settings, to the same end."""
    wanted = Trainer(make(), run).run()
    checkpoints = Checkpoints(folder, epochs=0)
    for step in steps:
        checkpoints.folder = folder / str(step)
        assert stopped_at(Trainer(make(), run, checkpoints=checkpoints), step)
        torch.manual_seed(step)  # the state of the process is not that of the run
        trainer = Trainer(make(), run.replace(**change))
        assert checkpoints.restore(trainer)
        assert same_result(trainer.run(), wanted)


TIMES = ("seconds", "seeds_per_second", "edges_per_second")
CLASSES = 3


def planted(
    *, sparse: bool = False, val: int = 90, test: int = 100, dtype: type = np.float32
) -> Dataset:
    """300 nodes in 3 communities: of the edges into a node 9 in 10 are from its own; features are
    weak and noisy.

    Every call makes another graph, so that no test sees the columns of another.
    """
    random = np.random.default_rng(5)
    label = random.permutation(np.repeat(np.arange(CLASSES), 100))
    members = [np.flatnonzero(label == c) for c in range(CLASSES)]
    dst = np.repeat(np.arange(300), 6)
    own = random.random(len(dst)) < 0.9
    near = np.stack(members)[label[dst], random.integers(0, 100, len(dst))]
    src = np.where(own, near, random.integers(0, 300, len(dst)))
    feat = (np.eye(CLASSES)[label] * 0.8 + random.normal(0, 1, (300, CLASSES))).astype(dtype)
    if sparse:
        feat = np.where(np.abs(feat) > 0.5, feat, 0).astype(dtype)
    order = random.permutation(300)
    parts = np.split(order, [110, 110 + val, 110 + val + test])[:3]

    columns = {"feat": scipy.sparse.csr_array(feat) if sparse else feat, "label": label}
    graph = Graph.from_edges(
        src, dst, num_nodes=300, ndata=columns, edata={"kind": own.astype(np.int64)}
    )
    return Dataset("planted", graph, *parts, CLASSES)


def same_training(one: Result, other: Result) -> bool:
    """Whether the records of two runs, but for the time they took, and their weights are the same,
    bit for bit.
    """
    untimed = [
        [{**asdict(r), **dict.fromkeys(TIMES)} for r in result.records] for result in (one, other)
    ]
    weights = [result.network.state_dict() for result in (one, other)]
    return (
        untimed[0] == untimed[1]
        and weights[0].keys() == weights[1].keys()
        and all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    )


def same_result(one: Result, other: Result) -> bool:
    """Whether the final scores agree too."""
    return same_training(one, other) and (one.scores, one.best_epoch) == (
        other.scores,
        other.best_epoch,
    )


@functools.cache
def trained() -> Result:
    """The run of FAST, made once for all tests that only look at it."""
    return train(planted(), FAST)


# on partitions


def partitioned(folder: Path, **change: Any) -> Settings:
    """FAST on 2 of the partitions of a folder, in batches of 5: states have several of them, and
    few or none.
    """
    usual = {
        "storage": "partitions",
        "partitions": str(folder),
        "slots": 2,
        "batch_size": 5,
        "epochs": 3,
    }
    return FAST.replace(**{**usual, **change})


def contents(batch: NodeFlow) -> list[Any]:
    ends = [[end.tolist() for end in flow.edges()] for flow in batch.flows]
    columns = [batch.layers[0].data["feat"].tolist(), batch.layers[-1].data["label"].tolist()]
    return [[layer.parent_nid.tolist() for layer in batch.layers], ends, *columns]


def by_hand(settings: Settings, epoch: int) -> Iterator[tuple[list[Any], torch.Tensor]]:
    """The batches of an epoch, and the nodes that local ids are, from a loop over a buffer."""
    storage = settings.storage
    sampler = settings.sampler
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
