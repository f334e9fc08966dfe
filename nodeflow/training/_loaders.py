"""The loaders of a run: batches with the columns that its network reads, and what reads ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nodeflow._core.base.checks import blaming
from nodeflow._core.base.sizes import as_bytes
from nodeflow.loader import NodeFlowLoader, SentAhead
from nodeflow.sampling.base import SamplerBase
from nodeflow.storage import Lookahead
from nodeflow.training._settings import Settings


@dataclass(frozen=True)
class Loaders:
    """Makes the loaders of a run.

    Attributes: inputs: names of the node columns that the network reads in the first layer.
    everywhere: those that it reads in every layer. edges: names of the edge columns that it reads.
    late: whether columns are read when a batch is taken, as those of a history, so that nothing
    can be copied to a GPU before.
    """

    settings: Settings
    device: torch.device
    inputs: list[str]
    everywhere: list[str]
    edges: list[str]
    late: bool

    def of(
        self,
        sampler: SamplerBase,
        seeds: Tensor,
        batch_size: int,
        seed: int,
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> NodeFlowLoader:
        """Return this process's batches, with node columns ``outputs`` in the last layer."""
        columns = {i: [*self.everywhere] for i in range(sampler.num_flows + 1)}
        columns[0] += self.inputs
        columns[sampler.num_flows] += outputs
        compute = self.settings.compute
        options["ndata"] = {i: names for i, names in columns.items() if names}
        options["edata"] = self.edges or None
        options["seed"] = seed
        options["num_workers"] = compute.workers
        options["share"] = compute.share
        make: Callable[..., NodeFlowLoader] = NodeFlowLoader
        if compute.sample_on == "device":
            with blaming("sample_on 'device' is not possible", TypeError):
                sampler = sampler.in_torch(self.device)
            options["device"] = self.device
        elif self.device.type == "cuda" and self.late:
            options["device"] = self.device
            options["pin_memory"] = True
        elif self.device.type == "cuda":
            make = SentAhead
            options["target"] = self.device
        return make(sampler, seeds, batch_size, **options)

    def ahead(
        self, loader: NodeFlowLoader, rows: int, heat: Callable[[], Tensor]
    ) -> NodeFlowLoader | Lookahead:
        """Return the loader of training with the storage of the settings, which may look ahead.

        Its batches read about ``rows`` rows each; ``heat`` returns how often each node is read.
        """
        storage = self.settings.storage
        if storage.kind != "lookahead":
            return loader
        # the plan takes 8 bytes for each row: no more in all than the rows in memory, but 16
        # batches at least
        foreseen = max(as_bytes(storage.memory, "memory") // (8 * max(rows, 1)), 16)
        num_batches = len(loader)
        return Lookahead(
            loader,
            storage.memory,
            window=min(num_batches, foreseen),
            epochs=self.settings.run.epochs,
            heat=None if foreseen >= num_batches else heat(),
            pack=storage.pack or None,
            space=storage.space,
        )
