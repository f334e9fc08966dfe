"""nodeflow: layered computation graphs for sampled graph neural networks."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from nodeflow._core.base.habits import Package, unknown
from nodeflow._core.base.version import __version__ as __version__

if TYPE_CHECKING:
    from nodeflow._core.base.checks import ALL
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
    "loader",
    "message_passing",
    "metrics",
    "nn",
    "ops",
    "plot",
    "propagation",
    "sampling",
    "storage",
    "testing",
    "training",
    "transform",
]

_HOMES = {
    "_core.base.checks": "ALL",
    "control_variates": "ControlVariateSampler History Updater",
    "flow": "Flow Layer NodeFlow create_full_node_flow create_node_flow flow_from_csr "
    "flow_from_edges message_passing",
    "graph": "Frame Graph",
    "loader": "NodeFlowLoader SeedTable",
    "sampling": "BernoulliSampler ClusterSampler FastGCNSampler FullSampler LaborSampler "
    "LadiesSampler LayerSampler LinkSampler NeighborSampler RandomWalkSampler SaintSampler Sampler "
    "ShadowSampler TemporalNeighborSampler",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

# not in __all__: "from nodeflow import *" would hide Python's own module of that name
_ROOMS = frozenset(name for name in [*__all__, "random"] if name not in _HOME)


def __getattr__(name: str) -> ModuleType:
    """Import a room, or a name from its room, when it is first asked for.

    So importing the package is quick, and the command ``nodeflow`` can set what torch reads when it
    is loaded.
    """
    if name in _HOME:
        # its type is that above
        value: ModuleType = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    return unknown(__name__, name, depth=2)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "random"])


sys.modules[__name__].__class__ = Package
