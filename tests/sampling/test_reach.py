"""Numbers by relation or node type that draw nothing for the types that seeds reach."""

from __future__ import annotations

from typing import Any

import pytest
from _support.views import viewed

from nodeflow import (
    BernoulliSampler,
    FastGCNSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LayerSampler,
    LinkSampler,
    NeighborSampler,
    NodeFlowLoader,
)


@pytest.mark.parametrize("make", [NeighborSampler, LaborSampler, BernoulliSampler])
def test_relations_that_no_reached_type_can_draw(make):
    edges: Any = {
        ("author", "writes", "paper"): ([0, 1], [1, 0]),
        ("paper", "at", "venue"): ([0, 1], [0, 0]),
        ("paper", "cites", "paper"): ([0], [1]),
    }
    graph = Graph.typed({"author": 2, "paper": 2, "venue": 1}, edges)
    message = (
        r"fanouts\[0\] draws nothing: it has 'author writes paper', but its nodes are of type "
        r"venue; relations that "
        r"direction='in' follows from these: 'paper at venue'"
    )
    for wrong in ([{"writes": 5}], [{"writes": 5, "cites": 0}, {"writes": 5}]):
        sampler = make(graph, wrong)
        with pytest.raises(ValueError, match="draws nothing"):
            sampler([4])
        with pytest.raises(ValueError, match="draws nothing"):
            NodeFlowLoader(sampler, [4])
        # some of the seeds can draw, and their batches may lack these
        assert [
            batch.seeds.tolist() for batch in NodeFlowLoader(sampler, [2, 4], batch_size=1)
        ] == [[2], [4]]
        assert sampler([4, 2]).flow_sizes[-1] == 1
        assert sampler([]).flow_sizes[-1] == 0
    with pytest.raises(ValueError, match=message):
        make(graph, [{"writes": 5}])([4])
    right: list[Any] = [
        [{"writes": 5}, {"at": 5}], [{"at": 5}, {"at": 5}], [5, {"at": 5}], [{}, {"at": 5}], [5],
        [dict.fromkeys(graph.schema.relations, 5)], [{"writes": 5, "at": 5}],
    ]  # fmt: skip
    for fanouts in right:
        assert make(graph, fanouts)([4]).flow_sizes[-1] > 0 or fanouts == [{}]
    # without the destinations a layer has the sources alone
    apart = make(graph, [{"at": 5}, {"at": 5}], include_dst=False)
    with pytest.raises(
        ValueError,
        match=r"fanouts\[0\] .* type paper; .* 'author writes paper', 'paper cites paper'",
    ):
        apart([4])
    with pytest.raises(
        ValueError,
        match=r"'author writes paper', but its nodes are of type paper; relations that direction='out'",
    ):
        viewed(make, graph, [{"writes": 5}], direction="out")([2])
    assert viewed(make, graph, [{"writes": 5}], direction="both")([2]).flow_sizes == (1,)
    assert make(Graph.typed({"a": 2}, {}), [{}])([0]).flow_sizes == (0,)
    with pytest.raises(IndexError, match="seeds"):
        NodeFlowLoader(make(graph, [{"writes": 5}]), [4, 9])
    links = LinkSampler(
        make(graph, [{"writes": 5}]),
        pairs={"at": [[0, 0]], ("author", "writes", "paper"): [[0, 0]]},
    )
    assert links([0]).flow_sizes[-1] > 0
    with pytest.raises(ValueError, match=r"rates\[0\] draws nothing"):
        BernoulliSampler(graph, rates=[{"writes": 0.5}])([0])


@pytest.mark.parametrize("make", [LayerSampler, LadiesSampler, FastGCNSampler])
def test_sizes_of_types_that_no_reached_type_can_draw(make):
    edges: Any = {
        ("author", "writes", "paper"): ([0, 1], [1, 0]),
        ("paper", "at", "venue"): ([0, 1], [0, 0]),
    }
    graph = Graph.typed({"author": 2, "paper": 2, "venue": 1}, edges)
    message = (
        r"layer_sizes\[1\] draws nothing: it has 'author', but its nodes are of type venue; "
        r".*'paper at venue'"
    )
    with pytest.raises(ValueError, match=message):
        make(graph, [3, {"author": 3}])([4])
    with pytest.raises(
        ValueError,
        match=r"\[0\] draws nothing: it has 'venue', but its nodes are of type venue, paper",
    ):
        NodeFlowLoader(make(graph, [{"venue": 3}, {"paper": 3}]), [4])
    for sizes in (
        [{"author": 3}, {"paper": 3}],
        [{"author": 3, "venue": 1}, 3],
        [3, 3],
        [{}, {"paper": 3}],
    ):
        assert make(graph, sizes)([4]).flow_sizes[-1] > 0
    # either way, but a relation is taken only towards the type that has a number
    assert viewed(make, graph, [{"venue": 2}], direction="both")([2]).flow_sizes[-1] > 0
    with pytest.raises(ValueError, match="draws nothing"):
        viewed(make, graph, [{"venue": 2}], direction="both")([4])
