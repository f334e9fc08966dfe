"""Primitives of draws in tensors: each gives what its compiled loop gives, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, strategies as st
from numba import njit

from nodeflow import _kernels as kernels
from nodeflow._core.edges import forms, node_rows, numbering as compiled
from nodeflow._core.in_torch import bits, labor, numbering as in_tensors, ragged
from nodeflow.sampling._labor_draws import key_of

WORDS = st.integers(0, 2**64 - 1)
IDS = st.lists(
    st.integers(0, 2**63 - 1) | st.integers(2**31 - 3, 2**31 + 3), min_size=1, max_size=20
)
COUNTS = st.lists(st.integers(0, 6), max_size=12)


@given(WORDS, IDS, st.integers(0, 5))
def test_bits(key, ids, draw):
    expected = np.empty(len(ids), np.uint64)
    kernels.rng.fill_bits(np.uint64(key), np.array(ids), draw, expected)
    state = bits.stream(key, torch.tensor(ids)) + bits.signed(
        (draw + 1) * int(kernels.rng.GOLDEN) % 2**64
    )
    assert bits.mix(state).tolist() == expected.view(np.int64).tolist()


@pytest.fixture(scope="module")
def in_turn() -> Any:
    """The compiled draws of one row after another, in which a number that is drawn again delays
    those that follow.
    """
    step = kernels.rng.bounded
    begin = kernels.rng.stream

    @njit
    def loop(key, ident, bounds, counts, out):
        w = 0
        for i in range(len(counts)):
            state = begin(key, ident[i])
            for _ in range(counts[i]):
                number, state = step(state, np.uint64(bounds[w]))
                out[w] = np.int64(number)
                w += 1

    return loop


OFTEN = 3 * 2**30  # a quarter of the numbers are drawn again
BOUNDS = (
    st.integers(1, 70_000)
    | st.integers(OFTEN, OFTEN + 9)
    | st.integers(2**32 - 3, 2**32 + 3)
    | st.integers(1, 2**62)
)


@given(WORDS, COUNTS, st.data())
@example(3, [40, 0, 40], None)
def test_bounded_integers(in_turn, key, counts, data):
    size = sum(counts)
    bounds = (
        [OFTEN] * size
        if data is None
        else data.draw(st.lists(BOUNDS, min_size=size, max_size=size))
    )
    ident = np.arange(len(counts)) * 7 + 2**31
    expected = np.empty(size, np.int64)
    in_turn(np.uint64(key), ident, np.array(bounds, np.int64), np.array(counts, np.int64), expected)
    row, nth = ragged.places(ragged.ends_of(torch.tensor(counts, dtype=torch.int64)), size)
    start = bits.stream(key, torch.from_numpy(ident))
    limits = torch.tensor(bounds, dtype=torch.int64)
    # what is known of the bounds does not change the numbers
    for most in {max(bounds, default=1), 2**62}:
        for read in (None, torch.tensor(size + 2**40)):
            numbers, also = bits.bounded(start, row, nth, limits, most, read)
            assert numbers.tolist() == expected.tolist()
            assert also == (0 if read is None else size + 2**40)


@given(COUNTS)
def test_places(counts):
    indptr = ragged.ends_of(torch.tensor(counts, dtype=torch.int64))
    assert indptr.tolist() == [0, *np.cumsum(counts).tolist()]
    row, nth = ragged.places(indptr, sum(counts))
    assert row.tolist() == np.repeat(np.arange(len(counts)), counts).tolist()
    assert nth.tolist() == [j for count in counts for j in range(count)]


@given(COUNTS, st.sampled_from([6, 33]), st.data())
def test_repeated(counts, most, data):
    values = data.draw(st.lists(st.integers(0, 4), min_size=sum(counts), max_size=sum(counts)))
    row, _ = ragged.places(ragged.ends_of(torch.tensor(counts, dtype=torch.int64)), sum(counts))
    found = ragged.repeated(torch.tensor(values, dtype=torch.int64), row, most, 5)
    first = np.concatenate([[0], np.cumsum(counts)])
    expected = [
        v in values[first[r] : e] for e, (v, r) in enumerate(zip(values, row.tolist(), strict=True))
    ]
    assert found.tolist() == expected


@given(
    st.lists(
        st.lists(st.integers(0, 9) | st.integers(2**31 - 9, 2**31 + 2), max_size=20), max_size=4
    )
)
def test_numbers_in_order_of_first_appearance(parts):
    ids = np.array([i for part in parts for i in part], np.int64)
    nodes, local = compiled.distinct_in_order(ids)
    for num_ids in (2**40, *([2**31] if max(ids, default=0) < 2**31 else [])):
        with in_tensors.TensorNumbering(num_ids, torch.device("cpu")) as numbering:
            numbers = [numbering.extend(torch.tensor(part, dtype=torch.int64)) for part in parts]
        assert torch.cat([torch.arange(0), *numbers]).tolist() == local.tolist()
        assert numbering.nodes.tolist() == nodes.tolist()


def as_of_a_graph(*arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """The arrays read-only, as a graph has its own: loops are compiled again for others."""
    views = [array.view() for array in arrays]
    for view in views:
        view.setflags(write=False)
    return views


COUNT = st.just(-1) | st.integers(1, 70)  # all edges, or so many


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sets(st.integers(0, 3))), min_size=1, max_size=5),
    st.data(),
)
def test_rows_of_nodes(ranges, data):
    rows = node_rows.NodeRows(
        np.cumsum([size for size, _ in ranges]), [sorted(kinds) for _, kinds in ranges]
    )
    nodes = data.draw(
        st.lists(st.integers(0, rows.num_nodes - 1), max_size=9) if rows.num_nodes else st.just([])
    )
    found = rows.of(torch.tensor(nodes, dtype=torch.int64), forms.InTorch(torch.device("cpu")))  # type: ignore[arg-type]
    for values, wanted in zip(found, rows.of(np.array(nodes, np.int64)), strict=True):
        assert values.tolist() == wanted.tolist()


@pytest.mark.parametrize("narrow", [False, True])
@given(st.tuples(WORDS, WORDS, WORDS), st.sampled_from([0, 1, 2**31, 2**32 - 1]), IDS)
def test_numbers_of_sources(narrow, keys, early, ids):
    array = np.array([i % 2**31 for i in ids], np.int32) if narrow else np.array(ids)
    expected = np.empty(len(ids), np.uint32)
    kernels.labor.hash_block(array, np.array(keys, np.uint64), np.uint32(early), expected)
    found = labor.hashed(torch.from_numpy(array), [*map(key_of, keys)], early)
    assert (found.long() + 2**31).tolist() == expected.tolist()
