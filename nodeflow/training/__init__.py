"""Training runs: settings, the loop, methods and tasks, and the files of a run."""

from nodeflow.training._checkpoint import load_model, save
from nodeflow.training._loop import EpochRecord, Result, build_model, check_dataset, train
from nodeflow.training._settings import Settings

__all__ = ["EpochRecord", "Result", "Settings", "build_model", "check_dataset", "load_model", "save", "train"]
