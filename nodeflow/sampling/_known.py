"""Known positives: which nodes answer (node, relation), from the edges of a graph and from lists of links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nodeflow._base.checks import Ints
from nodeflow._edges.stored import Stored
from nodeflow._links.links import Links, Queries
from nodeflow.graph import Graph


class Known(NamedTuple):
    """The nodes that answer queries: row i has ``nodes[indptr[i] : indptr[i + 1]]``, ascending, for node ``own[i]``.

    Row u is that of node u. With ``queries`` row i is that of query i, and behind these every node has a row without
    answers, for queries that are not among them.
    """

    indptr: Ints
    nodes: Stored
    own: Ints
    queries: Queries | None = None

    @classmethod
    def of(cls, links: Links, side: str, num_nodes: int) -> Known:
        """Collect the answers that links give for a side.

        Cost: the links in sorted order; 24 bytes a link while they are sorted, and 4 (8 for many nodes) a link then.
        """
        own, relation = np.arange(num_nodes), links.relation
        queries = Queries(own if relation is None else links.ends(side)[0], relation, num_nodes)
        indptr, nodes = queries.answers(links, side)
        narrow = nodes.astype(np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64)
        if relation is None:
            return cls(indptr, narrow, own)
        return cls(np.pad(indptr, (0, num_nodes), mode="edge"), narrow, np.concatenate([queries.node, own]), queries)

    def renumbered(self, rank: Ints) -> Known:
        """Return the same with node v written as ``rank[v]``."""
        rows, nodes = np.repeat(np.arange(len(self.own)), np.diff(self.indptr)), rank[self.nodes]
        return self._replace(nodes=nodes[np.lexsort((nodes, rows))].astype(self.nodes.dtype), own=rank[self.own])


def as_filter(value: bool | str, known: object, graph: Graph) -> bool | str:
    """Return ``filter_known`` of a link sampler, checked against its other settings: a bool, or "mark"."""
    if isinstance(value, str) and value != "mark":
        raise ValueError(f"filter_known must be False, True or 'mark', got {value!r}")
    if known is not None and not value:
        raise ValueError("known is what filter_known looks at, so pass filter_known=True or 'mark' too")
    if value and known is None and graph.peers.size > 1:
        raise TypeError(
            "filter_known looks at all edges of the graph, and this graph lies on several processes, of which each "
            "holds a part; pass known=, a table of known pairs that every process holds, or leave filter_known out"
        )
    return value if value == "mark" else bool(value)
