"""The parent graph, and frames of columns.

Where to change something:

- ``_graph``: the class. ``_storage`` checks and narrows its arrays, ``_queries`` answers questions about edges,
  ``_hints`` explains arguments of other libraries, ``_names`` numbers named nodes.
- ``_folder``: a graph in files.
- ``_frame``: columns of layers, flows and graphs.
- ``_columns`` and ``_edges`` serve samplers: columns as numbers, and edge arrays. ``_numbering`` gives the nodes of a
  batch their local ids.
- A graph that lies on several processes: ``_held`` says what a process holds and how it asks the others, ``_routes``
  which entries go where, ``_fetch_apart`` fetches rows from their owners, ``_commit_apart`` changes them on all or on
  none.
"""

from nodeflow.graph._frame import Frame
from nodeflow.graph._graph import Graph
from nodeflow.graph._names import NodeNames

__all__ = ["Frame", "Graph", "NodeNames"]
