"""LinkSampler on graphs of several types: negatives of the right type, relations, and what
``exclude`` leaves out.

False alarms: 1e-6 for every chi-square test (8 here); seeds are fixed, so the outcome never varies.
Power: see ``test_negative.py``: with 20,000 draws from at most 6 nodes a node drawn one tenth too
often is found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.link_reference import assert_law, negatives_of
from hypothesis import given, strategies as st

from nodeflow import (
    FullSampler,
    Graph,
    LinkSampler,
    NeighborSampler,
    NodeFlowLoader,
    TemporalNeighborSampler,
    metrics,
    nn,
)

WRITES = ("author", "writes", "paper")
CITES = ("paper", "cites", "paper")


@st.composite
def typed_graphs(draw: st.DrawFn) -> Graph:
    """Graphs of three types, some without nodes, and up to four relations, one in two with its
    reverse.
    """
    sizes = {name: draw(st.integers(0, 4)) for name in ("a", "b", "c")}
    names = draw(st.lists(st.tuples(*[st.sampled_from("abc")] * 2), max_size=3))
    edges: dict[Any, Any] = {}
    for i, (a, b) in enumerate(names):
        ends = st.tuples(st.integers(0, sizes[a] - 1), st.integers(0, sizes[b] - 1))
        pairs = draw(st.lists(ends, max_size=6)) if sizes[a] and sizes[b] else []
        edges[a, f"r{i}", b] = np.array(pairs, np.int64).reshape(-1, 2).T
        if draw(st.booleans()):
            edges[b, f"rev_r{i}", a] = np.array(pairs, np.int64).reshape(-1, 2).T[::-1]
    return Graph.typed(sizes, edges)


def triples_of(graph: Graph) -> list[tuple[int, int, int]]:
    src, dst = graph.edges()
    kinds = graph.schema.relations_of(np.arange(graph.num_edges))
    return list(zip(src.tolist(), kinds.tolist(), dst.tolist(), strict=True))


def type_of(graph: Graph, node: int) -> str:
    return next(name for name, ids in graph.schema.nodes.items() if node in ids)


@given(st.data())
def test_negatives_have_the_type_of_the_end_that_they_replace_and_are_not_known(
    data,
):
    graph = data.draw(typed_graphs())
    triples = triples_of(graph)
    relations = list(graph.schema.relations)
    several = len(relations) > 1
    corrupt = data.draw(st.sampled_from(["destination", "source", "both"]))
    sides = ["destination", "source"] if corrupt == "both" else [corrupt]
    filtered = data.draw(st.booleans())
    law = data.draw(st.sampled_from(["uniform", "degree"]))
    degrees = {"destination": graph.in_degrees().tolist(), "source": graph.out_degrees().tolist()}

    def possible(triple: tuple[int, int, int], side: str) -> set[int]:
        near, far = (0, 2) if side == "destination" else (2, 0)
        nodes = set(graph.schema.ids(relations[triple[1]][far]))
        if filtered:
            nodes -= {t[far] for t in triples if t[near] == triple[near] and t[1] == triple[1]} | {
                triple[near]
            }
        return {v for v in nodes if law == "uniform" or degrees[side][v]}

    seeds = [e for e, triple in enumerate(triples) if all(possible(triple, side) for side in sides)]
    seeds = data.draw(st.lists(st.sampled_from(seeds), max_size=8)) if seeds else []
    links = LinkSampler(
        NeighborSampler(graph, [1]),
        num_negatives=6,
        corrupt=corrupt,
        filter_known=filtered,
        negatives=law,
    )
    batch = links(seeds)
    rows = batch.seeds[batch.seed_index]
    assert [
        (u, triples[e][1], v) for e, (u, v) in zip(seeds, rows[:, :2].tolist(), strict=True)
    ] == [triples[e] for e in seeds]
    if several:
        assert batch.seed_data["relation"].tolist() == [triples[e][1] for e in seeds]
    assert all((chunk.relation is not None) == several for chunk in batch.chunks)
    for k, side in enumerate(sides):
        for e, row in zip(seeds, rows[:, 2 + k :: len(sides)].tolist(), strict=True):
            assert set(row) <= possible(triples[e], side)
    weight = {
        side: np.array(d, float) ** 0.75 if law == "degree" else np.ones(len(d))
        for side, d in degrees.items()
    }
    chances = links.log_proposal(batch).exp().view(len(sides), len(seeds), 6 // len(sides))
    for k, side in enumerate(sides):
        for i, e in enumerate(seeds):
            among = weight[side][sorted(possible(triples[e], side))].sum()
            wanted = weight[side][rows[i, 2 + k :: len(sides)].numpy()] / among
            assert np.allclose(chances[k, i], wanted, rtol=1e-5)


GRAPH = Graph.typed(
    {"author": 5, "paper": 6, "venue": 2},
    {
        WRITES: ([0, 0, 0, 1, 2, 3, 4], [0, 0, 1, 1, 2, 3, 5]),
        CITES: ([1, 2, 3, 1, 0], [0, 0, 1, 1, 2]),
        ("author", "reviews", "paper"): ([0, 1, 0], [0, 1, 3]),
        ("paper", "at", "venue"): ([0, 1, 2, 3], [0, 0, 1, 1]),
    },
    reverse=True,
)
SAMPLER = NeighborSampler(GRAPH, [3, 3])


@pytest.mark.parametrize("law", ["uniform", "degree"])
@pytest.mark.parametrize(
    "options", [{}, {"filter_known": True}, {"filter_known": True, "chunk": 2}], ids=str
)
def test_negatives_have_the_law_of_the_definition(law, options):
    """Of author 0, who writes papers 0 and 1, and reviews papers 0 and 3."""
    found = negatives_of(
        LinkSampler(SAMPLER, negatives=law, **options), np.zeros(40_000, np.int64), epoch=1
    )
    chance = GRAPH.in_degrees().numpy() ** 0.75 if law == "degree" else np.ones(GRAPH.num_nodes)
    chance[[v for v in range(GRAPH.num_nodes) if type_of(GRAPH, v) != "paper"]] = 0
    if options:
        chance[[5, 6]] = 0
    assert_law(found[:: options.get("chunk", 1)], chance / chance.sum())


@given(st.data())
def test_reverse_leaves_out_the_relation_of_a_seed_and_its_reverse_only(
    data,
):
    graph = data.draw(typed_graphs())
    triples = triples_of(graph)
    schema = graph.schema
    relations = list(schema.relations)
    seeds = data.draw(st.lists(st.integers(0, len(triples) - 1), max_size=4)) if triples else []

    def left_out(u: int, r: int, v: int, other: tuple[int, int, int]) -> bool:
        a, name, b = relations[r]
        back = (b, name[4:] if name.startswith("rev_") else f"rev_{name}", a)
        kinds = {r, relations.index(back)} if back in relations else set(range(len(relations)))
        return {u, v} == {other[0], other[2]} and other[1] in kinds

    gone = {i for i, other in enumerate(triples) for e in seeds if left_out(*triples[e], other)}
    batch = LinkSampler(FullSampler(graph, 1), num_negatives=0, exclude="reverse")(seeds)
    nodes = set(batch.seeds.tolist())
    wanted = {i for i, (_, _, v) in enumerate(triples) if v in nodes} - gone
    assert sorted(batch.flows[0].parent_eid.tolist()) == sorted(wanted)


def test_pairs_and_known_links_by_the_names_of_relations():
    pairs = {
        "writes": torch.tensor([[4, 0], [0, 5]]),
        CITES: [[5, 5]],
        ("venue", "rev_at", "paper"): [[1, 0]],
    }
    links = LinkSampler(
        SAMPLER, pairs=pairs, labels=[1, 0, 1, 1], filter_known=True, known={"writes": [[4, 1]]}
    )
    same = LinkSampler(
        SAMPLER,
        pairs=[[4, 0, 5], [0, 0, 10], [10, 1, 10], [12, 7, 5]],
        filter_known=True,
        known=[[4, 0, 6]],
    )
    batch = links([2, 0, 3, 1])
    assert batch.seeds[batch.seed_index][:, :2].tolist() == [[10, 10], [4, 5], [12, 5], [0, 10]]
    assert batch.seed_data["relation"].tolist() == [1, 0, 7, 0]
    again = same([2, 0, 3, 1])
    assert torch.equal(again.seeds[again.seed_index], batch.seeds[batch.seed_index])
    found = negatives_of(
        LinkSampler(SAMPLER, pairs=pairs, num_negatives=200, filter_known=True, known=pairs), [0, 1]
    )
    assert [sorted(set(row)) for row in found.tolist()] == [[6, 7, 8, 9, 10], [5, 6, 7, 8, 9]]
    # a relation that messages do not go along has no name here, but its negatives have their type
    wide = LinkSampler(SAMPLER, pairs=[[0, 11], [11, 0]], num_negatives=40, exclude="reverse")(
        [0, 1]
    )
    assert [set(row[2:]) for row in wide.seeds[wide.seed_index].tolist()] == [
        {11, 12},
        set(range(5)),
    ]
    assert wide.chunks[0].relation is None
    one = Graph.from_edges([0, 1], [1, 2])
    named, plain = (
        LinkSampler(NeighborSampler(one, [1]), pairs=p) for p in ({"edge": [[0, 2]]}, [[0, 2]])
    )
    assert (named([0]).chunks[0].relation, named.text()) == (None, plain.text())


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("times_of", ["argument", "nodes", "nodes and edges"])
def test_negatives_at_times_exist_have_the_type_and_are_not_known(times_of, chunk):
    birth = torch.tensor([0, 1, 2, 3, 9, 5, 4, 3, 2, 1, 0, 0, 7])
    src, dst = GRAPH.edges()
    ids = GRAPH.schema.ids
    edges = {
        name: (src[list(at)] - ids(name[0]).start, dst[list(at)] - ids(name[2]).start)
        for name, at in GRAPH.schema.relations.items()
    }
    graph = Graph.typed({name: len(nodes) for name, nodes in GRAPH.schema.nodes.items()}, edges)
    # then a node begins to be there at its own time, also if its first edge is earlier
    if times_of != "argument":
        graph.ndata["time"] = birth
    if times_of != "nodes":
        graph.edata["time"] = torch.zeros(graph.num_edges, dtype=torch.int64)
    sampler = TemporalNeighborSampler(graph, [1], time="time")
    birth_given = {"birth": birth} if times_of == "argument" else {}
    links = LinkSampler(
        sampler, num_negatives=60, corrupt="both", filter_known=True, chunk=chunk, **birth_given
    )
    seeds = [0, 0, 8, 8, 22]
    times = [2, 5, 9, 6, 6]
    triples = triples_of(graph)
    batch = links(seeds, times=torch.tensor(times))
    wanted = []
    for e, time in zip(seeds, times, strict=True):
        u, kind, v = triples[e]
        heads = {a for a in ids(type_of(graph, u)) if (a, kind, v) not in triples and a != v}
        tails = {b for b in ids(type_of(graph, v)) if (u, kind, b) not in triples and b != u}
        wanted.append([{n for n in nodes if birth[n] <= time} for nodes in (heads, tails)])
    if chunk == 2:
        shared = [[a & b for a, b in zip(*wanted[i : i + 2], strict=True)] for i in (0, 2)]
        wanted = [shared[0], shared[0], shared[1], shared[1], wanted[4]]
    rows = batch.seeds[batch.seed_index].tolist()
    assert [row[:2] for row in rows] == [[triples[e][0], triples[e][2]] for e in seeds]
    assert [[set(row[3::2]), set(row[2::2])] for row in rows] == wanted


def test_a_loader_mixes_relations_and_a_decoder_scores_them():
    links = LinkSampler(
        SAMPLER, num_negatives=4, corrupt="both", exclude="reverse", filter_known="mark"
    )
    decoder = nn.DistMult(8, num_relations=len(GRAPH.schema.relations))
    seen = []
    for batch in NodeFlowLoader(links, batch_size=7, shuffle=True):
        h = torch.rand(batch.layer_sizes[-1], 8, generator=torch.Generator().manual_seed(1))
        positive, negative = decoder.score_chunks(h, batch)
        ends = h[batch.seed_index]
        assert torch.allclose(
            positive[: len(ends)], decoder(ends[:, 0], ends[:, 1], batch.seed_data["relation"])
        )
        assert negative.shape == (2 * len(ends), 2)
        seen += batch.seed_ids.tolist()
    assert sorted(seen) == list(range(GRAPH.num_edges))
    writes = NodeFlowLoader(links, GRAPH.relations["writes"].ids, batch_size=3)
    assert [batch.seed_ids.tolist() for batch in writes] == [[0, 1, 2], [3, 4, 5], [6]]
    triples = metrics.triples_of(GRAPH, edges=[0, 7])
    assert triples.tolist() == [[0, 0, 5], [6, 1, 5]]
    assert metrics.triples_of(GRAPH)[[0, 7]].tolist() == triples.tolist()
