"""Batches of seeds to NodeFlows, sampled ahead on threads."""

from nodeflow.loader._loader import NodeFlowLoader as NodeFlowLoader
from nodeflow.loader._timings import Timings as Timings
from nodeflow.loader._weights import balanced_weights as balanced_weights

__all__ = ["NodeFlowLoader", "Timings", "balanced_weights"]
