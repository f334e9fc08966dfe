"""What needs all edges of a graph in one process."""

from __future__ import annotations

from nodeflow.graph import Graph

WHOLE_ONLY = {
    "SamplerBase": "it may look up any edges; a Sampler or SubgraphSampler says of which nodes it "
    "needs them",
    "ClusterSampler(parts=<a number>)": "to cut a graph takes all edges; pass parts=, the part of "
    "every node",
    "RandomWalkSampler": "a walk may come to any node, and each of its steps would be an exchange",
    "SaintSampler(kind='edge')": "an edge is drawn from one of its ends, but of a node only the "
    "in-edges lie together",
    "SaintSampler(kind='walk')": "its probabilities are counts of the edges of whole subgraphs; "
    "kind='node' has none",
    "SaintSampler(coefficients='presampled')": "edges are counted in whole subgraphs; "
    "coefficients='exact' counts none",
    "LinkSampler(filter_known=True)": "it looks at all edges of the graph, so pass known=, a table "
    "in every process",
    "estimand()": "it has a number for every edge",
    "edge_probability()": "it has a number for every edge",
}
"""What needs all edges in one process, as users write it, with the reason."""


def check_one_process(graph: Graph, what: str) -> None:
    """Raise TypeError, with the reason in ``WHOLE_ONLY``, where several processes hold the
    graph.
    """
    # an exchange would have to bring all edges here, and one process may have no room for them
    if graph.in_parts:
        raise TypeError(
            f"{what} does not go with a graph that lies on several processes: {WHOLE_ONLY[what]}"
        )
