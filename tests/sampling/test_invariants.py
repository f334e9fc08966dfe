"""Properties of every sampled NodeFlow, on generated graphs, seeds and options."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.protocol_tools import Bernoulli
from _support.sampler_families import FAMILIES, LAYERED, graph_of_all
from _support.sampler_reference import assert_structure, fingerprint, sample
from _support.strategies import calls
from _support.views import viewed
from hypothesis import assume, given, strategies as st

from nodeflow import Graph
from nodeflow.random import Random, derive_key
from nodeflow.sampling import Call, NeighborSampler, Sampler
from nodeflow.sampling.base import Choice, SamplerBase
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
    return graph, edges, fanouts, seeds, options, draw(calls)


@examples(80)
@given(cases())
def test_a_batch_is_what_the_reference_says(case):
    """Which edges, in which order; again and elsewhere too. The reference knows no weights and no
    tensors.
    """
    graph, edges, fanouts, seeds, options, run = case
    before = [array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)]
    sampler = viewed(NeighborSampler, graph, fanouts, **options)
    batch = sampler(seeds, **run)
    assert_structure(batch, *sample(edges, fanouts, seeds, **options, **run))
    assert batch.seeds[batch.seed_index].tolist() == seeds
    near, end = (0, 1) if options["direction"] == "in" else (1, 0)
    degrees = np.bincount([e[end] for e in edges], minlength=graph.num_nodes)
    for flow in batch.flows:
        above = flow.dst_layer.parent_nid
        below = flow.src_layer.parent_nid
        if options["include_dst"]:
            assert flow.take_dst(below).equal(above)
            assert flow.take_dst(below).data_ptr() == below.data_ptr()  # a prefix, not a copy
        src, dst = flow.edges()
        assert below[src].tolist() == [edges[e][near] for e in flow.parent_eid.tolist()]
        assert above[dst].tolist() == [edges[e][end] for e in flow.parent_eid.tolist()]
        # weights of a destination add up to its degree
        total = torch.zeros(len(above)).index_add_(0, dst, flow.weight)
        torch.testing.assert_close(total, torch.from_numpy(degrees[above.numpy()]).float())
    assert [
        array.tobytes() for array in (graph.indptr, graph.indices, graph.stored_edge_ids)
    ] == before
    expected = fingerprint(batch)
    assert fingerprint(sampler(torch.tensor(seeds, dtype=torch.int32), **run)) == expected
    assert fingerprint(pickle.loads(pickle.dumps(sampler))(seeds, **run)) == expected
    copied = pickle.loads(pickle.dumps(batch))
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
        indptr = [0]
        positions = []
        ends = edges.indptr.tolist()
        for begin, end in itertools.pairwise(ends):
            wanted = next(numbers) if begin < end else 0
            positions += [begin + next(numbers) % (end - begin) for _ in range(wanted)]
            indptr.append(len(positions))
        places = edges.positions[np.array(positions, np.int64)]
        return Choice(indptr, places)


@examples(50)
@given(cases(), st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_any_choice_is_assembled_right(case, numbers):
    graph, edges, fanouts, seeds, options, _ = case
    del options["replace"], options["seed"]
    batch = viewed(Scripted, graph, len(fanouts), numbers, **options)(seeds)
    batch.validate()
    near, end = (0, 1) if options["direction"] == "in" else (1, 0)
    for flow in batch.flows:
        src, dst = flow.edges()
        assert flow.src_layer.parent_nid[src].tolist() == [
            edges[e][near] for e in flow.parent_eid.tolist()
        ]
        assert flow.dst_layer.parent_nid[dst].tolist() == [
            edges[e][end] for e in flow.parent_eid.tolist()
        ]


@pytest.mark.parametrize("name", LAYERED)
@examples(15)
@given(data=st.data())
def test_the_edges_of_every_family_are_those_of_the_graph(name, data):
    graph = data.draw(graphs(edge_columns={"w": ()}))
    graph.edata["w"] = graph.edata["w"].abs() * (graph.edata["w"] > -4)
    numbers = torch.tensor(
        data.draw(st.lists(st.integers(0, 5), min_size=graph.num_edges, max_size=graph.num_edges))
    )
    graph.edata["p"] = graph.edata["w"]
    graph.edata["type"] = numbers.long() % 3
    graph.edata["old"] = numbers > 1
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
        assert ends[:, flow.parent_eid].equal(
            pairs if options["direction"] == "in" else pairs.flip(0)
        )
        if "replace" not in name:
            assert (
                len(set(zip(dst.tolist(), flow.parent_eid.tolist(), strict=True))) == flow.num_edges
            )
        if "prob" in name:
            assert (graph.edata["p"][flow.parent_eid] > 0).all()
        if "filter" in name:
            assert graph.edata["old"][flow.parent_eid].all()


GRAPH = graph_of_all()
EXTREME = [0, 1, -1, 2**63, -(2**63), 2**64 - 1, 2**64, 2**64 + 1, -(2**64), -(2**64) - 1, 2**128]


def numbers(sampler: SamplerBase, **which: int) -> tuple[int, int]:
    keys = sampler._keys_of(
        Call(which.get("epoch", 0), which.get("batch_number", 0)), np.zeros(0, np.int64)
    )
    return keys.key, keys.epoch_key


def test_families_of_different_classes_have_keys_of_their_own():
    made = [make(GRAPH) for make in FAMILIES.values()] + [Bernoulli(GRAPH, 2, 0.3)]
    for one, other in itertools.combinations(made, 2):
        related = issubclass(type(one), type(other)) or issubclass(type(other), type(one))
        same = one.draws_as == other.draws_as
        assert same == (numbers(one) == numbers(other))
        assert same == (type(one) is type(other) or (related and isinstance(one, NeighborSampler)))
        assert same or set(numbers(one)).isdisjoint(numbers(other))


@pytest.mark.parametrize("what", ["seed", "epoch", "batch_number"])
def test_all_bits_count(what):
    made = []
    for value in EXTREME:
        sampler = NeighborSampler(GRAPH, [2], seed=value if what == "seed" else 0)
        made.append(numbers(sampler, **({} if what == "seed" else {what: value}))[0])
        if what != "seed":
            sampler([1, 2, 3], **{what: value})
    assert len(set(made)) == len(EXTREME)


def test_keys_of_any_size_differ():
    assert len({Random(key).key for key in EXTREME}) == len(EXTREME)
    assert Random(2**64 - 1).key == 2**64 - 1
    assert len({derive_key(key) for key in EXTREME}) == len(EXTREME)
    assert derive_key(1, 0) != derive_key(2**64) != derive_key(0, 1)
    assert not torch.equal(Random(0).uniform([1]), Random(2**64).uniform([1]))
