"""Reader for a data set kept as a graph folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._disk.arrays import map_array
from nodeflow._disk.manifest import Manifest
from nodeflow._disk.texts import map_texts
from nodeflow.datasets._dataset import FACTS, Dataset
from nodeflow.datasets._files import class_column, labelled_split, split_of
from nodeflow.graph import NAMES, SPLIT, Graph, read_manifest


def read_graph_folder(folder: Path, *, labels: bool) -> Dataset:
    """Return the data set of a graph folder; see ``read_folder``."""
    manifest, graph = read_manifest(folder), Graph.open(folder)
    facts = _facts(folder, manifest)
    if labels and "label" not in graph.ndata:
        raise FileNotFoundError(f"{folder} has no node column 'label'; labels=False reads a graph without labels")
    num_classes = 0
    if "label" in graph.ndata:
        graph.ndata["label"], num_classes = _label(folder, graph.ndata["label"])
    train, val, test = _split(folder, manifest, graph)
    try:
        return Dataset(
            name=facts.get("name", folder.resolve().name),
            graph=graph,
            train=train,
            val=val,
            test=test,
            num_classes=max(num_classes, facts.get("num_classes", 0)),
            class_names=_names(facts.get("class_names")),
            description=facts.get("description", ""),
            node_names=map_texts(folder, manifest.arrays, NAMES),
            feature_names=_names(facts.get("feature_names")),
            category_names={name: tuple(words) for name, words in facts.get("category_names", {}).items()},
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(f"{folder}: what its manifest says of the data set does not fit the graph: {error}") from None


def _facts(folder: Path, manifest: Manifest) -> Mapping[str, Any]:
    facts = manifest.facts.get(FACTS, {})
    if not isinstance(facts, dict):
        raise ValueError(f"{folder} is damaged: its manifest says nothing readable of the data set")
    return facts


def _names(words: list[str] | None) -> tuple[str, ...] | None:
    return None if words is None else tuple(words)


def _label(folder: Path, label: Tensor) -> tuple[Tensor, int]:
    """Return the column ``label`` in its usual type, and the number of classes."""
    if label.layout != torch.strided or label.ndim not in (1, 2) or label.is_complex():
        raise ValueError(f"{folder}: the node column 'label' must have one number, or one row, per node")
    if label.ndim == 2:
        return label.float(), label.shape[1]
    if label.is_floating_point():
        return label.float(), 0
    return class_column(label.long().numpy(), str(folder))


def _split(folder: Path, manifest: Manifest, graph: Graph) -> list[Tensor]:
    arrays = {f"{folder}, split {part!r},": np.zeros(0, np.int64) for part in SPLIT}
    for name, part in zip(arrays, SPLIT, strict=True):
        if part in manifest.arrays:
            arrays[name] = np.array(map_array(folder, manifest.arrays[part]))
    parts = split_of(arrays, graph.num_nodes) if any(part in manifest.arrays for part in SPLIT) else None
    return labelled_split(parts, f"{folder}: the split", graph.ndata.get("label"), graph.num_nodes)
