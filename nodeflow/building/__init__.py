"""Graph folders from files of edges, in bounded memory.

- ``_build``: the folder, by counting and sorting pieces (``_sorting``).
- ``_edge_files`` reads what users have, piece by piece; ``_edge_text`` reads the text among it.
"""

from nodeflow.building._build import build_graph, node_names

__all__ = ["build_graph", "node_names"]
