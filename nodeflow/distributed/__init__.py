"""One graph on many processes: its parts, and the same NodeFlows on all of them.

Where to change something:

- ``_partition_graph``: cuts a graph into the parts that processes hold. ``partitions._cut`` says which part owns
  which node, ``_grid`` and ``_part_edges`` where edges lie.
- ``_graph_parts``, ``_graph_part``: the folder that it writes. ``_report``: sizes of the parts, and the cut.
- ``_open``: opens such a folder on all processes.
- ``_graph``: the graph as a process sees it. ``_held`` is what samplers read of its part, ``_rows`` its columns,
  ``_between`` its edges between given nodes.
- ``_peers``: exchanges between processes, which all end or all fail. ``_packing`` makes bytes of arrays,
  ``_transport`` moves them, ``_watch`` says which process is missing.

Drawing from such a graph is in ``nodeflow.sampling._distributed``, random walks in
``nodeflow.sampling._distributed_walks``, the questions of link batches in ``nodeflow.sampling._link_edges``. Sums over
all edges and full passes of models are in ``nodeflow.propagation`` (``Propagation``, ``ExchangePlan``). Commits that
all processes make or none does, of learned rows and of histories, are in ``nodeflow._store``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.distributed._graph import DistributedGraph
from nodeflow.distributed._graph_part import GraphPart
from nodeflow.distributed._graph_parts import GraphParts
from nodeflow.distributed._grid import EDGES as EDGES
from nodeflow.distributed._partition_graph import partition_graph
from nodeflow.distributed._peers import PeerError
from nodeflow.distributed._report import PartsReport
from nodeflow.distributed._rows import DistributedRows as DistributedRows

__all__ = [
    "DistributedGraph",
    "GraphPart",
    "GraphParts",
    "PartsReport",
    "PeerError",
    "partition_graph",
]
