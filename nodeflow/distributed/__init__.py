"""One graph on many processes: its parts, and the same NodeFlows on all of them.

Where to change something:

- ``_partition_graph``: cuts a graph into the parts that processes hold. ``_masters`` says which part owns which node
  (``_balance`` moves nodes for training nodes spread evenly), ``_grid`` and ``_part_edges`` where edges lie.
- ``_graph_parts``, ``_graph_part``: the folder that it writes. ``_report``: sizes of the parts, and the cut.
- ``_open``: opens such a folder on all processes.
- ``_graph``: the graph as a process sees it. ``_held`` is what samplers read of its part, ``_rows`` its columns,
  ``_between`` its edges between given nodes.
- ``_table``: rows learned for its nodes, of which ``_owned_rows`` are those of one process.
- ``_peers``: exchanges between processes, which all end or all fail. ``_packing`` makes bytes of arrays,
  ``_transport`` moves them, ``_watch`` says which process is missing.

How a sampler draws from such a graph is in ``nodeflow.sampling._apart``, random walks in
``nodeflow.sampling._walks_apart``, and what link batches ask in ``nodeflow.sampling._link_edges``. Sums over all edges
and full passes of models are in ``nodeflow.propagation`` (``PartPropagation``, ``ExchangePlan``). Histories are in
``nodeflow.control_variates._apart``, commits that all processes make or none does in ``nodeflow.graph._commit_apart``.
"""

from nodeflow.distributed._graph import DistributedGraph
from nodeflow.distributed._graph_part import GraphPart
from nodeflow.distributed._graph_parts import GraphParts
from nodeflow.distributed._partition_graph import partition_graph
from nodeflow.distributed._peers import PeerError
from nodeflow.distributed._report import PartsReport
from nodeflow.distributed._table import DistributedTable

__all__ = [
    "DistributedGraph",
    "DistributedTable",
    "GraphPart",
    "GraphParts",
    "PartsReport",
    "PeerError",
    "partition_graph",
]
