"""Link batches of a graph that lies on several ranks: those of the whole graph, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from _support.ranks import HALOS, Parts, ThreadTransport, run_ranks
from _support.sampler_families import EDGES, NODES, fingerprint, graph_of_all
from hypothesis import given, settings, strategies as st

from nodeflow import Graph, LinkSampler, NeighborSampler, TemporalNeighborSampler
from nodeflow.distributed import PeerError
from nodeflow.sampling import Call, StepSeeds
from nodeflow.testing import graphs

Make = Callable[[Graph], LinkSampler]

RNG = np.random.default_rng(3)
WHOLE = graph_of_all()
WHOLE.ndata["pop"] = torch.from_numpy(RNG.random(NODES))
WHOLE.ndata["born"] = torch.from_numpy(RNG.integers(0, 6, NODES))
SRC, DST = (end.numpy() for end in WHOLE.edges())
TRIPLES = np.stack([SRC, WHOLE.edata["type"].numpy(), DST], 1)[::3]
LISTED = RNG.integers(0, NODES, (EDGES, 3)) % np.array([NODES, 3, NODES])
LISTED[::2] = np.stack([SRC, WHOLE.edata["type"].numpy(), DST], 1)[::2]


def near(graph: Graph) -> NeighborSampler:
    return NeighborSampler(graph, [2, 3])


def timed(graph: Graph) -> TemporalNeighborSampler:
    return TemporalNeighborSampler(graph, [2, 3])


INWARD: dict[str, Make] = {
    "uniform": lambda g: LinkSampler(near(g), num_negatives=3),
    "degree": lambda g: LinkSampler(near(g), negatives="degree", chunk=2),
    "weights": lambda g: LinkSampler(near(g), negatives=WHOLE.ndata["pop"], corrupt="source"),
    "weights by name": lambda g: LinkSampler(
        near(g), negatives="pop", corrupt="both", num_negatives=3
    ),
    "none": lambda g: LinkSampler(near(g), num_negatives=0, exclude="self"),
    "reverse": lambda g: LinkSampler(near(g), exclude="reverse"),
    "relation": lambda g: LinkSampler(near(g), relation="type", chunk=2, exclude="reverse"),
    "known": lambda g: LinkSampler(
        near(g), known=TRIPLES[:, ::2], filter_known=True, corrupt="both", num_negatives=4
    ),
    "known triples": lambda g: LinkSampler(
        near(g), known=TRIPLES, relation="type", filter_known=True
    ),
    "known triples, source": lambda g: LinkSampler(
        near(g),
        known=TRIPLES[:40],
        relation="type",
        filter_known=True,
        corrupt="source",
        negatives="pop",
    ),
    "marked": lambda g: LinkSampler(
        near(g),
        known=TRIPLES,
        relation="type",
        filter_known="mark",
        chunk=3,
        num_negatives=9,
        exclude="self",
    ),
    "pairs": lambda g: LinkSampler(
        near(g), pairs=LISTED[:, ::2], labels=np.arange(EDGES) / 2, exclude="reverse"
    ),
    "pairs, known": lambda g: LinkSampler(
        near(g), pairs=LISTED, relation="type", known=TRIPLES, filter_known=True, num_negatives=5
    ),
    "times": lambda g: LinkSampler(timed(g), num_negatives=3, corrupt="both", exclude="reverse"),
    "times, known": lambda g: LinkSampler(
        timed(g), known=TRIPLES, relation="type", filter_known=True, birth="born", num_negatives=3
    ),
    "births": lambda g: LinkSampler(timed(g), birth=np.arange(NODES) % 5, chunk=2),
    "degree of both": lambda g: LinkSampler(
        near(g), num_negatives=3, negatives="degree", corrupt="both"
    ),
}
OUTWARD: dict[str, Make] = {
    "degree of sources": lambda g: LinkSampler(
        NeighborSampler(g.view("out"), [2, 3]),
        negatives="degree",
        corrupt="source",
        exclude="reverse",
    ),
    "both": lambda g: LinkSampler(
        NeighborSampler(g.view("out"), [2, 3]), corrupt="both", relation="type"
    ),
}


def called(links: LinkSampler, call: Call, seeds: list[int]) -> Any:
    if links.takes_times:
        times = [10 + (seed + i) % 4 for i, seed in enumerate(seeds)]
        call = call._replace(times=times)
        if call.step is not None:
            every = np.array([10 + (seed + i) % 4 for i, seed in enumerate(call.step.ids)])
            call = call._replace(times=every[call.step.rows], step=call.step._replace(times=every))
    return links.draw_batch(seeds, call)


def read(links: LinkSampler, batch: Any) -> list[Any]:
    """All that is read of a batch after it was drawn."""
    batch = links.complete(batch)
    parts: list[Any] = [
        batch.seed_index,
        batch.seed_ids,
        *batch.seed_data.values(),
        *links.pairs_of(batch),
    ]
    if not links.takes_times and links.num_negatives > 0:
        parts.append(links.log_proposal(batch))
    for chunk in batch.chunks:
        parts += [chunk.side, chunk.src, chunk.relation, chunk.dst, chunk.negatives, chunk.known]
    return [
        fingerprint(batch),
        *(part.tolist() if isinstance(part, torch.Tensor) else part for part in parts),
    ]


def assert_same_links(make: Make, parts: Parts, calls: list[Call], seeds: list[list[int]]) -> None:
    whole = make(WHOLE)
    expected = [
        read(whole, called(whole, call, some)) for call, some in zip(calls, seeds, strict=True)
    ]

    def drawn(transport: ThreadTransport) -> tuple[LinkSampler, Any]:
        links = make(parts.on(transport))
        return links, called(links, calls[transport.rank], seeds[transport.rank])

    # read by this thread alone, after all ranks have ended: an exchange would raise
    assert [read(*found) for found in run_ranks(parts.num_parts, drawn)] == expected


@st.composite
def some_parts(draw: Any, edges: str) -> Parts:
    size = draw(st.integers(1, 4))
    few = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=12))
    owner = [few[(7 * v) % len(few)] for v in range(NODES)]
    halo = draw(st.sampled_from(HALOS))
    return Parts(WHOLE, owner, size, edges, halo)


@pytest.mark.parametrize("name", [*INWARD, *OUTWARD])
@settings(max_examples=4)
@given(data=st.data())
def test_link_batches_are_those_of_the_whole_graph(name, data):
    parts = data.draw(some_parts("out" if name in OUTWARD else "in"))
    some = st.lists(st.integers(0, EDGES - 1), max_size=7)
    seeds = [data.draw(some) for _ in range(parts.num_parts)]
    calls = [Call(epoch=data.draw(st.integers(0, 3)))] * parts.num_parts
    assert_same_links((INWARD | OUTWARD)[name], parts, calls, seeds)


@pytest.mark.parametrize("name", ["relation", "marked", "times"])
def test_shares_of_a_step(name):
    ids = np.array([4, 4, 7, 100, 499, 4, 31, 8, 9])
    rows = [np.arange(0, 6), np.arange(0), np.arange(6, 9)]
    parts = Parts(WHOLE, [v % 3 for v in range(NODES)], 3)
    calls = [Call(epoch=1, step=StepSeeds(ids, None, some)) for some in rows]
    assert_same_links(INWARD[name], parts, calls, [ids[some].tolist() for some in rows])


THREE = Parts(WHOLE, [v % 3 for v in range(NODES)], 3)


@settings(max_examples=20)
@given(graphs(max_nodes=8, max_edges=30), st.data())
def test_edges_between_nodes(graph, data):
    size = data.draw(st.integers(1, 3))
    owner = [data.draw(st.integers(0, size - 1)) for _ in range(graph.num_nodes)]
    parts = Parts(graph, owner, size, data.draw(st.sampled_from(["in", "out"])))
    nodes = st.lists(
        st.integers(0, max(graph.num_nodes - 1, 0)), max_size=9 if graph.num_nodes else 0
    )
    pairs = [(u, data.draw(nodes)) for u in (data.draw(nodes) for _ in range(size))]
    pairs = [(u[: len(v)], v[: len(u)]) for u, v in pairs]

    def asked(transport: ThreadTransport) -> None:
        u, v = pairs[transport.rank]
        found = parts.on(transport).edge_ids(u, v, return_uv=True)
        for mine, whole in zip(found, graph.edge_ids(u, v, return_uv=True), strict=True):
            assert mine.dtype == torch.int64
            assert torch.equal(mine, whole)

    run_ranks(size, asked)


def test_one_edge_between_nodes():
    def asked(graph: Graph, rank: int) -> None:
        u, v = ([0], [[1]]) if rank else ([0], [1, 2])
        with pytest.raises((ValueError, TypeError, PeerError)):
            graph.edge_ids(u, v)
        missing = next(v for v in range(NODES) if not WHOLE.has_edges([0], [v])[0])
        with pytest.raises(ValueError, match=f"no edge 0 -> {missing} "):
            graph.edge_ids([0], [missing])

    THREE.run(asked)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda g: LinkSampler(near(g), filter_known=True), TypeError, "all edges of the graph, .* "
                                                                       "pass known="),
        (lambda g: LinkSampler(near(g), filter_known="mark", relation="type"), TypeError, "pass known="),
        (lambda g: LinkSampler(near(g), relation="w"), TypeError, "relation: the edge column 'w' "
                                                                  "must hold integers"),
        (
            lambda g: LinkSampler(near(g), num_negatives=1 + g.peers.rank), ValueError,
            "settings of LinkSampler must be the same on all processes, but num_negatives is 1 on "
            "rank 0 and 2",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_on_all_ranks(make, error, words):
    def refused(transport: ThreadTransport) -> None:
        with pytest.raises(error, match=words):
            make(THREE.on(transport))

    run_ranks(3, refused)


def test_a_failure_on_one_rank_reaches_the_others():
    known = [[5, n] for n in range(NODES)]
    seed = int(np.flatnonzero(SRC == 5)[0])
    other = int(np.flatnonzero(SRC != 5)[0])

    def drawn(graph: Graph, rank: int) -> None:
        first = rank == 0
        links = LinkSampler(near(graph), exclude="reverse")
        with pytest.raises(IndexError if first else PeerError, match=r"seeds\[0\] is 500"):
            links([EDGES] if first else [1])
        with pytest.raises(IndexError if first else PeerError, match=r"seeds\[0\]"):
            links([-1] if first else [])
        links = LinkSampler(near(graph), known=known, filter_known=True)
        with pytest.raises(ValueError if first else PeerError, match=r"no negative is left for"):
            links([seed] if first else [other])
        pairs: Any = [[0, 1]] if rank else [[0, NODES]]
        with pytest.raises(IndexError if first else PeerError, match=r"pairs\[:, 1\]"):
            LinkSampler(near(graph), pairs=pairs)
        links([other])  # all ranks go on

    THREE.run(drawn)
