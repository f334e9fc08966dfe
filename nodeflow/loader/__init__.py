"""Batches of seeds to NodeFlows, sampled ahead on threads."""

from nodeflow.loader._loader import NodeFlowLoader as NodeFlowLoader

__all__ = ["NodeFlowLoader"]
