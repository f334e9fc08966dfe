"""ShaDow: every seed has a small subgraph of its own, on which a GNN of any depth runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_count, as_int
from nodeflow._base.frozen import Lazy
from nodeflow._base.types import EdgeFilter
from nodeflow.flow import Flow, Layer, NodeFlow
from nodeflow.graph import Graph
from nodeflow.ops import Structure
from nodeflow.sampling._assemble import prefix
from nodeflow.sampling._base import Draw
from nodeflow.sampling._bound import BoundSampler
from nodeflow.sampling._neighbor import NeighborSampler
from nodeflow.sampling._sampler import sample_layers
from nodeflow.sampling._subgraph import induced_subgraph, weight_of


class ShadowSampler(BoundSampler):
    """A localized subgraph for every seed, on which all layers run (ShaDow: Zeng et al. 2021, the k-hop sampler).

    The scope of a seed grows hop by hop: every node draws ``fanout`` of its neighbours when it is first reached, up to
    ``depth`` hops from the seed. All edges among the nodes of a scope are kept, drawn or not. The scopes of a batch
    stand side by side: a parent node in the scopes of two seeds is two rows, told apart by ``Layer.context``, the
    number of the seed in ``batch.seeds``.

    Layers 0 to L - 1 hold all rows: the seeds, in their order, then the others in the order in which they were reached.
    The last layer holds the seeds only, and the last flow their edges: a prefix of the structure that all flows share.
    Seeds that repeat have one scope; ``seed_index`` restores them.

    Estimator weights are those of the edges (the ``weight`` column, or 1). Outputs are exact for the scope. They are
    not unbiased for the whole graph: sums over the edges of a node lack those from outside the scope. With
    ``fanout=-1`` and ``depth >= num_flows`` the outputs of the seeds are those on the whole graph.

    Args:
        graph: the parent graph; it is never written to.
        num_flows: number of flows, L; any, whatever the depth.
        depth: hops from a seed to the border of its scope; 0 is the seed alone.
        fanout: how many neighbours a node draws, uniformly; -1 takes all.
        replace: draw with replacement: scopes are then smaller, since nodes drawn again are in them once.
        direction, edge_filter, weight, seed: see ``SubgraphSampler``.

    A node with no more neighbours than ``fanout`` keeps all of them; a seed without neighbours is alone in its scope.

    Cost: the sum of the degrees of all rows, since every edge of a row is looked up in its scope.

    Raises ValueError for a negative depth, and for a fanout of 0 or below -1.

    >>> graph = Graph.from_edges([1, 2, 0, 3, 0], [0, 0, 1, 2, 3])
    >>> batch = ShadowSampler(graph, num_flows=3, depth=1, fanout=2)([0, 3])
    >>> batch
    NodeFlow(5 -> 5 -> 5 -> 2 nodes, 4 + 4 + 3 edges)
    >>> batch.front.parent_nid, batch.front.context
    (tensor([0, 3, 1, 2, 0]), tensor([0, 1, 0, 0, 1]))
    """

    draws_as = "shadow"

    def __init__(
        self,
        graph: Graph,
        num_flows: int,
        depth: int,
        fanout: int,
        *,
        replace: bool = False,
        direction: str = "in",
        edge_filter: EdgeFilter | None = None,
        weight: str | None = None,
        seed: int = 0,
    ) -> None:
        self.depth = as_count(depth, "depth")
        self.fanout = as_int(fanout, "fanout")
        if self.fanout < 1 and self.fanout != -1:
            raise ValueError(f"fanout must be -1 (all neighbours) or at least 1, got {self.fanout}")
        self.replace = bool(replace)
        options: dict[str, Any] = {"direction": direction, "edge_filter": edge_filter, "weight": weight, "seed": seed}
        super().__init__(graph, num_flows, **options)

    def read_graph(self) -> None:
        """Make also the sampler that draws the nodes of scopes."""
        super().read_graph()
        # a node draws when it is first reached: reuse
        options: dict[str, Any] = {"replace": self.replace, "direction": self.direction, "reuse": True}
        self._hops = NeighborSampler(self.graph, [self.fanout] * max(self.depth, 1), **options)

    def _sample(self, seeds: Ints, draw: Draw, inputs: Any) -> NodeFlow:
        _, first, index = np.unique(seeds, return_index=True, return_inverse=True)
        number = np.argsort(np.argsort(first))[index]  # of the seed's scope: distinct seeds, as they come
        if self.depth == 0:
            alone = np.sort(first)
            rows = Layer.trusted(len(alone), torch.from_numpy(seeds[alone]), context=torch.from_numpy(number[alone]))
            return self._assembled(rows, len(alone), torch.from_numpy(number))
        reached = sample_layers(self._hops.with_reader(self.reader), seeds, draw, inputs, number)
        return self._assembled(reached.front, reached.back.num_nodes, reached.seed_index)

    def _assembled(self, rows: Layer, num_seeds: int, seed_index: Tensor) -> NodeFlow:
        """The NodeFlow whose layers are all ``rows`` but for the last one, which is the first ``num_seeds``."""
        nodes, context = rows.parent_nid, rows.context
        assert context is not None  # they were drawn with contexts
        part = induced_subgraph(
            self.reader.edges, (context * self.graph.num_nodes + nodes).numpy(), self.graph.num_nodes
        )
        indptr, indices, last = torch.from_numpy(part.indptr), torch.from_numpy(part.indices), part.indptr[num_seeds]
        eid = Lazy(lambda: self.reader.edges.parent_eid(part.positions))
        weight = None if self.reader.weights is None else Lazy(lambda: weight_of(self.reader, part))
        structure = Structure(indptr, indices, rows.num_nodes)
        layers = [rows, *(rows.with_frame() for _ in range(self.num_flows - 1))]
        layers.append(Layer.trusted(num_seeds, nodes[:num_seeds], context=context[:num_seeds]))
        cells: dict[str, Any] = {"parent_eid": eid, "weight": weight, "needs_weight": True, "prefix": True}
        i = self.num_flows - 1  # number of the last flow, a prefix of the others
        flows = [Flow.trusted(structure, layers[j], layers[j + 1], (j, j + 1), **cells) for j in range(i)]
        structure = Structure(indptr[: num_seeds + 1], indices[:last], rows.num_nodes)
        cells |= {"parent_eid": prefix(eid, last), "weight": None if weight is None else prefix(weight, last)}
        flows.append(Flow.trusted(structure, layers[i], layers[i + 1], (i, i + 1), **cells))
        return NodeFlow.trusted(layers, flows, parent=self.graph, seed_index=seed_index)
