"""nodeflow: layered computation graphs for sampled graph neural networks."""

from importlib import import_module
from types import ModuleType

from nodeflow import fn
from nodeflow._base.checks import ALL
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.flow import (
    Flow,
    Layer,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
    flow_from_csr,
    flow_from_edges,
    propagate,
)
from nodeflow.graph import Frame, Graph
from nodeflow.loader import NodeFlowLoader
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
        "control_variates",
        "convert",
        "datasets",
        "flow",
        "graph",
        "loader",
        "nn",
        "ops",
        "plot",
        "propagation",
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
