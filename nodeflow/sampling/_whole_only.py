"""Draws that need all edges of the graph in one process, and why: those that a distributed graph refuses."""

from __future__ import annotations

from nodeflow.graph import Graph

WHOLE_ONLY = {
    "SamplerBase": "it may look up any edges; a Sampler or SubgraphSampler says of which nodes it needs them",
    "ClusterSampler(parts=<a number>)": "to cut a graph takes all edges; pass parts=, the part of every node",
    "SaintSampler(kind='edge')": "an edge is drawn from one of its ends, but of a node only the in-edges lie together",
    "SaintSampler(kind='walk')": "its probabilities are counts of the edges of whole subgraphs; kind='node' has none",
    "SaintSampler(coefficients='presampled')": "edges are counted in whole subgraphs; coefficients='exact' counts none",
}
"""By the words with which a user asks for it, the reason."""


def check_one_process(graph: Graph, what: str) -> None:
    """Raise TypeError, with the reason in ``WHOLE_ONLY``, where several processes hold the graph."""
    if graph.peers.size > 1:
        raise TypeError(f"{what} cannot draw from a graph that lies on several processes: {WHOLE_ONLY[what]}")
