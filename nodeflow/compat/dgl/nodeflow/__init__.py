"""The NodeFlow of DGL 0.4."""

from nodeflow.compat.dgl._nodeflow import NodeFlow

__all__ = ["NodeFlow"]
