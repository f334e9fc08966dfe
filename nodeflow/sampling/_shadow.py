"""ShaDow: every seed has a small subgraph of its own, on which a GNN of any depth runs."""

from __future__ import annotations

import numpy as np
import torch

from nodeflow._core.base.checks import Ints, as_count, as_flag
from nodeflow._core.edges.numbering import distinct_in_order
from nodeflow._core.edges.view import EdgeView
from nodeflow.flow import NodeFlow, shared_node_flow
from nodeflow.graph import Graph
from nodeflow.ops import Structure
from nodeflow.sampling._bound import BoundSampler
from nodeflow.sampling._choice import first_rows
from nodeflow.sampling._distributed import with_rows_of
from nodeflow.sampling._draw import draw_node_flow
from nodeflow.sampling._keys import Call, Keys
from nodeflow.sampling._neighbor import NeighborSampler
from nodeflow.sampling._relations import Fanout, as_fanout, of_kinds
from nodeflow.sampling._subgraph import flow_parts, induced_subgraph


class ShadowSampler(BoundSampler):
    """A localized subgraph for every seed, on which all layers run (ShaDow: Zeng et al. 2021, the
    k-hop sampler).

    The scope of a seed grows hop by hop: every node draws ``fanout`` of its neighbours when it is
    first reached, up to ``depth`` hops from the seed. All edges among the nodes of a scope are
    kept, drawn or not. The scopes of a batch stand side by side: a parent node in the scopes of two
    seeds is two rows, told apart by ``Layer.context``, the number of the seed in ``batch.seeds``.

    Layers 0 to L - 1 hold all rows: the seeds, in their order, then the others in the order in
    which they were reached. The last layer holds the seeds only, and the last flow their edges: a
    prefix of the structure that all flows share. Seeds that repeat have one scope; ``seed_index``
    restores them.

    Estimator weights are those of the edges (the ``weight`` column, or 1). Outputs are exact for
    the scope. They are not unbiased for the whole graph: sums over the edges of a node lack those
    from outside the scope. With ``fanout=-1`` and ``depth >= num_flows`` the outputs of the seeds
    are those on the whole graph.

    Args:
        num_flows: number of flows, L; any, whatever the depth.
        depth: hops from a seed to the border of its scope; 0 is the seed alone.
        fanout: how many neighbours a node draws, uniformly; -1 takes all. A dict by relation as in
            ``NeighborSampler``.
        replace: draw with replacement: scopes are then smaller, since nodes drawn again are in them
            once.
        graph, seed: see ``SubgraphSampler``.

    A node with no more neighbours than ``fanout`` keeps all of them; a seed without neighbours is
    alone in its scope.

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
    whole_only = False

    def __init__(
        self,
        graph: Graph | EdgeView,
        num_flows: int,
        depth: int,
        fanout: Fanout,
        *,
        replace: bool = False,
        seed: int = 0,
    ) -> None:
        self.depth = as_count(depth, "depth")
        self.fanout = of_kinds(fanout, "fanout", as_fanout, "relation")
        self.replace = as_flag(replace, "replace")
        super().__init__(graph, num_flows, seed=seed)

    def read_graph(self) -> None:
        super().read_graph()
        # a node draws when it is first reached: reuse
        fanouts = [self.fanout] * max(self.depth, 1)
        self._hops = NeighborSampler(self.view, fanouts, replace=self.replace, reuse=True)

    def _keys_of(self, call: Call, ids: Ints, *identity: int) -> Keys:
        keys = super()._keys_of(call, ids, *identity)
        if call.step is None:
            return keys
        # contexts are numbered in a call; keys need the number that the seed has in the whole step
        in_step, _ = distinct_in_order(self._seeds(call.step.ids)[0])
        order = np.argsort(in_step)
        places = np.searchsorted(in_step[order], distinct_in_order(ids)[0])
        return keys._replace(contexts=torch.from_numpy(order[places]))

    def _sample(self, seeds: Ints, keys: Keys) -> NodeFlow:
        size = self.graph.num_nodes
        hops = self._hops.without_edges(self.reader.left_out)
        reached = draw_node_flow(hops, seeds, keys, distinct_in_order(seeds)[1])
        back = reached.back
        if self.depth > 0:
            rows = reached.front
        else:
            rows = back.with_frame()
        assert rows.context is not None  # they were drawn with contexts
        # where several processes hold the graph, all edges of the scopes travel here once
        reader = with_rows_of(self, rows.parent_nid.numpy()).reader
        part = induced_subgraph(reader.edges, (rows.context * size + rows.parent_nid).numpy(), size)
        indptr = torch.from_numpy(part.indptr)
        indices = torch.from_numpy(part.indices)
        structure = Structure._trusted(indptr, indices, rows.num_nodes)
        parts = flow_parts(reader, part.positions, needs_weight=True)
        shared = shared_node_flow(self.graph, rows, structure, self.num_flows - 1, **parts)
        size_of_last = int(indptr[back.num_nodes])
        # the last flow has the edges of the seeds, which are the first rows of all others
        last = first_rows(
            size_of_last, indptr, indices, shared.back, back, self.num_flows - 1, parts
        )
        return NodeFlow._trusted(
            [*shared.layers, back],
            [*shared.flows, last],
            parent=self.graph,
            seed_index=reached.seed_index,
        )
