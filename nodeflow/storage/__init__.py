"""Rows of columns that are larger than memory.

A column of a graph is a tensor, or any object that follows the protocol ``Rows``, dense or sparse. Whatever takes
columns takes both.

- ``_open``: columns in files (``_files``, ``_sparse_files``). ``_created``: files that a program writes itself.
- ``_cached``, ``_tiered``: rows split over faster and slower places by ``_heat``; ``_fitting`` counts those that fit.
- ``_lookahead``: batches whose rows are read as planned by ``_plan``, and kept in ``_pools``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow._rows.rows import Rows
from nodeflow.storage._cached import Cached
from nodeflow.storage._created import create
from nodeflow.storage._files import FileRows
from nodeflow.storage._fitting import mean_bytes as mean_bytes
from nodeflow.storage._heat import degree_heat, hottest, presample, reach_heat
from nodeflow.storage._lookahead import Lookahead, Reads
from nodeflow.storage._open import open
from nodeflow.storage._open import opened as opened
from nodeflow.storage._sparse_files import SparseFileRows, save_sparse
from nodeflow.storage._tiered import Tiered

__all__ = [
    "Cached",
    "FileRows",
    "Lookahead",
    "Reads",
    "Rows",
    "SparseFileRows",
    "Tiered",
    "create",
    "degree_heat",
    "hottest",
    "open",
    "presample",
    "reach_heat",
    "save_sparse",
]
