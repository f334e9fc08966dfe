"""nodeflow: layered computation graphs for sampled graph neural networks."""

from importlib import import_module
from types import ModuleType

from nodeflow import fn
from nodeflow._check import ALL
from nodeflow.build import create_full_node_flow, create_node_flow, flow_from_csr, flow_from_edges
from nodeflow.compute import propagate
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.flow import Flow, Layer
from nodeflow.frame import Frame
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.node_flow import NodeFlow
from nodeflow.sampling import (
    BernoulliSampler,
    ClusterSampler,
    FastGCNSampler,
    FullSampler,
    LaborSampler,
    LadiesSampler,
    LayerSampler,
    LinkSampler,
    NeighborSampler,
    RandomWalkSampler,
    SaintSampler,
    Sampler,
    ShadowSampler,
    TemporalNeighborSampler,
)

__version__ = "0.1.0"

__all__ = [
    "ALL",
    "BernoulliSampler",
    "ClusterSampler",
    "ControlVariateSampler",
    "FastGCNSampler",
    "Flow",
    "Frame",
    "FullSampler",
    "Graph",
    "History",
    "LaborSampler",
    "LadiesSampler",
    "Layer",
    "LayerSampler",
    "LinkSampler",
    "NeighborSampler",
    "NodeFlow",
    "NodeFlowLoader",
    "RandomWalkSampler",
    "SaintSampler",
    "Sampler",
    "ShadowSampler",
    "TemporalNeighborSampler",
    "Updater",
    "create_full_node_flow",
    "create_node_flow",
    "flow_from_csr",
    "flow_from_edges",
    "fn",
    "propagate",
]

_SUBMODULES = frozenset(
    {
        "checkpoint",
        "control_variates",
        "convert",
        "datasets",
        "draw",
        "nn",
        "random",
        "sampling",
        "testing",
        "training",
        "transform",
    }
)


def __getattr__(name: str) -> ModuleType:
    """Import a submodule when it is first asked for, so that importing the package stays quick."""
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
