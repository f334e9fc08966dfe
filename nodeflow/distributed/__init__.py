"""One graph on many processes: its parts, and the same NodeFlows on all of them.

Where to change something:

- ``_graph``: the graph as a process sees it. ``_held`` is what samplers read of its part, ``_rows`` its columns.
- ``_peers``: exchanges between processes, which all end or all fail. ``_packing`` makes bytes of arrays,
  ``_transport`` moves them, ``_watch`` says which process is missing.
- ``_open``: opens a folder of parts on all processes.

How a sampler draws from such a graph is in ``nodeflow.sampling._apart``.
"""

from nodeflow.distributed._graph import DistributedGraph
from nodeflow.distributed._peers import PeerError

__all__ = ["DistributedGraph", "PeerError"]
