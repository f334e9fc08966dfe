"""Gradients that travel while the backward pass goes on: each bucket as soon as it is complete, in one order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._base.checks import Ints

_SMALL = 2**16  # gradients of fewer numbers travel together, until they are as many
Begin = Callable[[Tensor], Callable[[], None]]


class Bucket:
    """Parameters of one type and device whose gradients travel together. While they do, parameters have none.

    ``had`` says which had one. A gradient that a parameter gets afterwards, as by a pass inside the pass, is added.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters, self.missing = parameters, len(parameters)
        self.had = [False] * len(parameters)
        self._sums = list[tuple[Tensor, Callable[[], None]]]()

    def begin(self, begin: Begin) -> None:
        """Send the gradients, in place of those that are missing zeros."""
        grads = [one.grad for one in self.parameters]
        self.had = [had or grad is not None for had, grad in zip(self.had, grads, strict=True)]
        flat = [torch.zeros_like(one) if one.grad is None else one.grad for one in self.parameters]
        total = flat[0].reshape(-1) if len(flat) == 1 else torch.cat([grad.reshape(-1) for grad in flat])
        for one in self.parameters:
            one.grad = None
        self._sums.append((total, begin(total)))

    def end(self, size: int, anywhere: Sequence[bool]) -> None:
        """Wait for the sums over all ``size`` processes; set the means where any process had a gradient."""
        (total, wait), *others = self._sums
        wait()
        for further, wait_for_it in others:
            wait_for_it()
            total += further
        total /= size
        means = total.split([one.numel() for one in self.parameters])
        for one, mean, has in zip(self.parameters, means, anywhere, strict=True):
            one.grad = mean.view_as(one) if has else None


class Averaging:
    """Adds up the gradients of parameters over all processes, during a backward pass.

    ``begin`` begins to add up a tensor over the processes, in place, and returns what waits for the end. All processes
    begin with the same buckets in the same order, that of the parameters from the last to the first: so a bucket waits
    for those before it. What is missing at the end of the pass is sent then.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], begin: Begin) -> None:
        self._begin, self._lock, self._next = begin, threading.Lock(), 0
        self._buckets = _buckets(parameters)
        self._of = {one: bucket for bucket in self._buckets for one in bucket.parameters}
        self._ready = set[nn.Parameter]()
        self._hooks = [one.register_post_accumulate_grad_hook(self._is_ready) for one in parameters]

    def end_of_pass(self) -> Ints:
        """Send what is missing; return for each bucket and parameter 1 if it had a gradient, + 2 if it got another."""
        self.let_go()
        for bucket in self._buckets[self._next :]:
            bucket.begin(self._begin)
        return np.array(
            [had + 2 * (one.grad is not None) for bucket in self._buckets
             for one, had in zip(bucket.parameters, bucket.had, strict=True)], np.int64,
        )  # fmt: skip

    def let_go(self) -> None:
        """Wait for no more gradients."""
        for hook in self._hooks:
            hook.remove()

    def end(self, states: Ints) -> None:
        """Set the means; ``states`` are those of all processes, ``[processes, parameters]``."""
        first = 0
        for bucket in self._buckets:
            own = states[:, first : first + len(bucket.parameters)]
            first += len(bucket.parameters)
            if (own & 2).any():
                bucket.begin(self._begin)
            bucket.end(len(states), [bool(has) for has in np.any(own, axis=0)])

    def _is_ready(self, parameter: nn.Parameter) -> None:
        with self._lock:
            if parameter in self._ready:
                return
            self._ready.add(parameter)
            self._of[parameter].missing -= 1
            while self._next < len(self._buckets) and not self._buckets[self._next].missing:
                self._buckets[self._next].begin(self._begin)
                self._next += 1


def _buckets(parameters: Sequence[nn.Parameter]) -> list[Bucket]:
    """Parameters from the last to the first: small ones of one type and device together, each large one alone."""
    buckets, filling = list[list[nn.Parameter]](), dict[object, list[nn.Parameter]]()
    for one in reversed(parameters):
        kind = one.dtype, one.device, one.numel() >= _SMALL
        if kind not in filling:
            filling[kind] = []
            buckets.append(filling[kind])
        filling[kind].append(one)
        if sum(each.numel() for each in filling[kind]) >= _SMALL:
            del filling[kind]
    return [Bucket(bucket) for bucket in buckets]
