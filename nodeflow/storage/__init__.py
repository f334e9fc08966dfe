"""Rows, graphs and learned rows that are larger than memory.

A column of a graph is a tensor, or any object that follows the protocol ``Rows``. Whatever takes columns takes both.

- ``_files``, ``_sparse_files``: columns in files. ``_created``: files that a program writes itself.
- ``_cached``, ``_tiered``: rows split over faster and slower places by ``_heat``.
- ``_lookahead``: batches whose rows are read as planned by ``_plan``.
- ``_build``: a graph folder from files of edges, by counting in bounded memory (``_sorting``). ``_edge_files`` reads
  what users have, piece by piece; ``_edge_text`` reads the text among it.
- ``_embedding_table``: rows learned for nodes, beside the state of their optimiser. ``_pipeline``: batches under way
  at the same time.
"""

from nodeflow._rows.rows import Rows
from nodeflow.storage._build import build_graph, node_names
from nodeflow.storage._cached import Cached, RecentlyUsed
from nodeflow.storage._created import create
from nodeflow.storage._embedding_table import EmbeddingTable
from nodeflow.storage._files import FileRows, open
from nodeflow.storage._heat import degree_heat, hottest, presample, random_heat, reach_heat
from nodeflow.storage._lookahead import Lookahead, Reads
from nodeflow.storage._pipeline import Pipeline
from nodeflow.storage._sparse_files import SparseFileRows, open_sparse, save_sparse
from nodeflow.storage._tiered import Tiered

__all__ = [
    "Cached",
    "EmbeddingTable",
    "FileRows",
    "Lookahead",
    "Pipeline",
    "Reads",
    "RecentlyUsed",
    "Rows",
    "SparseFileRows",
    "Tiered",
    "build_graph",
    "create",
    "degree_heat",
    "hottest",
    "node_names",
    "open",
    "open_sparse",
    "presample",
    "random_heat",
    "reach_heat",
    "save_sparse",
]
