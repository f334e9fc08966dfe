"""Gradients against finite differences, first and second."""

import pytest
import torch
from _support.ops_reference import MESSAGES, REDUCTIONS, SAMPLES, Edges, pieces_of, values
from torch.autograd import gradcheck, gradgradcheck

from nodeflow import ops

EDGES = Edges(3, 3, [(0, 0), (1, 0), (1, 0), (2, 2), (0, 2), (1, 2), (2, 2)])
SHAPES = [((2,), (2,)), ((2,), ()), ((1,), (2,))]


def inputs(op, left, right, shapes):
    lhs = values(EDGES.rows(left), shapes[0], 11).requires_grad_()
    return (
        (lhs,)
        if right is None
        else (lhs, values(EDGES.rows(right), shapes[1], 12).requires_grad_())
    )


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize(("op", "left", "right"), MESSAGES)
def test_gradient_of_every_pair(op, left, right, reduce):
    def run(lhs, rhs=None):
        return ops.message_reduce(EDGES.structure, op, left, lhs, right, rhs, reduce)

    # shapes and reductions are independent of each other: one reduction sees all shapes, the others
    # one
    some = SHAPES if reduce == "sum" else SHAPES[1:2]
    for shapes in SHAPES[:1] if right is None else some:
        with pieces_of(2**20 if shapes is SHAPES[0] else 3):
            # where every entry of the Jacobian is looked at, elsewhere random sums of them
            first = shapes is SHAPES[0]
            assert gradcheck(
                run,
                inputs(op, left, right, shapes),
                check_undefined_grad=first,
                fast_mode=not first,
            )


@pytest.mark.parametrize(("op", "left", "right"), MESSAGES)
def test_gradient_of_every_message(op, left, right):
    def run(lhs, rhs=None):
        return ops.message(EDGES.structure, op, left, lhs, right, rhs)

    with pieces_of(3):
        assert gradcheck(run, inputs(op, left, right, SHAPES[0]))


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize(
    ("op", "left", "right", "shapes"),
    [
        ("copy", "u", None, SHAPES[0]),
        ("copy", "e", None, SHAPES[0]),
        ("mul", "u", "e", SHAPES[1]),
        ("mul", "e", "u", ((), (2,))),
        ("div", "u", "e", SHAPES[1]),
        ("mul", "u", "e", SHAPES[0]),
        ("div", "u", "v", SHAPES[0]),
        ("dot", "u", "v", SHAPES[0]),
    ],
)
def test_second_gradient_of_sums(op, left, right, shapes, reduce):
    def run(lhs, rhs=None):
        return ops.message_reduce(EDGES.structure, op, left, lhs, right, rhs, reduce)

    with pieces_of(5):
        assert gradgradcheck(run, inputs(op, left, right, shapes))


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_second_gradient_of_extremes(reduce):
    def run(h, w):
        return ops.message_reduce(EDGES.structure, "mul", "u", h, "e", w, reduce)

    with pieces_of(5):
        assert gradgradcheck(run, inputs("mul", "u", "e", SHAPES[0]))


def test_second_gradient_of_a_product_is_refused():
    h = values(3, (2,), 1).requires_grad_()
    with pytest.raises(RuntimeError, match="prod cannot be differentiated again"):
        torch.autograd.grad(ops.aggregate(EDGES.structure, h, "prod").sum(), h, create_graph=True)


@pytest.mark.parametrize("shape", [(), (2,), (2, 2)])
def test_gathers_softmax_and_dots_twice(shape):
    structure = EDGES.structure
    h = values(3, shape, 13).requires_grad_()
    scores = values(7, shape, 14).requires_grad_()
    functions = [
        (lambda x: ops.gather_src(structure, x), (h,)),
        (lambda x: ops.gather_dst(structure, x), (h,)),
        (lambda x: ops.segment_softmax(structure, x), (scores,)),
        (lambda x: ops.segment_reduce(structure, x, "sum"), (scores,)),
        (
            lambda a, b: ops.message(structure, "dot", "u", a, "v", b),
            (h, values(3, shape, 15).requires_grad_()),
        ),
        (
            lambda x: ops.join_rows(structure, [2 * part for part in ops.split_rows(structure, x)]),
            (h,),
        ),
        (
            lambda x: ops.join_rows(
                structure, [part.sum(1) for part in ops.split_messages(structure, x)]
            ),
            (scores,),
        ),
    ]
    for function, arguments in functions:
        assert gradcheck(function, arguments)
        assert gradgradcheck(function, arguments)


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_ties_share_the_gradient_equally(reduce):
    edges = Edges(4, 2, [(0, 0), (1, 0), (2, 0), (3, 0)])
    h = torch.tensor([[1.0], [2.0], [2.0], [1.0]], requires_grad=True)
    with pieces_of(2):  # the tie is split over two pieces
        ops.aggregate(edges.structure, h, reduce).sum().backward()
    assert h.grad.squeeze(1).tolist() == ([0, 0.5, 0.5, 0] if reduce == "max" else [0.5, 0, 0, 0.5])


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        ([0.0, 3.0, 4.0], [12.0, 0.0, 0.0]),
        ([0.0, 3.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_product_with_zeros(numbers, expected):
    edges = Edges(3, 1, [(0, 0), (1, 0), (2, 0)])
    h = torch.tensor(numbers, requires_grad=True)
    with pieces_of(2):
        ops.aggregate(edges.structure, h, "prod").sum().backward()
    assert h.grad.tolist() == expected


@pytest.mark.parametrize("width", [1, 7, 64, 1000])
def test_extremes_of_dots_keep_their_gradient(width):
    # a dot product recomputed among another number of rows must give the same bits, or the maximum
    # is not found again
    generator = torch.Generator().manual_seed(width)
    sources = torch.randint(50, (300,), generator=generator).tolist()
    structure = Edges(50, 20, [(s, s * 7 % 20) for s in sources]).structure
    u = torch.randn(50, width, generator=generator, requires_grad=True)
    v = torch.randn(20, width, generator=generator, requires_grad=True)
    for size in (width * 3, 2**20):
        with pieces_of(size):
            ops.message_reduce(structure, "dot", "u", u, "v", v, "max").sum().backward()
        dots = (u[structure.indices] * v[structure.dst]).sum(1)
        expected = torch.zeros(20, width)
        for row in structure.dst.unique().tolist():
            best = max(
                (structure.dst == row).nonzero().squeeze(1).tolist(), key=lambda e: dots[e].item()
            )
            expected[row] = u[structure.indices[best]]
        torch.testing.assert_close(v.grad, expected)
        v.grad = None


def test_operands_that_need_no_gradient_get_none():
    h = values(3, (2,), 1)
    w = values(7, (2,), 2).requires_grad_()
    for reduce in REDUCTIONS:
        ops.aggregate(EDGES.structure, h, reduce, w).sum().backward()
    assert h.grad is None


@pytest.mark.parametrize("needs", ["u", "v", "w"])
def test_one_operand_alone_may_need_a_gradient(needs):
    u, v, w = (values(n, shape, n).requires_grad_() for n, shape in ((3, (4,)), (3, (4,)), (7, ())))
    src, dst = (torch.tensor(end) for end in zip(*EDGES.edges, strict=True))
    alone = {
        name: x if name == needs else x.detach() for name, x in {"u": u, "v": v, "w": w}.items()
    }
    if needs == "w":
        found = ops.aggregate_beside_own(EDGES.structure, alone["u"], "sum", alone["w"])[:, 4:]
        wanted = torch.zeros(3, 4, dtype=u.dtype).index_add(0, dst, u[src] * w[:, None])
    else:
        found = ops.message(EDGES.structure, "dot", "u", alone["u"], "v", alone["v"])[:, 0]
        wanted = (u[src] * v[dst]).sum(1)
    cotangent = values(len(found), tuple(found.shape[1:]), 5)
    of = {"u": u, "v": v, "w": w}[needs]
    torch.testing.assert_close(
        *(torch.autograd.grad(out, of, cotangent)[0] for out in (found, wanted))
    )


@pytest.mark.parametrize("name", list(SAMPLES))
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients_where_there_is_nothing(name, reduce):
    edges = SAMPLES[name]
    h = values(edges.num_src, (2,), 1).requires_grad_()
    w = values(len(edges.edges), (2,), 2).requires_grad_()
    for weight in (None, w[:, 0], w):
        ops.aggregate(edges.structure, h, reduce, weight).sum().backward()
    assert h.grad.shape == h.shape
    assert w.grad.shape == w.shape
    assert torch.isfinite(h.grad).all()
    assert torch.isfinite(w.grad).all()
