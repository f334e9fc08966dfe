"""Batch normalisation that also takes a batch of one row."""

from __future__ import annotations

from torch import Tensor, nn


class BatchNorm(nn.BatchNorm1d):
    """``torch.nn.BatchNorm1d`` (Ioffe, Szegedy 2015), but a single row in training is normalised as in evaluation.

    One row has no variance, so torch refuses it; the last batch of an epoch may be a single seed. Running statistics
    stay as they are then.

    >>> import torch
    >>> BatchNorm(2)(torch.ones(1, 2)).shape
    torch.Size([1, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised rows, ``[n, num_features]``."""
        if self.training and len(input) == 1:
            return nn.functional.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, training=False, eps=self.eps
            )
        return super().forward(input)
