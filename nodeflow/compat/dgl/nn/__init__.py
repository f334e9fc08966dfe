"""``dgl.nn``, which has no stand-in: importing it says where to go."""

from nodeflow.compat.dgl._elsewhere import PACKAGE

raise ImportError(f"nodeflow.compat.dgl stands in for DGL 0.4's NodeFlow, not for dgl.nn: {PACKAGE['nn']}")
