"""Rows that are learned, one per node or relation, in memory or in files.

- ``_embedding_table``: the rows, beside the state of their optimiser; ``_row_optimizers`` makes and
  changes them.
- ``_pulls``: rows that wait for their step. ``_pipeline``: several batches under way at the same
  time.
"""

from nodeflow.learned._embedding_table import EmbeddingTable
from nodeflow.learned._pipeline import Pipeline

__all__ = ["EmbeddingTable", "Pipeline"]
