"""Gathers, softmax, buckets and the sparse linear map."""

import math

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.effort import examples
from _support.graphs import sparse_column
from _support.ops_reference import REDUCTIONS, Edges, reduced, some_edges, values
from hypothesis import given, strategies as st

from nodeflow import ops

SHAPES = st.sampled_from([(), (2,), (2, 3)])


@examples(50)
@given(some_edges(), SHAPES, st.sampled_from(REDUCTIONS))
def test_gathers_and_reductions_against_loops(edges, shape, reduce):
    h = values(edges.num_src, shape, 1)
    g = values(edges.num_dst, shape, 2)
    x = values(len(edges.edges), shape, 3)
    src = [s for s, _ in edges.edges]
    dst = [d for _, d in edges.edges]
    assert torch.equal(ops.gather_src(edges.structure, h), h[src])
    assert torch.equal(ops.gather_dst(edges.structure, g), g[dst])
    got = ops.segment_reduce(edges.structure, x, reduce)
    np.testing.assert_allclose(
        got.numpy(), reduced(edges, x.numpy(), reduce), rtol=1e-12, atol=1e-12
    )


@examples(80)
@given(some_edges(), SHAPES, st.sampled_from([1.0, 1e4, -1e4]), st.booleans())
def test_softmax_against_a_loop(edges, shape, shift, masked):
    scores = values(len(edges.edges), shape, 1) + shift
    if masked:
        scores[::2] = -math.inf
    expected = np.zeros(scores.shape)
    for v in range(edges.num_dst):
        mine = edges.into(v)
        if mine:
            top = np.max(scores[mine].numpy(), 0)
            power = np.exp(scores[mine].numpy() - np.where(np.isfinite(top), top, 0))
            total = power.sum(0)
            expected[mine] = power / np.where(total == 0, 1, total)
    got = ops.segment_softmax(edges.structure, scores)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12, atol=1e-300)


def test_softmax_of_short_floats():
    structure = Edges(1, 1, [(0, 0)] * 3000).structure
    out = ops.segment_softmax(structure, torch.zeros(3000, 1, dtype=torch.float16))
    assert out.dtype == torch.float16
    assert torch.equal(out, torch.full((3000, 1), 1 / 3000).half())


@examples(50)
@given(some_edges(), SHAPES)
def test_mailboxes_hold_each_destination_its_messages(edges, shape):
    structure = edges.structure
    x = values(len(edges.edges), shape, 1)
    h = values(edges.num_dst, shape, 2)
    boxes = ops.split_messages(structure, x)
    rows = ops.split_rows(structure, h)
    assert [box.shape[1] for box in boxes] == sorted(
        {len(edges.into(v)) for v in range(edges.num_dst)} - {0}
    )
    for bucket, box, row in zip(structure.buckets(), boxes, rows, strict=True):
        assert torch.equal(row, h[bucket.rows])
        for v, mail in zip(bucket.rows.tolist(), box, strict=True):
            assert torch.equal(mail, x[edges.into(v)])
    if boxes:
        joined = ops.join_rows(structure, [box.sum(1) for box in boxes])
        torch.testing.assert_close(joined, ops.segment_reduce(structure, x, "sum"))


def csr(n=40, k=13):
    generator = np.random.default_rng(0)
    dense = generator.normal(size=(n, k)) * (generator.random((n, k)) < 0.2)
    dense[3] = 0
    return scipy.sparse.csr_array(dense.astype(np.float32))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sparse_linear_is_the_dense_one(bias, dtype):
    matrix = csr()
    x = sparse_column(matrix)
    dense = torch.tensor(matrix.toarray(), dtype=dtype)
    results = []
    for rows in (x, dense):
        layer = torch.nn.Linear(13, 5, bias=bias, dtype=dtype)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view(parameter.shape))
        out = ops.sparse_linear(rows, layer.weight, layer.bias)
        out.square().sum().backward()
        results.append([out.detach(), *(parameter.grad for parameter in layer.parameters())])
    torch.testing.assert_close(*results)


def test_sparse_linear_of_nothing():
    x = sparse_column(scipy.sparse.csr_array((3, 4)))
    weight = torch.ones(2, 4, requires_grad=True)
    ops.sparse_linear(x, weight).sum().backward()
    assert torch.equal(weight.grad, torch.zeros(2, 4))
