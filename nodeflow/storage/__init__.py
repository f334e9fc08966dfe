"""Rows, graphs and learned rows that are larger than memory.

A column of a graph is a tensor, or any object that follows the protocol ``Rows``. Whatever takes columns takes both.

- ``_files``, ``_sparse_files``: columns in files. ``_created``: files that a program writes itself.
- ``_cached``, ``_tiered``: rows split over faster and slower places by ``_heat``.
- ``_lookahead``: batches whose rows are read as planned by ``_plan``.
- ``_build``: a graph folder from files of edges, by counting in bounded memory (``_sorting``). ``_edge_files`` reads
  what users have, piece by piece; ``_edge_text`` reads the text among it.
- ``_orders``: which partitions are in memory at a time. ``_write_partitions``, ``_partitions``: a partitioned graph in
  a folder. ``_partition_buffer``: a part of it in memory, state after state. ``_split``
  writes columns split over files.
- ``_embedding_table``: rows learned for nodes, beside the state of their optimiser (``_row_optimizers``). ``_pulls``:
  rows that wait for their step. ``_pipeline``: batches under way at the same time.
"""

from nodeflow._rows.rows import Rows
from nodeflow.storage._buffer_counters import BufferCounters
from nodeflow.storage._buffer_state import BufferState
from nodeflow.storage._build import build_graph, node_names
from nodeflow.storage._cached import Cached, RecentlyUsed
from nodeflow.storage._created import create
from nodeflow.storage._embedding_table import EmbeddingTable
from nodeflow.storage._files import FileRows, open
from nodeflow.storage._heat import degree_heat, hottest, presample, random_heat, reach_heat
from nodeflow.storage._lookahead import Lookahead, Reads
from nodeflow.storage._orders import Order, beta_order, comet_order, dispersed_order, sequential_order
from nodeflow.storage._partition_buffer import PartitionBuffer
from nodeflow.storage._partitions import Partitions
from nodeflow.storage._pipeline import Pipeline
from nodeflow.storage._sparse_files import SparseFileRows, open_sparse, save_sparse
from nodeflow.storage._tiered import Tiered
from nodeflow.storage._write_partitions import write_partitions

__all__ = [
    "BufferCounters",
    "BufferState",
    "Cached",
    "EmbeddingTable",
    "FileRows",
    "Lookahead",
    "Order",
    "PartitionBuffer",
    "Partitions",
    "Pipeline",
    "Reads",
    "RecentlyUsed",
    "Rows",
    "SparseFileRows",
    "Tiered",
    "beta_order",
    "build_graph",
    "comet_order",
    "create",
    "degree_heat",
    "dispersed_order",
    "hottest",
    "node_names",
    "open",
    "open_sparse",
    "presample",
    "random_heat",
    "reach_heat",
    "save_sparse",
    "sequential_order",
    "write_partitions",
]
