"""The samplers of training runs: arguments, seeds of an epoch, and weights of the loss."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nodeflow import sampling
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.distributed import DistributedGraph
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn import VRModel
from nodeflow.sampling.base import SamplerBase
from nodeflow.storage import Rows, degree_heat, reach_heat
from nodeflow.training._choices import SAMPLERS, SamplerTraits
from nodeflow.training._graph import with_columns, with_mean_weights
from nodeflow.training._models import ModelKind
from nodeflow.training._train_options import SamplerSettings
from nodeflow.transform import DEGREES, add_self_loops, edge_norm

_WEIGHT = "propagation"
# the model says what its sums are weighted with, reads the own rows of nodes, and full
# neighbourhoods would not follow a filter of edges
_FIXED_BY_MODEL = ("weight", "edge_filter", "include_dst")
_SAID_ELSEWHERE = (
    "graph",
    "fanouts",
    "layer_sizes",
    "num_flows",
    "num_neighbors",
    "history",
    "seed",
    "direction",
)
_RESERVED = {"self", *_SAID_ELSEWHERE, *_FIXED_BY_MODEL}


class Method:
    """A sampler in training: its batches, the seeds of an epoch, and state that persists between
    steps.

    The parent graph, whose edges messages follow, is never changed.

    Attributes:
        make: the sampler's class.
        draws_neighbors: whether every edge into a node is drawn with the same probability, fanout /
            in-degree.
        weight: the edge column that sums over neighbours are weighted with, for ``inference``.
    """

    make: ClassVar[Callable[..., SamplerBase]]
    draws_neighbors: ClassVar[bool] = False
    weight: ClassVar[str | None] = None

    def __init__(self, graph: Graph, settings: SamplerSettings, model: ModelKind) -> None:
        self.settings = settings
        self.model = model
        self.graph = self.prepared(graph)
        self.batch_size = settings.batch_size

    @classmethod
    def check(cls, settings: SamplerSettings) -> None:
        """Raise ValueError for options and fanouts that the sampler does not have."""
        options = [name for name in inspect.signature(cls.make).parameters if name not in _RESERVED]
        traits = SAMPLERS[settings.name]
        if not traits.by_type and any(isinstance(size, dict) for size in settings.fanouts):
            raise ValueError(
                f"fanouts by name do not go with sampler {settings.name!r}; got "
                f"{list(settings.fanouts)}"
            )
        for name, value in settings.options.items():
            if name not in options:
                raise ValueError(
                    f"sampler_options: {name!r} (= {value!r}) is no option of sampler "
                    f"{settings.name!r} here; those are {', '.join(options)}"
                )

    @property
    def traits(self) -> SamplerTraits:
        """What rules say of the sampler."""
        return SAMPLERS[self.settings.name]

    def prepared(self, graph: Graph) -> Graph:
        """Return the graph with the columns that weighted means read; collective where it lies on
        several processes.
        """
        degrees = (graph.in_degrees().float(), graph.out_degrees().float())
        return with_columns(graph, dict(zip(DEGREES, degrees, strict=True)))

    def sampler(self, seed: int) -> SamplerBase:
        """Return a sampler of the batches that the model takes, for training and for validation."""
        return self._made(self.settings.fanouts, seed=seed)

    def _made(self, *sizes: Any, **options: Any) -> SamplerBase:
        return type(self).make(self.graph, *sizes, **{**options, **self.settings.options})

    def seeds(self, nodes: Tensor, sampler: SamplerBase) -> Tensor:
        """Return the seeds of an epoch over ``nodes``."""
        return nodes

    def heat(self, nodes: Tensor) -> Tensor:
        """Return about how often each node is read in an epoch over ``nodes``, ``[num_nodes]``, to
        a factor.
        """
        # a column of edge types has numbers of its own
        if (
            self.draws_neighbors
            and self.graph.peers.size == 1
            and "edge_type" not in self.settings.options
        ):
            return reach_heat(self.graph, nodes, self.settings.fanouts, self.settings.batch_size)
        return degree_heat(self.graph)

    def loss_weights(
        self, batch: NodeFlow, rows: Tensor | None, loss: Tensor, count: int
    ) -> Tensor:
        """Return factors of the losses of ``rows``, None for all, whose sum estimates the mean over
        ``count`` nodes.
        """
        return loss.new_full(loss.shape, 1 / max(len(loss), 1))

    def start(self, model: nn.Module, x: Tensor | Rows) -> None:
        """Prepare the persistent state, for an untrained model and its input rows ``x``."""

    def after_step(self, batch: NodeFlow) -> Tensor:
        """Store the rows of the batch, with the new weights; return the ages in steps of the
        history rows it read.
        """
        return torch.empty(0, dtype=torch.int64, device="cpu")

    def state_dict(self) -> dict[str, Any]:
        """Return the persistent state; collective on parts of a graph."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a saved state."""


class RandomWalk(Method):
    """The neighbours that walks visit most, with shares of visits as weights (Ying et al. 2018)."""

    make = sampling.RandomWalkSampler

    def prepared(self, graph: Graph) -> Graph:
        # in-degrees of 1: the weights of a node's neighbours add up to 1 already
        ones = torch.ones_like(graph.in_degrees(), dtype=torch.float32)
        return with_columns(graph, dict.fromkeys(DEGREES, ones))

    def sampler(self, seed: int) -> SamplerBase:
        return self._made(len(self.settings.fanouts), self.settings.fanouts, seed=seed)


class Shadow(Method):
    """A subgraph of ``fanouts`` drawn neighbours per node and hop for every seed (Zeng et al.
    2021).
    """

    make = sampling.ShadowSampler

    @classmethod
    def check(cls, settings: SamplerSettings) -> None:
        super().check(settings)
        if any(size != settings.fanouts[0] for size in settings.fanouts):
            raise ValueError(
                f"fanouts must be one number, repeated for every layer, with sampler 'shadow'; got "
                f"{list(settings.fanouts)}"
            )

    def sampler(self, seed: int) -> SamplerBase:
        """Return a sampler of subgraphs, two hops deep unless ``sampler_options`` say else."""
        sizes = self.settings.fanouts
        return self._made(len(sizes), depth=2, fanout=sizes[-1], seed=seed)


class Saint(Method):
    """Random subgraphs with weights of edges and losses (Zeng et al. 2020): edge draws, unless
    options say else.
    """

    make = sampling.SaintSampler

    def sampler(self, seed: int) -> SamplerBase:
        budget = max(self.settings.batch_size // 2, 1)
        return self._made(len(self.settings.fanouts), kind="edge", budget=budget, seed=seed)

    def seeds(self, nodes: Tensor, sampler: SamplerBase) -> Tensor:
        """Return the numbers of enough subgraphs to contain each node about once."""
        self.batch_size = 1
        return torch.arange(max(math.ceil(self.graph.num_nodes / self.settings.batch_size), 1))

    def loss_weights(
        self, batch: NodeFlow, rows: Tensor | None, loss: Tensor, count: int
    ) -> Tensor:
        weights = batch.back.data["loss_weight"]
        return (weights if rows is None else weights[rows]).to(loss.dtype) / count


class Cluster(Method):
    """Unions of parts of the graph (Chiang et al. 2019), with weights of the edges between
    parts.
    """

    make = sampling.ClusterSampler

    def __init__(self, graph: Graph, settings: SamplerSettings, model: ModelKind) -> None:
        super().__init__(graph, settings, model)
        self._parts = settings.options.get(
            "parts", max(graph.num_nodes // max(settings.batch_size // 8, 1), 1)
        )

    def sampler(self, seed: int) -> SamplerBase:
        # cut the graph once: samplers with other seeds reuse the parts
        options = {**self.settings.options, "parts": self._parts}
        sampler = sampling.ClusterSampler(
            self.graph, len(self.settings.fanouts), seed=seed, **options
        )
        self._parts = sampler.parts.numbers
        return sampler

    def seeds(self, nodes: Tensor, sampler: SamplerBase) -> Tensor:
        parts = sampler.num_seeds
        share = self.settings.batch_size * parts / max(self.graph.num_nodes, 1)
        # at least two parts, or no edge between parts would ever be in a batch
        self.batch_size = min(max(round(share), 2), max(parts, 1))
        self.batches = math.ceil(parts / self.batch_size)
        return torch.arange(parts)

    def loss_weights(
        self, batch: NodeFlow, rows: Tensor | None, loss: Tensor, count: int
    ) -> Tensor:
        return loss.new_full(loss.shape, self.batches / count)


class ControlVariates(Method):
    """Control variates (Chen, Zhu, Song 2018): drawn neighbours correct sums over a history of
    activations.

    The history starts with one full pass of the untrained model, so every row has an age and every
    sum has all neighbours. Validation reads it and writes nothing. The features never change, so
    their sums over all neighbours are exact, and nothing is drawn in the first flow.
    """

    make = ControlVariateSampler
    weight = _WEIGHT
    history: History

    @classmethod
    def check(cls, settings: SamplerSettings) -> None:
        super().check(settings)
        if len(settings.fanouts) < 2:
            raise ValueError(
                "fanouts must have two numbers or more with sampler 'cv': the sums of the first "
                f"layer are exact, so a single layer has no history; got {list(settings.fanouts)}"
            )

    def prepared(self, graph: Graph) -> Graph:
        if isinstance(graph, DistributedGraph):
            return with_mean_weights(graph, _WEIGHT)
        bare = with_columns(graph, {}, edata={})
        ends = "right"
        if self.model.traits.symmetric:
            bare = add_self_loops(bare)
            ends = "both"
        bare.edata[_WEIGHT] = edge_norm(bare, ends)
        return bare

    def start(self, model: nn.Module, x: Tensor | Rows) -> None:
        if not isinstance(model, VRModel):
            raise TypeError(
                f"model must be a VRModel with sampler 'cv', got {type(model).__name__}"
            )
        self.history = History(self.graph.view(weight=_WEIGHT), model.history_widths, inputs=x)
        Updater(model, self.history, x).run()

    def sampler(self, seed: int) -> SamplerBase:
        """Return a sampler whose batches get the rows that the history has when a batch is
        taken.
        """
        # no draw in the first flow: its sums over all neighbours are exact
        fanouts: Any = (0, *self.settings.fanouts[1:])
        return self.make(self.history, fanouts, **{"seed": seed, **self.settings.options})

    def after_step(self, batch: NodeFlow) -> Tensor:
        # before the push: afterwards all these rows have the age 0
        ages = [self.history.age(i, batch.layers[i].parent_nid) for i in self.history.widths]
        self.history.push(batch)
        self.history.commit()
        return torch.cat(ages)

    def state_dict(self) -> dict[str, Any]:
        state = dict(self.history.state_dict())
        # saved in the order of all nodes, so that a run can resume with another number of
        # processes, or another cut
        for name in self._names_of_rows():
            rows = state[name]
            masters = self.graph.held_part.masters
            state[name] = self.graph.peers.rows_of_all(
                f"history {name}", masters, rows, self.graph.num_nodes
            )
        return {"history": state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        rows = {
            name: state["history"][name][self.graph.held_part.masters]
            for name in self._names_of_rows()
        }
        self.history.load_state_dict({**state["history"], **rows})

    def _names_of_rows(self) -> list[str]:
        return [name for name, buffer in self.history.named_buffers() if buffer.ndim]


class Neighbors(Method):
    """Every edge into a node is drawn with the same probability."""

    make = sampling.NeighborSampler
    draws_neighbors = True


class Labor(Method):
    """Neighbours that nodes of a layer share."""

    make = sampling.LaborSampler
    draws_neighbors = True


class Bernoulli(Method):
    """Neighbours drawn one by one."""

    make = sampling.BernoulliSampler
    draws_neighbors = True


class FastGCN(Method):
    """Nodes of a layer drawn at once, whatever the layer above."""

    make = sampling.FastGCNSampler


class Ladies(Method):
    """Nodes of a layer drawn at once, among the neighbours of those above."""

    make = sampling.LadiesSampler


METHODS: dict[str, type[Method]] = {
    "neighbor": Neighbors,
    "labor": Labor,
    "bernoulli": Bernoulli,
    "fastgcn": FastGCN,
    "ladies": Ladies,
    "random-walk": RandomWalk,
    "saint": Saint,
    "cluster": Cluster,
    "shadow": Shadow,
    "cv": ControlVariates,
}
"""The training methods by the setting ``sampler``; an entry here, and in ``_choices``, adds one."""
