"""Properties of every sampled NodeFlow, on generated graphs, seeds and options."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch
from _support.sampler_families import LAYERED
from _support.sampler_reference import fingerprint, picked_positions, sample
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nodeflow import Graph, NeighborSampler, Sampler
from nodeflow.sampling.base import Choice
from nodeflow.testing import graphs, seeds


@st.composite
def cases(draw: st.DrawFn):
    nodes = draw(st.integers(1, 12))
    ids = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(ids, ids), max_size=60))
    include_dst = draw(st.booleans())
    options = {
        "replace": draw(st.booleans()),
        "direction": draw(st.sampled_from(["in", "out"])),
        "include_dst": include_dst,
        "reuse": include_dst and draw(st.booleans()),
        "seed": draw(st.integers(-(2**63), 2**63)),
    }
    fanouts = draw(st.lists(st.sampled_from([-1, 1, 2, 3, 40]), min_size=1, max_size=4))
    seeds = draw(st.lists(ids, max_size=8))
    src, dst = ([end[i] for end in edges] for i in (0, 1))
    graph = Graph.from_edges(src, dst, num_nodes=nodes)
    if draw(st.booleans()):  # the same edges, ids in the order of storage, and 64 bits wide
        order = np.asarray(graph.stored_edge_ids)
        edges = [edges[e] for e in order]
        graph = Graph(np.asarray(graph.indptr), graph.indices.astype(np.int64), copy=False)
    run = {"epoch": draw(st.integers(0, 2**40)), "batch_number": draw(st.none() | st.integers(0, 2**40))}
    return graph, edges, fanouts, seeds, options, run


@settings(max_examples=80, deadline=None)
@given(cases())
def test_a_batch_is_what_the_reference_says(case):
    graph, edges, fanouts, seeds, options, run = case
    batch = NeighborSampler(graph, fanouts, **options)(seeds, **run)
    layers, flows = sample(edges, fanouts, seeds, **options, **run)
    assert [layer.parent_nid.tolist() for layer in batch.layers] == layers
    assert [picked_positions(batch, i) for i in range(batch.num_flows)] == flows


@settings(max_examples=80, deadline=None)
@given(cases())
def test_every_batch_is_valid(case):
    graph, edges, fanouts, seeds, options, run = case
    before = [array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)]
    batch = NeighborSampler(graph, fanouts, **options)(seeds, **run)
    batch.validate()
    assert batch.seeds.tolist() == list(dict.fromkeys(seeds))
    assert batch.seeds[batch.seed_index].tolist() == seeds
    near, end = (0, 1) if options["direction"] == "in" else (1, 0)
    degrees = np.bincount([e[end] for e in edges], minlength=graph.num_nodes)
    for i, flow in enumerate(batch.flows):
        above, below = flow.dst_layer.parent_nid, flow.src_layer.parent_nid
        if options["include_dst"]:
            assert below[: len(above)].equal(above)
            assert flow.take_dst(below).equal(above)
            assert flow.take_dst(below).data_ptr() == below.data_ptr()  # a prefix, not a copy
        else:
            assert below.equal(below.unique())
        for v, picked in zip(above.tolist(), picked_positions(batch, i), strict=True):
            assert all(edges[e][end] == v for e in picked)
            if not options["reuse"]:
                full = fanouts[i] < 0 or (degrees[v] <= fanouts[i] and not options["replace"])
                assert len(picked) == (degrees[v] if full or degrees[v] == 0 else fanouts[i])
            if not options["replace"]:
                assert len(set(picked)) == len(picked)
        src, dst = flow.edges()
        assert below[src].tolist() == [edges[e][near] for e in flow.parent_eid.tolist()]
        assert above[dst].tolist() == [edges[e][end] for e in flow.parent_eid.tolist()]
        # weights of a destination add up to its degree
        total = torch.zeros(len(above)).index_add_(0, dst, flow.weight)
        torch.testing.assert_close(total, torch.from_numpy(degrees[above.numpy()]).float())
    assert [array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)] == before


@settings(max_examples=50, deadline=None)
@given(cases())
def test_a_batch_is_the_same_again_and_elsewhere(case):
    graph, _, fanouts, seeds, options, run = case
    sampler = NeighborSampler(graph, fanouts, **options)
    expected = fingerprint(sampler(seeds, **run))
    assert fingerprint(sampler(torch.tensor(seeds, dtype=torch.int32), **run)) == expected
    assert fingerprint(pickle.loads(pickle.dumps(sampler))(seeds, **run)) == expected
    copied = pickle.loads(pickle.dumps(sampler(seeds, **run)))
    assert fingerprint(copied) == expected
    assert copied.parent is graph


class Scripted(Sampler):
    """Chooses what hypothesis says: any subset, in any order, edges repeated."""

    def __init__(self, graph: Graph, num_flows: int, numbers: list[int], **options) -> None:
        super().__init__(graph, num_flows, **options)
        self.numbers = numbers

    def choose(self, dst, step):
        numbers = itertools.cycle(self.numbers)
        edges = self.candidates(dst)
        indptr, positions = [0], []
        ends = edges.indptr.tolist()
        for begin, end in itertools.pairwise(ends):
            wanted = next(numbers) if begin < end else 0
            positions += [begin + next(numbers) % (end - begin) for _ in range(wanted)]
            indptr.append(len(positions))
        places = edges.positions[np.array(positions, np.int64)]
        return Choice(indptr, places)


@settings(max_examples=50, deadline=None)
@given(cases(), st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_any_choice_is_assembled_right(case, numbers):
    graph, edges, fanouts, seeds, options, _ = case
    del options["replace"], options["seed"]
    batch = Scripted(graph, len(fanouts), numbers, **options)(seeds)
    batch.validate()
    near, end = (0, 1) if options["direction"] == "in" else (1, 0)
    for flow in batch.flows:
        src, dst = flow.edges()
        assert flow.src_layer.parent_nid[src].tolist() == [edges[e][near] for e in flow.parent_eid.tolist()]
        assert flow.dst_layer.parent_nid[dst].tolist() == [edges[e][end] for e in flow.parent_eid.tolist()]


@pytest.mark.parametrize("name", LAYERED)
@settings(max_examples=15)
@given(data=st.data())
def test_the_edges_of_every_family_are_those_of_the_graph(name, data):
    graph = data.draw(graphs(edge_columns={"w": ()}))
    graph.edata["w"] = graph.edata["w"].abs() * (graph.edata["w"] > -4)
    numbers = torch.tensor(data.draw(st.lists(st.integers(0, 5), min_size=graph.num_edges, max_size=graph.num_edges)))
    graph.edata["p"], graph.edata["type"], graph.edata["old"] = graph.edata["w"], numbers.long() % 3, numbers > 1
    assume(name != "neighbor, types" or {0, 1, 2} <= set(graph.edata["type"].tolist()))
    options = {"direction": data.draw(st.sampled_from(["in", "out"]))}
    if not any(word in name for word in ("reuse", "disjoint", "dependent")):
        options["include_dst"] = data.draw(st.booleans())
    batch = LAYERED[name](graph, **options)(data.draw(seeds(graph)))
    batch.validate()
    ends = torch.stack(graph.edges())
    for flow in batch.flows:
        src, dst = flow.edges()
        pairs = torch.stack([flow.src_layer.parent_nid[src], flow.dst_layer.parent_nid[dst]])
        assert ends[:, flow.parent_eid].equal(pairs if options["direction"] == "in" else pairs.flip(0))
        if "replace" not in name:
            assert len(set(zip(dst.tolist(), flow.parent_eid.tolist(), strict=True))) == flow.num_edges
        if "prob" in name:
            assert (graph.edata["p"][flow.parent_eid] > 0).all()
        if "filter" in name:
            assert graph.edata["old"][flow.parent_eid].all()
