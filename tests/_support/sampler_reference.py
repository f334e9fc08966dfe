"""The sampler once more, in plain Python integers, written from the published algorithms: what the
kernels must equal.

Also what several test files share: a fingerprint of a NodeFlow, and the chi-square critical value
they all use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.stats
import torch

from _support.graphs import ends_of as ends_of, random_graph as random_graph, star as star
from nodeflow import Graph, NodeFlow

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def key_of(*words: int | str) -> int:
    """The key made of words; a name is one whose bytes are those of an integer."""
    key = int.from_bytes(b"nodeflow", "big")
    for word in words:
        number = int.from_bytes(word.encode(), "big") if isinstance(word, str) else word
        size, step = (number, GOLDEN) if number >= 0 else (-1 - number, 0xD1342543DE82EF95)
        for k in range(max(1, -(-size.bit_length() // 64))):
            constant = step if k == 0 else 0xAF251AF3B0F025B5
            key = mix(((key + constant) & MASK) ^ mix(size // 2 ** (64 * k) & MASK))
    return key


def stream(key: int, ident: int) -> int:
    return mix(key ^ mix((ident * GOLDEN + GOLDEN) & MASK))


def bits(key: int, ident: int, draw: int = 0) -> int:
    return mix((stream(key, ident) + (draw + 1) * GOLDEN) & MASK)


def hash_of(ids: Sequence[int]) -> int:
    total = 0
    for place, ident in enumerate(ids):
        total += bits(2, bits(key_of(len(ids)), ident) ^ bits(key_of(1), place))
    return total & MASK


def key_of_batch(
    name: str | None,
    seeds: Sequence[int],
    seed: int = 0,
    epoch: int = 0,
    batch_number: int | None = None,
) -> int:
    """The key of a batch of the samplers called ``name``; None: those of neighbours."""
    which = (0, hash_of(seeds)) if batch_number is None else (1, batch_number)
    return key_of(*(() if name is None else (name,)), seed, epoch, *which)


class Stream:
    """Bounded integers of one destination, by Lemire's algorithm with exact integers."""

    def __init__(self, key: int, ident: int) -> None:
        self.state = stream(key, ident)

    def word(self) -> int:
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state)

    def below(self, bound: int) -> int:
        if bound > 2**32 - 1:
            width = (bound - 1).bit_length()
            while (number := self.word() & (2**width - 1)) >= bound:
                pass
            return number
        # accepted words are those whose low half is not among the 2**32 % bound surplus ones
        while (product := (self.word() >> 32) * bound) % 2**32 < 2**32 % bound:
            pass
        return product >> 32


def draw(rows: Sequence[int], count: int, replace: bool, key: int, ident: int) -> list[int]:
    """Rows drawn for one destination from its list of edges; -1 and short lists keep all."""
    rng = Stream(key, ident)
    degree = len(rows)
    if count < 0 or (degree <= count and not replace) or degree == 0:
        return list(rows)
    if replace:
        return [rows[rng.below(degree)] for _ in range(count)]
    picked: list[int] = []
    for last in range(degree - count, degree):  # Bentley and Floyd 1987
        t = rng.below(last + 1)
        picked.append(last if t in picked else t)
    return [rows[p] for p in picked]


def rows_drawn(
    graph: Graph,
    ids: Sequence[int],
    draw_row: Callable[[list[int], int, int], list[int]],
    name: str | None = None,
    direction: str = "in",
    **call: int,
) -> list[list[int]]:
    """The edges that distinct seeds draw through the only flow: ``draw_row`` of their edges, the
    key and the node.
    """
    key = key_of(key_of_batch(name, ids, **call), 0)
    end = 1 if direction == "in" else 0
    ends = ends_of(graph)
    return [draw_row([e for e, both in enumerate(ends) if both[end] == v], key, v) for v in ids]


def layered(
    seeds: Sequence[Any],
    num_flows: int,
    draw_rows: Callable[[int, list[Any]], list[list[Any]]],
    source: Callable[[Any, Any], Any],
    include_dst: bool = True,
    reuse: bool = False,
) -> tuple[list[list[Any]], list[list[list[Any]]]]:
    """Return the layers of nodes and, per flow, what every destination drew.

    ``draw_rows`` of a flow and its destinations gives a list of draws for each; ``source`` of a
    draw and its destination is the node that it leads to.
    """
    layers = [list(dict.fromkeys(seeds))]
    flows: list[list[list[Any]]] = []
    rows: dict[Any, list[Any]] = {}
    for flow in reversed(range(num_flows)):
        dst = layers[0]
        new = [v for v in dst if not (reuse and v in rows)]
        rows |= zip(new, draw_rows(flow, new), strict=True)
        reached = [source(one, v) for v in dst for one in rows[v]]
        flows.insert(0, [rows[v] for v in dst])
        layers.insert(
            0, list(dict.fromkeys([*dst, *reached])) if include_dst else sorted(set(reached))
        )
    return layers, flows


def sample(
    edges: Sequence[tuple[int, int]],
    fanouts: Sequence[int],
    seeds: Sequence[int],
    *,
    replace: bool = False,
    direction: str = "in",
    seed: int = 0,
    epoch: int = 0,
    batch_number: int | None = None,
    **options: bool,
) -> tuple[list[list[int]], list[list[list[int]]]]:
    """Return the layers (parent ids) and, per flow and destination, the edge ids drawn."""
    near, end = (0, 1) if direction == "in" else (1, 0)
    root = key_of_batch(None, seeds, seed, epoch, batch_number)

    def draw_rows(flow: int, dst: list[int]) -> list[list[int]]:
        rows = ([e for e, ends in enumerate(edges) if ends[end] == v] for v in dst)
        return [
            draw(row, fanouts[flow], replace, key_of(root, flow), v)
            for row, v in zip(rows, dst, strict=True)
        ]

    return layered(seeds, len(fanouts), draw_rows, lambda e, _: edges[e][near], **options)


def fingerprint(batch: NodeFlow) -> str:
    """SHA-256 of all that a NodeFlow is made of: ids, edges, weights, seed index."""
    digest = hashlib.sha256()
    tensors = [batch.seed_index, *(layer.parent_nid for layer in batch.layers)]
    for flow in batch.flows:
        tensors += [flow.indptr, flow.indices, flow.parent_eid, flow.weight]
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def chi_square(observed: np.ndarray, expected: np.ndarray | float | None = None) -> float:
    """The chi-square statistic divided by its critical value at a false-alarm rate of 1e-6; below 1
    passes.
    """
    observed = np.asarray(observed, np.float64).ravel()
    if expected is None:
        expected = observed.sum() / observed.size
    statistic = float((np.square(observed - expected) / expected).sum())
    return statistic / float(scipy.stats.chi2.isf(1e-6, observed.size - 1))


def picked_positions(batch: NodeFlow, flow: int = -1) -> list[list[int]]:
    """Parent edge ids of every destination of a flow."""
    one = batch.flows[flow]
    return [part.tolist() for part in torch.split(one.parent_eid, one.in_degrees.tolist())]


def assert_structure(
    batch: NodeFlow, layers: list[list[int]], flows: list[list[list[int]]]
) -> None:
    """Fail unless a valid batch has these parent ids, and these edge ids per flow and
    destination.
    """
    assert [layer.parent_nid.tolist() for layer in batch.layers] == layers
    assert [picked_positions(batch, i) for i in range(batch.num_flows)] == flows
    batch.validate()


def assert_same_edges(one: NodeFlow, other: NodeFlow, ids: torch.Tensor) -> None:
    """Fail unless two batches are the same; edge e of the other graph is ``ids[e]`` in the first."""
    one.validate()
    for layer, wanted in zip(one.layers, other.layers, strict=True):
        assert layer.parent_nid.equal(wanted.parent_nid)
        assert layer.data.keys() == wanted.data.keys()
        assert all(layer.data[name].equal(wanted.data[name]) for name in layer.data)
    for flow, wanted in zip(one.flows, other.flows, strict=True):
        eid = wanted.parent_eid
        assert flow.parent_eid.equal(torch.where(eid < 0, eid, ids[eid]))
        assert flow.indptr.equal(wanted.indptr)
        assert flow.indices.equal(wanted.indices)
        assert flow.weight.equal(wanted.weight)


def assert_equals_reference(
    batch: NodeFlow, graph: Graph, fanouts: list[int], seeds: list[int], /, **options
) -> None:
    assert_structure(batch, *sample(ends_of(graph), fanouts, seeds, **options))
    assert batch.seeds[batch.seed_index].tolist() == seeds
