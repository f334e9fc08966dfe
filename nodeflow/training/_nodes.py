"""The task of nodes: outputs of seeds are compared with their labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from nodeflow.datasets import Dataset
from nodeflow.flow import NodeFlow
from nodeflow.loader import NodeFlowLoader
from nodeflow.metrics import Metric, named
from nodeflow.nn import FlowModel, IgnoredWeightWarning
from nodeflow.random import derive_key
from nodeflow.sampling import FullSampler
from nodeflow.training._entering import hash_of, inputs_of, message_graph, relations_of
from nodeflow.training._methods import METHODS
from nodeflow.training._models import MODELS, build_model
from nodeflow.training._network import Network
from nodeflow.training._sent_ahead import SentAhead
from nodeflow.training._settings import Settings
from nodeflow.training._targets import Loss, find_target
from nodeflow.transform import DEGREES


class NodeTask:
    """Learn the labels of nodes: what a ``Trainer`` asks about its data, its network and its batches.

    Args:
        dataset: with a column ``label`` in its graph, and features ``feat`` unless the inputs are learned.
        settings: see ``Settings``.
        model: a model of your own, called as ``model(batch, h)``; None: that of the settings.
        loss: the loss of every row, ``loss(outputs, labels) -> [n]``; None: that of the task.
        metrics: of your own, besides those of the task; the first chooses the best epoch, unless settings do.

    Raises ValueError for data, settings and combinations that cannot be trained with.
    """

    def __init__(
        self, dataset: Dataset, settings: Settings, device: torch.device, *, model: nn.Module | None = None,
        loss: Loss | None = None, metrics: Sequence[Metric] = (),
    ) -> None:  # fmt: skip
        self.dataset, self.settings = dataset, settings
        self.target = find_target(
            dataset, settings.task, label_smoothing=settings.label_smoothing, class_weights=settings.class_weights
        )
        self.loss_of_rows = loss or self.target.loss
        own = {metric.name: metric for metric in metrics}
        chosen = settings.metric or next(iter(own), self.target.metrics[0])
        names = dict.fromkeys([chosen, *own, *self.target.metrics])
        self.metrics = {name: own[name] if name in own else _metric(name, self.target.task) for name in names}
        self.metric = self.metrics[chosen]
        self.method = METHODS[settings.sampler](message_graph(dataset, settings), settings)
        self.graph = self.method.graph
        self.device = device
        inputs = inputs_of(dataset, settings)
        self._types = relations_of(self.graph, settings)
        self.weighted = self._needs_weight()
        self._model_facts: dict[str, Any] | None = None
        if model is None:
            self._model_facts = {
                "in_features": inputs.width, "out_features": self.target.width, "weighted": self.weighted,
                "history": self.method.has_history, **self._types,
            }  # fmt: skip
            model = build_model(settings, **self._model_facts)
        self.network = Network(inputs, model)
        self.method.start(model, inputs.everywhere(self.graph).detach())
        self.network.to(self.device)
        sampler = self.method.sampler(settings.seed)
        seeds = self.method.seeds(dataset.train, sampler)
        self._is_train = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        self._is_train[dataset.train] = True
        self.batches = self._loader(sampler, seeds, self.method.batch_size, settings.seed, shuffle=True)
        self._try()

    def network_facts(self) -> dict[str, Any]:
        """Return the arguments from which the network is made again; the model's are None for one of the user's own."""
        return {"inputs": self.network.inputs.facts, "model": self._model_facts}

    # ---- training

    def rows(self, batch: NodeFlow) -> Tensor | None:
        """Return which rows of the outputs have a loss; None for all."""
        return None if self.method.by_node else self._is_train[batch.seeds.cpu()].to(self.device)

    def loss(self, outputs: Tensor, batch: NodeFlow) -> Tensor:
        """Return the estimate of the mean loss over the training nodes that a batch gives, a scalar."""
        rows, labels = self.rows(batch), batch.ldata[-1]["label"]
        if rows is not None:
            outputs, labels = outputs[rows], labels[rows]
        each = self.loss_of_rows(outputs.float(), labels)
        return (each * self.method.loss_weights(batch, rows, each)).sum()

    def size(self, batch: NodeFlow) -> int:
        """Return the number of nodes whose loss a batch has."""
        rows = self.rows(batch)
        return batch.layer_sizes[-1] if rows is None else int(rows.sum())

    def after_step(self, batch: NodeFlow) -> Tensor:
        """Store what later batches read, after a step; return the ages of the rows of a history that it had read."""
        return self.method.after_step(batch)

    # ---- state

    def fingerprint(self) -> str:
        """Return a hash of the data and its split, by which a state of another data set is refused."""
        x = self.graph.ndata.get("feat")
        values = x if x is None or x.layout == torch.strided else x.values()
        hashed = [self.graph.csc()[1], self.graph.ndata["label"], values, *self.dataset.splits.values()]
        return f"{derive_key(*(hash_of(tensor) for tensor in hashed if tensor is not None)):016x}"

    def state_dict(self) -> dict[str, Any]:
        """Return the state that steps keep."""
        return self.method.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``."""
        self.method.load_state_dict(state)

    # ---- evaluation

    def outputs(self, nodes: Tensor, *, full: bool) -> Tensor:
        """Return the outputs of nodes, ``[n, width]``, on the CPU.

        Args:
            nodes: ids.
            full: from full neighbourhoods; else from batches that are drawn as in training, always the same.
        """
        model = self.network.model
        if full and self.method.estimates and isinstance(model, FlowModel):
            x = self.network.inputs.everywhere(self.graph).detach()
            return model.inference(self.graph, x.to(self.device), nodes=nodes, weight=self.method.weight).float().cpu()
        if full and self.method.estimates:
            sampler: Any = FullSampler(self.graph, self.settings.num_layers)
        elif self.method.by_node:
            sampler = self.method.sampler(self.settings.seed + 1)
        else:
            raise ValueError(
                f"batches of sampler {self.settings.sampler!r} are of all nodes of a subgraph, so outputs of given "
                "nodes come from full neighbourhoods: full=True"
            )
        batches = self._loader(sampler, nodes, self.settings.batch_size, self.settings.seed + 1)
        found = [self.network(batch).float().cpu()[batch.seed_index.cpu()] for batch in batches]
        return torch.cat(found) if found else torch.zeros(0, self.target.width)

    def scores(self, outputs: Tensor, nodes: Tensor) -> dict[str, float]:
        """Return all metrics of the outputs ``[n, width]`` of nodes."""
        labels = self.graph.ndata["label"][nodes]
        return {name: metric(outputs, labels) for name, metric in self.metrics.items()}

    @property
    def validates_fully(self) -> bool:
        """Whether validation uses full neighbourhoods."""
        asked = self.settings.validate
        return asked == "full" or (asked == "auto" and self.method.validates_fully)

    # ---- inside

    def _loader(
        self, sampler: Any, seeds: Tensor, batch_size: int, seed: int, *, shuffle: bool = False
    ) -> NodeFlowLoader:
        layers, cuda = self.settings.num_layers, self.device.type == "cuda"
        columns: dict[int, list[str]] = {i: [] for i in range(layers + 1)}
        if self.weighted or self.settings.model not in MODELS:
            columns = {i: list(DEGREES) for i in columns}
        if self.network.inputs.features:
            columns[0] = [*columns[0], "feat"]
        columns[layers] = [*columns[layers], "label"]
        edges = list(self.graph.edata) if self.settings.model not in MODELS else []
        edges = [self._types["edge_type"]] if self._types else edges
        # a history is read as late as possible, so its batches cannot be sent ahead
        make: Callable[..., NodeFlowLoader] = NodeFlowLoader
        if cuda and self.method.has_history:
            make = partial(NodeFlowLoader, device=self.device, pin_memory=True)
        elif cuda:
            make = partial(SentAhead, target=self.device)
        return make(
            sampler, seeds, batch_size, shuffle, seed=seed, num_workers=self.settings.workers,
            ndata={i: names for i, names in columns.items() if names}, edata=edges or None,
        )  # fmt: skip

    def _needs_weight(self) -> bool:
        """Whether the edges of a batch have different weights: looked up in the first batch of the run."""
        if self.method.has_history:
            return False
        sampler = self.method.sampler(self.settings.seed)
        seeds = self.method.seeds(self.dataset.train, sampler)[: self.method.batch_size]
        return any(flow.needs_weight for flow in sampler(seeds).flows)

    def _try(self) -> None:
        """Raise ValueError where the model cannot compute the first batch, or is biased for it."""
        state, training = self.batches.state_dict(), self.network.training
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("error", IgnoredWeightWarning)
            self.network.eval()
            batch = next(iter(self.batches))
            try:
                out = self.network(batch)
            except IgnoredWeightWarning as warning:
                layer = str(warning).partition(" ")[0]
                raise ValueError(
                    f"model {self.settings.model!r} would be biased with sampler {self.settings.sampler!r}, whose "
                    f"edges have different weights: {layer} ignores them. Use model sage, gcn or gin, or sampler "
                    "neighbor, labor, bernoulli or shadow"
                ) from None
        shape = (batch.layer_sizes[-1], self.target.width)
        if not isinstance(out, Tensor) or tuple(out.shape) != shape:
            got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ValueError(f"the model must return one row of {shape[1]} outputs per seed, {list(shape)}, got {got}")
        self.network.train(training)
        self.batches.load_state_dict(state)


def _metric(name: str, task: str) -> Metric:
    try:
        return named(name, task=task)
    except ValueError as error:
        raise ValueError(f"metric {name!r} cannot be used: {error}") from None
