"""A graph cut into parts in a folder, of which a few are in memory at a time, or each process holds
one.

- ``_cut``: which part has which node, also with training nodes spread evenly. ``_split``: where
  edges lie; columns and edges split over the files of parts.
- ``_writing`` makes both kinds of folders. ``_partitions`` is that of a buffer, and the base of
  both; ``_graph_parts`` that of processes, whose users find it in ``distributed``.
- ``_orders``: which parts are in memory at a time. ``_partition_buffer``: a part of the graph in
  memory, state after state (``_buffer_epoch``), with nodes and edges in slots (``_slots``).

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.partitions._buffer_epoch import BufferCounters, BufferState
from nodeflow.partitions._cut import METHODS as METHODS
from nodeflow.partitions._graph_parts import (
    GraphPart as GraphPart,
    GraphParts as GraphParts,
    PartsReport as PartsReport,
)
from nodeflow.partitions._orders import (
    ORDERS as ORDERS,
    Order,
    beta_order,
    comet_order,
    dispersed_order,
    sequential_order,
)
from nodeflow.partitions._partition_buffer import PartitionBuffer
from nodeflow.partitions._partitions import Partitions
from nodeflow.partitions._split import (
    EDGES as EDGES,
    EdgeGroups as EdgeGroups,
    GroupedEdges as GroupedEdges,
    id_type as id_type,
    sums as sums,
)
from nodeflow.partitions._writing import partition_graph as partition_graph, write_partitions

__all__ = [
    "BufferCounters",
    "BufferState",
    "Order",
    "PartitionBuffer",
    "Partitions",
    "beta_order",
    "comet_order",
    "dispersed_order",
    "sequential_order",
    "write_partitions",
]
