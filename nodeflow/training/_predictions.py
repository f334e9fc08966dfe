"""Files of predictions: outputs of nodes, and the best answers of a run that learned links."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_ids
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._files.disk.arrays import replacing
from nodeflow.datasets import Dataset
from nodeflow.metrics import TopLinks
from nodeflow.training._links import LinkTask
from nodeflow.training._nodes import NodeTask
from nodeflow.training._trainer import Trainer

Columns: TypeAlias = dict[str, Any]
"""Columns of a table by title."""
# rows of a table that are made at a time, about
_PIECE = 2**16


@checked
def write_predictions(path: FileLike, trainer: Trainer, nodes: IdsLike | None = None) -> None:
    """Write the outputs of nodes, with their names, into a file: what ``nodeflow predict`` writes.

    A table has a row per node: its id, its name where the data set has names, and for
    classification the class, its name and its probability; for several labels per node a
    probability per label; for regression the numbers.

    Args:
        path: the file: a table, .csv or .parquet; or .npy, the outputs alone, ``[n, width]``.
        trainer: of a run that learned labels of nodes.
        nodes: ids, ``[n]``; None: all nodes, of the target where labels are those of one node type.
            A table then has the column ``local`` too, ids within the type.

    The outputs are ``trainer.outputs(nodes)``, so after ``run`` those of the best epoch. An older
    file stays until the new one is whole. With several processes the first one writes.

    Raises ValueError for another ending, TypeError for a run that learned links, FileNotFoundError
    where the folder is missing, ImportError where a package for the file is missing, OSError.

    >>> import tempfile
    >>> from nodeflow.datasets import debian
    >>> from nodeflow.training import Settings
    >>> trainer = Trainer(debian(), Settings(fanouts=(1,), hidden=4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_predictions(f"{folder}/nodes.csv", trainer, [3, 4])
    ...     Path(f"{folder}/nodes.csv").read_text().splitlines()[0]
    'node,name,class,class_name,probability'
    """
    place = check_predictions(Path(path))
    task = trainer.task
    dataset = task.dataset
    if not isinstance(task, NodeTask):
        raise TypeError(
            "write_predictions writes outputs of nodes, but the run learned links: write_top_links"
        )
    if nodes is None:
        nodes = dataset.target_ids
    ids = torch.from_numpy(as_ids(nodes, "nodes", dataset.graph.num_nodes))
    outputs = trainer.outputs(ids)
    if trainer.peers.is_first:
        write_outputs(place, ids, outputs, dataset, task.target.task)


@checked
def write_top_links(
    path: FileLike,
    trainer: Trainer,
    nodes: IdsLike | None = None,
    k: int = 10,
    *,
    relation: int | str | None = None,
    side: str = "destination",
    with_known: bool = False,
) -> None:
    """Write the k best answers of nodes, with names, into a file: what ``nodeflow predict`` writes
    of a run of links.

    A table has a row per answer: ``node``, ``name`` where the data set has names, ``relation`` and
    ``relation_name`` where there are any, ``rank`` from 1, ``answer``, ``answer_name`` and
    ``score``. A node has fewer rows where it has fewer answers.

    Args:
        path: the file: a table, .csv or .parquet; or .npy, the ids of the answers alone,
            ``[n, k]``, or ``[n, relations, k]`` for all relations of a graph that has some; -1
            where there are fewer answers.
        trainer: of a run that learned links.
        nodes: ids of the nodes that are asked about, ``[n]``; None: all, of the type at that end of
            the links.
        k, relation, side, with_known: see ``Trainer.top_links``.

    An older file stays until the new one is whole. With several processes the first one writes.
    Raises what ``Trainer.top_links`` raises; ValueError for another ending, FileNotFoundError where
    the folder is missing, ImportError where a package for the file is missing, OSError.

    >>> import tempfile
    >>> from nodeflow.datasets import debian
    >>> from nodeflow.training import Settings
    >>> trainer = Trainer(debian(), Settings(task="link", model="none"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_top_links(f"{folder}/links.csv", trainer, [3, 4], k=2)
    ...     Path(f"{folder}/links.csv").read_text().splitlines()[0]
    'node,name,relation,relation_name,rank,answer,answer_name,score'
    """
    # before the answers are searched, which takes longest
    place = check_predictions(Path(path))
    task = trainer.task
    if nodes is None:
        nodes = ()
        if isinstance(task, LinkTask):
            nodes = task.query_nodes(side)
    ids = as_ids(nodes, "nodes", task.dataset.graph.num_nodes)
    answers = trainer.top_links(ids, k, relation=relation, side=side, with_known=with_known)
    if not trainer.peers.is_first:
        return
    assert isinstance(task, LinkTask)  # top_links refuses others
    _write(place, answers.ids, _answers(ids, answers, task, task.relations(relation)))


def check_predictions(path: Path) -> Path:
    """Return ``path``, or raise where predictions cannot be written."""
    if path.suffix not in (".csv", ".parquet", ".npy"):
        raise ValueError(f"output must end with .csv, .parquet or .npy, got {path.name!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    # asked without an import, which takes a second
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ImportError("Parquet files need pyarrow; install it with: pip install pyarrow")
    return path


def write_outputs(path: Path, nodes: Tensor, outputs: Tensor, dataset: Dataset, task: str) -> None:
    """Write the outputs ``[n, width]`` of nodes into ``path``, as ``write_predictions`` says."""
    _write(path, outputs, _columns(nodes, outputs, dataset, task))


def _write(path: Path, numbers: Tensor, pieces: Iterator[Columns]) -> None:
    """Write numbers alone, or the pieces of a table, of which there is one at least."""
    # a link stays one, to a new file
    with replacing(Path(os.path.realpath(path))) as draft:
        if path.suffix == ".npy":
            with draft.open("wb") as file:
                np.save(file, numbers.numpy())
        elif path.suffix == ".parquet":
            _write_parquet(draft, pieces)
        else:
            _write_csv(draft, pieces)


def _write_parquet(path: Path, pieces: Iterator[Columns]) -> None:
    import pyarrow
    from pyarrow import parquet

    first = pyarrow.table(next(pieces))
    with parquet.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for columns in pieces:
            writer.write_table(pyarrow.table(columns, schema=first.schema))


def _write_csv(path: Path, pieces: Iterator[Columns]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for number, columns in enumerate(pieces):
            if number == 0:
                writer.writerow(columns)
            # numbers of Python are written in fewer digits than those of numpy
            lists = [np.asarray(column).tolist() for column in columns.values()]
            writer.writerows(zip(*lists, strict=True))


def _answers(
    nodes: Ints, best: TopLinks, task: LinkTask, relations: list[int]
) -> Iterator[Columns]:
    """Yield the table of answers in pieces, node by node and relation by relation."""
    k = best.ids.shape[-1]
    queries_of_node = max(len(relations), 1)
    answers = best.ids.view(-1, k).numpy()
    scores = best.scores.view(-1, k).float().numpy()
    dataset = task.dataset
    # in pieces, because the words of all answers may take more memory than their ids
    step = max(_PIECE // k, 1)
    for start in range(0, max(len(answers), 1), step):  # one piece at least, for the titles
        query, place = np.nonzero(answers[start : start + step] >= 0)
        query += start
        columns = _nodes("node", "name", "local", nodes[query // queries_of_node], dataset)
        if relations:
            numbers = np.array(relations)[query % queries_of_node]
            columns |= _with_names("relation", "relation_name", numbers, task.relation_names)
        columns["rank"] = place + 1
        found = answers[query, place]
        columns |= _nodes("answer", "answer_name", "answer_local", found, dataset)
        columns["score"] = scores[query, place]
        yield columns


def _columns(nodes: Tensor, outputs: Tensor, dataset: Dataset, task: str) -> Iterator[Columns]:
    columns = _nodes("node", "name", "local", nodes.numpy(), dataset)
    names = dataset.class_names
    if task == "classification":
        chances, classes = outputs.softmax(1).max(1)
        columns |= _with_names("class", "class_name", classes.numpy(), names)
        columns["probability"] = chances.tolist()
        yield columns
        return
    word = "value"
    if task == "multilabel":
        word = "label"
        outputs = outputs.sigmoid()
    titles = names or [f"{word}_{number}" for number in range(outputs.shape[1])]
    yield columns | dict(zip(titles, outputs.T.tolist(), strict=True))


def _nodes(title: str, names: str, local: str, ids: Ints, dataset: Dataset) -> Columns:
    """Return columns of nodes: ids, names where there are any, ids within types of several."""
    columns = _with_names(title, names, ids, dataset.node_names)
    schema = dataset.graph.schema
    if len(schema.nodes) > 1:
        columns[local] = ids - schema.bounds()[schema.types_of(ids)]
    return columns


def _with_names(title: str, title_of_names: str, numbers: Ints, names: Any) -> Columns:
    """Return a column of numbers, and a column of their names if there are any."""
    columns: Columns = {title: numbers}
    if names is not None:
        # with a type also where there are none
        columns[title_of_names] = np.array(
            [names[number] for number in numbers.tolist()], dtype=str
        )
    return columns
