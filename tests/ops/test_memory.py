"""Messages are never all there at once: the largest tensor made stays near one piece."""

import pytest
import torch
from _support.ops_reference import REDUCTIONS, pieces_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nodeflow import ops
from nodeflow.ops import Structure

ROWS, EDGES, WIDTH, PIECE = 125, 5_000, 64, 8_192
"""All messages are 640,000 numbers; features, results and gradients 16,000; one number per edge 10,000."""


class Largest(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that an operation makes (views do not count)."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        taken = {leaf.untyped_storage().data_ptr() for leaf in tree_leaves((args, kwargs)) if torch.is_tensor(leaf)}
        for leaf in tree_leaves(out):
            if torch.is_tensor(leaf) and leaf.untyped_storage().data_ptr() not in taken:
                self.elements = max(self.elements, leaf.untyped_storage().nbytes() // leaf.element_size())
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
    [("copy", "u", None), ("add", "u", "v"), ("mul", "u", "e"), ("mul", "u", "wide e"), ("dot", "u", "v")],
)
def test_working_memory_does_not_grow_with_the_messages(op, left, right, reduce):
    flow = structure()
    if right == "wide e":  # its gradient is as wide as all messages, so it gets none here
        right, rhs = "e", torch.rand(EDGES, WIDTH)
    else:
        rhs = None if right is None else torch.rand((ROWS, WIDTH) if right == "v" else (EDGES,)).requires_grad_()
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
