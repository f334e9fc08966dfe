"""Every public class has a repr of its own: type and sizes in words, and no address."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from _support.pages import ROOT

sys.path.append(str(ROOT / "docs"))

from _site.reference import public_classes

from nodeflow import (
    Graph,
    NeighborSampler,
    NodeFlowLoader,
    Sampler,
    metrics,
    nn,
    random,
    storage,
)
from nodeflow._core.rows.base import RowsBase
from nodeflow.compat import dgl
from nodeflow.control_variates import History, Updater
from nodeflow.datasets import debian
from nodeflow.distributed import Order, PartitionBuffer, write_partitions
from nodeflow.ops import Structure
from nodeflow.propagation import ExchangePlan, Propagation
from nodeflow.sampling import LayerSampler
from nodeflow.sampling.base import Candidates, Choice, Edges, LayerCandidates
from nodeflow.storage import EmbeddingTable, Lookahead, Pipeline
from nodeflow.training import Settings, Trainer
from nodeflow.training._graph import FeatureRows

PROTOCOLS = [storage.Rows, metrics.LinkScorer]
"""What users write, and types of functions."""
CLASSES = {full: kind for kind, full in public_classes().items() if kind not in PROTOCOLS}
RING = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.eye(4)})


@pytest.mark.parametrize("full", CLASSES)
def test_a_public_class_has_a_repr_of_its_own(full):
    assert CLASSES[full].__repr__ is not object.__repr__


def shown(thing: Any, words: str) -> None:
    assert " object at 0x" not in repr(thing)
    assert repr(thing) == words


def test_a_partition_buffer_says_what_it_holds(tmp_path):
    parts = write_partitions(RING, tmp_path / "parts", 4, method=[0, 1, 2, 3], progress=False)
    shown(parts, "Partitions(4 parts of 1 nodes, 4 edges, 100.0% cut, ndata: x)")
    buffer = PartitionBuffer(tmp_path / "parts", slots=2, order="beta")
    shown(buffer, "PartitionBuffer(2 of 4 parts in memory, order beta, epoch 0)")
    for _ in buffer:
        pass
    assert "epoch 1)" in repr(buffer)
    own = Order(4, [[0, 1, 2, 3]])
    with PartitionBuffer(tmp_path / "parts", order=own, writable=["x"]) as buffer:
        assert repr(buffer).endswith(f"order {own!r}, epoch 0, writable: x)")
    buffer = PartitionBuffer(tmp_path / "parts", slots=4, order=lambda epoch: own)
    assert ", order by a function, " in repr(buffer)


def test_the_share_of_cut_edges_is_counted(tmp_path):
    generator = torch.Generator().manual_seed(0)
    src, dst = torch.randint(50, (2, 400), generator=generator)
    parts = write_partitions(
        Graph.from_edges(src, dst, num_nodes=50), tmp_path / "parts", 5, progress=False
    )
    apart = parts.partition_of(src) != parts.partition_of(dst)
    assert parts.cut == pytest.approx(float(apart.double().mean()))
    empty = write_partitions(
        Graph.from_edges([], [], num_nodes=2), tmp_path / "empty", 2, progress=False
    )
    assert empty.cut == 0


def test_a_pipeline_and_a_lookahead_name_what_they_are_made_of():
    table = EmbeddingTable(4, 2, lr=0.1)
    pipeline = Pipeline(
        [[0]], {"ends": (table, lambda batch: batch)}, lambda batch, rows: None, staleness=2
    )
    shown(pipeline, f"Pipeline(rows of ends: {table!r}; staleness 2, 0 batches under way)")
    graph = Graph.from_edges([0, 1], [1, 0])
    graph.ndata["x"] = storage.Cached(torch.eye(2), heat=[0, 0], memory=8)
    loader = NodeFlowLoader(NeighborSampler(graph, [1]), [0, 1], batch_size=1, ndata={0: ["x"]})
    shown(Lookahead(loader, memory=8), f"Lookahead({loader!r}, 2 batches ahead, columns x)")


def test_a_trainer_names_its_model_and_where_it_is():
    trainer = Trainer(debian(), Settings(fanouts=(5,), hidden=16, epochs=1, model="sage"))
    shown(trainer, f"Trainer(GraphSAGE for accuracy, 0 of 1 epochs done, {trainer.batches!r})")


def test_sums_say_what_they_sum():
    shown(Propagation(RING), f"Propagation({RING!r}.view())")
    shown(
        Structure(torch.tensor([0, 2]), torch.tensor([0, 1]), 2),
        "Structure(2 sources, 1 destinations, 2 edges)",
    )
    model = nn.GCN(4, 2, 2)
    history = History(RING, {1: 2})
    shown(
        Updater(model, history, torch.eye(4), every=3), f"Updater(GCN, {history!r}, every 3 steps)"
    )
    shown(random.Random(7), "Random(7)")


def test_rows_and_plans_say_what_they_hold():
    class Own(RowsBase):
        shape = (3, 2)
        dtype = torch.float32

        def _read(self, ids, out):
            raise NotImplementedError

    shown(Own(), "Own(float32 [3, 2])")
    shown(
        FeatureRows(torch.ones(3, 2).double(), torch.float32),
        "FeatureRows(float32 [3, 2], of float64 [3, 2])",
    )
    shown(ExchangePlan(RING), "ExchangePlan(4 masters, 0 mirrors, partners [])")


def test_samplers_and_batches_of_dgl_say_what_they_draw_and_have():
    graph = dgl.DGLGraph([(0, 1), (2, 1)])
    draws = dgl.contrib.sampling.NeighborSampler(graph, 2, -1, num_hops=2, seed_nodes=[1])
    shown(
        draws,
        f"NeighborSampler(1 seeds in batches of 2, {graph!r})",
    )
    seen: list[str] = []
    graph.apply_edges(lambda edges: seen.append(repr(edges)) or {"w": edges.edges()[0]})
    graph.apply_nodes(lambda nodes: seen.append(repr(nodes)) or {"h": nodes.nodes()})
    assert [text.partition("(")[0] for text in seen] == ["EdgeBatch", "NodeBatch"]
    assert all(" object at 0x" not in text for text in seen)


def test_what_a_sampler_of_ones_own_sees_has_a_repr():
    seen: list[object] = []

    class All(Sampler):
        def choose(self, dst, step):
            edges = self.candidates(dst)
            seen.extend(
                [
                    edges,
                    choice := edges.select(torch.ones(len(edges.src), dtype=torch.bool), prob=1.0),
                ]
            )
            return choice

    def score(candidates: LayerCandidates, step: object) -> torch.Tensor:
        seen.append(candidates)
        return candidates.flow.out_degrees.float()

    All(RING, num_flows=1)([1, 2])
    LayerSampler(RING, [1], score=score)([1, 2])
    edges, choice, candidates = seen
    assert isinstance(edges, Candidates)
    assert isinstance(choice, Choice)
    shown(edges, "Candidates(2 edges of 2 destinations)")
    shown(choice, "Choice(2 edges of 2 destinations)")
    shown(candidates, "LayerCandidates(2 nodes for 2 destinations)")
    shown(Edges([0, 0, 2, 3], [0, 2, 1], None), "Edges(3 rows, 3 edges)")
