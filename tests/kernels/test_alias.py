"""Alias tables: what their cells say, in fractions, is what the weights say; and they are those of
plain Python.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from _support.weighted_reference import Table
from hypothesis import example, given, strategies as st

from nodeflow._kernels.draw.alias import CLASSES, MOST, SQUARES, TOTAL, build_tables

Cells = list[tuple[int, int, int, int]]


def built(lists: list[np.ndarray]) -> tuple[list[Cells], np.ndarray]:
    """Per list its cells (part, class of the own weight, class of the alias, alias), and the sums
    of all lists.
    """
    indptr = np.concatenate([[0], np.cumsum([len(w) for w in lists])]).astype(np.int64)
    table = np.zeros(indptr[-1], np.uint64)
    sums = np.zeros((len(lists), 3))
    build_tables(indptr, np.concatenate(lists), table, sums)
    found = []
    for r, w in enumerate(lists):
        bits = (len(w) - 1).bit_length() if len(w) else 0
        cells = []
        for entry in table[indptr[r] : indptr[r + 1]].tolist():
            upper = entry >> bits
            alias = entry & ((1 << bits) - 1)
            cells.append((upper >> 16, upper >> 8 & 255, upper & 255, alias))
        found.append(cells)
    return found, sums


def check(weights: np.ndarray, cells: Cells) -> None:
    values = weights.tolist()
    expected = Table(values)
    exact = [Fraction(w) for w in values]
    whole = sum(exact)
    assert [(part, alias) for part, _, _, alias in cells] == expected.cells
    chance = expected.probability()
    assert sum(chance) == 1
    bound = Fraction(1, 2**45) + Fraction(len(values), 2**52)  # units, and float64 sums
    for w, p in zip(exact, chance, strict=True):
        assert abs(p - w / whole) <= bound
        assert p == 0 or w > 0  # no rounding gives an edge of weight 0 a chance
    most = max(exact)
    for i, (_, own, other, alias) in enumerate(cells):
        for kind, place in ((own, i), (other, alias)):
            assert 0 <= kind <= 255
            assert kind * most <= exact[place] * CLASSES <= (kind + Fraction("1.02")) * most


WEIGHTS = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 1e-30, 1e30, 1e-17, 0.1, 1 / 3, 1e16]),
    st.floats(0, 1),
    st.floats(1e-30, 1e30),
)


@example([[2.225073858507203e-309], [5e-324, 0.0, 1e-310]], False)
@given(st.lists(st.lists(WEIGHTS, max_size=40), min_size=1, max_size=4), st.booleans())
def test_cells_say_what_weights_say(lists, narrow):
    arrays = [np.array(w, np.float32 if narrow else np.float64) for w in lists]
    found, sums = built(arrays)
    for weights, cells, row in zip(arrays, found, sums, strict=True):
        if weights.any():
            check(weights, cells)
            exact = weights.astype(np.float64)
            assert row[TOTAL] == pytest.approx(exact.sum())
            assert row[MOST] == exact.max()
            assert row[SQUARES] == pytest.approx(
                ((exact / exact.sum()) ** 2).sum(), rel=1e-9, abs=1e-200
            )
        else:
            assert row.tolist() == [0, 0, 0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 255, 256, 257])
def test_equal_weights_fill_their_own_cells(size):
    for value in (1.0, 0.1, 1e280, 1e-280, 5e-324):
        (cells,), _ = built([np.full(size, value)])
        check(np.full(size, value), cells)
        assert Table([value] * size).probability() == pytest.approx([1 / size] * size, rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["heavy", "uniform", "one large", "half zero", "sorted"])
def test_a_hub(kind):
    rng = np.random.default_rng(0)
    size = 70_000
    weights = {
        "uniform": rng.random(size),
        "heavy": rng.pareto(1.1, size),
        "one large": np.where(np.arange(size) == 5, 1e6, 1e-3),
        "half zero": rng.random(size) * (rng.random(size) < 0.5),
        "sorted": np.sort(rng.exponential(size=size)),
    }[kind]
    (cells,), _ = built([weights])
    check(weights, cells)
