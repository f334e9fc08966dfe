"""The trainer of a finished run, for its own data or for others, whose numbers are brought into
those of the run.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import blaming
from nodeflow._core.base.files import is_file
from nodeflow.datasets import Dataset
from nodeflow.training._checkpoints import load_weights, read_tensors
from nodeflow.training._choices import Values
from nodeflow.training._data import learned_part
from nodeflow.training._folder import CHECKPOINT, RESULT, Run, check_checkpoint, read_result
from nodeflow.training._graph import stays_in_file, with_columns
from nodeflow.training._names import NODES, Names
from nodeflow.training._trainer import Trainer


@checked
def open_finished(
    folder: Path | str,
    dataset: Dataset | None = None,
    *,
    model: str | None = None,
    device: str | None = None,
) -> Trainer:
    """Return a trainer with the weights of the best epoch of a finished run, as
    ``nodeflow predict`` takes it.

    Args:
        folder: that of the run, with the ``run.toml`` of the command.
        dataset: other data; None: those of the run. Columns, classes, categories of edges, node
            types, relations, and nodes with a learned row are found by their names; where they have
            none, their numbers are their names.
        model: for a model "module:factory", the same name as in ``run.toml``, see ``open_trainer``.
        device: where the model computes; None: that of the run.

    Its ``task.dataset`` has the numbers and names of the run. Raises FileNotFoundError where there
    is no finished run, ValueError for damaged files, files of two runs, data of the run that have
    changed, and a name that only the model or only the data have.

    >>> open_finished("nowhere")
    Traceback (most recent call last):
    FileNotFoundError: nowhere is no folder of a run: it has no run.toml; a run that was cut off before ...
    """
    return finished(Path(folder), dataset, model, device)[0]


def finished(
    folder: Path, given: Dataset | None, model: str | None = None, device: str | None = None
) -> tuple[Trainer, Dataset]:
    """Return what ``open_finished`` returns, and the data set without placeholders for what its
    trainer needs.
    """
    run = Run.read(folder, model).shared_by(1)
    if run.is_of_parts and given is None:
        raise ValueError(
            f"the run in {folder} trained on parts of a graph: give the data set that they were "
            "cut from, with --data"
        )
    checkpoint = folder / CHECKPOINT
    facts, weights = _read(folder, run)
    names = Names.from_json(facts["names"], weights)
    weights.pop(NODES, None)
    if given is None:
        dataset = run.dataset()
    else:  # which may have labels of another type, where settings name none
        dataset = learned_part(given, facts["task"], facts.get("target", run.settings.run.target))
    dataset = names.align(dataset)
    is_buffer = run.settings.storage.kind == "partitions"
    storage = run.settings.storage.kind
    if is_buffer:
        storage = "file"
    settings = run.settings.replace(
        task=facts["task"],
        device=device or run.settings.compute.device,
        storage=storage if stays_in_file(dataset.graph) else "memory",
        # these only training reads
        partitions="",
        share="even",
    )
    # a trainer refuses data without labels, which outputs do not need
    is_trainable = given is None or facts["task"] == "link"
    trainer = Trainer(dataset if is_trainable else _for_outputs(dataset, facts), settings)
    # with a partition buffer, the fingerprint has the cut of the graph in it
    is_same = given is None and not is_buffer
    if is_same and facts.get("fingerprint", trainer.fingerprint) != trainer.fingerprint:
        raise ValueError(
            f"{checkpoint} was not trained on data set {dataset.name!r} as {run.data} has it now; "
            f"if it is meant to be measured on that, give --data {run.data}"
        )
    # a learned row belongs to a name, and goes to the node that has it in these data
    for key, node_type in trainer.network.inputs.rows_of_nodes().items():
        weights[f"inputs.{key}"] = weights[f"inputs.{key}"][names.rows(dataset, node_type)]
    try:
        with blaming(str(checkpoint), ValueError):
            load_weights(trainer.network, weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()  # of one of its tensors
        raise ValueError(
            f"the model in {folder} does not fit data set {dataset.name!r}: {reason}"
        ) from error
    return trainer, dataset


def _read(folder: Path, run: Run) -> tuple[Values, dict[str, torch.Tensor]]:
    """Return the facts and the weights of a finished run; raises for the files of two runs."""
    checkpoint = folder / CHECKPOINT
    if not is_file(checkpoint):
        raise FileNotFoundError(
            f"the run in {folder} is not finished: nodeflow train --resume {folder}"
        )
    facts, weights = read_tensors(checkpoint)
    check_checkpoint(checkpoint, facts, run)
    if is_file(folder / RESULT):
        result = read_result(folder)
        # the state of the run may be later than its result, but these two were written together
        for name in ("identity", "best_epoch", "scores"):
            if facts.get(name) != result.get(name):
                raise ValueError(
                    f"{checkpoint} and {RESULT} beside it are of two runs: put its own files back"
                )
    return facts, weights


def _for_outputs(dataset: Dataset, facts: Values) -> Dataset:
    """Return a data set for evaluation only, with placeholders for missing labels and training
    nodes.
    """
    width = (facts["network"]["model"] or {}).get("out_features", dataset.num_classes)
    graph = dataset.graph
    train = dataset.train
    if "label" not in graph.ndata:
        if facts["task"] == "classification":
            label = torch.zeros(graph.num_nodes, dtype=torch.int64)
        else:
            label = torch.zeros(graph.num_nodes, width)
        graph = with_columns(graph, {"label": label})
    if not len(train):
        train = torch.cat([*dataset.splits.values(), dataset.target_ids])[:1]
    result = replace(dataset, graph=graph, num_classes=max(dataset.num_classes, width))
    # the node may be in another part too, which a data set refuses; nothing trains on it
    object.__setattr__(result, "train", train)
    return result
