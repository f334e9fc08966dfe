"""Data sets written as graph folders: the graph with its columns, and beside it split and names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nodeflow._base.types import FileLike
from nodeflow._disk.folders import new_folder
from nodeflow._disk.streams import stream_array
from nodeflow._disk.texts import write_texts
from nodeflow.graph import NAMES, write_graph

if TYPE_CHECKING:
    from nodeflow.datasets._dataset import Dataset

FACTS = "dataset"


def save_dataset(dataset: Dataset, folder: FileLike, *, overwrite: bool) -> None:
    """Write a data set into a folder; see ``Dataset.save``."""
    with new_folder(Path(folder), overwrite=overwrite) as draft:
        contents = write_graph(dataset.graph, draft)
        contents.arrays |= {part: stream_array(draft, part, ids) for part, ids in dataset.splits.items()}
        if dataset.node_names is not None:
            contents.arrays |= write_texts(draft, NAMES, dataset.node_names)
        contents.facts[FACTS] = {
            "name": dataset.name,
            "num_classes": dataset.num_classes,
            "class_names": dataset.class_names,
            "description": dataset.description,
            "feature_names": dataset.feature_names,
            "category_names": dict(dataset.category_names),
        }
        contents.write(draft)
