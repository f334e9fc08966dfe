"""nodeflow: layered computation graphs for sampled graph neural networks."""

from importlib import import_module
from types import ModuleType

from nodeflow import fn
from nodeflow._base.checks import ALL
from nodeflow._base.version import __version__ as __version__
from nodeflow.control_variates import ControlVariateSampler, History, Updater
from nodeflow.flow import (
    Flow,
    Layer,
    NodeFlow,
    create_full_node_flow,
    create_node_flow,
    flow_from_csr,
    flow_from_edges,
    message_passing,
)
from nodeflow.graph import Frame, Graph
from nodeflow.loader import NodeFlowLoader, SeedTable
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
    "SeedTable",
    "ShadowSampler",
    "TemporalNeighborSampler",
    "Updater",
    "building",
    "compat",
    "control_variates",
    "convert",
    "create_full_node_flow",
    "create_node_flow",
    "datasets",
    "distributed",
    "flow",
    "flow_from_csr",
    "flow_from_edges",
    "fn",
    "graph",
    "learned",
    "loader",
    "message_passing",
    "metrics",
    "nn",
    "ops",
    "partitions",
    "plot",
    "propagation",
    "sampling",
    "storage",
    "testing",
    "training",
    "transform",
]

# not in __all__: "from nodeflow import *" would hide Python's own module of that name
_ROOMS = frozenset(name for name in [*__all__, "random"] if name.islower() and name not in globals())


def __getattr__(name: str) -> ModuleType:
    """Import a room when it is first asked for, so that importing the package stays quick."""
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "random"])
