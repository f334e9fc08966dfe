"""The NodeFlow, its layers and flows, and message passing on them.

The module is large because one object has many capabilities; each has a file, and the classes only
take its functions.

Where to change something:

- ``_node_flow``, ``_layer``, ``_flow``: the three classes. A subject with several functions has a
  file of its own, and ``NodeFlow`` takes these functions as methods:
- ``_columns_of_parent``: columns copied from and to the parent graph, and maps between ids.
- ``_message_passing``: ``flow_compute``, ``apply_layers`` and their kin. ``_part``: the edges that
  one call computes; ``_messages``: messages and their reduction; ``_user_functions``: what functions
  of users see and return.
- ``_append``, ``_validate``, ``_pictures``.
- ``_build``: NodeFlows made by hand. ``_full_flow``: the flows of ``Propagation``.
  ``_of_relations``: flows of some relations.
- ``_views``: the objects behind ``layers``, ``flows``, ``ldata`` and ``fdata``.
- ``_layer`` also has moves to a device. ``_pickle``: a NodeFlow as arrays and back.

Promises that a change must keep: no public call changes a structure; a call that fails changes no
frame; layers share tensors where they can, and keep sharing them after moves and pickling.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.flow._build import (
    create_full_node_flow,
    create_node_flow,
    empty_node_flow as empty_node_flow,
    flow_from_csr,
    flow_from_edges,
    shared_node_flow as shared_node_flow,
)
from nodeflow.flow._columns_of_parent import node_columns as node_columns
from nodeflow.flow._flow import Flow, FlowParts as FlowParts
from nodeflow.flow._full_flow import EdgeColumns as EdgeColumns, FullFlow as FullFlow
from nodeflow.flow._layer import Layer, LayerPart, rows_between as rows_between
from nodeflow.flow._message_passing import (
    apply_to_layer as apply_to_layer,
    distinct as distinct,
    message_passing,
    run as run,
)
from nodeflow.flow._node_flow import NodeFlow
from nodeflow.flow._of_relations import entering as entering, without_unread as without_unread
from nodeflow.flow._part import Part as Part, columns_at as columns_at, written as written
from nodeflow.flow._types import NamesLike as NamesLike
from nodeflow.flow._user_functions import EdgeBatch, NodeBatch

__all__ = [
    "EdgeBatch",
    "Flow",
    "Layer",
    "LayerPart",
    "NodeBatch",
    "NodeFlow",
    "create_full_node_flow",
    "create_node_flow",
    "flow_from_csr",
    "flow_from_edges",
    "message_passing",
]
