"""Values of every message with every reduction, against loops; and that messages are never all
there at once.
"""

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.ops_reference import (
    MESSAGES,
    REDUCTIONS,
    SAMPLES,
    message_rows,
    pieces_of,
    reduced,
    some_edges,
    values,
)
from hypothesis import given, strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nodeflow import ops
from nodeflow.ops import Structure

SHAPES = [
    ((), ()),
    ((), (3,)),
    ((3,), ()),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((1,), (4,)),
    ((2, 2), (2, 2)),
]


def operands(edges, left, right, shapes=((3,), (3,)), dtype=torch.float64):
    lhs = values(edges.rows(left), shapes[0], 1, dtype)
    return lhs, None if right is None else values(edges.rows(right), shapes[1], 2, dtype)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize(("op", "left", "right"), MESSAGES)
def test_every_pair_against_a_loop(op, left, right, reduce):
    for edges in SAMPLES.values():
        lhs, rhs = operands(edges, left, right)
        expected = reduced(edges, message_rows(edges, op, left, lhs, right, rhs), reduce)
        for size in (7, 2**20):
            with pieces_of(size):
                got = ops.message_reduce(edges.structure, op, left, lhs, right, rhs, reduce)
            assert got.dtype == torch.float64
            np.testing.assert_allclose(
                got.numpy(), expected, rtol=1e-12, atol=1e-12, err_msg=repr(edges)
            )


@examples(100)
@given(
    some_edges(),
    st.sampled_from(MESSAGES),
    st.sampled_from(REDUCTIONS),
    st.sampled_from(SHAPES),
    st.sampled_from([1, 5, 40, 2**20]),
)
def test_any_structure_and_shape_against_a_loop(edges, message, reduce, shapes, size):
    op, left, right = message
    lhs, rhs = operands(edges, left, right, shapes)
    rows = message_rows(edges, op, left, lhs, right, rhs)
    if rows.ndim == 1 and op == "dot":
        rows = rows[:, None]  # numpy's shape for no edges; a dot keeps its dimension
    with pieces_of(size):
        got = ops.message_reduce(edges.structure, op, left, lhs, right, rhs, reduce)
        each = ops.message(edges.structure, op, left, lhs, right, rhs)
    np.testing.assert_allclose(each.numpy(), rows, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got.numpy(), reduced(edges, rows, reduce), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
@pytest.mark.parametrize("reduce", ["min", "max", "sum", "mean"])
def test_no_edges_give_zero_with_a_positive_sign(reduce, dtype):
    """By compiled loops (float32, float64), in pieces (float16, int64), of sources and of edges."""
    structure = Structure(torch.tensor([0, 0, 1]), torch.tensor([0]), num_src=1)
    if reduce == "mean" and not dtype.is_floating_point:
        return
    h = torch.ones(1, 3, dtype=dtype)
    for out in (ops.aggregate(structure, h, reduce), ops.segment_reduce(structure, h, reduce)):
        assert out[0].tolist() == [0, 0, 0]
        assert not torch.signbit(out[0]).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_short_floats_add_in_float32(dtype, weighted):
    structure = Structure(torch.tensor([0, 1000]), torch.zeros(1000, dtype=torch.int64), 1)
    h = torch.ones(1, 2, dtype=dtype)
    weight = torch.ones(1000, dtype=dtype) if weighted else None
    out = ops.aggregate(structure, h, "sum", weight)
    assert out.dtype == dtype
    assert out.tolist() == [[1000, 1000]]
    wide = ops.aggregate(structure, h, "sum", torch.ones(1000, 2, dtype=dtype))  # the generic way
    assert wide.dtype == dtype
    assert wide.tolist() == [[1000, 1000]]
    mean = ops.aggregate(structure, 100 * h, "mean", weight)  # its sum is beyond float16
    assert mean.tolist() == [[100, 100]]
    h.requires_grad_()
    ops.aggregate(structure, h, "sum").sum().backward()
    assert h.grad.tolist() == [[1000, 1000]]
    dots = ops.message_reduce(
        structure, "dot", "u", torch.ones(1, 1000, dtype=dtype), "u", h[:, :1], "max"
    )
    assert dots.item() == 1000
    assert dots.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("reduce", ["sum", "max", "min", "prod"])
def test_integers(dtype, reduce):
    edges = SAMPLES["mixed"]
    h = torch.tensor([[3, 0], [2, 1], [5, 1], [1, 4]]).to(dtype)
    expected = reduced(edges, message_rows(edges, "copy", "u", h.long()), reduce)
    got = ops.aggregate(edges.structure, h, reduce)
    assert got.dtype == (torch.int64 if reduce in ("sum", "prod") else dtype)
    assert got.long().tolist() == expected.astype(int).tolist()


def test_integers_are_not_averaged_and_divide_to_floats():
    edges = SAMPLES["mixed"]
    h = torch.arange(8).view(4, 2)
    with pytest.raises(TypeError, match=r"mean needs floating numbers.*int64"):
        ops.aggregate(edges.structure, h, "mean")
    ratio = ops.message_reduce(edges.structure, "div", "u", h, "u", h + 1, "sum")
    assert ratio.dtype == torch.float32
    assert (
        ops.message_reduce(edges.structure, "add", "u", h, "v", values(5, (2,)), "sum").dtype
        == torch.float64
    )


def test_bools_count():
    yes = torch.ones(4, dtype=torch.bool)
    out = ops.message(SAMPLES["mixed"].structure, "add", "u", yes, "u", yes)
    assert (out.dtype, out.tolist()) == (torch.int64, [2] * 9)


def test_large_weighted_integers_stay_exact():
    edges = SAMPLES["hub"]
    h = torch.tensor([[2**52 + 1], [2**53 + 1], [3]])
    got = ops.aggregate(edges.structure, h, "sum")
    assert got.tolist() == [[0], [sum(h[k % 3, 0].item() for k in range(23))]]


def test_sums_may_be_changed_in_place():
    edges = SAMPLES["mixed"]
    for shape in ((), (2,), (2, 3)):
        h = values(4, shape, 8).requires_grad_()
        # maxima are needed again in backward, as with torch.amax
        for reduce in ("sum", "mean", "prod"):
            ops.aggregate(edges.structure, h, reduce).mul_(2).sum().backward()
        gathered = ops.gather_src(edges.structure, h).mul_(2)
        gathered.sum().backward()


# ---- messages are never all there at once: the largest tensor made stays near one piece

ROWS = 125
EDGES = 5_000
WIDTH = 64
PIECE = 8_192
"""All messages are 640,000 numbers; features, results and gradients 16,000; one number per edge
10,000.
"""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("op", ["mul", "add", "sub"])
@pytest.mark.parametrize("end", ["v", "e"])
def test_messages_beyond_a_narrow_type_add_up(op, reduce, end, dtype):
    """They are made in float32: in float16 they would be infinite, in bfloat16 rounded one by
    one.
    """
    flow = Structure(torch.tensor([0, 3]), torch.arange(3), 3)
    x = torch.tensor([[60_000.0], [-60_000.0], [1.0]], dtype=dtype)
    y = torch.tensor([[60_000.0]] if end == "v" else [[60_000.0], [-60_000.0], [1.0]], dtype=dtype)
    out = ops.message_reduce(flow, op, "u", x, end, y, reduce)
    exact = ops.message_reduce(flow, op, "u", x.double(), end, y.double(), reduce)
    assert out.dtype == dtype
    assert out.float().equal(exact.to(dtype).float())


@pytest.mark.parametrize("row", [(0, 8), (8, 0), (1, 8), (2, 1)])
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_weights_of_heads_of_any_size(reduce, row):
    flow = Structure(torch.tensor([0, 2, 2, 3]), torch.tensor([1, 0, 1]), 2)
    h = torch.rand(2, *row, dtype=torch.float64)
    weight = torch.rand(3, row[0], 1, dtype=torch.float64)
    messages = h[flow.indices] * weight
    total = torch.stack([messages[:2].sum(0), messages[:0].sum(0), messages[2]])
    if reduce == "mean":
        total[0] /= 2
    torch.testing.assert_close(ops.message_reduce(flow, "mul", "u", h, "e", weight, reduce), total)


class Largest(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that an operation makes (views do not
    count).
    """

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        taken = {
            leaf.untyped_storage().data_ptr()
            for leaf in tree_leaves((args, kwargs))
            if torch.is_tensor(leaf)
        }
        for leaf in tree_leaves(out):
            if torch.is_tensor(leaf) and leaf.untyped_storage().data_ptr() not in taken:
                self.elements = max(
                    self.elements, leaf.untyped_storage().nbytes() // leaf.element_size()
                )
        return out


def structure():
    generator = torch.Generator().manual_seed(0)
    degrees = torch.full((ROWS,), 20)
    degrees[0] = EDGES - (ROWS - 1) * 20  # a hub with half of all edges
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    return Structure(indptr, torch.randint(ROWS, (EDGES,), generator=generator), ROWS)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize(
    ("op", "left", "right"),
    [
        ("copy", "u", None),
        ("add", "u", "v"),
        ("mul", "u", "e"),
        ("mul", "u", "wide e"),
        ("dot", "u", "v"),
    ],
)
def test_working_memory_does_not_grow_with_the_messages(op, left, right, reduce):
    flow = structure()
    if right == "wide e":  # its gradient is as wide as all messages, so it gets none here
        right = "e"
        rhs = torch.rand(EDGES, WIDTH)
    else:
        rhs = (
            None
            if right is None
            else torch.rand((ROWS, WIDTH) if right == "v" else (EDGES,)).requires_grad_()
        )
    lhs = torch.rand(ROWS, WIDTH, requires_grad=True)
    flow.buckets(), flow.transposed()
    with pieces_of(PIECE), Largest() as largest:
        ops.message_reduce(flow, op, left, lhs, right, rhs, reduce).sum().backward()
    assert largest.elements <= 2 * PIECE
    assert largest.elements < EDGES * WIDTH / 10


def test_the_meter_sees_materialised_messages():
    flow = structure()
    with Largest() as largest:
        ops.gather_src(flow, torch.rand(ROWS, WIDTH))
    assert largest.elements == EDGES * WIDTH
