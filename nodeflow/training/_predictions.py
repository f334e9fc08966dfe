"""Files of predictions."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from nodeflow.datasets import Dataset


def check_predictions(path: Path) -> None:
    """Raise where predictions cannot be written into ``path``: ValueError, ImportError or FileNotFoundError."""
    if path.suffix not in (".csv", ".parquet", ".npy"):
        raise ValueError(f"output must end with .csv, .parquet or .npy, got {path.name!r}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise ImportError("Parquet files need pyarrow; install it with: pip install pyarrow")


def write_predictions(path: Path, nodes: Tensor, outputs: Tensor, dataset: Dataset, task: str) -> None:
    """Write the outputs ``[n, width]`` of nodes into ``path``: a table (.csv, .parquet), or the outputs alone (.npy).

    A table has a row per node: its id, its name where the data set has names, and for classification the class, its
    name and its probability; for several labels per node a probability per label; for regression the numbers.

    Raises what ``check_predictions`` raises, and OSError.
    """
    check_predictions(path)
    if path.suffix == ".npy":
        np.save(path, outputs.numpy())
        return
    columns = _columns(nodes, outputs, dataset, task)
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(columns), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _columns(nodes: Tensor, outputs: Tensor, dataset: Dataset, task: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"node": nodes.tolist()}
    if dataset.node_names is not None:
        columns["name"] = [dataset.node_names[node] for node in columns["node"]]
    names = dataset.class_names
    if task == "classification":
        chances, classes = outputs.softmax(1).max(1)
        columns["class"] = classes.tolist()
        if names is not None:
            columns["class_name"] = [names[number] for number in columns["class"]]
        columns["probability"] = chances.tolist()
        return columns
    values, word = (outputs.sigmoid(), "label") if task == "multilabel" else (outputs, "value")
    for number, column in enumerate(values.T):
        columns[names[number] if names is not None else f"{word}_{number}"] = column.tolist()
    return columns
