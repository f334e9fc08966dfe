"""LinkSampler: negatives that exist at the time of their seed, pairs that are no edges, both sides,
weights.

False alarms: 1e-6 for every chi-square test (about 15 here); seeds are fixed, so the outcome never
varies.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from _support.link_reference import DST, SRC, assert_law, negatives_of

from nodeflow import Graph, LinkSampler, NeighborSampler, NodeFlowLoader, TemporalNeighborSampler

SMALL = Graph.from_edges(
    SRC, DST, num_nodes=9, ndata={"w": torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 8.0])}
)
TIMES = torch.tensor([10, 10, 20, 20, 30, 30, 40, 50, 50, 60])
EVENTS = Graph.from_edges(SRC, DST, num_nodes=9, edata={"time": TIMES})
BIRTH = np.array([10, 10, 30, 20, 50, 30, 40, np.inf, np.inf])  # first edges of the nodes of EVENTS
MANY = 20_000


def known(end: int, side: str) -> np.ndarray:
    """1 for nodes that may take the place of ``side`` beside the other end, 0 for others."""
    near, far = (SRC, DST) if side == "destination" else (DST, SRC)
    return np.array(
        [float(n != end and (end, n) not in set(zip(near, far, strict=True))) for n in range(9)]
    )


def test_no_pairs_have_either_width():
    assert LinkSampler(NeighborSampler(SMALL, [1]), pairs=[])([]).num_flows == 1
    typed = Graph.from_edges([0, 1], [1, 0], edata={"r": torch.tensor([0, 1])})
    links = LinkSampler(NeighborSampler(typed, [1]), pairs=[], relation="r", num_negatives=2)
    assert (links.num_seeds, len(NodeFlowLoader(links, []))) == (0, 0)


# ---- time


@pytest.mark.parametrize("chunk", [None, 3])
def test_negatives_exist_at_the_time_of_their_seed(chunk):
    sampler = TemporalNeighborSampler(EVENTS, [2])
    links = LinkSampler(sampler, num_negatives=5, chunk=chunk)
    seeds = torch.arange(10).repeat(100)[
        torch.randperm(1000, generator=torch.Generator().manual_seed(0))
    ]
    batch = links(seeds, times=TIMES[seeds])
    drawn = batch.seeds[batch.seed_index][:, 2:].numpy()
    assert (BIRTH[drawn] <= TIMES[seeds].numpy()[:, None]).all()
    assert len(np.unique(drawn)) == 7  # all that ever exist


@pytest.mark.parametrize("filter_known", [False, True])
@pytest.mark.parametrize("law", ["uniform", "degree", "weights"])
@pytest.mark.parametrize("corrupt", ["destination", "source"])
def test_the_law_of_negatives_at_a_time(law, filter_known, corrupt):
    weights = np.arange(1.0, 10.0)
    given = torch.from_numpy(weights) if law == "weights" else law
    options = {"negatives": given, "filter_known": filter_known, "corrupt": corrupt}
    links = LinkSampler(TemporalNeighborSampler(EVENTS, [1]), **options)
    degrees = EVENTS.in_degrees() if corrupt == "destination" else EVENTS.out_degrees()
    chance = {"uniform": np.ones(9), "degree": degrees.numpy() ** 0.75, "weights": weights}[law] * (
        BIRTH <= 40
    )
    if filter_known:
        chance = chance * known(5 if corrupt == "destination" else 2, corrupt)
    assert_law(negatives_of(links, [5] * MANY, times=[40] * MANY), chance)  # edge 5 -> 2


def test_births_of_the_users_own():
    births = torch.tensor([0, 5, 10, 15, 20, 25, 30, 35, 40])
    graph = Graph.from_edges(SRC, DST, num_nodes=9, ndata={"birth": births}, edata={"time": TIMES})
    sampler = TemporalNeighborSampler(graph, [1])
    for birth in ("birth", births, births.double()):
        assert_law(
            negatives_of(LinkSampler(sampler, birth=birth), [0] * MANY, times=[15] * MANY),
            np.arange(9) < 4,
        )


# ---- pairs, sides, weights


def test_pairs_that_are_no_edges_with_labels():
    pairs = torch.tensor([[0, 7], [5, 2], [8, 3], [0, 7]])
    labels = torch.tensor([0.0, 1.0, 0.5, 2.0])
    links = LinkSampler(
        NeighborSampler(SMALL, [2]), pairs=pairs, labels=labels, num_negatives=2, exclude="reverse"
    )
    assert links.num_seeds == 4
    for batch in NodeFlowLoader(pickle.loads(pickle.dumps(links)), range(4), 3, shuffle=True):
        index, found = links.pairs_of(batch)
        assert index.shape == (*found.shape, 2) == (len(batch.seed_ids), 3, 2)
        assert torch.equal(batch.seeds[index[:, 0]], pairs[batch.seed_ids])
        assert torch.equal(found[:, 0], labels[batch.seed_ids])
        assert not found[:, 1:].any()
        # edge 5 -> 2 is the only one between the ends of a pair
        assert not (batch.flows[0].parent_eid == 5).any()
    assert repr(links) != repr(
        LinkSampler(NeighborSampler(SMALL, [2]), pairs=pairs + 0, num_negatives=1)
    )


def test_labels_of_pairs_keep_their_digits():
    pairs = torch.tensor([[0, 7], [5, 2], [8, 3]])
    sampler = NeighborSampler(SMALL, [2])
    labels = [1700000001.0, 1700000060.0, 0.5]
    links = LinkSampler(sampler, pairs=pairs, labels=labels, num_negatives=1)
    assert links.pairs_of(links([0, 1, 2]))[1][:, 0].tolist() == labels
    with pytest.raises(ValueError, match="becomes floats, which would round 9007199254740993"):
        LinkSampler(sampler, pairs=pairs, labels=[2**53 + 1, 0.5, 1], num_negatives=1)
    with pytest.raises(
        TypeError,
        match=r"labels must be numbers in their order, got a dict; pass list\(labels.values",
    ):
        LinkSampler(sampler, pairs=pairs, labels={0: 5, 1: 6, 2: 7}, num_negatives=1)


@pytest.mark.parametrize(
    "dtype", ["uint8", "uint16", "uint32", "uint64", ">i8", "float16", "UInt32", "polars"]
)
def test_labels_of_pairs_of_every_type_are_exact(dtype):
    pairs = torch.tensor([[0, 7], [5, 2]])
    sampler = NeighborSampler(SMALL, [2])
    largest = {
        "uint8": 2**8,
        "uint16": 2**16,
        "uint32": 2**32,
        "UInt32": 2**32,
        "uint64": 2**63,
    }.get(dtype, 2**11) - 1
    if dtype == "polars":
        labels = pytest.importorskip("polars").Series([1, largest])
    elif dtype == "UInt32":
        labels = pytest.importorskip("pandas").array([1, largest], dtype=dtype)
    else:
        labels = np.array([1, largest], dtype)
    for given in (
        (labels, torch.from_numpy(labels)) if dtype in ("uint16", "uint32", "uint64") else (labels,)
    ):
        links = LinkSampler(sampler, pairs=pairs, labels=given, num_negatives=1)
        assert links.pairs_of(links([0, 1]))[1].tolist() == [[1, 0], [largest, 0]]
    with pytest.raises(
        ValueError,
        match="labels holds 18446744073709551615, beyond the largest 64-bit signed integer",
    ):
        LinkSampler(
            sampler, pairs=pairs, labels=np.array([1, 2**64 - 1], np.uint64), num_negatives=1
        )


@pytest.mark.parametrize("filter_known", [False, True])
@pytest.mark.parametrize("law", ["uniform", "degree"])
def test_both_sides_take_turns_with_their_laws(law, filter_known):
    options = {"negatives": law, "power": 1.0, "filter_known": filter_known, "num_negatives": 3}
    links = LinkSampler(NeighborSampler(SMALL, [1]), corrupt="both", **options)
    batch = links([5] * MANY)
    pairs = batch.seeds[links.pairs_of(batch)[0]].numpy()  # of 5 -> 2
    for column, side in ((1, "destination"), (2, "source"), (3, "destination")):
        end, drawn = (0, 1) if side == "destination" else (1, 0)
        assert (pairs[:, column, end] == (5, 2)[end]).all()
        degrees = SMALL.in_degrees() if side == "destination" else SMALL.out_degrees()
        chance = degrees.numpy().astype(float) if law == "degree" else np.ones(9)
        assert_law(
            pairs[:, column, drawn], chance * (known((5, 2)[end], side) if filter_known else 1)
        )
    assert abs(np.corrcoef(pairs[:, 1, 1], pairs[:, 2, 0])[0, 1]) < 5 / np.sqrt(MANY)
    source = LinkSampler(NeighborSampler(SMALL, [1]), corrupt="source", num_negatives=2)
    index, labels = source.pairs_of(source([5, 1]))
    assert torch.equal(index[:, 1:, 1], index[:, :1, 1].expand(2, 2))
    assert labels.tolist() == [[1, 0, 0]] * 2


@pytest.mark.parametrize("filter_known", [False, True])
def test_weights_of_the_users_own(filter_known):
    sampler = NeighborSampler(SMALL, [1])
    chance = np.arange(9.0) * (known(5, "destination") if filter_known else 1)
    column = LinkSampler(sampler, negatives="w", filter_known=filter_known)
    given = LinkSampler(sampler, negatives=SMALL.ndata["w"] * 1e-3, filter_known=filter_known)
    found = negatives_of(column, [5] * MANY)
    assert_law(found, chance)
    assert_law(negatives_of(given, [5] * MANY), chance)
