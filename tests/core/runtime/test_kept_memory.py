"""Memory that is kept between calls: buffers of results, and scratch arrays."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from torch import Tensor

from nodeflow import Graph, NeighborSampler
from nodeflow._core.runtime import memory, process


def kept():
    return list(memory._free.values())


@pytest.fixture(autouse=True)
def _nothing_kept():
    gc.collect()
    memory._free.clear()
    memory._scratch.clear()


def tensor(size: int, value: int) -> Tensor:
    out = memory.as_tensor(memory.reused((4 * size,), np.uint8), torch.float32, (size, 1))
    return out.fill_(value)


def test_memory_is_reused_once_it_is_free():
    first = tensor(1000, 1)
    at = first.data_ptr()
    second = tensor(1000, 2)
    assert second.data_ptr() != at
    del first
    third = tensor(1010, 3)  # a little larger fits too
    assert third.data_ptr() == at
    assert second.eq(2).all()
    assert third.eq(3).all()


@pytest.mark.parametrize(
    "keep",
    [
        lambda t: t[10:20],
        lambda t: t.detach(),
        lambda t: t.numpy(),
        lambda t: t.view(torch.uint8)[40:80],
        lambda t: t.untyped_storage(),
        lambda t: t.requires_grad_().pow(2).sum(),
        lambda t: torch.utils.dlpack.to_dlpack(t),
    ],
)
def test_what_still_uses_the_memory_keeps_it(keep):
    first = tensor(1000, 1)
    at = first.data_ptr()
    kept = keep(first)
    del first
    gc.collect()
    second = tensor(1000, 2)
    assert second.data_ptr() != at
    del kept
    gc.collect()
    assert tensor(1000, 3).data_ptr() == at


def test_buffers_can_be_switched_off(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(process, "reuse_buffers", False)
        tensor(1000, 1)
    assert not kept()


def test_a_saved_tensor_of_autograd_is_not_overwritten():
    x = tensor(1000, 1)
    w = torch.ones(1, requires_grad=True)
    out = (x * w).sum()
    del x
    tensor(1000, 5)
    out.backward()
    assert w.grad.item() == 1000


def test_other_sizes_get_other_memory_and_little_is_kept():
    first = tensor(1000, 1)
    at = first.data_ptr()
    del first
    assert tensor(500, 1).data_ptr() != at
    assert tensor(1200, 1).data_ptr() != at
    size = len(memory.reused((4000,), np.uint8).base)
    # more than the free buffer has
    assert memory.reused((size + 32,), np.uint8).nbytes == size + 32
    many = [tensor(1000 * (i + 1), i) for i in range(20)]
    del many
    gc.collect()
    assert len(kept()) == 16
    assert memory.as_tensor(memory.reused((0,), np.uint8), torch.float32, (0, 3)).shape == (0, 3)


def test_one_gibibyte_is_kept():
    # nothing is written, so the pages take no memory
    many = [memory.reused((size * 2**20,), np.uint8) for size in (225, 450, 675, 900)]
    at = [one.ctypes.data for one in many]
    while many:
        # of 253, 506, 759 and 1,012 MiB: the newest that fit together are kept
        many.pop(0)
    assert [buffer.ctypes.data for buffer in kept()] == at[3:]
    memory.reused((2**30,), np.uint8)
    assert not kept()


def test_the_smallest_that_fits_is_taken():
    several = [tensor(size, 1) for size in (1180, 1000, 1100)]
    at = several[1].data_ptr()
    several.clear()
    assert tensor(1000, 1).data_ptr() == at


def test_the_next_numbering_takes_the_memory():
    first = np.empty(10, np.int64)
    second = np.empty(20, np.int64)
    memory.leave_scratch(first, second, most=20)
    for taken, left in zip(memory.take_scratch(), (first, second), strict=True):
        assert taken is left
    # nobody else has it at the same time
    assert [len(array) for array in memory.take_scratch()] == [0, 0]
    memory.leave_scratch(np.empty(10, np.int64), np.empty(21, np.int64), most=20)
    assert [len(array) for array in memory.take_scratch()] == [10, 0]


def test_scratch_can_be_switched_off(monkeypatch):
    sampler = NeighborSampler(Graph.from_edges(np.arange(5000), np.arange(5000)), [1])

    def sampled_unkept():
        with monkeypatch.context() as patch:
            patch.setattr(process, "reuse_buffers", False)
            assert sampler([3, 1]).layers[0].parent_nid.tolist() == [3, 1]

    sampler([3, 1])
    sampled_unkept()  # neither takes what is kept
    assert len(memory.take_scratch()[0])
    sampled_unkept()  # nor keeps anything
    assert not len(memory.take_scratch()[0])
