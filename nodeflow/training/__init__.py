"""Training runs: settings, the loop, methods, and what a run leaves behind."""

from nodeflow.training._checkpoint import load_model as load_model
from nodeflow.training._checkpoint import save as save
from nodeflow.training._loop import (
    EpochRecord as EpochRecord,
)
from nodeflow.training._loop import (
    Result as Result,
)
from nodeflow.training._loop import (
    build_model as build_model,
)
from nodeflow.training._loop import (
    check_dataset as check_dataset,
)
from nodeflow.training._loop import (
    train as train,
)
from nodeflow.training._settings import Settings as Settings

__all__ = ["EpochRecord", "Result", "Settings", "build_model", "check_dataset", "load_model", "save", "train"]
