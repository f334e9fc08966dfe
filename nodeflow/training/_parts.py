"""Data sets whose graph lies on several processes, a part in each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow._rows.rows import fetch_rows
from nodeflow.datasets import Dataset
from nodeflow.distributed import DistributedGraph
from nodeflow.graph import Graph
from nodeflow.random import derive_key
from nodeflow.training._features import FeatureRows, hash_of
from nodeflow.transform import DEGREES, degrees

_IDS = 2**20  # rows that are checked at a time


def read_parts(folder: str) -> Dataset:
    """Return the data set in a folder of parts, of which each process opens its own; collective.

    Labels of all nodes are in the memory of every process.

    Raises what ``DistributedGraph.open`` raises, and ValueError without a process for every part, for edges that do not
    lie with their destinations, and for a folder without labels or training nodes.
    """
    if not dist.is_initialized():
        raise ValueError(
            f"partitions is for parts in several processes, and this is one: start torchrun --nproc-per-node N -m "
            f"nodeflow train --partitions {folder}; for a partition buffer give storage 'partitions'"
        )
    graph = DistributedGraph.open(folder)
    parts = graph.parts
    if parts.edges != "in":
        raise ValueError(
            f"{folder} has edges {parts.edges!r}, but training finds neighbours where the edges into a node lie "
            "together: write it with nodeflow partition --for processes --edges in"
        )
    if "label" not in graph.ndata:
        raise ValueError(f"{folder} has no labels, so a model cannot be trained on it")
    label = fetch_rows(graph.ndata["label"], torch.from_numpy(np.arange(graph.num_nodes)))
    if label.ndim == 1:
        num_classes = 0 if label.is_floating_point() or not len(label) else int(label.max()) + 1
    else:
        num_classes = label.shape[1]
    train, val, test = (
        torch.from_numpy(np.zeros(0, np.int64) if ids is None else np.array(ids, np.int64))
        for ids in (parts.train, parts.val, parts.test)
    )
    return Dataset(Path(folder).name, with_columns_of_parts(graph, {"label": label}), train, val, test, num_classes)


def check_held_features(name: str, graph: Graph, x: Any) -> None:
    """Raise ValueError where a row of features that a process holds is not finite, PeerError elsewhere; collective."""
    peers: Any = graph.peers
    rows: Any = x.rows if isinstance(x, FeatureRows) else x
    held, what = rows.held, "check of features"
    with peers.together(what, exchanges=1):
        for start in range(0, held.shape[0], _IDS):
            ids = torch.from_numpy(np.arange(start, min(start + _IDS, held.shape[0])))
            wrong = (~torch.isfinite(fetch_rows(held, ids).reshape(len(ids), -1)).all(1)).nonzero()
            if len(wrong):
                node = int(graph.held.part.masters[start + int(wrong[0, 0])])  # type: ignore[attr-defined]
                raise ValueError(f"the features of data set {name!r} must be finite, but row {node} has NaN or inf")
        peers.gather(what, [])


def node_degrees(graph: Graph) -> dict[str, Tensor]:
    """Return the columns of ``transform.degrees``; collective for a graph that lies on several processes."""
    if graph.peers is None:
        return degrees(graph)
    columns = zip(DEGREES, (graph.in_degrees(), graph.out_degrees()), strict=True)
    return {name: column.float() for name, column in columns}


def with_columns_of_parts(graph: DistributedGraph, columns: Mapping[str, Any]) -> DistributedGraph:
    """Return the same graph with further node columns; nothing is copied or exchanged."""
    made = DistributedGraph(graph.parts, graph.held.part, graph.peers)
    made.ndata.update({**graph.ndata, **columns})
    made.edata.update(graph.edata)
    return made


def fingerprint_of_parts(dataset: Dataset) -> str:
    """Return a hash of labels, split and sizes: the same for any parts of the graph, unless they are renumbered."""
    graph = dataset.graph
    known = [graph.ndata["label"], *dataset.splits.values()]
    return f"{derive_key(graph.num_nodes, graph.num_edges, *(hash_of(column) for column in known)):016x}"
