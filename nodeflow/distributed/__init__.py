"""One graph in many processes.

- ``_partition_graph``: cuts a graph into the parts that processes hold. ``_masters`` says which part owns which node
  (``_balance`` moves nodes for training nodes spread evenly), ``_grid`` and ``_part_edges`` where edges lie.
- ``_graph_parts``, ``_graph_part``: the folder that it writes. ``_report``: sizes of the parts, and the cut.
"""

from nodeflow.distributed._graph_part import GraphPart
from nodeflow.distributed._graph_parts import GraphParts
from nodeflow.distributed._partition_graph import partition_graph
from nodeflow.distributed._report import PartsReport

__all__ = ["GraphPart", "GraphParts", "PartsReport", "partition_graph"]
