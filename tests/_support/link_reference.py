"""Link batches once more, in plain Python: what ``LinkSampler`` over a ``NeighborSampler`` must
equal.

Negatives are found by listing the nodes that may be drawn and walking through their weights, not by
ranks in a sorted complement; excluded edges by comparing all pairs of ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from _support.sampler_reference import (
    Stream,
    assert_structure,
    chi_square,
    ends_of,
    hash_of,
    key_of,
    key_of_batch,
    sample,
)
from nodeflow import Graph, LinkSampler, NodeFlow
from nodeflow.sampling._negative import degree_weights

SRC = [0, 0, 0, 0, 5, 5, 6, 2, 2, 4]
DST = [1, 1, 3, 0, 3, 2, 3, 4, 5, 6]
"""Ends of a small graph: 0 has edges to 1 (twice), 3 and itself; from node 7 on none; in-degrees
differ.
"""

NEGATIVES = int.from_bytes(b"negative", "big")


def node_weights(graph: Graph, law: str, power: float = 0.75) -> list[int]:
    """The whole numbers in proportion to which nodes are drawn."""
    return (
        degree_weights(graph.in_degrees().numpy(), power).tolist()
        if law == "degree"
        else [1] * graph.num_nodes
    )


def allowed(graph: Graph, u: int) -> list[int]:
    """Nodes that may be a negative of ``u`` with ``filter_known``."""
    known = {b for a, b in ends_of(graph) if a == u}
    return [n for n in range(graph.num_nodes) if n not in known and n != u]


def negatives(
    graph: Graph,
    eid: Sequence[int],
    count: int,
    *,
    law: str = "uniform",
    power: float = 0.75,
    chunk: int | None = None,
    filter_known: bool = False,
    seed: int = 0,
    epoch: int = 0,
    batch_number: int | None = None,
) -> list[list[int]]:
    """The negatives of every seed edge, in the order of the seeds."""
    ends = ends_of(graph)
    weights = node_weights(graph, law, power)
    key = key_of(key_of_batch("link", eid, seed, epoch, batch_number), NEGATIVES)
    found = []
    for b in range(len(eid)):
        rng = Stream(key, b // (chunk or 1))
        among = list(range(graph.num_nodes))
        if filter_known:  # those that share negatives: what is known to none of them
            first = b - b % (chunk or 1)
            shared = [
                set(allowed(graph, ends[other][0])) for other in eid[first : first + (chunk or 1)]
            ]
            among = sorted(set.intersection(*shared))
        row = []
        for _ in range(count):
            number = rng.below(sum(weights[n] for n in among))
            for n in among:
                number -= weights[n]
                if number < 0:
                    row.append(n)
                    break
        found.append(row)
    return found


def excluded(graph: Graph, eid: Sequence[int], how: str | None) -> set[int]:
    """Ids of the edges that a batch must not draw."""
    ends = ends_of(graph)
    if how == "reverse":
        pairs = {frozenset(ends[e]) for e in eid}
        return {e for e, both in enumerate(ends) if frozenset(both) in pairs}
    return set(eid) if how == "self" else set()


def negatives_of(
    links: LinkSampler, seeds: Sequence[int] | np.ndarray, **options: Any
) -> np.ndarray:
    """Parent ids of the negatives of a batch, ``[B, K]``."""
    batch = links(seeds, **options)
    return batch.seeds[batch.seed_index][:, 2:].numpy()


def assert_law(found: np.ndarray, chance: np.ndarray) -> None:
    """Fail unless nodes were drawn in proportion to ``chance``, at a false-alarm rate of 1e-6, and
    none that has 0.
    """
    counts = np.bincount(found.ravel(), minlength=len(chance))
    assert (counts[chance == 0] == 0).all()
    assert chi_square(counts[chance > 0], chance[chance > 0] / chance.sum() * found.size) < 1


def assert_equals_reference(
    batch: NodeFlow,
    graph: Graph,
    fanouts: list[int],
    eid: list[int],
    drawn: list[list[int]],
    *,
    left_out: set[int],
    number: int | None = None,
    **options: Any,
) -> None:
    """Assert that ``batch`` is the NodeFlow of the seed edges ``eid`` with the negatives ``drawn``,
    id by id.
    """
    ends = ends_of(graph)
    rows = [[*ends[e], *row] for e, row in zip(eid, drawn, strict=True)]
    assert batch.seeds[batch.seed_index].tolist() == rows
    # which no node is an end of
    left = [(-1, -1) if e in left_out else both for e, both in enumerate(ends)]
    number = key_of(hash_of(eid)) >> 1 if number is None else number
    nodes = [n for row in rows for n in row]
    assert_structure(batch, *sample(left, fanouts, nodes, batch_number=number, **options))
