"""One graph on many processes: its parts, and the same NodeFlows on all of them.

Where to change something:

- ``_writing`` cuts a graph into the parts that processes hold;
  ``_graph_parts`` is the folder that it writes, its parts, and their sizes.
- ``_graph``: opens such a folder on all processes, and is the graph as a process sees it.
  ``_held_part`` is what a process holds of it, ``_rows`` are its columns; ``_halo`` is what
  samplers read, with edges of other processes.
- ``nodeflow._processes``: exchanges between processes, which all end or all fail.

Drawing from such a graph is in ``nodeflow.sampling._distributed``, the questions of link batches in
``nodeflow.sampling._link``. Sums over all edges and full passes of models are in
``nodeflow.propagation`` (``Propagation``, ``ExchangePlan``). Commits that all processes make or
none does, of learned rows and of histories, are in ``nodeflow._files.store``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow._processes.transport import PeerError
from nodeflow.distributed._buffer_epoch import BufferCounters, BufferState
from nodeflow.distributed._graph import HALO as HALO, DistributedGraph
from nodeflow.distributed._graph_parts import (
    GraphPart,
    GraphParts,
    PartsReport,
)
from nodeflow.distributed._orders import (
    Order,
    beta_order,
    comet_order,
    dispersed_order,
    sequential_order,
)
from nodeflow.distributed._partition_buffer import PartitionBuffer
from nodeflow.distributed._partitions import Partitions
from nodeflow.distributed._rows import DistributedRows as DistributedRows
from nodeflow.distributed._split import (
    GroupedEdges as GroupedEdges,
)
from nodeflow.distributed._writing import partition_graph, write_partitions

__all__ = [
    "BufferCounters",
    "BufferState",
    "DistributedGraph",
    "GraphPart",
    "GraphParts",
    "Order",
    "PartitionBuffer",
    "Partitions",
    "PartsReport",
    "PeerError",
    "beta_order",
    "comet_order",
    "dispersed_order",
    "partition_graph",
    "sequential_order",
    "write_partitions",
]
