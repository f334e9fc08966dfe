"""Training tasks: the outputs that a batch asks for, their loss and their metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from nodeflow.flow import NodeFlow
from nodeflow.nn import FlowModel


class NodeClassification:
    """One class per node: features in the node column "feat", classes in "label"."""

    columns: ClassVar[Mapping[int, list[str]]] = {0: ["feat"], -1: ["label"]}
    """The columns of the graph that batches need, by layer: ``ndata`` of a loader."""

    def outputs(self, model: FlowModel, batch: NodeFlow) -> Tensor:
        """Return the scores of the classes for the seeds, ``[seeds, classes]``."""
        scores: Tensor = model(batch, batch.ldata[0]["feat"])
        return scores

    def loss(self, outputs: Tensor, batch: NodeFlow) -> Tensor:
        """Return the mean cross entropy over the seeds, a scalar."""
        return cross_entropy(outputs, batch.ldata[-1]["label"])

    def right(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return 1 for every node whose highest score is for its class, else 0, float64 ``[nodes]``."""
        return (outputs.argmax(1) == labels).double()
