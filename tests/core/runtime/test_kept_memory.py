"""Memory that is kept between calls: buffers of results, and scratch arrays."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor

from nodeflow._core.edges.numbering import Numbering
from nodeflow._core.rows.rows import fetch_rows
from nodeflow._core.runtime import memory, process


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
    monkeypatch.setattr(process, "reuse_buffers", False)
    tensor(1000, 1)
    assert not memory._free


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
    memory._free.clear()
    size = len(memory.reused((4000,), np.uint8).base)
    # more than the free buffer has
    assert memory.reused((size + 32,), np.uint8).nbytes == size + 32
    many = [tensor(1000 * (i + 1), i) for i in range(20)]
    del many
    gc.collect()
    assert len(memory._free) == 16
    assert memory.as_tensor(memory.reused((0,), np.uint8), torch.float32, (0, 3)).shape == (0, 3)


def test_few_bytes_are_kept(monkeypatch):
    monkeypatch.setattr(memory, "_BYTES", 20_000)
    many = [tensor(1000 * (i + 1), i) for i in range(4)]
    at = [one.data_ptr() for one in many]
    while many:
        # of 4,500, 9,000, 13,500 and 18,000 bytes: the newest that fit together are kept
        many.pop(0)
    assert [buffer.ctypes.data for buffer in memory._free.values()] == at[3:]
    tensor(10_000, 1)
    assert not memory._free


def test_the_smallest_that_fits_is_taken():
    several = [tensor(size, 1) for size in (1180, 1000, 1100)]
    at = several[1].data_ptr()
    several.clear()
    assert tensor(1000, 1).data_ptr() == at


def test_threads_never_share_memory():
    column = torch.arange(60_000, dtype=torch.float32).view(-1, 4)
    wrong = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for _ in range(60):
            ids = torch.randint(0, len(column), (5000 + 100 * seed,), generator=generator)
            rows = fetch_rows(column, ids)
            other = fetch_rows(column, ids.flip(0))
            if not (torch.equal(rows, column[ids]) and torch.equal(other, rows.flip(0))):
                wrong.append(seed)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


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
    def numbered() -> list[int]:
        with Numbering(10_000) as numbering:
            return numbering.extend(np.arange(5000, 3000, -1)).tolist()

    assert numbered() == list(range(2000))
    assert len(memory._scratch) == 1
    monkeypatch.setattr(process, "reuse_buffers", False)
    assert numbered() == list(range(2000))
    assert len(memory._scratch) == 1  # neither taken nor added to
    memory._scratch.clear()
    assert numbered() == list(range(2000))
    assert not memory._scratch
