"""Rows of columns that are larger than memory.

A column of a graph is a tensor, or any object that follows the protocol ``Rows``, dense or sparse.
Whatever takes columns takes both.

- ``_open``: columns in files, opened and made. ``_files`` reads them, by the loop
  ``_kernels/reading.py``.
- ``_tiered``: rows split over faster and slower places by ``_heat``; ``_memory`` holds those that
  fit, and dense columns in fewer bytes, as ``_core/rows/narrow.py`` and ``_core/rows/narrowing.py`` say.
- ``_lookahead``: batches whose rows are read as planned by ``_plan``.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow._core.rows.coded import CodedRows
from nodeflow._core.rows.narrow import ColumnErrors, NarrowRows
from nodeflow._core.rows.rows import Rows
from nodeflow.storage._embedding_table import EmbeddingTable
from nodeflow.storage._files import FileRows, SparseFileRows
from nodeflow.storage._heat import degree_heat, hottest, presample, reach_heat
from nodeflow.storage._lookahead import Lookahead, Reads
from nodeflow.storage._memory import mean_bytes as mean_bytes, narrow
from nodeflow.storage._open import create, open, opened as opened, save_sparse
from nodeflow.storage._pipeline import Pipeline
from nodeflow.storage._tiered import Cached, Tiered

__all__ = [
    "Cached",
    "CodedRows",
    "ColumnErrors",
    "EmbeddingTable",
    "FileRows",
    "Lookahead",
    "NarrowRows",
    "Pipeline",
    "Reads",
    "Rows",
    "SparseFileRows",
    "Tiered",
    "create",
    "degree_heat",
    "hottest",
    "narrow",
    "open",
    "presample",
    "reach_heat",
    "save_sparse",
]
