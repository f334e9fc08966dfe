"""Candidates and Choice: what a sampler chooses from, edges that are no edges of the parent graph,
bad choices.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.protocol_tools import MODES, With
from _support.sampler_reference import fingerprint, picked_positions, random_graph
from _support.views import viewed
from torch import Tensor

from nodeflow import FullSampler, Graph, NeighborSampler, Sampler
from nodeflow.sampling.base import Choice, Step

FIVE = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])

# ---- what a sampler chooses from


def test_candidates():
    found = []

    def look(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        edges = sampler.candidates(dst)
        found.append(
            (
                edges.src,
                edges.dst,
                edges.eid,
                edges.indptr,
                edges.degrees,
                edges.dst_nid,
                edges.rows,
                len(edges),
            )
        )
        return edges.select([0])

    With(FIVE, look)([2, 3, 1])
    src, dst, eid, indptr, degrees, dst_nid, rows, size = found.pop()
    assert (src.tolist(), dst.tolist(), eid.tolist()) == ([0, 1, 0, 2], [2, 2, 1, 1], [2, 3, 0, 1])
    assert (indptr.tolist(), degrees.tolist(), dst_nid.tolist(), size) == (
        [0, 2, 2, 4],
        [2, 0, 2],
        [2, 3, 1],
        4,
    )
    assert rows.tolist() == [0, 0, 2, 2]
    assert {t.dtype for t in (src, dst, eid, indptr, degrees, dst_nid)} == {torch.int64}
    With(FIVE.view("out"), look)([0])
    src, dst, eid, *_ = found.pop()
    # src is the neighbour
    assert (src.tolist(), dst.tolist(), eid.tolist()) == ([1, 2], [0, 0], [0, 2])


def test_candidates_of_other_nodes():
    """Two steps in one: the edges of a neighbour; the kind of ids does not matter."""
    graph = Graph.from_edges([1, 2, 3], [0, 1, 2])
    sampler = With(graph, lambda s, dst, _: s.candidates(dst).select([0]))
    for dst in ([1, 2], np.array([1, 2], np.int32), torch.tensor([1, 2], dtype=torch.int32)):
        assert sampler.candidates(dst).src.tolist() == [2, 3]


@pytest.mark.parametrize(
    "keep",
    [
        torch.tensor([True, False, True, True]),
        np.array([True, False, True, True]),
        [0, 2, 3],
        torch.tensor([0, 2, 3], dtype=torch.int32),
    ],
)
def test_select(keep):
    batch = With(
        FIVE, lambda s, dst, _: s.candidates(dst).select(keep, weight=torch.tensor([1.0, 2.0, 3.0]))
    )([2, 3, 1])
    assert picked_positions(batch) == [[2], [], [0, 1]]
    assert batch.flows[0].weight.tolist() == [1, 2, 3]


def test_select_repeated_rows():
    batch = With(FIVE, lambda s, dst, _: s.candidates(dst).select([1, 1, 1, 2], weight=0.5))(
        [2, 3, 1]
    )
    assert picked_positions(batch) == [[3, 3, 3], [], [0]]
    assert batch.flows[0].weight.tolist() == [0.5] * 4
    batch.validate()
    # an edge that is drawn twice on average
    batch = With(FIVE, lambda s, dst, _: s.candidates(dst).select([1, 1], prob=2.0))([2, 3, 1])
    assert batch.flows[0].weight.tolist() == [0.5, 0.5]


# ---- edges that are no edges of the parent graph


@pytest.mark.parametrize("options", MODES, ids=str)
def test_choice_by_sources(options):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=6)

    def around(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        return Choice(np.arange(len(dst) + 1), src=(dst + 1) % 6)

    batch = viewed(With, graph, around, 2, **options)([5, 1])
    assert batch.seeds.tolist() == [5, 1]
    assert batch.flows[1].src_layer.parent_nid[batch.flows[1].indices].tolist() == [0, 2]
    for flow in batch.flows:
        assert flow.parent_eid.tolist() == [-1] * flow.num_edges
        assert flow.parent_eid.dtype == torch.int64
        assert flow.weight.tolist() == [1.0] * flow.num_edges
    batch.validate()


def test_choice_by_sources_with_edge_ids():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=6)
    graph.edata["w"] = torch.tensor([10.0, 20.0, 30.0])
    # an edge and an added self-loop of node 2
    choice = Choice([0, 2], src=[1, 5], eid=[1, -1], weight=[0.5, 4.0])
    batch = With(graph, lambda *_: choice)([2])
    assert batch.flows[0].parent_eid.tolist() == [1, -1]
    assert batch.flows[0].weight.tolist() == [0.5, 4.0]
    batch.copy_from_parent(None, ["w"])
    assert batch.fdata[0]["w"].tolist() == [20.0, 0.0]
    batch.validate()


def test_parent_and_other_edges_in_one_reused_structure():
    graph = Graph.from_edges([1, 2, 3], [0, 1, 2])

    def mixed(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        if step.flow == 1:
            edges = sampler.candidates(dst)
            return edges.select(torch.ones(len(edges), dtype=torch.bool), weight=3.0)
        return Choice([0, *[1] * len(dst)], src=[3])

    batch = With(graph, mixed, 2, reuse=True)([0])
    assert [flow.parent_eid.tolist() for flow in batch.flows] == [[0, -1], [0]]
    assert [flow.weight.tolist() for flow in batch.flows] == [[3.0, 1.0], [3.0]]
    assert batch.front.parent_nid.tolist() == [0, 1, 3]
    batch.validate()


# ---- bad choices


# in-edges of 2: positions 3 and 4, ids 2 and 3
GRAPH = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0], num_nodes=5)


@pytest.mark.parametrize(
    "columns", [{"edata": {"x": torch.ones(1)}}, {"nodes": [0], "ndata": {"x": torch.ones(1)}}]
)
def test_one_structure_for_all_flows_has_no_columns_of_each(columns):
    assert With(GRAPH, lambda *_: Choice([0, 1], [3], **columns))([2]).flow_sizes == (1,)
    with pytest.raises(
        ValueError, match="flows are prefixes of one structure: no columns of a Choice"
    ):
        With(GRAPH, lambda *_: Choice([0, 1], [3], **columns), reuse=True)([2])


def test_choice_takes_lists_tensors_and_read_only_arrays():
    graph = Graph(np.array([0, 2, 3]), np.array([1, 0, 0]))
    kinds = [
        ([0, 2, 3], [0, 1, 2]),
        (torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2], dtype=torch.int32)),
        (graph.indptr, graph.stored_edge_ids),  # read-only: must neither warn nor be shared
        (np.array([0, 2, 3], np.uint8), range(3)),
    ]
    expected = fingerprint(FullSampler(graph, 1)([0, 1]))
    for indptr, positions in kinds:
        assert (
            fingerprint(With(graph, lambda *_, c=(indptr, positions): Choice(*c))([0, 1]))
            == expected
        )


def test_a_choice_is_safe_from_later_writes():
    """A sampler may use one buffer for all its choices."""
    graph = Graph(np.array([0, 2, 3]), np.array([1, 0, 0]))
    buffers = np.array([0, 2, 3]), np.array([0, 1, 2])
    batch = With(graph, lambda *_: Choice(*buffers))([0, 1])
    buffers[0][:] = buffers[1][:] = 99
    assert fingerprint(batch) == fingerprint(FullSampler(graph, 1)([0, 1]))


def test_weights_made_on_demand():
    calls = []

    def weight() -> Tensor:
        calls.append(1)
        return torch.tensor([2.0, 3.0], dtype=torch.float64)

    batch = With(GRAPH, lambda *_: Choice([0, 2], [3, 4], weight=weight))([2])
    assert not calls
    assert batch.flows[0].weight.equal(torch.tensor([2.0, 3.0]))
    assert batch.flows[0].weight.dtype == torch.float32
    assert len(calls) == 1
    wrong = With(GRAPH, lambda *_: Choice([0, 2], [3, 4], weight=lambda: torch.ones(3)))([2])
    with pytest.raises(ValueError, match="weight must have shape"):
        wrong.flows[0].weight  # noqa: B018  asking for it makes it


class Listed(Sampler):
    """Chooses all edges by their sources."""

    def choose(self, dst, step):
        edges = self.candidates(dst)
        return Choice(edges.indptr, src=edges.src, eid=edges.eid)


@pytest.mark.parametrize(
    ("base", "arguments", "options"),
    [
        (Listed, (2,), {}),
        (NeighborSampler, ([2, 3],), {}),
        (NeighborSampler, ([2, 3],), {"reuse": True}),
    ],
)
def test_a_choice_may_be_given_again(base, arguments, options):
    """Local ids are written over the ids of a kernel's choice; the choice of somebody else must
    stay as it is.
    """
    kept: dict[tuple, Choice] = {}

    class Again(base):
        def choose(self, dst, step):
            key = (step.flow, *dst.tolist())
            if key not in kept:
                kept[key] = super().choose(dst, step)
            return kept[key]

    sampler = Again(random_graph(6), *arguments, **options)
    first = fingerprint(sampler([1, 2, 3]))
    assert fingerprint(sampler([1, 2, 3])) == first
    sampler([1, 2, 3]).validate()
