"""Batches of seeds to NodeFlows, sampled ahead on threads.

``_loader`` is the loader, on the base ``_epochs``, which resumes, and the threads of ``_workers``.
``_table`` has the seeds, ``_order`` their order, and draws by weight; ``_shares`` divides steps
among processes, ``_sent_ahead`` copies batches to a GPU, ``_checks`` has the checks.

Names that are not in ``__all__`` serve rooms above, not users: other batches that come in epochs,
and copies to a GPU.
"""

from nodeflow.loader._epochs import Epochs as Epochs, Pass as Pass
from nodeflow.loader._loader import NodeFlowLoader
from nodeflow.loader._order import (
    LocalShuffle,
    balanced_weights,
)
from nodeflow.loader._sent_ahead import SentAhead as SentAhead
from nodeflow.loader._table import SeedTable
from nodeflow.loader._workers import Timings

__all__ = ["LocalShuffle", "NodeFlowLoader", "SeedTable", "Timings", "balanced_weights"]
