"""The task of nodes: outputs of seeds are compared with their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from nodeflow.datasets import Dataset
from nodeflow.flow import NodeFlow
from nodeflow.loader import NodeFlowLoader, balanced_weights
from nodeflow.metrics import Metric, named
from nodeflow.nn import FlowModel
from nodeflow.random import derive_key
from nodeflow.sampling import FullSampler
from nodeflow.storage import BufferState
from nodeflow.training._entering import message_graph, type_of_features
from nodeflow.training._features import FeatureRows, hash_of
from nodeflow.training._methods import METHODS, with_columns
from nodeflow.training._network import Network
from nodeflow.training._partition_batches import PartitionBatches
from nodeflow.training._partition_folder import hash_of_partitions, open_partitions
from nodeflow.training._parts import fingerprint_of_parts
from nodeflow.training._settings import Settings
from nodeflow.training._targets import Loss, find_target
from nodeflow.training._task import Task


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
        self, dataset: Dataset, settings: Settings, device: torch.device, *, model: nn.Module | None = None,
        loss: Loss | None = None, metrics: Sequence[Metric] = (),
    ) -> None:  # fmt: skip
        self.target = find_target(
            dataset, settings.task, label_smoothing=settings.label_smoothing, class_weights=settings.class_weights
        )
        self.loss_of_rows = loss or self.target.loss
        own = {metric.name: metric for metric in metrics}
        chosen = settings.metric or next(iter(own), self.target.metrics[0])
        names = dict.fromkeys([chosen, *own, *self.target.metrics])
        self.metrics = {name: own[name] if name in own else _metric(name, self.target.task) for name in names}
        self.metric = self.metrics[chosen]
        own_model = model is not None
        super().__init__(dataset, message_graph(dataset.graph, settings, own_model=own_model), settings, device)
        model = self.build(model, self.target.width, self._probe)
        self.network = Network(self.inputs, model).to(device)
        sampler = self.method.sampler(settings.seed)
        seeds = self.method.seeds(dataset.train, sampler)
        self._is_train = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        self._is_train[dataset.train] = True
        self._drawn = settings.class_weights == "seeds"
        labels = self.graph.ndata["label"]
        loader = self.loader(
            sampler, seeds, self.method.batch_size, settings.seed, shuffle=True, seed_columns=("label",),
            weights=balanced_weights(labels[seeds]) if self._drawn else None,
        )  # fmt: skip
        self._loader = loader
        read = self.try_first_batch(loader, self.target.width)
        self.batches = self.planned(loader, read) if settings.storage != "partitions" else self._partitioned(own_model)

    def _probe(self) -> NodeFlow:
        sampler = self.method.sampler(self.settings.seed)
        return sampler(self.method.seeds(self.dataset.train, sampler)[: self.method.batch_size])

    def _partitioned(self, own_model: bool) -> PartitionBatches:
        """Return batches of the states of a partition buffer, drawn as those of the whole graph would be."""
        settings, dtype = self.settings, type_of_features(self.settings, own_model=own_model)
        buffer = open_partitions(self.dataset, self.graph, settings, self.edge_columns())

        def batches_of(state: BufferState) -> NodeFlowLoader:
            feat = state.graph.ndata["feat"]
            rows = feat if feat.dtype == dtype else FeatureRows(feat, dtype)
            method = METHODS[settings.sampler](with_columns(state.graph, {"feat": rows}), settings)
            return self.loader(
                method.sampler(state.seed), state.seeds, method.batch_size, state.seed, shuffle=True,
                seed_columns=("label",),
                weights=balanced_weights(state.graph.ndata["label"][state.seeds]) if self._drawn else None,
            )  # fmt: skip

        return PartitionBatches(buffer, self.method.batch_size, batches_of)

    def trained_nodes(self) -> Tensor:
        """Return the training nodes."""
        return self.dataset.train

    # ---- training

    def rows(self, batch: NodeFlow) -> Tensor | None:
        """Return which rows of the outputs have a loss, a mask or, for seeds that may repeat, indices; None for all."""
        if self._drawn:
            return batch.seed_index
        return None if self.method.by_node else self._is_train[batch.seeds.cpu()].to(self.device)

    def loss(self, outputs: Tensor, batch: NodeFlow) -> Tensor:
        """Return the estimate of the mean loss over the training nodes that a batch gives, a scalar.

        With several processes the mean of their losses is that estimate.
        """
        rows, labels = self.rows(batch), batch.ldata[-1]["label"]
        if rows is not None:
            outputs, labels = outputs[rows], labels[rows]
        each = self.loss_of_rows(outputs.float(), labels)
        if self.processes.size > 1:  # the weights of this share in the mean over the whole step
            return each.sum() * self._loader.seed_weight
        return (each * self.method.loss_weights(batch, rows, each)).sum()

    def size(self, batch: NodeFlow) -> int:
        """Return the number of nodes whose loss a batch has."""
        rows = self.rows(batch)
        if rows is None:
            return batch.layer_sizes[-1]
        return len(rows) if self._drawn else int(rows.sum())

    # ---- evaluation

    def outputs(self, nodes: Tensor, *, full: bool) -> Tensor:
        """Return the outputs of nodes, ``[n, width]``, on the CPU.

        Args:
            nodes: ids.
            full: from full neighbourhoods; else from batches that are drawn as in training, always the same.
        """
        model = self.network.model
        if full and self.method.estimates and isinstance(model, FlowModel):
            if self.graph.peers is not None:
                return self._outputs_of_parts(model, nodes)
            return self.full_pass(model, nodes=nodes, weight=self.method.weight).cpu()
        if full and self.method.estimates:
            sampler: Any = FullSampler(self.graph, self.settings.num_layers)
        elif self.method.by_node:
            sampler = self.method.sampler(self.settings.seed + 1)
        else:
            raise ValueError(
                f"batches of sampler {self.settings.sampler!r} are of all nodes of a subgraph, so outputs of given "
                "nodes come from full neighbourhoods: full=True"
            )
        place = {"place": torch.arange(len(nodes))}
        batches = self.loader(sampler, nodes, self.settings.batch_size, self.settings.seed + 1, seed_data=place)
        places, found = [torch.zeros(0, dtype=torch.int64)], [torch.zeros(0, self.target.width)]
        for batch in batches:
            places.append(batch.seed_data["place"].cpu())
            found.append(self.network(batch).float().cpu()[batch.seed_index.cpu()])
        return self.processes.rows_of_all(torch.cat(places), torch.cat(found), len(nodes))

    def _outputs_of_parts(self, model: FlowModel, nodes: Tensor) -> Tensor:
        """The outputs of nodes, each computed by the process that owns it."""
        owners = self.graph.peers.owners(nodes.numpy())  # type: ignore[union-attr]
        places = torch.from_numpy((owners == self.processes.rank).nonzero()[0])
        found = model.inference(self.graph, self.inputs.everywhere(self.graph), nodes=nodes[places]).float().cpu()
        return self.processes.rows_of_all(places, found, len(nodes))

    def has(self, part: str) -> bool:
        """Return whether a part of the split has nodes."""
        return len(self.dataset.splits[part]) > 0

    def evaluate(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        """Return all metrics of the nodes of each of the parts."""
        nodes = [self.dataset.splits[part] for part in parts]
        if full and self.method.estimates and parts:  # one pass over the graph serves all parts
            found = self.outputs(torch.cat(nodes), full=True).split([len(ids) for ids in nodes])
        else:
            found = tuple(self.outputs(ids, full=full) for ids in nodes)
        labels = self.graph.ndata["label"]
        return {
            part: {name: metric(outputs, labels[ids]) for name, metric in self.metrics.items()}
            for part, ids, outputs in zip(parts, nodes, found, strict=True)
        }

    # ---- state

    def fingerprint(self) -> str:
        """Return a hash of the data and its split, by which a state of another data set is refused."""
        if self.graph.peers is not None:
            return fingerprint_of_parts(self.dataset)
        x: Any = self.graph.ndata.get("feat") if self.features is None else self.features
        values = x if not isinstance(x, Tensor) or x.layout == torch.strided else x.values()
        hashed = [self.graph.csc()[1], self.graph.ndata["label"], values, *self.dataset.splits.values()]
        keys = [hash_of(tensor) for tensor in hashed if tensor is not None]
        if isinstance(self.batches, PartitionBatches):
            keys.append(hash_of_partitions(self.batches.buffer.partitions))
        return f"{derive_key(*keys):016x}"


def _metric(name: str, task: str) -> Metric:
    try:
        return named(name, task=task)
    except ValueError as error:
        raise ValueError(f"metric {name!r} cannot be used: {error}") from None
