"""pyg_loader: the batches of a loader of NodeFlows, as PyTorch Geometric's loaders hand them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nodeflow._base.checks import check_type
from nodeflow.convert._pyg_batch import node_flow_data
from nodeflow.flow import NodeFlow

if TYPE_CHECKING:
    from torch_geometric.data import Data


class PygLoader:
    """The batches of a loader as batches of PyTorch Geometric; ``pyg_loader`` makes it.

    ``loader`` is the loader of NodeFlows, with its ``set_epoch``, ``state_dict`` and ``load_state_dict``.

    >>> from nodeflow import Graph, NeighborSampler, NodeFlowLoader
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> loader = PygLoader(NodeFlowLoader(NeighborSampler(graph, [1, 1]), [0, 1, 2], batch_size=2))
    >>> [int(batch.batch_size) for batch in loader]
    [2, 1]
    """

    def __init__(self, loader: Iterable[NodeFlow]) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Data]:
        return map(node_flow_data, self.loader)

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"pyg_loader({self.loader!r})"


def pyg_loader(loader: Iterable[NodeFlow]) -> PygLoader:
    """Return the batches of a loader as batches of PyTorch Geometric, for models written for ``NeighborLoader``.

    Every iteration is an epoch, as of ``loader``; ``len`` is the number of batches. ``to_pyg`` says what a batch holds.
    With ``reuse=True`` a node draws once, as there; else it has the edges of all its draws. Fanouts are in flow order
    here, the seeds' last; ``num_neighbors`` of PyTorch Geometric has the seeds' first. Columns are those that the
    loader copies.

    Args:
        loader: a ``NodeFlowLoader``, a ``storage.Lookahead``, or anything that iterates over NodeFlows.

    Raises TypeError for an object that cannot be iterated; when iterated, what ``to_pyg`` raises.

    >>> import torch
    >>> from nodeflow import Graph, NeighborSampler, NodeFlowLoader
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.ones(4, 8)})
    >>> sampler = NeighborSampler(graph, fanouts=[5, 10], reuse=True)  # num_neighbors=[10, 5]
    >>> for batch in pyg_loader(NodeFlowLoader(sampler, [0, 1, 2, 3], batch_size=2, ndata={0: ["x"]})):
    ...     print(batch.n_id, batch.x.shape, batch.batch_size)
    tensor([0, 1, 3, 2]) torch.Size([4, 8]) 2
    tensor([2, 3, 1, 0]) torch.Size([4, 8]) 2
    """
    check_type(loader, "loader", Iterable, "a loader of NodeFlows")
    return PygLoader(loader)
