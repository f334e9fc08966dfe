"""Message passing on a NodeFlow: executes ``flow_compute``, ``apply_layers`` and their kin.

``run`` holds the calls of a NodeFlow, ``message_passing`` the same from tensors to tensors. ``part`` holds the edges
and nodes that one call computes, ``reducing`` makes messages and reduces them, ``udf`` shows batches of nodes and edges
to user-defined functions, ``guard`` restores the frames when one fails.
"""

from nodeflow.flow._compute.message_passing import message_passing
from nodeflow.flow._compute.run import (
    Computation,
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
    "Computation",
    "EdgeBatch",
    "NodeBatch",
    "apply_flows",
    "apply_layers",
    "compute",
    "flow_compute",
    "flow_send_and_recv",
    "forward",
    "message_passing",
    "register_layer_computation",
]
