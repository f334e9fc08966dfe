"""A graph cut into partitions in a folder, of which a few are in memory at a time.

- ``_cut``: which part has which node, also with training nodes spread evenly. ``_split``: where edges lie; columns and
  edges split over the files of parts. ``_cut_graph``: the base of folders of cut graphs.
- ``_write_partitions``, ``_partitions``: the folder that a buffer reads.
- ``_orders``: which partitions are in memory at a time. ``_partition_buffer``: a part of the graph in memory, state
  after state (``_buffer_epoch``), with nodes and edges in slots (``_slots``).

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.partitions._buffer_epoch import BufferCounters, BufferState
from nodeflow.partitions._cut import METHODS as METHODS
from nodeflow.partitions._cut import Masters as Masters
from nodeflow.partitions._cut import cut_nodes as cut_nodes
from nodeflow.partitions._cut import part_type as part_type
from nodeflow.partitions._cut_graph import CutGraph as CutGraph
from nodeflow.partitions._cut_graph import fit as fit
from nodeflow.partitions._orders import ORDERS as ORDERS
from nodeflow.partitions._orders import Order, beta_order, comet_order, dispersed_order, sequential_order
from nodeflow.partitions._partition_buffer import PartitionBuffer
from nodeflow.partitions._partitions import Partitions
from nodeflow.partitions._split import EDGES as EDGES
from nodeflow.partitions._split import Column as Column
from nodeflow.partitions._split import EdgeGroups as EdgeGroups
from nodeflow.partitions._split import GroupedEdges as GroupedEdges
from nodeflow.partitions._split import NewColumn as NewColumn
from nodeflow.partitions._split import SplitColumn as SplitColumn
from nodeflow.partitions._split import columns_of as columns_of
from nodeflow.partitions._split import grid_of as grid_of
from nodeflow.partitions._split import split_nodes as split_nodes
from nodeflow.partitions._split import sums as sums
from nodeflow.partitions._split import write_arrays as write_arrays
from nodeflow.partitions._write_partitions import write_partitions

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
