"""Training: settings, tasks, the trainer, and the folder of a run.

The module is large because a run is one subject for the command, for Python and for its files: all
three read the same settings, and no other module uses any of them.

- *Settings.* An option is a field in its group: ``_models`` (with decoders and losses of links),
  ``_optimizers``, ``_samplers``, else ``_settings``; parser, help, file and tables of the
  documentation follow. ``_fields`` has the kinds of fields, ``_rules`` says where each is read and
  which exclude each other, ``_recipes`` has values for tasks that need others than the usual
  defaults.
- *A run.* ``_trainer`` goes over epochs and steps; ``_task``, with ``_nodes`` and ``_links``, says
  what is learned. Read are the data of ``_data`` and the graph of ``_graph``; computed is the
  network of ``_network``, in the types of ``_precision``; drawn are batches of ``_samplers``,
  ``_partitions`` or ``_answers`` by ``_loaders``, of which ``_first_batch`` tries one.
  ``_processes`` joins several processes.
- *Its folder.* ``_folder``, with ``_checkpoints``, ``_result`` and ``_predictions``. ``_finished``
  opens it for other data, in the numbers of the run: ``_names``.
- *The command.* ``_cli``, with ``_train_command`` and ``_commands``.
"""

from nodeflow.training._checkpoints import Checkpoints
from nodeflow.training._finished import open_finished
from nodeflow.training._folder import load_model, open_trainer, save
from nodeflow.training._network import Inputs, LinkNetwork, Network, TypedInputs
from nodeflow.training._predictions import write_predictions, write_top_links
from nodeflow.training._result import EpochRecord, Result, Stopped
from nodeflow.training._settings import Settings
from nodeflow.training._trainer import Trainer

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
    "TypedInputs",
    "load_model",
    "open_finished",
    "open_trainer",
    "save",
    "write_predictions",
    "write_top_links",
]
