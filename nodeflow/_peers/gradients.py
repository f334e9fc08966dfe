"""Gradients that travel while the backward pass goes on: each piece as soon as it is complete, in one order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._base.checks import Ints

_SMALL = 2**16  # gradients of fewer numbers travel together, until they are as many
Begin = Callable[[Tensor], Callable[[], None]]


class Piece:
    """Parameters of one type and device whose gradients travel together."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters, self.missing = parameters, len(parameters)
        self.total = parameters[0].new_zeros(0)
        self.wait: Callable[[], None] | None = None

    def begin(self, begin: Begin) -> None:
        """Send a copy of the gradients; those that are missing are zeros."""
        grads = [torch.zeros_like(one) if one.grad is None else one.grad for one in self.parameters]
        self.total = torch.cat([grad.reshape(-1) for grad in grads])
        self.wait = begin(self.total)

    def end(self, size: int, anywhere: Sequence[bool]) -> None:
        """Wait for the sum over all ``size`` processes; set the mean where any process had a gradient."""
        assert self.wait is not None
        self.wait()
        means = (self.total / size).split([one.numel() for one in self.parameters])
        for one, mean, has in zip(self.parameters, means, anywhere, strict=True):
            if has:
                grad = one.grad = torch.empty_like(one) if one.grad is None else one.grad
                grad.copy_(mean.view_as(grad))


class Averaging:
    """Adds up the gradients of parameters over all processes, during a backward pass.

    ``begin`` begins to add up a tensor over the processes, in place, and returns what waits for the end. All processes
    begin with the same pieces in the same order, that of the parameters from the last to the first: so a piece waits
    for those before it. What is missing at the end of the pass is sent then.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], begin: Begin) -> None:
        self._begin, self._lock = begin, threading.Lock()
        self.pieces, self._number = _pieces(parameters), dict[nn.Parameter, int]()
        self._of = {one: piece for piece in self.pieces for one in piece.parameters}
        self._next = 0
        self._changed = set[nn.Parameter]()  # after their piece was sent, as by a second pass inside the first
        self._seen = set[nn.Parameter]()
        self._hooks = [one.register_post_accumulate_grad_hook(self._is_ready) for one in parameters]

    def end_of_pass(self) -> Ints:
        """Stop waiting for gradients; return for each parameter, piece by piece, 1 if it has one, + 2 if it changed."""
        for hook in self._hooks:
            hook.remove()
        every = [one for piece in self.pieces for one in piece.parameters]
        return np.array([(one.grad is not None) + 2 * (one in self._changed) for one in every], np.int64)

    def end(self, states: Ints) -> None:
        """Set the means; ``states`` are those of all processes, ``[processes, parameters]``."""
        for piece in self.pieces[self._next :]:
            piece.begin(self._begin)
        first = 0
        for piece in self.pieces:
            own = states[:, first : first + len(piece.parameters)]
            first += len(piece.parameters)
            if (own & 2).any():
                assert piece.wait is not None
                piece.wait()
                piece.begin(self._begin)
            piece.end(len(states), [bool(has) for has in np.any(own & 1, axis=0)])

    def _is_ready(self, parameter: nn.Parameter) -> None:
        with self._lock:
            piece = self._of[parameter]
            if parameter in self._seen:
                if piece.wait is not None:
                    self._changed.add(parameter)
                return
            self._seen.add(parameter)
            piece.missing -= 1
            while self._next < len(self.pieces) and not self.pieces[self._next].missing:
                self.pieces[self._next].begin(self._begin)
                self._next += 1


def _pieces(parameters: Sequence[nn.Parameter]) -> list[Piece]:
    """Parameters from the last to the first: small ones of one type and device together, each large one alone."""
    together, open_ones = list[list[nn.Parameter]](), dict[object, list[nn.Parameter]]()
    for one in reversed(parameters):
        kind = one.dtype, one.device
        if kind not in open_ones or one.numel() >= _SMALL:
            together.append(group := [])
        else:
            group = open_ones[kind]
        group.append(one)
        if one.numel() < _SMALL:
            open_ones[kind] = group
            if sum(each.numel() for each in group) >= _SMALL:
                del open_ones[kind]
    return [Piece(group) for group in together]
