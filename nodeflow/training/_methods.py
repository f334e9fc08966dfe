"""Training methods: the model, the sampler of its NodeFlows, and the state that a step keeps for the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from nodeflow._base.checks import check_one_of
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.nn import GCN, VRGCN, FlowModel, GraphSAGE, VRGraphSAGE, VRModel
from nodeflow.sampling import NeighborSampler, SamplerBase
from nodeflow.transform import add_self_loops, edge_norm, reverse

_WEIGHT = "propagation"


class Method(ABC):
    """The part of training that differs between methods; the loop, ``nodeflow.training._loop``, is the same for all.

    Args:
        graph: the parent graph, with float32 or sparse features ``feat``; it is never changed.
        model: one of ``models``; it is trained, not copied.
        kind: its name in ``models``.
        fanouts, direction: as in ``Settings``.
    """

    models: ClassVar[Mapping[str, Callable[..., FlowModel]]]
    """The models by the setting ``model``; their arguments are those of ``GraphSAGE``."""
    has_history: ClassVar[bool] = False
    """Whether the method keeps a history, whose age is in the records of epochs."""

    def __init__(self, graph: Graph, model: FlowModel, kind: str, fanouts: tuple[int, ...], direction: str) -> None:
        self.graph, self.model, self.fanouts = graph, model, fanouts
        self.direction = "out" if direction == "out" else "in"
        self.weight: str | None = None  # the edge column that sums over neighbours are weighted with

    @classmethod
    def check(cls, model: str, fanouts: tuple[int, ...]) -> None:
        """Raise ValueError for settings that this method cannot train with."""
        check_one_of(model, "model", cls.models)

    @abstractmethod
    def sampler(self, seed: int) -> SamplerBase:
        """Return a sampler of the batches that the model takes, for training and for validation."""

    def after_step(self, batch: NodeFlow) -> Tensor:
        """Store the rows of the batch that later batches read; called after the weights have changed.

        Returns the ages in steps of the history rows that the batch read, int64; empty without history.
        """
        return torch.empty(0, dtype=torch.int64, device="cpu")

    def outputs(self) -> Tensor:
        """Return the model's outputs for all nodes from full neighbourhoods, ``[num_nodes, classes]``."""
        inward = self.graph if self.direction == "in" else reverse(self.graph)
        return self.model.inference(inward, inward.ndata["feat"], weight=self.weight)


class NeighborSampling(Method):
    """Neighbour sampling (Hamilton, Ying, Leskovec 2017): means over drawn neighbours estimate means over all."""

    models = {"sage": GraphSAGE, "gcn": GCN}  # noqa: RUF012  declared by Method

    def sampler(self, seed: int) -> SamplerBase:
        """Return a sampler of neighbours, ``fanouts`` of each node."""
        return NeighborSampler(self.graph, self.fanouts, direction=self.direction, seed=seed)


class ControlVariates(Method):
    """Control variates (Chen, Zhu, Song 2018): drawn neighbours correct sums over a history of activations.

    The propagation is a mean for GraphSAGE, and the symmetrically normalised adjacency with self-loops for a GCN. The
    history starts with one full pass of the untrained model, so every row has an age and every sum has all neighbours.
    Every step writes the rows that it computed. Validation reads the history and writes nothing.

    The features never change, so their sums over all neighbours are exact. Nothing is drawn in the first flow, whatever
    ``fanouts[0]`` of the settings is.
    """

    models = {"sage": VRGraphSAGE, "gcn": VRGCN}  # noqa: RUF012
    has_history = True

    def __init__(self, graph: Graph, model: FlowModel, kind: str, fanouts: tuple[int, ...], direction: str) -> None:
        super().__init__(graph, model, kind, fanouts, direction)
        if not isinstance(model, VRModel):
            raise TypeError(f"model must be one of {', '.join(self.models)} with history, got {type(model).__name__}")
        self.weight = _WEIGHT
        self.graph = _propagation_graph(graph, kind, self.direction)
        x = self.graph.ndata["feat"]
        widths = model.history_widths
        self.history = History(self.graph, widths, weight=_WEIGHT, direction=self.direction, inputs=x)
        Updater(model, self.history, x).run()

    @classmethod
    def check(cls, model: str, fanouts: tuple[int, ...]) -> None:
        """Raise ValueError also for a single fanout: one layer sums features only, and their sums are exact."""
        super().check(model, fanouts)
        if len(fanouts) < 2:
            raise ValueError(
                "fanouts must have two numbers or more with sampler 'cv': the sums of the first layer are exact, so a "
                f"single layer has no history; got {list(fanouts)}"
            )

    def sampler(self, seed: int) -> SamplerBase:
        """Return a sampler whose batches get the rows that the history has when a batch is taken."""
        return ControlVariateSampler(self.graph, (0, *self.fanouts[1:]), self.history, seed=seed)

    def after_step(self, batch: NodeFlow) -> Tensor:
        """Write the rows of the batch into the history; return the ages of the rows that the batch had read."""
        ages = [self.history.age(i, batch.layers[i].parent_nid) for i in self.history.widths]
        self.history.push(batch)
        self.history.commit()
        return torch.cat(ages)


METHODS: dict[str, type[Method]] = {"neighbor": NeighborSampling, "cv": ControlVariates}
"""The training methods by the setting ``sampler``."""


def _propagation_graph(graph: Graph, model: str, direction: str) -> Graph:
    """Return the graph with its node columns and one edge column, the weights of ``model``'s propagation."""
    indptr, indices, edge_ids = graph.csc()
    bare = Graph(indptr, indices, edge_ids=edge_ids, ndata=graph.ndata, copy=False)
    if model == "gcn":
        bare = add_self_loops(bare)
    bare.edata[_WEIGHT] = edge_norm(bare, "both" if model == "gcn" else "right", direction=direction)
    return bare
