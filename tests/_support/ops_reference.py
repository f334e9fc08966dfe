"""What the tests of the operations compare with: loops in Python over plain numbers, in float64."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import strategies as st

from nodeflow.ops import (
    Structure,
    _autograd as spmm,
    _chunked as generic,
    _compiled as native,
    _products as products,
)

OPS = ["add", "sub", "mul", "div", "dot"]
REDUCTIONS = ["sum", "mean", "max", "min", "prod"]
MESSAGES = [("copy", "u", None), ("copy", "e", None), ("copy", "v", None)]
MESSAGES += [(op, left, right) for op, left, right in itertools.product(OPS, "uve", "uve")]
"""Every message operation: (op, lhs kind, rhs kind)."""


class Edges:
    """Edges (src, dst) in the order of the structure made of them."""

    def __init__(self, num_src, num_dst, edges):
        self.num_src = num_src
        self.num_dst = num_dst
        # stable, as destinations group their edges
        self.edges = sorted(edges, key=lambda edge: edge[1])
        counts = [0] * (num_dst + 1)
        for _, dst in self.edges:
            counts[dst + 1] += 1
        indptr = torch.tensor(list(itertools.accumulate(counts)), dtype=torch.int64)
        self.structure = Structure(
            indptr, torch.tensor([s for s, _ in self.edges], dtype=torch.int64), num_src
        )

    def __repr__(self):
        return f"Edges({self.num_src}, {self.num_dst}, {self.edges})"

    def rows(self, kind):
        return {"u": self.num_src, "v": self.num_dst, "e": len(self.edges)}[kind]

    def of(self, kind, edge):
        """Row of an operand of this kind for edge number ``edge``."""
        src, dst = self.edges[edge]
        return {"u": src, "v": dst, "e": edge}[kind]

    def into(self, v):
        return [e for e, (_, dst) in enumerate(self.edges) if dst == v]


SAMPLES = {
    "mixed": Edges(4, 5, [(0, 0), (1, 0), (1, 0), (2, 2), (3, 3), (0, 3), (3, 3), (3, 3), (2, 4)]),
    "no edges": Edges(3, 2, []),
    "no destinations": Edges(3, 0, []),
    "nothing": Edges(0, 0, []),
    "hub": Edges(3, 2, [(k % 3, 1) for k in range(23)]),
}


@st.composite
def some_edges(draw):
    """Structures with repeated edges, empty rows, no edges, no rows, and now and then a hub."""
    num_src = draw(st.integers(0, 5))
    num_dst = draw(st.integers(0, 5))
    if num_src == 0 or num_dst == 0:
        return Edges(num_src, num_dst, [])
    edge = st.tuples(st.integers(0, num_src - 1), st.integers(0, num_dst - 1))
    edges = draw(st.lists(edge, max_size=14))
    if draw(st.booleans()):
        edges += [(k % num_src, num_dst - 1) for k in range(draw(st.integers(0, 20)))]
    return Edges(num_src, num_dst, edges)


def values(rows, shape=(), seed=0, dtype=torch.float64):
    """Random numbers between 0.5 and 2 in size, of both signs: good divisors, and far from ties."""
    made = np.random.default_rng(seed)
    numbers = made.uniform(0.5, 2, (rows, *shape)) * made.choice([-1.0, 1.0], (rows, *shape))
    return torch.tensor(numbers).to(dtype)


def message_row(op, a, b):
    """One message from numpy rows."""
    if op == "copy":
        return a
    if op == "dot":
        return np.sum(np.atleast_1d(a) * np.atleast_1d(b), -1, keepdims=True)
    return {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op](a, b)


def message_rows(edges, op, left, lhs, right=None, rhs=None):
    """All messages, a numpy array [E, ...] (the shape of an empty one is that of torch's
    broadcast).
    """
    a = lhs.numpy()
    b = None if rhs is None else rhs.numpy()
    rows = [
        message_row(op, a[edges.of(left, e)], None if b is None else b[edges.of(right, e)])
        for e in range(len(edges.edges))
    ]
    if rows:
        return np.stack(rows)
    shape = np.broadcast_shapes(a.shape[1:], () if b is None else b.shape[1:])
    return np.zeros((0, *((*shape[:-1], 1) if op == "dot" else shape)))


def reduced(edges, rows, reduce):
    """The messages reduced per destination, a loop over destinations, by numpy's function of that
    name.
    """
    out = np.full((edges.num_dst, *rows.shape[1:]), 1.0 if reduce == "prod" else 0.0)
    for v in range(edges.num_dst):
        if mine := edges.into(v):
            out[v] = getattr(np, reduce)(rows[mine], axis=0)
    return out


def for_threads(counts, run):
    """What ``run()`` returns with each number of torch's threads."""
    before = torch.get_num_threads()
    results = []
    try:
        for count in counts:
            torch.set_num_threads(count)
            results.append(run())
    finally:
        torch.set_num_threads(before)
    return results


def same_bits(results):
    """Whether all lists of tensors hold the same numbers."""
    return all(
        torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True)
    )


@contextmanager
def pieces_of(elements):
    """Work in pieces of this many elements, so that small examples are cut too."""
    with (
        patch.object(generic, "CHUNK_ELEMENTS", elements),
        patch.object(spmm, "DOT_ELEMENTS", elements),
    ):
        yield


def set_names(monkeypatch, module, **values):
    """Set names of a module of the operations until the test ends."""
    for name, value in values.items():
        monkeypatch.setattr(module, name, value)


def sum_with_torch(monkeypatch):
    """Turn the compiled sums off."""
    set_names(monkeypatch, native, is_native=lambda *tensors: False)


def set_sizes(monkeypatch, **sizes):
    """Set sizes at which the compiled sums change their way, by their names there."""
    set_names(monkeypatch, native, **sizes)


def multiply_in(monkeypatch, dtype):
    """Let rows of bfloat16 be multiplied in ``dtype``, on a processor of any kind."""
    set_names(monkeypatch, products, product_type=lambda *_: dtype)


def set_instructions(monkeypatch, instructions):
    """Let the processor have "tiles", fast "pairs", or neither, and be asked anew."""
    set_names(
        monkeypatch,
        products,
        has_tiles=lambda: instructions == "tiles",
        has_fast_pairs=lambda: instructions == "pairs",
        _multiplies=products._multiplies.__wrapped__,
    )
