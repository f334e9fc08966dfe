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

from nodeflow._core.base.checks import blaming, describe
from nodeflow._core.random import derive_key
from nodeflow.datasets import Dataset, features_of
from nodeflow.distributed import BufferState
from nodeflow.flow import NodeFlow
from nodeflow.loader import LocalShuffle, NodeFlowLoader, balanced_weights
from nodeflow.metrics import Metric, named
from nodeflow.nn import FlowModel
from nodeflow.sampling import FullSampler, partition
from nodeflow.sampling.base import SamplerBase
from nodeflow.training._graph import FeatureRows, hash_of, keys_of_types, with_columns
from nodeflow.training._network import AnyInputs, Network
from nodeflow.training._partitions import PartBatches, open_partitions
from nodeflow.training._samplers import Method
from nodeflow.training._settings import Settings
from nodeflow.training._task import Batches, OwnParts, Task, task_of
from nodeflow.training._train_options import LossSettings

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
    labels = dataset.graph.ndata["label"]
    if len(dataset.train) == 0:
        raise ValueError(f"data set {dataset.name!r} has no training nodes")
    wrong_form = f"got {describe(labels)} in data set {dataset.name!r}"
    if task == "classification":
        if labels.ndim != 1 or labels.dtype != torch.int64:
            raise ValueError(f"task {task!r} needs one int64 label per node, {wrong_form}")
        num_classes = dataset.num_classes
        wrong = (labels < 0) | (labels >= num_classes)
        _check_labels(dataset, wrong, f"labels from 0 to {num_classes - 1}")
        loss = _cross_entropy(dataset, settings)
        return Target(task, num_classes, loss, ("accuracy", "f1_macro"))
    if task == "multilabel":
        if labels.ndim != 2:
            raise ValueError(f"task {task!r} needs labels [nodes, labels] of 0 and 1, {wrong_form}")
        wrong = ((labels != 0) & (labels != 1)).any(1)
        _check_labels(dataset, wrong, "labels of 0 and 1 for task 'multilabel'")
        metrics = ("f1_micro", "f1_macro", "average_precision")
        return Target(task, labels.shape[1], _binary, metrics)
    numbers = labels.float().reshape(len(labels), -1)
    wrong = ~numbers.isfinite().all(1)
    _check_labels(dataset, wrong, "finite labels")
    return Target(task, numbers.shape[1], _squared, ("rmse", "mae", "r2"))


def _check_labels(dataset: Dataset, wrong: Tensor, rule: str) -> None:
    """Raise ValueError for a node of the split whose label is ``wrong``, ``[num_nodes]``."""
    for part, nodes in dataset.splits.items():
        for node in nodes[wrong[nodes]][:1].tolist():
            label = dataset.graph.ndata["label"][node].tolist()
            raise ValueError(
                f"the {part} nodes of data set {dataset.name!r} must have {rule}, but node {node} "
                f"has {label}; take it out of the split"
            )


def _cross_entropy(dataset: Dataset, settings: LossSettings) -> Loss:
    weight = None
    if settings.class_weights == "balanced":
        # mean 1 over the labels, and the same total for every class that occurs
        labels = dataset.graph.ndata["label"][dataset.train]
        counts = torch.bincount(labels, minlength=dataset.num_classes).double()
        num_present = int((counts > 0).sum())
        weight = (len(labels) / (num_present * counts.clamp(min=1))).float()

    def cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
        options: dict[str, Any] = {"label_smoothing": settings.label_smoothing}
        if weight is not None:
            options["weight"] = weight.to(outputs)
        return functional.cross_entropy(outputs, labels, reduction="none", **options)

    return cross_entropy


def _binary(outputs: Tensor, labels: Tensor) -> Tensor:
    losses = functional.binary_cross_entropy_with_logits(
        outputs, labels.to(outputs.dtype), reduction="none"
    )
    return losses.mean(1)


def _squared(outputs: Tensor, labels: Tensor) -> Tensor:
    targets = labels.to(outputs.dtype).reshape(outputs.shape)
    return (outputs - targets).square().mean(1)


class NodeTask(Task):
    """Learn the column ``label`` of nodes, from features ``feat`` or learned rows."""

    def __init__(
        self, dataset: Dataset, settings: Settings, device: torch.device, parts: OwnParts
    ) -> None:
        self.target = find_target(dataset, settings.run.task, settings.loss)
        self.loss_of_rows = parts.loss or self.target.loss
        given = {metric.name: metric for metric in parts.metrics}
        chosen = settings.run.metric or [*given, self.target.metrics[0]][0]
        self.metrics: dict[str, Metric] = {}
        # the chosen one first; one of the user replaces the one of that name
        for name in (chosen, *given, *self.target.metrics):
            with blaming(f"metric {name!r} cannot be used", ValueError):
                self.metrics[name] = given.get(name) or named(name, task=self.target.task)
        self.metric = self.metrics[chosen]
        self._is_train = torch.zeros(dataset.graph.num_nodes, dtype=torch.bool)
        self._is_train[dataset.train] = True
        self._balanced = settings.loss.class_weights == "seeds"
        super().__init__(
            dataset,
            dataset.graph,
            settings,
            device,
            parts.model,
            self.target.width,
            dataset.train,
        )

    def check_shared(self) -> None:
        train = self.dataset.train.sort().values
        again = (train[1:] == train[:-1]).nonzero()
        if len(again):
            raise ValueError(
                "training nodes must be given once with several processes, but node "
                f"{int(train[again[0, 0]])} of data set {self.dataset.name!r} is there repeatedly"
            )
        super().check_shared()

    def description(self) -> list[str]:
        (line,) = super().description()
        found_by = ""
        if self.settings.run.task == "auto":
            found_by = " (by the labels of the split)"
        return [f"{line}; task {self.target.task}{found_by}"]

    def make_network(self, inputs: AnyInputs, model: nn.Module | None) -> Network:
        assert model is not None
        return Network(inputs, model)

    def make_loader(self) -> NodeFlowLoader:
        return self._loader_by(self.method, self.dataset.train, self.settings.run.seed)

    def _loader_by(self, method: Method, nodes: Tensor, seed: int) -> NodeFlowLoader:
        """Return the batches of ``nodes`` in a random order."""
        sampler = method.sampler(seed)
        seeds = method.seeds(nodes, sampler)
        options: dict[str, Any] = {"shuffle": True}
        if self.settings.sampler.groups:
            groups = partition(method.graph, self.settings.sampler.groups, self.settings.run.seed)
            options["shuffle"] = LocalShuffle(groups, self.settings.sampler.mix)
        if self._balanced:
            options["weights"] = balanced_weights(method.graph.ndata["label"][seeds])
        return self.loader_of(sampler, seeds, method.batch_size, seed, ["label"], **options)

    def make_batches(self, num_rows: int) -> Batches:
        """Return the batches of training; with storage "partitions", of the states of a partition
        buffer.
        """
        if self.settings.storage.kind != "partitions":
            return super().make_batches(num_rows)
        parts = open_partitions(self.dataset, self.graph, self.settings, self.edge_columns)

        def batches_of(state: BufferState) -> NodeFlowLoader:
            graph = with_columns(state.graph, {})
            dtype = self.precision.features
            for name, x in features_of(state.graph).items():
                column = x
                if x.dtype != dtype:
                    column = FeatureRows(x, dtype)
                graph.nodes[name].data["feat"] = column
            # of this state alone: degrees and weights are those of the edges in memory
            method = type(self.method)(graph, self.settings.sampler, self.method.model)
            return self._loader_by(method, state.seeds, state.seed)

        return PartBatches(parts, self.method.batch_size, batches_of)

    # ---- training

    def rows(self, batch: NodeFlow) -> Tensor | None:
        """Return which rows of the outputs have a loss, a mask or, for seeds that may repeat,
        indices; None for all.
        """
        if self._balanced:
            return batch.seed_index
        if self.method.traits.by_node:
            return None
        return self._is_train[batch.seeds.cpu()].to(self.device)

    def loss(self, outputs: Tensor, batch: NodeFlow) -> Tensor:
        rows = self.rows(batch)
        labels = batch.outputs["label"]
        if rows is not None:
            outputs = outputs[rows]
            labels = labels[rows]
        losses = self.loss_of_rows(outputs.float(), labels)
        # the weights of this share in the mean over the whole step
        if self.peers.size > 1:
            assert self.loader is not None
            return losses.sum() * self.loader.seed_weight
        weights = self.method.loss_weights(batch, rows, losses, len(self.dataset.train))
        return (losses * weights).sum()

    def size(self, batch: NodeFlow) -> int:
        rows = self.rows(batch)
        if rows is None:
            return batch.layer_sizes[-1]
        if self._balanced:
            return len(rows)
        return int(rows.sum())

    # ---- evaluation

    def outputs(self, nodes: Tensor, *, full: bool) -> Tensor:
        """Return the outputs of nodes, ``[n, width]``, on the CPU."""
        model = self.network.model
        settings = self.settings.sampler
        sampler: SamplerBase
        if full and self.method.traits.estimates:
            if isinstance(model, FlowModel):
                return self.full_pass(model, nodes).cpu()
            sampler = FullSampler(self.graph, len(settings.fanouts))
        elif self.method.traits.by_node:
            sampler = self.method.sampler(self.settings.run.seed + 1)
        else:
            raise ValueError(
                f"batches of sampler {settings.name!r} are of all nodes of a subgraph, so outputs "
                "of some nodes come from full neighbourhoods: full=True"
            )
        return self.outputs_of(sampler, nodes, self.target.width)

    def has(self, part: str) -> bool:
        return len(self.dataset.splits[part]) > 0

    def evaluate(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        nodes = [self.dataset.splits[part] for part in parts]
        outputs: Sequence[Tensor]
        if full and self.method.traits.estimates:  # one pass over the graph serves all parts
            outputs = self.outputs(torch.cat(nodes), full=True).split([len(ids) for ids in nodes])
        else:
            outputs = [self.outputs(ids, full=full) for ids in nodes]
        labels = self.graph.ndata["label"]
        scores = {}
        for part, ids, rows in zip(parts, nodes, outputs, strict=True):
            scores[part] = self._measured(rows, labels[ids])
        return scores

    def _measured(self, outputs: Tensor, labels: Tensor) -> dict[str, float]:
        """Return the metrics of some nodes; NaN where these labels give one no value, unless the
        run goes by it.
        """
        scores = {}
        for name, metric in self.metrics.items():
            try:
                scores[name] = metric(outputs, labels)
            except ValueError:
                if metric is self.metric or name not in self.target.metrics:
                    raise
                scores[name] = math.nan
        return scores

    def fingerprint(self) -> str:
        graph = self.dataset.graph
        labels = self.graph.ndata["label"]
        splits = self.dataset.splits.values()
        # the same for any cut of the graph that does not renumber nodes
        if self.graph.peers.size > 1:
            hashes = map(hash_of, (labels, *splits))
            return f"{derive_key(graph.num_nodes, graph.num_edges, *hashes):016x}"
        arrays: list[Any] = [self.graph.csc()[1], labels, *self.features.values(), *splits]
        keys: list[Any] = [*map(hash_of, arrays), *keys_of_types(graph)]
        if isinstance(self.batches, PartBatches):
            keys.append(self.batches.digest)
        return f"{derive_key(*keys):016x}"
