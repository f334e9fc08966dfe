"""Graph folders from files of edges, in bounded memory.

- ``_build``: the folder, by counting and sorting pieces (``_sorting``).
- ``_edge_files`` reads the files that users have, piece by piece.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow._rows.narrowing import WIDTHS as WIDTHS
from nodeflow.building._build import build_graph, node_names, stored_as as stored_as

__all__ = ["build_graph", "node_names"]
