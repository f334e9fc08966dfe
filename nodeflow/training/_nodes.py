"""The task of nodes: outputs of seeds are compared with their labels, which are classes, several
labels, or numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from nodeflow.datasets import Dataset, features_of
from nodeflow.flow import NodeFlow
from nodeflow.loader import LocalShuffle, NodeFlowLoader, balanced_weights
from nodeflow.metrics import Metric, named
from nodeflow.nn import FlowModel
from nodeflow.partitions import BufferState
from nodeflow.random import derive_key
from nodeflow.sampling import FullSampler, partition
from nodeflow.sampling.base import SamplerBase
from nodeflow.training._graph import FeatureRows, hash_of, keys_of_types, with_columns
from nodeflow.training._groups import LossSettings
from nodeflow.training._network import Network
from nodeflow.training._partitions import PartBatches, open_partitions
from nodeflow.training._samplers import Method
from nodeflow.training._settings import Settings
from nodeflow.training._task import Batches, OwnParts, Task, task_of

Loss = Callable[[Tensor, Tensor], Tensor]
"""Takes outputs ``[n, width]`` and labels ``[n, ...]``; returns one loss per row, ``[n]``."""


class Target(NamedTuple):
    """Labels as a task: outputs per node, loss of every row, and metrics, of which the first
    chooses the best epoch.
    """

    task: str
    width: int
    loss: Loss
    metrics: tuple[str, ...]


def find_target(dataset: Dataset, task: str, settings: LossSettings) -> Target:
    """Return the target for ``task`` and the labels of a data set; raises ValueError if they don't
    fit.
    """
    task = task_of(dataset, task)
    name = dataset.name
    labels = dataset.graph.ndata["label"]
    if len(dataset.train) == 0:
        raise ValueError(f"data set {name!r} has no training nodes")
    if task == "classification":
        if labels.ndim != 1 or labels.dtype != torch.int64:
            raise ValueError(
                f"task 'classification' needs one int64 label per node, got {labels.dtype} "
                f"{tuple(labels.shape)} in data set {name!r}"
            )
        wrong = (labels < 0) | (labels >= dataset.num_classes)
        _check_labels(dataset, wrong, f"labels from 0 to {dataset.num_classes - 1}")
        balanced = settings.class_weights == "balanced"
        weight = _balanced(labels[dataset.train], dataset.num_classes) if balanced else None

        def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
            each = None if weight is None else weight.to(outputs)
            return functional.cross_entropy(
                outputs,
                labels,
                weight=each,
                reduction="none",
                label_smoothing=settings.label_smoothing,
            )

        return Target(task, dataset.num_classes, cross_entropy, ("accuracy", "f1_macro"))
    if task == "multilabel":
        if labels.ndim != 2:
            raise ValueError(
                "task 'multilabel' needs labels [nodes, labels] of 0 and 1, got "
                f"{tuple(labels.shape)}"
            )
        _check_labels(
            dataset,
            ((labels != 0) & (labels != 1)).any(1),
            "labels of 0 and 1 for task 'multilabel'",
        )
        return Target(task, labels.shape[1], _binary, ("f1_micro", "f1_macro", "average_precision"))
    _check_labels(
        dataset, ~torch.isfinite(labels.float()).reshape(len(labels), -1).all(1), "finite labels"
    )
    return Target(
        "regression", 1 if labels.ndim == 1 else labels.shape[1], _squared, ("rmse", "mae", "r2")
    )


def _check_labels(dataset: Dataset, wrong: Tensor, rule: str) -> None:
    """Raise ValueError for a node of the split whose label is ``wrong``, ``[num_nodes]``."""
    for part, nodes in dataset.splits.items():
        for node in nodes[wrong[nodes]].tolist():
            label = dataset.graph.ndata["label"][node].tolist()
            raise ValueError(
                f"the {part} nodes of data set {dataset.name!r} must have {rule}, but node {node} "
                f"has {label}; take it out of the split"
            )


def _balanced(labels: Tensor, num_classes: int) -> Tensor:
    """Class weights with mean 1 over the labels and the same total for every class that occurs."""
    counts = torch.bincount(labels, minlength=num_classes).double()
    return (len(labels) / (int((counts > 0).sum()) * counts.clamp(min=1))).float()


def _binary(outputs: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(
        outputs, labels.to(outputs.dtype), reduction="none"
    ).mean(1)


def _squared(outputs: Tensor, labels: Tensor) -> Tensor:
    return (outputs - labels.to(outputs.dtype).reshape(outputs.shape)).square().mean(1)


class NodeTask(Task):
    """Learn the column ``label`` of nodes, from features ``feat`` or learned rows."""

    def __init__(
        self, dataset: Dataset, settings: Settings, device: torch.device, own: OwnParts
    ) -> None:
        self.target = find_target(dataset, settings.run.task, settings.loss)
        self.loss_of_rows = own.loss or self.target.loss
        metrics = {metric.name: metric for metric in own.metrics}
        chosen = settings.run.metric or next(iter(metrics), self.target.metrics[0])
        names = dict.fromkeys([chosen, *metrics, *self.target.metrics])
        self.metrics = {
            name: metrics[name] if name in metrics else _metric(name, self.target.task)
            for name in names
        }
        self.metric = self.metrics[chosen]
        self._is_train = torch.zeros(dataset.graph.num_nodes, dtype=torch.bool)
        self._is_train[dataset.train] = True
        self._balanced = settings.loss.class_weights == "seeds"
        super().__init__(dataset, dataset.graph, settings, device, own.model, self.target.width)

    def _check_shared(self) -> None:
        train = self.dataset.train.sort().values
        again = (train[1:] == train[:-1]).nonzero()
        if len(again):
            raise ValueError(
                "training nodes must be given once with several processes, but node "
                f"{int(train[again[0, 0]])} of data set {self.dataset.name!r} is there repeatedly"
            )
        super()._check_shared()

    def description(self) -> list[str]:
        told = " (by the labels of the split)" if self.settings.run.task == "auto" else ""
        return [f"{'; '.join(super().description())}; task {self.target.task}{told}"]

    def trained_nodes(self) -> Tensor:
        return self.dataset.train

    def make_network(self, model: nn.Module | None) -> Network:
        assert model is not None
        return Network(self.inputs, model)

    def make_loader(self) -> NodeFlowLoader:
        sampler = self.method.sampler(self.settings.run.seed)
        seed = self.settings.run.seed
        return self._shuffled(
            self.method, sampler, self.method.seeds(self.dataset.train, sampler), seed
        )

    def _shuffled(
        self, method: Method, sampler: SamplerBase, seeds: Tensor, seed: int
    ) -> NodeFlowLoader:
        weights = balanced_weights(method.graph.ndata["label"][seeds]) if self._balanced else None
        groups = self.settings.sampler.groups
        mix = self.settings.sampler.mix
        shuffle = (
            LocalShuffle(partition(method.graph, groups, self.settings.run.seed), mix)
            if groups
            else True
        )
        return self.batches_of(
            sampler, seeds, method.batch_size, seed, ["label"], shuffle=shuffle, weights=weights
        )

    def make_batches(self, inputs: int) -> Batches:
        """Return the batches of training; with storage "partitions", of the states of a partition
        buffer.
        """
        if self.settings.storage.kind != "partitions":
            return super().make_batches(inputs)
        parts = open_partitions(self.dataset, self.graph, self.settings, self.edge_columns())

        def batches_of(state: BufferState) -> NodeFlowLoader:
            graph = with_columns(state.graph, {})
            for name, x in features_of(state.graph).items():
                graph.nodes[name].data["feat"] = (
                    x if x.dtype == self.dtype else FeatureRows(x, self.dtype)
                )
            method = type(self.method)(graph, self.settings.sampler, self.method.model)
            return self._shuffled(method, method.sampler(state.seed), state.seeds, state.seed)

        return PartBatches(parts, self.method.batch_size, batches_of)

    # ---- training

    def rows(self, batch: NodeFlow) -> Tensor | None:
        """Return which rows of the outputs have a loss, a mask or, for seeds that may repeat,
        indices; None for all.
        """
        if self._balanced:
            return batch.seed_index
        return (
            None
            if self.method.traits.by_node
            else self._is_train[batch.seeds.cpu()].to(self.device)
        )

    def loss(self, outputs: Tensor, batch: NodeFlow) -> Tensor:
        rows = self.rows(batch)
        labels = batch.outputs["label"]
        if rows is not None:
            outputs = outputs[rows]
            labels = labels[rows]
        each = self.loss_of_rows(outputs.float(), labels)
        if self.peers.size > 1:  # the weights of this share in the mean over the whole step
            return each.sum() * self.loader.seed_weight  # type: ignore[union-attr]
        return (each * self.method.loss_weights(batch, rows, each, len(self.dataset.train))).sum()

    def size(self, batch: NodeFlow) -> int:
        rows = self.rows(batch)
        if rows is None:
            return batch.layer_sizes[-1]
        return len(rows) if self._balanced else int(rows.sum())

    # ---- evaluation

    def outputs(self, nodes: Tensor, *, full: bool) -> Tensor:
        """Return the outputs of nodes, ``[n, width]``, on the CPU."""
        model = self.network.model
        sampler = self.settings.sampler
        if full and self.method.traits.estimates:
            if isinstance(model, FlowModel):
                return self.full_pass(model, nodes).cpu()
            return self.outputs_of(
                FullSampler(self.graph, len(sampler.fanouts)), nodes, self.target.width
            )
        if not self.method.traits.by_node:
            raise ValueError(
                f"batches of sampler {sampler.name!r} are of all nodes of a subgraph, so outputs "
                "of some nodes come from full neighbourhoods: full=True"
            )
        return self.outputs_of(
            self.method.sampler(self.settings.run.seed + 1), nodes, self.target.width
        )

    def has(self, part: str) -> bool:
        return len(self.dataset.splits[part]) > 0

    def evaluate(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        nodes = [self.dataset.splits[part] for part in parts]
        if (
            full and self.method.traits.estimates and parts
        ):  # one pass over the graph serves all parts
            outputs = self.outputs(torch.cat(nodes), full=True).split([len(ids) for ids in nodes])
        else:
            outputs = tuple(self.outputs(ids, full=full) for ids in nodes)
        labels = self.graph.ndata["label"]
        return {
            part: {name: self._measured(name, rows, labels[ids]) for name in self.metrics}
            for part, ids, rows in zip(parts, nodes, outputs, strict=True)
        }

    def _measured(self, name: str, outputs: Tensor, labels: Tensor) -> float:
        """Return a metric of some nodes; NaN where these labels give it no value, unless the run
        goes by it.
        """
        metric = self.metrics[name]
        try:
            return metric(outputs, labels)
        except ValueError:
            if metric is self.metric or name not in self.target.metrics:
                raise
            return math.nan

    def fingerprint(self) -> str:
        graph = self.dataset.graph
        columns = [self.graph.ndata["label"], *self.dataset.splits.values()]
        # the same for any cut of the graph that does not renumber nodes
        if self.graph.peers.size > 1:
            return f"{derive_key(graph.num_nodes, graph.num_edges, *map(hash_of, columns)):016x}"
        arrays: list[Any] = [self.graph.csc()[1], columns[0], *self.features.values(), *columns[1:]]
        keys: list[Any] = [*map(hash_of, arrays), *keys_of_types(graph)]
        if isinstance(self.batches, PartBatches):
            keys.append(self.batches.digest)
        return f"{derive_key(*keys):016x}"


def _metric(name: str, task: str) -> Metric:
    try:
        return named(name, task=task)
    except ValueError as error:
        raise ValueError(f"metric {name!r} cannot be used: {error}") from None
