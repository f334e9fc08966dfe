"""Gradients that are averaged over the processes that train together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nodeflow._runtime.locks import ignored_warnings
from nodeflow.training._processes import as_peer_error


class _LossOf(nn.Module):
    """A network as a module that gives the loss: parameters of a decoder count among those that a step has used."""

    def __init__(self, network: nn.Module, loss: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.network, self._loss = network, loss

    def forward(self, batch: Any) -> Tensor:
        return self._loss(batch)


class Averaged:
    """The loss of a network, whose gradients are averaged over all processes in the backward pass.

    ``DistributedDataParallel`` does it, for the parameters that any process has used. It looks for unused ones in every
    step, which also keeps the order of its sums as it is in the first step: a run that goes on has the bits of one that
    was not cut off.

    Args:
        network: on all processes the same; its parameters and buffers become those of the first.
        loss: ``loss(batch)``, a scalar.
    """

    def __init__(self, network: nn.Module, loss: Callable[[Any], Tensor]) -> None:
        _spend_warning()
        self._module = DistributedDataParallel(_LossOf(network, loss), find_unused_parameters=True)

    def __call__(self, batch: Any) -> Tensor:
        """Return the loss of this process's share."""
        loss: Tensor = self._module(batch)
        return loss

    @contextmanager
    def backward(self, *, postponed: bool) -> Iterator[None]:
        """Within the block, losses and their backward passes belong to one step.

        ``postponed``: gradients are added up, and averaged in a later step.
        """
        self._module.require_backward_grad_sync = not postponed
        try:
            yield
        except RuntimeError as error:
            raise as_peer_error(error) from error
        finally:
            self._module.require_backward_grad_sync = True


def _spend_warning() -> None:
    """Make torch give the advice, once per process, not to look for unused parameters where the first step has none.

    Not in the first step itself: the lock of warnings is one for which threads wait that other processes wait for. In a
    backward pass, whose warnings reach Python; those of a forward pass of this module go to standard error.
    """

    def step(gradient: Tensor) -> None:
        with torch.enable_grad():
            DistributedDataParallel(nn.Linear(1, 1), find_unused_parameters=True)(gradient)

    x = torch.zeros(1, 1, requires_grad=True)
    x.register_hook(step)
    with ignored_warnings("find_unused_parameters=True"):
        x.sum().backward()
