"""Message passing on a NodeFlow: executes ``flow_compute``, ``apply_layers`` and their kin.

``run`` holds the calls of a NodeFlow, and ``message_passing``, the same from tensors to tensors.
``part`` holds the edges and nodes that one call computes, ``reducing`` makes messages and reduces
them, ``udf`` shows batches of nodes and edges to user-defined functions, checks what they return,
and restores the frames when one fails.
"""
