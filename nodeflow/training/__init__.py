"""Training: settings, tasks, the trainer, and the folder of a run.

The module is large because a run is one subject for the command, for Python and for its files: all
three read the same settings, and no other module uses any of them.

- *Settings.* An option is a field in its group in ``_train_options``, which says what reads it;
  parser, help, file and tables of the documentation follow. ``_fields`` has the kinds of fields,
  ``_choices`` the names of models, samplers and others with what rules say of each, ``_rules`` which
  settings exclude each other. None of these imports torch, which the command's help does not wait
  for. ``_models``, ``_samplers`` and ``_optimizers`` make what is chosen. ``_recipes`` has values
  for tasks that need others than the usual defaults.
- *A run.* ``_trainer`` goes over epochs and steps; ``_task``, with ``_nodes`` and ``_links``, says
  what is learned. Read are the data of ``_data`` and the graph of ``_graph``; computed is the
  network of ``_network``, in the types of ``_precision``; drawn are batches of ``_samplers``,
  ``_partitions`` or ``_answers``, of which ``_first_batch`` tries one.
  ``_processes`` joins several processes.
- *Its folder.* ``_folder``, with ``_checkpoints``, ``_result`` and ``_predictions``. ``_finished``
  opens it for other data, in the numbers of the run: ``_names``.
- *The command.* ``_cli`` has its options, without torch; ``_running`` runs a subcommand, one of
  ``_train_command``, ``_reproduce`` and ``_commands``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nodeflow._core.base.habits import unknown

if TYPE_CHECKING:
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

_HOMES = {
    "_checkpoints": "Checkpoints",
    "_finished": "open_finished",
    "_folder": "load_model open_trainer save",
    "_network": "Inputs LinkNetwork Network TypedInputs",
    "_predictions": "write_predictions write_top_links",
    "_result": "EpochRecord Result Stopped",
    "_settings": "Settings",
    "_trainer": "Trainer",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command's help needs no torch."""
    if name not in _HOME:
        return unknown(__name__, name, depth=2)
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
