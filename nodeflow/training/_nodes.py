"""The task of nodes: outputs of seeds are compared with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nodeflow._rows.rows import entries_of
from nodeflow.datasets import Dataset
from nodeflow.flow import NodeFlow
from nodeflow.loader import NodeFlowLoader, balanced_weights
from nodeflow.metrics import Metric, named
from nodeflow.nn import FlowModel
from nodeflow.partitions import BufferState
from nodeflow.random import derive_key
from nodeflow.sampling import FullSampler
from nodeflow.sampling.base import SamplerBase
from nodeflow.training._data import fingerprint_of_parts
from nodeflow.training._features import FeatureRows, hash_of
from nodeflow.training._graph import with_columns
from nodeflow.training._methods import Method
from nodeflow.training._network import Network
from nodeflow.training._partitions import PartitionBatches, open_partitions
from nodeflow.training._settings import Settings
from nodeflow.training._targets import Loss, find_target
from nodeflow.training._task import Batches, Task


class NodeTask(Task):
    """Learn the labels of nodes.

    Args:
        dataset: with a column ``label`` in its graph, and features ``feat`` unless the inputs are learned.
        settings: see ``Settings``.
        device: where the network is.
        model: a model of your own, called as ``model(batch, h)``; None: that of the settings.
        loss: the loss of every row, ``loss(outputs, labels) -> [n]``; None: that of the task.
        metrics: of your own, besides those of the task; the first chooses the best epoch, unless settings do.

    Raises ValueError for data, settings and combinations that cannot be trained with.
    """

    def __init__(
        self,
        dataset: Dataset,
        settings: Settings,
        device: torch.device,
        *,
        model: nn.Module | None = None,
        loss: Loss | None = None,
        metrics: Sequence[Metric] = (),
    ) -> None:
        self.target = find_target(dataset, settings.run.task, settings.loss)
        self.loss_of_rows = loss or self.target.loss
        own = {metric.name: metric for metric in metrics}
        chosen = settings.run.metric or next(iter(own), self.target.metrics[0])
        names = dict.fromkeys([chosen, *own, *self.target.metrics])
        self.metrics = {name: own[name] if name in own else _metric(name, self.target.task) for name in names}
        self.metric = self.metrics[chosen]
        self._is_train = torch.zeros(dataset.graph.num_nodes, dtype=torch.bool)
        self._is_train[dataset.train] = True
        self._balanced = settings.loss.class_weights == "seeds"
        super().__init__(dataset, dataset.graph, settings, device, model, self.target.width)

    def trained_nodes(self) -> Tensor:
        """Return the training nodes."""
        return self.dataset.train

    def make_network(self, model: nn.Module | None) -> Network:
        """Return the network of the inputs and a model."""
        assert model is not None
        return Network(self.inputs, model)

    def make_loader(self) -> NodeFlowLoader:
        """Return the batches of training as they are drawn from the whole graph."""
        sampler = self.method.sampler(self.settings.run.seed)
        return self._shuffled(
            self.method, sampler, self.method.seeds(self.dataset.train, sampler), self.settings.run.seed
        )

    def _shuffled(self, method: Method, sampler: SamplerBase, seeds: Tensor, seed: int) -> NodeFlowLoader:
        weights = balanced_weights(method.graph.ndata["label"][seeds]) if self._balanced else None
        return self.batches_of(sampler, seeds, method.batch_size, seed, ["label"], shuffle=True, weights=weights)

    def make_batches(self, inputs: int) -> Batches:
        """Return the batches of training; with storage "partitions", of the states of a partition buffer."""
        if self.settings.storage.kind != "partitions":
            return super().make_batches(inputs)
        parts = open_partitions(self.dataset, self.graph, self.settings, self.edge_columns())

        def batches_of(state: BufferState) -> NodeFlowLoader:
            feat = state.graph.ndata["feat"]
            rows = feat if feat.dtype == self.dtype else FeatureRows(feat, self.dtype)
            method = self.settings.sampler.on(with_columns(state.graph, {"feat": rows}), self.method.model)
            return self._shuffled(method, method.sampler(state.seed), state.seeds, state.seed)

        return PartitionBatches(parts, self.method.batch_size, batches_of)

    # ---- training

    def rows(self, batch: NodeFlow) -> Tensor | None:
        """Return which rows of the outputs have a loss, a mask or, for seeds that may repeat, indices; None for all."""
        if self._balanced:
            return batch.seed_index
        return None if self.method.by_node else self._is_train[batch.seeds.cpu()].to(self.device)

    def loss(self, outputs: Tensor, batch: NodeFlow) -> Tensor:
        """Return the estimate of the mean loss over the training nodes that a batch gives, a scalar.

        With several processes the mean of their losses is that estimate.
        """
        rows, labels = self.rows(batch), batch.outputs["label"]
        if rows is not None:
            outputs, labels = outputs[rows], labels[rows]
        each = self.loss_of_rows(outputs.float(), labels)
        if self.processes.size > 1:  # the weights of this share in the mean over the whole step
            return each.sum() * self.loader.seed_weight  # type: ignore[union-attr]
        return (each * self.method.loss_weights(batch, rows, each)).sum()

    def size(self, batch: NodeFlow) -> int:
        """Return the number of nodes whose loss a batch has."""
        rows = self.rows(batch)
        if rows is None:
            return batch.layer_sizes[-1]
        return len(rows) if self._balanced else int(rows.sum())

    # ---- evaluation

    def outputs(self, nodes: Tensor, *, full: bool) -> Tensor:
        """Return the outputs of nodes, ``[n, width]``, on the CPU.

        Args:
            nodes: ids.
            full: from full neighbourhoods; else from batches that are drawn as in training, always the same.
        """
        model = self.network.model
        if full and self.method.estimates and isinstance(model, FlowModel):
            return self.full_pass(model, nodes).cpu()
        if full and self.method.estimates:
            return self.outputs_of(
                FullSampler(self.graph, len(self.settings.sampler.fanouts)), nodes, self.target.width
            )
        if not self.method.by_node:
            raise ValueError(
                f"batches of sampler {self.settings.sampler.name!r} are of all nodes of a subgraph, so outputs of some "
                "nodes come from full neighbourhoods: full=True"
            )
        return self.outputs_of(self.method.sampler(self.settings.run.seed + 1), nodes, self.target.width)

    def has(self, part: str) -> bool:
        """Return whether a part of the split has nodes."""
        return len(self.dataset.splits[part]) > 0

    def evaluate(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        """Return all metrics of the nodes of each of the parts."""
        nodes = [self.dataset.splits[part] for part in parts]
        if full and self.method.estimates and parts:  # one pass over the graph serves all parts
            outputs = self.outputs(torch.cat(nodes), full=True).split([len(ids) for ids in nodes])
        else:
            outputs = tuple(self.outputs(ids, full=full) for ids in nodes)
        labels = self.graph.ndata["label"]
        return {
            part: {name: metric(rows, labels[ids]) for name, metric in self.metrics.items()}
            for part, ids, rows in zip(parts, nodes, outputs, strict=True)
        }

    # ---- state

    def fingerprint(self) -> str:
        """Return a hash of the data and its split, by which a state of another data set is refused."""
        if self.graph.peers.size > 1:
            return fingerprint_of_parts(self.dataset)
        x: Any = self.graph.ndata.get("feat") if self.features is None else self.features
        values = entries_of(x) if isinstance(x, Tensor) else x
        hashed = [self.graph.csc()[1], self.graph.ndata["label"], values, *self.dataset.splits.values()]
        keys = [hash_of(tensor) for tensor in hashed if tensor is not None]
        if isinstance(self.batches, PartitionBatches):
            keys.append(self.batches.digest)
        return f"{derive_key(*keys):016x}"


def _metric(name: str, task: str) -> Metric:
    try:
        return named(name, task=task)
    except ValueError as error:
        raise ValueError(f"metric {name!r} cannot be used: {error}") from None
