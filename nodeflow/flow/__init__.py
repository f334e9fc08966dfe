"""The NodeFlow, its layers and flows, and message passing on them."""

from nodeflow.flow._build import (
    create_full_node_flow as create_full_node_flow,
)
from nodeflow.flow._build import (
    create_node_flow as create_node_flow,
)
from nodeflow.flow._build import (
    flow_from_csr as flow_from_csr,
)
from nodeflow.flow._build import (
    flow_from_edges as flow_from_edges,
)
from nodeflow.flow._compute import EdgeBatch as EdgeBatch
from nodeflow.flow._compute import NodeBatch as NodeBatch
from nodeflow.flow._compute import message_passing as message_passing
from nodeflow.flow._flow import Flow as Flow
from nodeflow.flow._layer import Layer as Layer
from nodeflow.flow._node_flow import NodeFlow as NodeFlow

__all__ = [
    "EdgeBatch",
    "Flow",
    "Layer",
    "NodeBatch",
    "NodeFlow",
    "create_full_node_flow",
    "create_node_flow",
    "flow_from_csr",
    "flow_from_edges",
    "message_passing",
]
