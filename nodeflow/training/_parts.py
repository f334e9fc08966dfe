"""Data sets whose graph lies on several processes, a part in each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from nodeflow._rows.rows import fetch_rows, first_not_finite
from nodeflow.datasets import Dataset
from nodeflow.distributed import DistributedGraph, GraphParts
from nodeflow.graph import Graph
from nodeflow.random import derive_key
from nodeflow.storage import Rows
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
    parts = GraphParts.open(folder)
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
    graph.ndata["label"] = label
    return Dataset(Path(folder).name, graph, train, val, test, num_classes)


def check_held_features(name: str, graph: Graph, x: Any) -> None:
    """Raise ValueError where a row of features that a process holds is not finite, PeerError elsewhere; collective."""
    peers: Any = graph.peers
    rows: Any = x.rows if isinstance(x, FeatureRows) else x
    held, what = rows.held, "check of features"
    with peers.together(what, exchanges=1):
        for start in range(0, held.shape[0], _IDS):
            ids = torch.from_numpy(np.arange(start, min(start + _IDS, held.shape[0])))
            if (wrong := first_not_finite(fetch_rows(held, ids))) is not None:
                node = int(graph.masters[start + wrong])
                raise ValueError(f"the features of data set {name!r} must be finite, but row {node} has NaN or inf")
        peers.gather(what, [])


def node_degrees(graph: Graph) -> dict[str, Tensor]:
    """Return the columns of ``transform.degrees``; collective for a graph that lies on several processes."""
    if graph.peers.size == 1:
        return degrees(graph)
    columns = zip(DEGREES, (graph.in_degrees(), graph.out_degrees()), strict=True)
    return {name: column.float() for name, column in columns}


def with_columns(graph: Graph, columns: Mapping[str, Tensor | Rows]) -> Graph:
    """Return a graph of the same edges with further node columns; nothing is copied or exchanged."""
    if isinstance(graph, DistributedGraph):
        same = DistributedGraph(graph.parts, graph.held.part, graph.peers)
        same.ndata.update({**graph.ndata, **columns})
        same.edata.update(graph.edata)
        return same
    indptr, indices, edge_ids = graph.csc()
    ndata: dict[str, Any] = {**graph.ndata, **columns}
    return Graph(indptr, indices, edge_ids=edge_ids, ndata=ndata, edata=graph.edata, copy=False)


def fingerprint_of_parts(dataset: Dataset) -> str:
    """Return a hash of labels, split and sizes: the same for any parts of the graph, unless they are renumbered."""
    graph = dataset.graph
    columns = [graph.ndata["label"], *dataset.splits.values()]
    return f"{derive_key(graph.num_nodes, graph.num_edges, *(hash_of(column) for column in columns)):016x}"
