"""Graphs, features and learned rows that are larger than memory."""

from nodeflow.storage._buffer_counters import BufferCounters as BufferCounters
from nodeflow.storage._buffer_state import BufferState as BufferState
from nodeflow.storage._orders import Order as Order
from nodeflow.storage._orders import beta_order as beta_order
from nodeflow.storage._orders import comet_order as comet_order
from nodeflow.storage._orders import dispersed_order as dispersed_order
from nodeflow.storage._orders import sequential_order as sequential_order
from nodeflow.storage._partition_buffer import PartitionBuffer as PartitionBuffer
from nodeflow.storage._partitions import Partitions as Partitions
from nodeflow.storage._write_partitions import write_partitions as write_partitions

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
