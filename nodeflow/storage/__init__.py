"""Rows, graphs and learned rows that are larger than memory.

A column of a graph is a tensor, or any object that follows the protocol ``Rows``. Whatever takes columns takes both.
"""

from nodeflow._rows.rows import Rows
from nodeflow.storage._cached import Cached, RecentlyUsed
from nodeflow.storage._files import FileRows, open
from nodeflow.storage._heat import degree_heat, hottest, presample, random_heat, reach_heat
from nodeflow.storage._lookahead import Lookahead, Reads
from nodeflow.storage._sparse_files import SparseFileRows, open_sparse, save_sparse
from nodeflow.storage._tiered import Tiered

__all__ = [
    "Cached",
    "FileRows",
    "Lookahead",
    "Reads",
    "RecentlyUsed",
    "Rows",
    "SparseFileRows",
    "Tiered",
    "degree_heat",
    "hottest",
    "open",
    "open_sparse",
    "presample",
    "random_heat",
    "reach_heat",
    "save_sparse",
]
