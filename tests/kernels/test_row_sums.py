"""Sums of rows against float64 loops: rows in any order, words of half precision, and degrees
around a block.
"""

import itertools

import numpy as np
import pytest
import torch

from nodeflow import _kernels as kernels

DEGREES = [0, 1, 31, 32, 33, 64, 65, 0, 100]
WORDS = {torch.float32: torch.float32, torch.bfloat16: torch.uint16, torch.float16: torch.int16}


def read_only(array):
    return np.frombuffer(array.tobytes(), array.dtype)


def edges(seed=0):
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(DEGREES)])
    return indptr, rng.integers(0, 50, indptr[-1]), rng.standard_normal(indptr[-1])


def expected(indptr, indices, weight, rows, x, mean):
    out = np.zeros((len(rows), x.shape[1]))
    for i, v in enumerate(rows):
        for e in range(indptr[v], indptr[v + 1]):
            out[i] += (1 if weight is None else weight[e]) * x[indices[e]]
        out[i] /= max(indptr[v + 1] - indptr[v], 1) if mean else 1
    return out


def sums(indptr, indices, rows, x, stride, width, weight=None, mean=False, cuts=None):
    cuts = [0, len(indptr) - 1 if rows is None else len(rows)] if cuts is None else cuts
    out = np.full(cuts[-1] * width, np.nan, np.float32)
    for first, last in itertools.pairwise(cuts):
        kernels.row_sums.sum_rows(
            indptr,
            indices,
            None,
            rows,
            x,
            stride,
            weight,
            1,
            width,
            mean,
            False,
            False,
            out,
            first,
            last,
        )
    return out


@pytest.mark.parametrize("width", [3, 8, 47, 64, 100])
@pytest.mark.parametrize(
    ("dtype", "listed"), [(torch.float32, False), *((dtype, True) for dtype in WORDS)], ids=str
)
def test_sums_of_rows_in_any_order_and_precision(dtype, width, listed):
    indptr, indices, weight = edges()
    weight = weight.astype(np.float32)
    rows = np.arange(len(DEGREES))
    # read-only arrays and ids of 4 bytes, as of a graph: nothing is compiled for this test only
    if listed:
        indptr, indices, weight, rows = map(
            read_only, (indptr, indices.astype(np.int32), weight, np.array([8, 3, 3, 0, 6, 5, 2]))
        )
    h = torch.randn(50, width + 2, generator=torch.Generator().manual_seed(1)).to(dtype)
    x = h.view(WORDS[dtype]).numpy().reshape(-1)
    for w, mean in ((None, False), (weight, False), (None, not listed)):
        summed = sums(indptr, indices, rows if listed else None, x, width + 2, width, w, mean)
        wanted = expected(indptr, indices, w, rows, h[:, :width].double().numpy(), mean)
        np.testing.assert_allclose(summed.reshape(-1, width), wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("width", [5, 16, 70])
def test_ranges_of_rows_change_no_bit(width):
    indptr, indices, _ = edges()
    x = np.random.default_rng(3).standard_normal(50 * width).astype(np.float32)
    whole, parts = (
        sums(indptr, indices, None, x, width, width, cuts=cuts)
        for cuts in ([0, 9], [0, 1, 4, 5, 9])
    )
    assert np.array_equal(whole, parts)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_half_precision_number_is_read_exactly(dtype):
    """All 65,536 patterns: zeros of both signs, denormal numbers, infinities and NaN."""
    patterns = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    structure = (
        read_only(np.array(ids, kind))
        for ids, kind in (([0, 1], np.int64), ([0], np.int32), ([0], np.int64))
    )
    out = torch.from_numpy(sums(*structure, patterns.view(WORDS[dtype]).numpy(), 65536, 65536))
    torch.testing.assert_close(out, patterns.view(dtype).float(), rtol=0, atol=0, equal_nan=True)
