"""Stand-ins for interfaces of other libraries, so that old programs run after a change of their
import lines.

``nodeflow.compat.dgl`` stands in for DGL 0.4's NodeFlow.
"""

from nodeflow.compat import dgl

__all__ = ["dgl"]
