"""Writing a graph as partitions: a folder that a ``PartitionBuffer`` reads, made in one pass per kind of file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints, as_count, as_ids, as_int, check_type
from nodeflow._base.types import Array, FileLike, IdsLike
from nodeflow._disk.arrays import ArrayFile, create_array, describe_array, numpy_type, write_array
from nodeflow._disk.folders import locked, new_folder
from nodeflow._disk.manifest import MANIFEST, Manifest
from nodeflow._rows.rows import as_array, fetch_rows, is_sparse
from nodeflow.graph import Graph
from nodeflow.partitions._cut import cut_nodes
from nodeflow.partitions._partition_files import node_file
from nodeflow.partitions._partitions import KIND, VERSION, Partitions
from nodeflow.partitions._split import Column, NewColumn, edge_columns, edge_ranges, node_columns, split_nodes

_EDGES = 2**19  # edges of a piece
_BYTES = 2**23  # bytes of the rows of a piece, about


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
    nodes, edges = node_columns(graph, ndata, columns), edge_columns(graph, edata)
    if sparse := [name for name, column in edges.items() if is_sparse(column)]:
        raise TypeError(f"edge column {sparse[0]!r} is sparse, and buckets hold dense rows; leave it out of edata=")
    path, number = Path(folder), as_int(seed, "seed")
    with _unused(path, overwrite), new_folder(path, overwrite=overwrite) as draft:
        masters = cut_nodes(graph, count, method, training, number, equal=True)
        size = -(-graph.num_nodes // count)
        id_type = np.dtype(np.int32 if count * size < 2**31 else np.int64)
        rows: Array = masters.place.astype(id_type) + masters.owner.astype(id_type) * id_type.type(size)
        parents = np.full(count * size, -1, np.int64)
        parents[rows] = np.arange(len(rows))
        write_array(draft / "rows.npy", rows)
        write_array(draft / "parents.npy", parents)
        files = {"rows": "rows.npy", "parents": "parents.npy", "bucket_ptr": "bucket_ptr.npy"}
        if training is not None:
            write_array(draft / "train.npy", training)
            files["train"] = "train.npy"
        types: dict[str, torch.dtype] = {}
        total = 2 * graph.num_edges + graph.num_nodes * len(nodes)
        with tqdm(total=total, disable=not progress, desc="partitions", unit=" rows", leave=False) as bar:
            for key, file, kind in _write_edges(draft, graph, edges, rows, count, size, bar):
                files[key] = file
                if kind is not None:
                    types[key] = kind
            arrays: dict[str, ArrayFile] = {}
            for name, column in nodes.items():
                names = [draft / node_file(name, p, 0) for p in range(count)]
                sizes = np.full(count, size)
                split = split_nodes(
                    column, name, graph.num_nodes, lambda ids: rows[ids] // size, names, sizes, _BYTES, bar
                )
                arrays |= {f"ndata/{name}/{p}": array for p, array in enumerate(split.finish([draft] * count))}
        arrays |= {key: describe_array(draft, file, types.get(key)) for key, file in files.items()}
        facts = {
            "num_nodes": graph.num_nodes, "num_edges": graph.num_edges, "num_partitions": count, "size": size,
            "method": method if isinstance(method, str) else "given", "seed": number, "epoch": 0,
            "ndata": list(nodes), "edata": list(edges),
        }  # fmt: skip
        Manifest(KIND, VERSION, arrays, facts).write(draft)
    return Partitions.open(path)


@contextmanager
def _unused(path: Path, overwrite: bool) -> Iterator[None]:
    """Keep others from writing a folder that is to be replaced; BlockingIOError where one does."""
    if overwrite and (path / MANIFEST).is_file():
        with locked(path):
            yield
    else:
        yield


def _write_edges(
    draft: Path, graph: Graph, columns: dict[str, Column], rows: Array, count: int, size: int, bar: Any
) -> Iterator[tuple[str, str, torch.dtype | None]]:
    """Write the edges by buckets; yield the names of the files, and the types of columns."""
    indptr, indices, edge_ids = graph.csc()
    counts = count_buckets(graph, rows, count, size, bar.update)
    bucket_ptr = np.concatenate([[0], np.cumsum(counts)])
    write_array(draft / "bucket_ptr.npy", bucket_ptr)
    ends = [create_array(draft / f"{name}.npy", np.int32, (graph.num_edges,)) for name in ("src", "dst")]
    kind = np.int32 if graph.num_edges < 2**31 else np.int64
    ids_out = create_array(draft / "edge_ids.npy", kind, (graph.num_edges,))
    outs = {
        name: create_array(draft / f"edges-{i}.npy", numpy_type(column.dtype), (graph.num_edges, *column.shape[1:]))
        for i, (name, column) in enumerate(columns.items())
    }
    head, places = bucket_ptr[:-1].copy(), np.empty(_EDGES, np.int64)
    src, dst = map(np.asarray, ends)
    for first, last, v in edge_ranges(graph, _EDGES):
        sources, place = np.asarray(indices[first:last]), places[: last - first]
        kernels.buckets.scatter_edges(indptr, sources, v, first, rows, size, count, head, src, dst, place)
        ids = np.arange(first, last) if edge_ids is None else edge_ids[first:last].astype(np.int64)
        ids_out[place] = ids
        for name, out in outs.items():
            out[place] = as_array(fetch_rows(columns[name], torch.from_numpy(ids)).detach().cpu().contiguous())
        bar.update(last - first)
    for out in (*ends, ids_out, *outs.values()):
        if isinstance(out, np.memmap) and out.size:
            out.flush()
    yield from ((name, f"{name}.npy", None) for name in ("src", "dst", "edge_ids"))
    yield from ((f"edata/{name}", f"edges-{i}.npy", columns[name].dtype) for i, name in enumerate(outs))


def count_buckets(
    graph: Graph, rows: Array, count: int, size: int, advance: Callable[[int], object] = lambda _: None
) -> Ints:
    """Return the number of edges of every bucket, ``[count * count]``; bucket ``j * count + i`` goes from i to j.

    ``rows`` is the row of every node, ``advance`` is told of edges that are counted.
    """
    indptr, indices, _ = graph.csc()
    counts = np.zeros(count * count, np.int64)
    for first, last, v in edge_ranges(graph, _EDGES):
        kernels.buckets.count_edges(indptr, np.asarray(indices[first:last]), v, first, rows, size, count, counts)
        advance(last - first)
    return counts
