"""Task: what a trainer asks about data, network and batches."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from nodeflow._base.sizes import as_bytes
from nodeflow._rows.rows import whole_column
from nodeflow.datasets import Dataset
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.metrics import Metric
from nodeflow.nn import FlowModel, IgnoredWeightWarning
from nodeflow.sampling import SamplerBase
from nodeflow.storage import Cached, Lookahead
from nodeflow.storage._cached import row_bytes
from nodeflow.training._entering import inputs_of, relations_of
from nodeflow.training._features import FeatureRows
from nodeflow.training._methods import METHODS
from nodeflow.training._models import MODELS, build_model
from nodeflow.training._network import Network, precision_of
from nodeflow.training._partition_batches import PartitionBatches
from nodeflow.training._processes import Processes
from nodeflow.training._sent_ahead import SentAhead
from nodeflow.training._settings import Settings
from nodeflow.transform import DEGREES

PARTS = ("train", "val", "test")
"""The parts of a split."""


class Batches(Protocol):
    """The batches of epochs, in an order that depends on the epoch alone, such as a ``NodeFlowLoader``."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Task(ABC):
    """What a ``Trainer`` asks about its data, its network and its batches.

    Args:
        dataset: the data set.
        graph: the graph along whose edges messages go.
        settings: see ``Settings``.
        device: where the network is.

    Attributes: ``network``; ``batches``, those of training; ``metrics`` by name, and ``metric``, which chooses the best
    epoch; ``weighted``, whether the edges of a batch have different estimator weights.
    """

    batches: Batches
    network: Network
    metrics: Mapping[str, Metric]
    metric: Metric

    def __init__(self, dataset: Dataset, graph: Graph, settings: Settings, device: torch.device) -> None:
        self.dataset, self.settings, self.device = dataset, settings, device
        self.processes = Processes.present()
        self.method = METHODS[settings.sampler](graph, settings)
        self.graph = self.method.graph
        column = self.graph.ndata.get("feat")
        self.features = column if isinstance(column, FeatureRows) else None
        self._types = relations_of(self.graph, settings)
        self._model_facts: dict[str, Any] | None = None
        self._own_model = False

    def build(self, model: nn.Module | None, out_features: int, probe: Callable[[], NodeFlow]) -> nn.Module:
        """Return the model, a new one unless it is given, and make the network's inputs and the method's state.

        ``probe`` draws a batch that says whether edges have different weights.
        """
        self.build_inputs()
        self._own_model = model is not None or self.settings.model not in MODELS
        self.weighted = not self.method.has_history and any(flow.needs_weight for flow in probe().flows)
        if model is None:
            self._model_facts = {
                "in_features": self.inputs.width, "out_features": out_features, "weighted": self.weighted,
                "history": self.method.has_history, **self._types,
            }  # fmt: skip
            model = build_model(self.settings, **self._model_facts)
        if self.method.has_history:
            self.method.start(model, whole_column(self.inputs.everywhere(self.graph)).detach())
        return model

    def build_inputs(self) -> None:
        """Make the network's inputs, for no model."""
        self.inputs, self.weighted = inputs_of(self.dataset, self.settings, self.features), False
        if self.features is not None and self.settings.storage == "cached":
            heat = self.method.heat(self.trained_nodes())
            self.graph.ndata["feat"] = Cached(self.features, heat, self.settings.memory)

    def network_facts(self) -> dict[str, Any]:
        """Return the arguments from which the network is made again; the model's are None for one of the user's own."""
        return {"inputs": self.inputs.facts, "model": self._model_facts}

    # ---- training

    @abstractmethod
    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        """Return the loss of a batch, a scalar, from what ``network(batch)`` gave."""

    @abstractmethod
    def size(self, batch: Any) -> int:
        """Return the number of items whose loss a batch has."""

    def after_step(self, batch: Any) -> Tensor:
        """Store what later batches read, after a step; return the ages of the rows of a history that it had read."""
        return self.method.after_step(batch)

    def num_batches(self, epoch: int) -> int:
        """Return the number of batches of an epoch of training, counted from 0."""
        if isinstance(self.batches, PartitionBatches):
            return self.batches.num_batches(epoch)
        return len(self.batches)

    @property
    def told(self) -> str:
        """What the settings and the data set do not tell of the task, in a line; empty where there is nothing."""
        return ""

    # ---- evaluation

    @abstractmethod
    def has(self, part: str) -> bool:
        """Return whether a part of the split, "train", "val" or "test", has anything."""

    @abstractmethod
    def evaluate(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        """Return all metrics of each of the parts, which have something.

        ``full``: from full neighbourhoods; else from batches that are drawn as in training, always the same.
        """

    @property
    def validates_fully(self) -> bool:
        """Whether validation uses full neighbourhoods."""
        asked = self.settings.validate
        return asked == "full" or (asked == "auto" and self.method.validates_fully)

    # ---- state

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of the data and its split, by which a state of another data set is refused."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state that steps keep."""
        return self.method.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``."""
        self.method.load_state_dict(state)

    # ---- for subclasses

    @abstractmethod
    def trained_nodes(self) -> Tensor:
        """Return the ids of the nodes that are seeds of an epoch, repeated ones as often as they are."""

    def planned(self, batches: NodeFlowLoader, inputs: int) -> Batches:
        """Return the batches of training, whose features are read as planned where the settings say so.

        ``inputs``: about how many rows a batch reads. The plan takes 8 bytes for each row that it foresees: it foresees
        as many batches as take no more than the rows in memory do, 16 at least, and at most an epoch.
        """
        settings, window = self.settings, len(batches)
        if settings.storage != "lookahead":
            return batches
        foreseen = max(as_bytes(settings.memory, "memory") // (8 * max(inputs, 1)), 16)
        heat = None if foreseen >= window else self.method.heat(self.trained_nodes())
        return Lookahead(batches, settings.memory, window=min(window, foreseen), epochs=settings.epochs, heat=heat)

    def full_pass(self, model: FlowModel, **options: Any) -> Tensor:
        """Return ``model.inference`` of the graph, float32; from features in a file it computes in files too."""
        x = self.inputs.everywhere(self.graph)
        if isinstance(x, Tensor):
            return model.inference(self.graph, x.detach().to(self.device), **options).float()
        # of a piece of the nodes, the rows of about all their neighbours are in memory
        piece = (1 + self.graph.num_edges / max(self.graph.num_nodes, 1)) * row_bytes(x)
        size = int(min(max(as_bytes(self.settings.memory, "memory") / max(piece, 1), 256), 65_536))
        with TemporaryDirectory(prefix="nodeflow-") as folder:
            return model.inference(self.graph, x, folder=folder, chunk_size=size, **options).float()

    def edge_columns(self) -> list[str]:
        """Return the names of the edge columns that the network reads: types, or all for a model of a user's own."""
        if self._types:
            return [self._types["edge_type"]]
        return list(self.graph.edata) if self._own_model else []

    def loader(
        self, sampler: SamplerBase, seeds: Tensor, batch_size: int, seed: int, *, shuffle: bool = False,
        seed_columns: tuple[str, ...] = (), weights: Tensor | None = None, seed_data: dict[str, Tensor] | None = None,
    ) -> NodeFlowLoader:  # fmt: skip
        """Return batches with the columns that the network reads, and ``seed_columns`` in the last layer.

        With several processes each has its share of every batch. ``weights``: of the seeds, which are then drawn in
        proportion to them. ``seed_data``: columns by seed.
        """
        layers, cuda = sampler.num_flows, self.device.type == "cuda"
        columns: dict[int, list[str]] = {i: [] for i in range(layers + 1)}
        if self.weighted or self._own_model:
            columns = {i: list(DEGREES) for i in columns}
        if self.inputs.features:
            columns[0] = [*columns[0], "feat"]
        columns[layers] = [*columns[layers], *seed_columns]
        edges = self.edge_columns()
        # a history is read as late as possible, and planned rows are put into batches when they are taken: neither can
        # be sent ahead
        make: Callable[..., NodeFlowLoader] = NodeFlowLoader
        if cuda and (self.method.has_history or self.settings.storage == "lookahead"):
            make = partial(NodeFlowLoader, device=self.device, pin_memory=True)
        elif cuda:
            make = partial(SentAhead, target=self.device)
        return make(
            sampler, seeds, batch_size, shuffle, seed=seed, num_workers=self.settings.workers,
            ndata={i: names for i, names in columns.items() if names}, edata=edges or None, weights=weights,
            seed_data=seed_data, rank=self.processes.rank, world_size=self.processes.size, share=self.settings.share,
        )  # fmt: skip

    def try_first_batch(self, batches: NodeFlowLoader, width: int) -> int:
        """Return how many rows enter the first of the batches.

        Raises ValueError where the model cannot compute it, or is biased for it.

        ``width``: that of the outputs of the network.
        """
        state, training = batches.state_dict(), self.network.training
        with warnings.catch_warnings(), torch.no_grad(), precision_of(self.settings, self.device):
            warnings.simplefilter("error", IgnoredWeightWarning)
            self.network.eval()
            batch = next(iter(batches))
            try:
                out = self.network(batch)
            except IgnoredWeightWarning as warning:
                layer = str(warning).partition(" ")[0]
                raise ValueError(
                    f"model {self.settings.model!r} would be biased with sampler {self.settings.sampler!r}, whose "
                    f"edges have different weights: {layer} ignores them. {_without_bias(self.settings)}"
                ) from None
            finally:
                self.network.train(training)
                batches.load_state_dict(state)
        shape = (batch.layer_sizes[-1], width)
        if not isinstance(out, Tensor) or tuple(out.shape) != shape:
            got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ValueError(f"the model must return one row of {shape[1]} outputs per seed, {list(shape)}, got {got}")
        return batch.layer_sizes[0]


def _without_bias(settings: Settings) -> str:
    """Say what to change where a model ignores the weights of a sampler."""
    if settings.model_options.get("weighted") is False:
        return "Leave out weighted = false of model_options"
    if "prob" in settings.sampler_options:
        return "Use model sage, gcn or gin, or leave out prob of sampler_options"
    return "Use model sage, gcn or gin, or sampler neighbor, labor, bernoulli or shadow"
