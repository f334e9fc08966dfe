"""Modules between convolutions: normalisation, and dropout by the rows of a batch or by parent
nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import (
    LARGEST,
    as_count,
    as_flag,
    as_ids,
    as_int,
    as_number,
    check_num_rows,
)
from nodeflow._core.base.types import IdsLike
from nodeflow._core.random import Random, derive_key
from nodeflow.flow import Layer
from nodeflow.ops import dropout as drop


class BatchNorm(nn.BatchNorm1d):
    """``torch.nn.BatchNorm1d``, but a single row, which has no variance, is normalised as in
    evaluation.

    The last batch of an epoch may be a single seed. Running statistics stay as they are then.
    """

    def forward(self, input: Tensor) -> Tensor:
        if self.training and len(input) == 1:
            return nn.functional.batch_norm(
                input,
                self.running_mean,
                self.running_var,
                self.weight,
                self.bias,
                training=False,
                eps=self.eps,
            )
        return super().forward(input)


NORMS: dict[str, Callable[[int], nn.Module]] = {"batch": BatchNorm, "layer": nn.LayerNorm}
"""The modules by the argument ``norm`` of a model."""


class Dropout(nn.Dropout):
    """``nn.Dropout``, of rows of bfloat16 on a CPU by ``ops.dropout``."""

    def forward(self, input: Tensor) -> Tensor:
        if self.training:
            return drop(input, self.p)
        return input


class NodeDropout(nn.Module):
    """Dropout (Srivastava et al. 2014) whose mask depends on parent node, layer, step and seed
    alone.

    A node that is in two batches of a step, or on two devices, has the same mask in both: gradients
    that are added up over the batches of a step are those of one network. Masks are the same in any
    order of rows, on every run, and after a resume. Processes that share a step
    (``NodeFlowLoader(rank=, world_size=)``) have the masks of one process, where all pass the same
    ``step``. Nothing is stored: the module has no parameters and no state, and global random state
    is neither read nor changed.

    Entries are zeroed independently with probability ``p`` and the others divided by 1 - ``p``, so
    that the expected result is the input, exactly. In evaluation mode, and with ``p=0``, the input
    is returned.

    Args:
        p: probability of an entry to be zeroed, at least 0 and below 1; exact to 2**-64.
        seed: any integer.
        whole: zero whole rows in place of single entries: a node that is dropped sends nothing.

    Raises TypeError for a ``p`` or ``seed`` that is no number, ValueError for a ``p`` out of range.

    >>> drop = NodeDropout(0.5, seed=1)
    >>> drop(torch.ones(3, 4), [7, 5, 7], layer=1, step=0)
    tensor([[2., 0., 2., 2.],
            [2., 2., 0., 2.],
            [2., 0., 2., 2.]])
    """

    def __init__(self, p: float = 0.5, seed: int = 0, *, whole: bool = False) -> None:
        super().__init__()
        self.p = as_number(p, "p", least=0, below=1)
        self.seed = as_int(seed, "seed")
        self.whole = as_flag(whole, "whole")

    def forward(self, h: Tensor, nodes: Layer | IdsLike, *, layer: int, step: int) -> Tensor:
        """Return ``h`` with entries zeroed and the others scaled, of the same shape and type;
        differentiable.

        Args:
            h: dense rows of nodes, ``[n, ...]``.
            nodes: the layer that they are rows of, or parent ids ``[n]``. A node has one mask in
                all its contexts.
            layer: number of the layer: another layer has other masks.
            step: number of the training step, at least 0: every step has its own masks. Batches
                whose gradients are added up before a step of the optimizer share its number.

        Masks are made in main memory, and moved where ``h`` lies. The mask of a node depends on the
        number of its entries too. Cost: one draw of 64 bits per entry, with ``whole`` per row.

        Raises ValueError for another number of rows, sparse rows, and a layer without parent nodes;
        TypeError or IndexError for what are no ids.
        """
        if h.layout != torch.strided:
            raise ValueError(f"h must be dense, got layout {h.layout}: h.to_dense() makes it so")
        if isinstance(nodes, Layer):
            ids = nodes.parent_nid.numpy(force=True)
        else:
            ids = as_ids(nodes, "nodes", LARGEST, "node")
        check_num_rows(h.shape, "h", len(ids), "entry of nodes")
        number = as_int(layer, "layer")
        step_number = as_count(step, "step")
        if not self.training or self.p == 0:
            return h
        width = 1
        if not self.whole:
            width = math.prod(h.shape[1:])
        # a number per node and column, so that a node has one mask in all batches of a
        # step
        entries = (ids[:, None] * width + np.arange(width)).reshape(-1)
        bits = Random(derive_key("dropout", self.seed, step_number, number, width)).bits(entries)
        # the rate is exact to 2^-64, whatever the type of the rows
        kept = torch.from_numpy(bits >= np.uint64(int(self.p * 2.0**64)))
        shape = (len(ids), *(1 for _ in h.shape[1:])) if self.whole else h.shape
        return h * (kept.view(shape).to(h.device, h.dtype) / (1 - self.p))

    def extra_repr(self) -> str:
        return f"p={self.p}, seed={self.seed}" + ", whole=True" * self.whole
