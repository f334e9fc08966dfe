"""One graph on many processes: its parts, and the same NodeFlows on all of them.

Where to change something:

- ``partitions._writing`` cuts a graph into the parts that processes hold;
  ``partitions._graph_parts`` is the folder that it writes, its parts, and their sizes.
- ``_graph``: opens such a folder on all processes, and is the graph as a process sees it. ``_held``
  is what a process holds of it, and its columns; ``_near`` what samplers read, with a halo of edges
  of other processes.
- ``nodeflow._peers``: exchanges between processes, which all end or all fail.

Drawing from such a graph is in ``nodeflow.sampling._distributed``, the questions of link batches in
``nodeflow.sampling._link``. Sums over all edges and full passes of models are in
``nodeflow.propagation`` (``Propagation``, ``ExchangePlan``). Commits that all processes make or
none does, of learned rows and of histories, are in ``nodeflow._store``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow._peers.transport import PeerError
from nodeflow.distributed._graph import HALO as HALO, DistributedGraph
from nodeflow.distributed._held import DistributedRows as DistributedRows
from nodeflow.partitions import EDGES as EDGES, GraphPart, GraphParts, PartsReport, partition_graph

__all__ = [
    "DistributedGraph",
    "GraphPart",
    "GraphParts",
    "PartsReport",
    "PeerError",
    "partition_graph",
]
