"""Batches of seeds to NodeFlows, sampled ahead on threads."""

from nodeflow.loader._loader import NodeFlowLoader as NodeFlowLoader
from nodeflow.loader._timings import Timings as Timings

__all__ = ["NodeFlowLoader", "Timings"]
