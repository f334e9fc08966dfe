"""Writing a graph as partitions: a folder that a ``PartitionBuffer`` reads, made in one pass per kind of file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from nodeflow._base.checks import as_count, as_ids, as_int, check_type
from nodeflow._base.types import Array, FileLike, IdsLike
from nodeflow._disk.arrays import ArrayFile, create_array, describe_array, numpy_type
from nodeflow._disk.folders import locked, new_folder
from nodeflow._disk.manifest import MANIFEST, Manifest
from nodeflow._rows.rows import as_array, fetch_rows, is_sparse
from nodeflow.graph import Graph
from nodeflow.partitions._cut import Masters, cut_nodes
from nodeflow.partitions._partitions import KIND, VERSION, Partitions
from nodeflow.partitions._slots import node_file
from nodeflow.partitions._split import (
    Column,
    EdgeGroups,
    GroupedEdges,
    NewColumn,
    columns_of,
    split_nodes,
    sums,
    write_arrays,
)


def write_partitions(
    graph: Graph,
    folder: FileLike,
    num_parts: int,
    *,
    method: str | IdsLike = "random",
    train: IdsLike | None = None,
    ndata: Sequence[str] | None = None,
    edata: Sequence[str] | None = None,
    columns: Mapping[str, NewColumn] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: bool = True,
) -> Partitions:
    """Write a graph into a folder as partitions of its nodes and buckets of its edges, for a ``PartitionBuffer``.

    Nodes are cut into partitions whose sizes differ by at most one. The edges from one partition to another are a
    bucket, and lie together. The folder appears whole or not at all.

    Arrays of the graph and columns may be memory-mapped and larger than memory: edges are read twice and every column
    once, in order, in pieces. In memory are about 40 bytes a node and 64 MB, and for "metis" the whole graph.

    Args:
        graph: the graph.
        folder: made when missing.
        num_parts: number of partitions p, at most the number of nodes.
        method: "random"; "train-first", random with the training nodes in the first partitions; "metis", few edges
            between partitions (needs pymetis); "ranges", consecutive ids; "hash"; or the partition of every node,
            ``[num_nodes]``. Of partitions that are too large for equal sizes, random nodes go to others.
        train: ids of the training nodes, which the folder keeps; repeats count once.
        ndata, edata: names of the columns of the graph to write; None: all.
        columns: more node columns: tensors with a row per node, ``Rows``, or functions of ids (int64 ``[k]``) that
            return rows ``[k, ...]``, such as the first values of learned rows. They are called for all nodes, in order.
        seed: of the random cut.
        overwrite: replace a folder that this function wrote.
        progress: show a bar.

    Raises ValueError for more partitions than nodes and columns whose rows do not fit, TypeError for sparse columns of
    edges, KeyError for an unknown column, FileExistsError for a folder that is there, BlockingIOError for one that a
    ``PartitionBuffer`` writes, OSError where the disk is full.

    >>> import tempfile
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.arange(4.0)})
    >>> partitions = write_partitions(graph, tempfile.mkdtemp(), 2, progress=False)
    >>> partitions, int(partitions.bucket_sizes.sum()), partitions.column("x").fetch(torch.tensor([2, 0]))
    (Partitions(2 partitions of 2 nodes, 4 edges, 50.0% cut, ndata: x), 4, tensor([2., 0.]))
    """
    check_type(graph, "graph", Graph, "a nodeflow Graph")
    count = as_count(num_parts, "num_parts", 1)
    if count > graph.num_nodes:
        raise ValueError(f"num_parts must be at most the number of nodes {graph.num_nodes}, got {count}")
    training = None if train is None else np.unique(as_ids(train, "train", graph.num_nodes))
    nodes, edges = columns_of(graph, ndata, edata, columns)
    if sparse := [name for name, column in edges.items() if is_sparse(column)]:
        raise TypeError(f"edge column {sparse[0]!r} is sparse, and buckets hold dense rows; leave it out of edata=")
    path, number = Path(folder), as_int(seed, "seed")
    with ExitStack() as stack:
        if overwrite and (path / MANIFEST).is_file():
            stack.enter_context(locked(path))  # nobody writes into a folder that is to be replaced
        draft = stack.enter_context(new_folder(path, overwrite=overwrite))
        masters = cut_nodes(graph, count, method, training, number, equal=True)
        size = -(-graph.num_nodes // count)
        id_type = np.dtype(np.int32 if count * size < 2**31 else np.int64)
        rows: Array = masters.place.astype(id_type) + masters.owner.astype(id_type) * id_type.type(size)
        parents = np.full(count * size, -1, np.int64)
        parents[rows] = np.arange(len(rows))
        small = {"rows": rows, "parents": parents, **({} if training is None else {"train": training})}
        arrays = write_arrays(draft, small)
        total = 2 * graph.num_edges + graph.num_nodes * len(nodes)
        with tqdm(total=total, disable=not progress, desc="partitions", unit=" rows", leave=False) as bar:
            arrays |= _write_edges(draft, graph, edges, masters, bar)
            files = [[draft / node_file(name, p, 0) for p in range(count)] for name in nodes]
            split = split_nodes(nodes, masters, np.full(count, size), files, [draft] * count, bar)
        arrays |= {f"ndata/{name}/{p}": array for name, parts in split.items() for p, array in enumerate(parts)}
        facts: dict[str, Any] = {"num_nodes": graph.num_nodes, "num_edges": graph.num_edges, "size": size}
        facts |= {"num_partitions": count, "method": method if isinstance(method, str) else "given", "seed": number}
        facts |= {"epoch": 0, "ndata": list(nodes), "edata": list(edges)}
        Manifest(KIND, VERSION, arrays, facts).write(draft)
    return Partitions.open(path)


def _write_edges(
    draft: Path, graph: Graph, columns: dict[str, Column], masters: Masters, bar: Any
) -> dict[str, ArrayFile]:
    """Write the edges by buckets: their ends as rows of partitions, their ids and columns; describe the files."""
    edges = GroupedEdges(graph, masters.owner, EdgeGroups.of("buckets", len(masters.sizes)))
    bucket_ptr = sums(edges.count(bar.update))
    kinds: dict[str, Any] = {"src": np.int32, "dst": np.int32}
    kinds["edge_ids"] = np.int32 if graph.num_edges < 2**31 else np.int64
    outs = {name: create_array(draft / f"{name}.npy", kind, (graph.num_edges,)) for name, kind in kinds.items()}
    files = {name: f"{name}.npy" for name in outs}
    types: dict[str, torch.dtype] = {}
    for i, (name, column) in enumerate(columns.items()):
        key = f"edata/{name}"
        types[key], files[key] = column.dtype, f"edges-{i}.npy"
        shape = (graph.num_edges, *column.shape[1:])
        outs[key] = create_array(draft / files[key], numpy_type(column.dtype), shape)
    for piece in edges.pieces():
        at = bucket_ptr[piece.group] + piece.place
        parts = {"src": masters.place[piece.src], "dst": masters.place[piece.dst], "edge_ids": piece.ids}
        for name, column in columns.items():
            rows = fetch_rows(column, torch.from_numpy(piece.ids.astype(np.int64, copy=False)))
            parts[f"edata/{name}"] = as_array(rows.detach().cpu().contiguous())
        for name, values in parts.items():
            np.asarray(outs[name])[at] = values
        bar.update(len(at))
    for out in outs.values():
        if out.size:
            out.flush()
    described = {name: describe_array(draft, file, types.get(name)) for name, file in files.items()}
    return {**described, **write_arrays(draft, {"bucket_ptr": bucket_ptr})}
