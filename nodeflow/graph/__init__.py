"""The parent graph, and frames of columns.

Where to change something:

- ``_graph``: the class, with edges by their ends, and what a process holds of it (several are in
  ``distributed``, exchanges in the room ``_processes``).
- ``_names`` numbers named nodes.
- ``_folder``: a graph in files.
- ``_frame``: columns of layers, flows and graphs. ``_types``: the nodes of a type, the edges of a
  relation.
- Arrays of edges are in ``_core/edges``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow._core.edges.view import EdgeView
from nodeflow._core.schema import Schema
from nodeflow.graph._folder import (
    NAMES as NAMES,
    SPLIT as SPLIT,
    Contents as Contents,
    read_manifest as read_manifest,
    write_graph as write_graph,
)
from nodeflow.graph._frame import Frame, GraphFrame as GraphFrame
from nodeflow.graph._graph import Graph
from nodeflow.graph._names import NodeNames, check_all_or_none as check_all_or_none
from nodeflow.graph._types import (
    OfType,
    Types as Types,
    columns_of as columns_of,
    own_parts as own_parts,
    with_frames as with_frames,
    with_reverses as with_reverses,
    with_schema as with_schema,
    with_types_of as with_types_of,
)

__all__ = ["EdgeView", "Frame", "Graph", "NodeNames", "OfType", "Schema"]
