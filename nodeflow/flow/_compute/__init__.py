"""Message passing on a NodeFlow: executes ``flow_compute``, ``apply_layers`` and their kin.

``run`` is what a NodeFlow calls; ``propagate`` the same from tensors to tensors; ``part`` the edges and nodes one call
computes; ``reducing`` makes messages and reduces them; ``udf`` is what user-defined functions see; ``guard`` keeps
frames as they were when one fails.
"""

from nodeflow.flow._compute.propagate import propagate
from nodeflow.flow._compute.run import (
    apply_flows,
    apply_layers,
    compute,
    flow_compute,
    flow_send_and_recv,
    forward,
    register_layer_computation,
)
from nodeflow.flow._compute.udf import EdgeBatch, NodeBatch

__all__ = [
    "EdgeBatch",
    "NodeBatch",
    "apply_flows",
    "apply_layers",
    "compute",
    "flow_compute",
    "flow_send_and_recv",
    "forward",
    "propagate",
    "register_layer_computation",
]
