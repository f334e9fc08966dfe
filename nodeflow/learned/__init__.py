"""Rows that are learned, one per node or relation, in memory or in files.

- ``_embedding_table``: the rows, beside the state of their optimiser; ``_row_optimizers`` makes and changes them.
- ``_pulls``: rows that wait for their step. ``_pipeline``: several batches under way at the same time.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.learned._embedding_table import EmbeddingTable
from nodeflow.learned._pipeline import Pipeline
from nodeflow.learned._pulls import Pulls as Pulls
from nodeflow.learned._pulls import added as added
from nodeflow.learned._pulls import check_finite as check_finite
from nodeflow.learned._pulls import gradients as gradients

__all__ = ["EmbeddingTable", "Pipeline"]
