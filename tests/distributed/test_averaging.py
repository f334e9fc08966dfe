"""Gradients after a backward pass are the means over the ranks, also of ranks without a pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from _support.ranks import ThreadTransport, group, run_ranks
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn

from nodeflow.distributed import PeerError


def made(sizes: list[int], kinds: list[torch.dtype]) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(size, generator=generator, dtype=torch.float64).to(kind))
            for size, kind in zip(sizes, kinds, strict=True)]  # fmt: skip


def loss_of(parameters: list[nn.Parameter], used: list[int], rank: int, step: int) -> Tensor:
    """A loss in which each used parameter has another gradient in every rank and step; some are
    used twice.
    """
    terms = [
        (one.double() ** 2).sum() * (1 + k + 10 * rank + 100 * step)
        for k, one in enumerate(parameters)
    ]
    return sum((terms[k] for k in used), torch.zeros((), dtype=torch.float64, requires_grad=True))


@settings(max_examples=50, deadline=None)
@given(st.data(), st.integers(2, 3))
def test_means_are_those_of_all_ranks(data, size):
    count = data.draw(st.integers(1, 6))
    sizes = [data.draw(st.sampled_from([0, 1, 3, 20, 70])) for _ in range(count)]
    kinds = [data.draw(st.sampled_from([torch.float64, torch.float32])) for _ in range(count)]
    numbers = st.lists(st.integers(0, count - 1), max_size=2 * count)
    # the parameters that each rank uses in two passes of each of three steps
    used = [[[data.draw(numbers) for _ in range(size)] for _ in range(2)] for _ in range(3)]

    def gradients_of(
        rank: int, step: int, parameters: list[nn.Parameter], passes: range
    ) -> list[Tensor | None]:
        for one in parameters:
            one.grad = None
        for number in passes:
            loss_of(parameters, used[step][number][rank], rank, step).backward()
        return [None if one.grad is None else one.grad.clone() for one in parameters]

    def work(transport: ThreadTransport) -> None:
        peers = group(transport)
        parameters = made(sizes, kinds)
        for step in range(3):
            for one in parameters:
                one.grad = None
            # accumulated before
            loss_of(parameters, used[step][0][peers.rank], peers.rank, step).backward()
            with peers.averaging(parameters, peers.rank, 1.0) as means:
                loss_of(parameters, used[step][1][peers.rank], peers.rank, step).backward()
            assert means == [(size - 1) / 2, 1.0]
            every = [gradients_of(rank, step, made(sizes, kinds), range(2)) for rank in range(size)]
            for k, one in enumerate(parameters):
                there = [grads[k] for grads in every if grads[k] is not None]
                assert (one.grad is None) == (not there)
                if there:
                    torch.testing.assert_close(one.grad, sum(there, torch.zeros_like(one)) / size)

    run_ranks(size, work)


@pytest.mark.parametrize("where", ["before", "in", "after"])
def test_an_error_in_a_pass_reaches_all_and_the_next_is_right(where):
    def work(transport: ThreadTransport) -> Any:
        peers = group(transport)
        first, last = (nn.Parameter(torch.ones(20)) for _ in range(2))

        def fail(*_: object) -> None:
            raise ValueError("bad")

        with pytest.raises((ValueError, PeerError), match="bad"), peers.averaging([first, last]):  # noqa: PT012
            hidden = first * 2
            bad = transport.rank == 1
            if bad and where == "before":
                fail()
            if bad and where == "in":
                hidden.register_hook(fail)
            (hidden * last).sum().backward()
            if bad and where == "after":
                fail()
        first.grad = last.grad = None
        with peers.averaging([first, last], transport.rank) as means:
            ((first * 2 * last).sum() * (1 + transport.rank)).backward()
        return means, first.grad, last.grad

    for means, first, last in run_ranks(2, work):
        assert means == [0.5]
        assert torch.equal(first, torch.full((20,), 3.0))
        assert torch.equal(last, torch.full((20,), 3.0))
