"""LinkSampler: rows for the ends of every seed edge, edges left out before the draw, and any
sampler of nodes below.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.link_reference import assert_equals_reference, excluded, negatives
from _support.sampler_families import MODES
from _support.sampler_reference import fingerprint, picked_positions, random_graph, star
from _support.strategies import calls, edge_ids, masks
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlow, NodeFlowLoader
from nodeflow.sampling import LinkSampler, TemporalNeighborSampler
from nodeflow.sampling.base import SamplerBase
from nodeflow.testing import graphs

GRAPH = random_graph(0)


@pytest.mark.parametrize("exclude", [None, "self", "reverse"])
@given(data=st.data())
def test_the_batch_is_that_of_the_reference(exclude, data):
    """The identical NodeFlow, on graphs with loops, parallel edges and isolated nodes, in every
    mode.
    """
    graph = data.draw(graphs(min_nodes=1))
    eid = data.draw(edge_ids(graph))
    options = data.draw(st.sampled_from(MODES))
    fanouts = data.draw(st.lists(st.sampled_from([-1, 1, 2]), min_size=1, max_size=2))
    run = data.draw(calls)
    count = data.draw(st.integers(0, 3))
    law = data.draw(st.sampled_from(["uniform", "degree"]))
    mask = data.draw(masks(graph))
    sampler = viewed(NeighborSampler, graph.view(where=mask), fanouts, seed=3, **options)
    links = LinkSampler(sampler, num_negatives=count, negatives=law, exclude=exclude, seed=4)
    found = links(eid, **run)
    drawn = negatives(graph, eid, count, law=law, seed=4, **run)
    assert found.seed_index.dtype == torch.int64
    assert found.seed_index.shape == (len(eid), 2 + count)
    left_out = excluded(graph, eid, exclude) | set(np.flatnonzero(~mask).tolist())
    same = {
        "left_out": left_out,
        "number": run["batch_number"],
        "epoch": run["epoch"],
        "seed": 3,
        **options,
    }
    assert_equals_reference(found, graph, fanouts, eid, drawn, **same)


# ---- edges left out


def test_edges_left_out_of_a_hub():
    """Of the 50,000 in-edges of a hub, 20 are seeds; the hub still draws all that it should."""
    graph = star(50_000)
    batch = LinkSampler(NeighborSampler(graph, [49_980]), exclude="reverse", num_negatives=0)(
        range(20)
    )
    (picked,) = [row for row in picked_positions(batch) if row]
    assert sorted(picked) == list(range(20, 50_000))


def test_other_batches_are_not_touched():
    sampler = NeighborSampler(GRAPH, [2, 2])
    before = fingerprint(sampler([1, 2, 3]))
    links = LinkSampler(sampler, exclude="reverse")
    first = fingerprint(links([5, 6]))
    links([7])
    assert fingerprint(sampler([1, 2, 3])) == before
    assert fingerprint(links([5, 6])) == first


# ---- which draw it is


def test_a_loader_takes_ids_of_edges():
    graph = random_graph(1)
    links = LinkSampler(NeighborSampler(graph, [2, 3]), num_negatives=2, exclude="reverse")
    src, dst = (end.tolist() for end in graph.edges())
    for ids, batch in zip(
        torch.arange(100).split(16), NodeFlowLoader(links, range(100), 16), strict=True
    ):
        assert fingerprint(batch) == fingerprint(links(ids))
        rows = batch.seeds[batch.seed_index][:, :2].tolist()
        assert rows == [[src[e], dst[e]] for e in ids.tolist()]
    with pytest.raises(IndexError, match=r"seeds\[0\] is 200, but edge ids go from 0 to 199"):
        NodeFlowLoader(links, [200])


def test_repeated_seed_edges_in_a_loader_draw_on_their_own():
    batches = list(
        NodeFlowLoader(LinkSampler(NeighborSampler(GRAPH, [2]), num_negatives=3), [4] * 20, 1)
    )
    assert len({tuple(batch.seeds.tolist()) for batch in batches}) > 15


def test_the_state_of_a_loader_knows_both_samplers():
    def state(links: LinkSampler) -> dict:
        return NodeFlowLoader(links, range(10), 4).state_dict()

    links = LinkSampler(NeighborSampler(GRAPH, [2]))
    NodeFlowLoader(
        LinkSampler(NeighborSampler(random_graph(0), [2])), range(10), 4
    ).load_state_dict(state(links))
    for other in (
        LinkSampler(NeighborSampler(GRAPH, [3])),
        LinkSampler(links.sampler, num_negatives=2),
    ):
        with pytest.raises(
            ValueError,
            match=r"the state is of a sampler with (sampler\.fanouts|num_negatives)=",
        ):
            NodeFlowLoader(other, range(10), 4).load_state_dict(state(links))


# ---- samplers of nodes below


class Named(SamplerBase):
    """Gives what a function of seeds and ``inputs`` makes; cannot leave edges out."""

    def __init__(self, graph: Graph, make, **attributes) -> None:
        super().__init__(graph, 1)
        self.make = make
        self.calls = []
        self.__dict__.update(attributes)

    def _sample(self, seeds, keys):
        self.calls.append((seeds.tolist(), keys.batch_number, keys.inputs))
        return self.make(seeds, keys.inputs)


def test_any_sampler_of_nodes_will_do():
    kept = FullSampler(GRAPH, 1)(range(40))  # all 40 nodes, node n at row n
    base = Named(
        GRAPH,
        lambda seeds, inputs: NodeFlow(kept.layers, kept.flows, seed_index=torch.from_numpy(seeds)),
    )
    batch = LinkSampler(base, num_negatives=0)([1, 2], inputs="given")
    assert base.calls[0][2] == "given"
    assert batch.seeds[batch.seed_index].T.equal(torch.stack(GRAPH.edges())[:, [1, 2]])
    given = []

    def remembered(seeds, inputs):
        given.append(FullSampler(GRAPH, 1)(seeds))
        return given[-1]

    LinkSampler(Named(GRAPH, remembered), num_negatives=3)([1, 2])
    assert given[0].seed_index.shape == (10,)  # what a sampler hands out stays as it was
    # another number of rows; the same, but of other nodes
    for wrong in (kept, FullSampler(GRAPH, 1)(range(5, 11))):
        with pytest.raises(ValueError, match="Named does not support seeds of shape "):
            LinkSampler(Named(GRAPH, lambda seeds, inputs, wrong=wrong: wrong))([1, 2])


def test_batch_numbers_reach_the_sampler_of_nodes():
    make = FullSampler(GRAPH, 1)
    for numbered in (False, True):
        base = Named(GRAPH, lambda seeds, inputs: make(seeds), numbered=numbered)
        links = LinkSampler(base)
        assert links.numbered is numbered
        links([1], batch_number=7)
        links([1])
        first, second = (call[1] for call in base.calls)
        assert first == 7
        assert (second is None) == numbered


def test_times_reach_a_temporal_sampler():
    rng = np.random.default_rng(0)
    graph = random_graph(2)
    # beyond what floats tell apart
    graph.edata["time"] = torch.from_numpy(rng.permutation(200) + 2**53)
    times = graph.edata["time"]
    links = LinkSampler(TemporalNeighborSampler(graph, [3, 3], strict=True), num_negatives=2)
    batch = links([8, 3, 8, 50], times=times[[8, 3, 8, 50]])
    batch.validate()
    when = batch.back.data["time"][batch.seed_index]
    assert when.equal(times[[8, 3, 8, 50]].unsqueeze(1).expand(4, 4))
    assert batch.seeds[batch.seed_index][:, :2].T.equal(
        torch.stack(graph.edges())[:, [8, 3, 8, 50]]
    )
    for flow in batch.flows:  # neither the seed edges nor anything after them
        assert (times[flow.parent_eid] < flow.dst_layer.data["time"][flow.edges()[1]]).all()
    loader = NodeFlowLoader(links, range(60), 16, times=times[:60], num_workers=2)
    assert [fingerprint(b) for b in loader] == [
        fingerprint(links(ids, times=times[ids])) for ids in torch.arange(60).split(16)
    ]
    later = links([8, 3, 8, 50], times=times[[8, 3, 8, 50]] + 1)
    found, before = (b.seeds[b.seed_index][:, 2:] for b in (later, batch))
    assert not found.equal(before)  # another time is another batch: other negatives


def test_floats_as_times_keep_all_their_digits():
    graph = Graph.from_edges(
        [0, 1], [1, 0], edata={"time": torch.tensor([0.1, 0.3], dtype=torch.float64)}
    )
    batch = LinkSampler(TemporalNeighborSampler(graph, [1], strict=True), num_negatives=0)(
        [0], times=[0.1]
    )
    assert batch.flow_sizes == (0,)  # 0.1 as float32 is later than 0.1
