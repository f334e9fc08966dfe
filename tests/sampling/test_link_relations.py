"""LinkSampler with relations: known positives by relation and from outside, marks, chunks, chances
of negatives.

False alarms: 1e-6 for every chi-square test (12 here); seeds are fixed, so the outcome never
varies. Power: see ``test_negative.py``: with 20,000 draws from at most 7 nodes a node drawn one
tenth too often is found.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from _support.link_reference import DST, SRC, assert_law, negatives_of
from hypothesis import given, strategies as st

from nodeflow import FullSampler, Graph, LinkSampler, NeighborSampler, TemporalNeighborSampler, nn
from nodeflow.testing import graphs

REL = [0, 1, 0, 2, 0, 0, 2, 1, 1, 0]
GRAPH = Graph.from_edges(SRC, DST, num_nodes=7, edata={"kind": torch.tensor(REL, dtype=torch.int8)})
SAMPLER = NeighborSampler(GRAPH, [1])
EXTRA = [[0, 0, 5], [4, 1, 0], [0, 7, 6]]  # (source, relation, destination)
MANY = 20_000


def known(triples: list[list[int]], end: int, rel: int, side: str) -> set[int]:
    """The nodes that may not take the place of a side beside ``end``."""
    near, far = (0, 2) if side == "destination" else (2, 0)
    return {end} | {t[far] for t in triples if t[near] == end and t[1] == rel}


TRIPLES = [list(t) for t in zip(SRC, REL, DST, strict=True)]


def chances(law: str, side: str, left_out: set[int]) -> np.ndarray:
    degrees = GRAPH.in_degrees() if side == "destination" else GRAPH.out_degrees()
    chance = np.ones(7) if law == "uniform" else degrees.numpy().astype(np.float64) ** 0.75
    chance[list(left_out)] = 0
    return chance / chance.sum()


# ---- which nodes are known


@given(st.data())
def test_no_negative_is_known(data):
    """On graphs with loops and parallel edges, both sides, seeds that are edges or triples; marks
    say the same.
    """
    graph = data.draw(graphs(min_nodes=2, max_nodes=6))
    n = graph.num_nodes
    size = graph.num_edges
    kinds = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    graph = Graph.from_edges(
        *graph.edges(), num_nodes=n, edata={"kind": torch.tensor(kinds, dtype=torch.int64)}
    )
    triple = st.tuples(st.integers(0, n - 1), st.integers(0, 3), st.integers(0, n - 1))
    extra, pairs = (data.draw(st.lists(triple, max_size=5)) for _ in range(2))
    rows = [
        list(t)
        for t in zip(graph.edges()[0].tolist(), kinds, graph.edges()[1].tolist(), strict=True)
    ]
    seeds = pairs if (of_pairs := data.draw(st.booleans())) else rows
    everything = [list(t) for t in extra] if (given_known := data.draw(st.booleans())) else rows
    options = {
        "relation": "kind",
        "corrupt": data.draw(st.sampled_from(["destination", "source", "both"])),
    }
    if given_known:
        options["known"] = np.array(extra, np.int64).reshape(-1, 3)
    if of_pairs:
        options["pairs"] = np.array(pairs, np.int64).reshape(-1, 3)
    sides = ["destination", "source"] if options["corrupt"] == "both" else [options["corrupt"]]
    left = {
        side: [known(everything, t[0 if side == "destination" else 2], t[1], side) for t in seeds]
        for side in sides
    }
    ask = [i for i in range(len(seeds)) if all(len(left[side][i]) < n for side in sides)]
    sampler = NeighborSampler(graph, [1])
    negatives = negatives_of(
        LinkSampler(sampler, num_negatives=6, filter_known=True, **options), ask
    )
    chunk = data.draw(st.none() | st.integers(1, 4))
    marked = LinkSampler(sampler, num_negatives=6, filter_known="mark", chunk=chunk, **options)
    plain = LinkSampler(
        sampler, num_negatives=6, chunk=chunk, **{k: v for k, v in options.items() if k != "known"}
    )
    batch = marked(range(len(seeds)))
    assert torch.equal(
        batch.seeds[batch.seed_index], (again := plain(range(len(seeds)))).seeds[again.seed_index]
    )
    for j, side in enumerate(sides):
        for row, i in zip(negatives[:, j :: len(sides)].tolist(), ask, strict=True):
            assert not left[side][i] & set(row)
    position = 0
    for part in batch.chunks:
        shared = batch.seeds[part.negatives]
        for c, k in np.ndindex(*part.src.shape):
            i = position % len(seeds)
            ends = (
                int(batch.seeds[part.src[c, k]]),
                int(part.relation[c, k]),
                int(batch.seeds[part.dst[c, k]]),
            )
            assert ends == tuple(seeds[i])
            assert part.known[c, k].tolist() == [int(v) in left[part.side][i] for v in shared[c]]
            position += 1
    assert position == len(seeds) * len(sides)


@pytest.mark.parametrize("chunk", [None, 2])
# fewer marks than nodes are searched for, more are looked up
@pytest.mark.parametrize("negatives", [40, 400])
def test_marks_on_a_graph_of_many_nodes(negatives, chunk):
    random = np.random.default_rng(4)
    triples = np.unique(
        np.stack([np.repeat(np.arange(5), 200), *random.integers(0, [[2], [300]], (2, 1000))], 1),
        axis=0,
    )
    graph = Graph.from_edges([0], [1], num_nodes=300, edata={"kind": torch.tensor([0])})
    links = LinkSampler(
        NeighborSampler(graph, [1]), num_negatives=negatives, relation="kind", pairs=triples[::200], known=triples,
        filter_known="mark", chunk=chunk,
    )  # fmt: skip
    batch = links([4, 0, 3, 1, 2])
    marked = 0
    for part in batch.chunks:
        src = batch.seeds[part.src]
        shared = batch.seeds[part.negatives]
        for c, k in np.ndindex(*part.src.shape):
            answers = known(
                triples.tolist(), int(src[c, k]), int(part.relation[c, k]), "destination"
            )
            assert part.known[c, k].tolist() == [int(v) in answers for v in shared[c]]
            marked += int(part.known[c, k].sum())
    assert marked > 20


@pytest.mark.parametrize("filter_known", [False, True])
@pytest.mark.parametrize("law", ["uniform", "degree"])
@pytest.mark.parametrize("side", ["destination", "source"])
def test_the_law_of_negatives_by_relation(side, law, filter_known):
    """Enumerated: the probability of every node, for edge 0 -0-> 3, with triples that are no edges;
    then draws.
    """
    more = {"filter_known": True, "known": TRIPLES + EXTRA} if filter_known else {}
    links = LinkSampler(SAMPLER, relation="kind", negatives=law, corrupt=side, **more)
    left_out = (
        known(TRIPLES + EXTRA, 0 if side == "destination" else 3, 0, side)
        if filter_known
        else set()
    )
    wanted = chances(law, side, left_out)
    batch = links([2] * MANY)
    found = batch.seeds[batch.seed_index][:, 2]
    assert_law(found.numpy(), wanted)
    log_chance = links.log_proposal(batch)[:, 0]
    np.testing.assert_allclose(log_chance.exp(), wanted[found.numpy()], rtol=1e-5)


@pytest.mark.parametrize("law", ["uniform", "degree"])
@pytest.mark.parametrize("side", ["destination", "source"])
def test_the_law_of_shared_negatives_that_none_of_a_chunk_knows(side, law):
    """Seeds 0 -0-> 3 and 5 -0-> 3 in turn share theirs: what is known to either is never drawn."""
    links = LinkSampler(
        SAMPLER,
        relation="kind",
        negatives=law,
        corrupt=side,
        filter_known=True,
        known=TRIPLES + EXTRA,
        chunk=2,
    )
    ends = (0, 5) if side == "destination" else (3, 3)
    wanted = chances(
        law,
        side,
        known(TRIPLES + EXTRA, ends[0], 0, side) | known(TRIPLES + EXTRA, ends[1], 0, side),
    )
    batch = links([2, 4] * MANY)
    found = batch.seeds[batch.seed_index][:, 2]
    assert (found[::2] == found[1::2]).all()
    assert_law(found[::2].numpy(), wanted)
    log_chance = links.log_proposal(batch)[:, 0]
    np.testing.assert_allclose(log_chance.exp(), wanted[found.numpy()], rtol=1e-5)


def test_a_chunk_to_which_every_node_is_known():
    links = LinkSampler(
        SAMPLER, filter_known=True, known=[[0, 1], [0, 2], [0, 3], [5, 4], [5, 6]], chunk=2
    )
    assert links([0, 0, 4]).num_flows == 1
    with pytest.raises(ValueError, match="no negative is left for edge 2, from node 0: every node"):
        links([0, 0, 2, 4])


@pytest.mark.parametrize("side", ["destination", "source"])
def test_known_pairs_without_relations(side):
    pairs = [[0, 5], [0, 6], [4, 3]]
    links = LinkSampler(SAMPLER, filter_known=True, known=pairs, corrupt=side)
    wanted = chances(
        "uniform",
        side,
        known([[u, 0, v] for u, v in pairs], 0 if side == "destination" else 3, 0, side),
    )
    assert_law(negatives_of(links, [2] * MANY), wanted)


def test_without_given_positives_the_filter_is_as_before():
    """The general way and the one for edges alone draw the same negatives."""
    same = [LinkSampler(SAMPLER, num_negatives=5, filter_known=True, corrupt="both", known=k)
            for k in (None, np.stack([SRC, DST], 1))]  # fmt: skip
    assert (negatives_of(same[0], range(10)) == negatives_of(same[1], range(10))).all()
    one = Graph.from_edges(
        SRC, DST, num_nodes=7, edata={"kind": torch.zeros(10, dtype=torch.int64)}
    )
    by_relation = LinkSampler(
        NeighborSampler(one, [1]),
        num_negatives=5,
        filter_known=True,
        corrupt="both",
        relation="kind",
    )
    assert (negatives_of(same[0], range(10)) == negatives_of(by_relation, range(10))).all()


def test_negatives_at_times_are_unknown_by_relation():
    times = torch.tensor([10, 10, 20, 20, 30, 30, 40, 50, 50, 60])
    graph = Graph.from_edges(
        SRC, DST, num_nodes=7, edata={"time": times, "kind": torch.tensor(REL)}
    )
    links = LinkSampler(
        TemporalNeighborSampler(graph, [2]), num_negatives=40, filter_known=True, relation="kind"
    )
    birth = [10, 10, 30, 20, 50, 30, 40]
    exist = {v for v in range(7) if birth[v] <= 40}
    for e, row in enumerate(negatives_of(links, range(10), times=[40] * 10).tolist()):
        assert set(row) == exist - known(TRIPLES, SRC[e], REL[e], "destination")
    with pytest.raises(TypeError, match="log_proposal is not there for negatives at times"):
        links.log_proposal(links([0], times=[60]))
    shared = LinkSampler(
        TemporalNeighborSampler(graph, [2]), num_negatives=3, chunk=4, relation="kind"
    )
    (part,) = shared(range(8), times=times[:8]).chunks
    assert part.src.shape == (8, 1)


# ---- chunks and scores


@pytest.mark.parametrize("corrupt", ["destination", "source", "both"])
@pytest.mark.parametrize(("chunk", "seeds"), [(None, 5), (3, 10), (4, 8), (50, 7), (2, 0)])
def test_scores_of_chunks_are_those_of_pairs(corrupt, chunk, seeds):
    links = LinkSampler(
        FullSampler(GRAPH, 1),
        num_negatives=5,
        relation="kind",
        chunk=chunk,
        corrupt=corrupt,
        filter_known="mark",
    )
    batch = links(torch.arange(seeds))
    torch.manual_seed(0)
    h = torch.randn(batch.layer_sizes[-1], 6, dtype=torch.float64)
    decoder = nn.ComplEx(6, num_relations=3, inverse=True).double()
    with torch.no_grad():
        positive, negative = decoder.score_chunks(h, batch)
    sides = ["destination", "source"] if corrupt == "both" else [corrupt]
    most = 3 if corrupt == "both" else 5
    assert positive.shape == (len(sides) * seeds,)
    assert negative.shape == (len(sides) * seeds, most)
    for s, side in enumerate(sides):
        for b in range(seeds):
            row = batch.seed_index[b].tolist()
            ids = batch.seeds.tolist()
            options = {"side": side}
            torch.testing.assert_close(
                positive[s * seeds + b], decoder(h[row[0]], h[row[1]], REL[b], **options)
            )
            mine = row[2:] if len(sides) == 1 else row[2 + s :: 2]
            for k in range(most):
                score = negative[s * seeds + b, k]
                end = row[0] if side == "destination" else row[1]
                if k >= len(mine) or ids[mine[k]] in known(TRIPLES, ids[end], REL[b], side):
                    assert score == -torch.inf
                    continue
                ends = (h[end], h[mine[k]]) if side == "destination" else (h[mine[k]], h[end])
                torch.testing.assert_close(score, decoder(*ends, REL[b], **options))
    if seeds:
        assert torch.isfinite(
            nn.softmax_loss(positive, negative, log_proposal=links.log_proposal(batch))
        )


def test_chunks_stay_with_a_batch():
    links = LinkSampler(
        SAMPLER, num_negatives=4, relation="kind", chunk=2, corrupt="both", filter_known="mark"
    )
    batch = links([0, 1, 2])
    assert batch.seed_data["known_negatives"].shape == (3, 4)
    for same in (pickle.loads(pickle.dumps(batch)), batch.to("cpu"), batch[:]):
        for ours, theirs in zip(same.chunks, batch.chunks, strict=True):
            assert ours.side == theirs.side
            assert all(torch.equal(a, b) for a, b in zip(ours[1:], theirs[1:], strict=True))
    for other in (SAMPLER([0]), batch[:1], batch.with_seeds(seed_ids=torch.arange(3))):
        with pytest.raises(
            AttributeError, match="has no chunks: only batches of a LinkSampler have links as seeds"
        ):
            other.chunks  # noqa: B018


def test_settings_and_pickles():
    links = LinkSampler(
        SAMPLER, num_negatives=3, filter_known=True, relation="kind", known=EXTRA, pairs=EXTRA
    )
    again = pickle.loads(pickle.dumps(links))
    assert (negatives_of(links, [0, 1, 2]) == negatives_of(again, [0, 1, 2])).all()
    assert links.settings == again.settings
    assert links.settings["known"].startswith("3 rows")
    assert "relation='kind'" in repr(links)
    assert "relation" not in repr(LinkSampler(SAMPLER))
    other = LinkSampler(
        SAMPLER, num_negatives=3, filter_known=True, relation="kind", known=EXTRA[:2], pairs=EXTRA
    )
    assert other.settings != links.settings
