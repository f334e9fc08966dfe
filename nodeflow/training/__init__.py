"""Training: settings, tasks, the trainer, and the folder of a run."""

from nodeflow.training._checkpoints import Checkpoints
from nodeflow.training._folder import load_model, open_trainer, save
from nodeflow.training._network import Inputs, LinkNetwork, Network
from nodeflow.training._predictions import write_predictions, write_top_links
from nodeflow.training._result import EpochRecord, Result
from nodeflow.training._settings import Settings
from nodeflow.training._trainer import Stopped, Trainer

__all__ = [
    "Checkpoints",
    "EpochRecord",
    "Inputs",
    "LinkNetwork",
    "Network",
    "Result",
    "Settings",
    "Stopped",
    "Trainer",
    "load_model",
    "open_trainer",
    "save",
    "write_predictions",
    "write_top_links",
]
