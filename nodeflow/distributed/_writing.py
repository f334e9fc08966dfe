"""Writing a cut graph into a folder, in two passes over the edges and one over the columns of
nodes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_count, as_ids, as_int, check_one_of
from nodeflow._core.base.progress import progress_bar
from nodeflow._core.base.types import Array, FileLike, IdsLike
from nodeflow._core.base.version import __version__
from nodeflow._core.rows.rows import fetch_rows, row_bytes
from nodeflow._files.disk.arrays import ArrayFile, map_array, numpy_type
from nodeflow._files.disk.folders import new_folder
from nodeflow._files.disk.manifest import Manifest
from nodeflow.distributed._cut import Masters, cut_nodes
from nodeflow.distributed._graph_parts import GraphPart, GraphParts, part_folder
from nodeflow.distributed._partitions import Partitions, rows_of_part
from nodeflow.distributed._slots import node_file
from nodeflow.distributed._split import (
    EDGES,
    Column,
    EdgeArrays,
    FrameColumns,
    GroupedEdges,
    NewColumn,
    SplitColumn,
    chosen_frames,
    id_type,
    split_rows,
    sums,
    write_arrays,
    write_buckets,
)
from nodeflow.graph import SPLIT, Graph, Schema

# bytes of the columns of a piece of edges, about
_BYTES = 2**25
_IDS = 2**22  # ids that are looked at together
_Files = dict[str, ArrayFile]


@checked
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
    """Write a graph into a folder as parts of its nodes and buckets of its edges, for a
    ``PartitionBuffer``.

    Sizes of parts differ by at most one, of each node type. The edges from one part to another are
    a bucket, and lie together, relation after relation. The folder appears whole or not at all.

    Arrays of the graph and columns may be memory-mapped and larger than memory: edges are read
    twice and every column once, in order, in pieces. In memory are about 40 bytes a node and 64 MB,
    and for "metis" the whole graph.

    Args:
        graph: the graph.
        folder: made when missing.
        num_parts: number of parts p, at most the number of nodes.
        method: as for ``distributed.partition_graph``. Of parts that are too large for equal sizes,
            random nodes go to others.
        train: ids of the training nodes, which the folder keeps; repeats count once.
        ndata, edata: names of the columns of the graph to write, also of single types and
            relations; None: all.
        columns: more node columns: tensors with a row per node, ``Rows``, or functions of ids
            (int64 ``[k]``) that return rows ``[k, ...]``, such as the first values of learned rows.
            They are called for all nodes, in order.
        seed: of the random cut.
        overwrite: replace a folder that this function wrote.
        progress: show a bar.

    Raises ValueError for more parts than nodes and columns whose rows do not fit, TypeError for
    sparse columns of edges, KeyError for an unknown column, FileExistsError for a folder that is
    there, BlockingIOError for one that a ``PartitionBuffer`` writes, OSError where the disk is
    full.

    >>> import tempfile
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0], ndata={"x": torch.arange(4.0)})
    >>> write_partitions(graph, tempfile.mkdtemp(), 2, progress=False)
    Partitions(2 parts of 2 nodes, 4 edges, 50.0% cut, ndata: x)
    """
    count = as_count(num_parts, "num_parts", 1)
    # a buffer trains on parts of equal size: an empty one would be all rows of zeros
    if count > graph.num_nodes:
        raise ValueError(
            f"num_parts must be at most the number of nodes {graph.num_nodes}, got {count}"
        )
    trained = _split_of(graph, train)
    frames = chosen_frames(graph, ndata, edata, columns)
    of_nodes = {name: frame for name, frame in frames.items() if name.startswith("n")}
    of_edges = {name: frame for name, frame in frames.items() if name.startswith("e")}
    path = Path(folder)
    number = as_int(seed, "seed")
    with new_folder(path, overwrite=overwrite, alone=True) as draft:
        masters = cut_nodes(graph, count, method, trained.get("train"), number, equal=True)
        size = rows_of_part(graph.schema, count).num_nodes
        rows = _rows(graph.schema, masters, count)
        # a row that is no node, at the end of a type in some parts, has the parent -1
        parents = np.full(count * size, -1, np.int64)
        parents[rows] = np.arange(len(rows))
        arrays = write_arrays(draft, {"rows": rows, "parents": parents, **trained})
        with _bar(graph, of_nodes.values(), progress=progress) as bar:
            row = rows % rows.dtype.type(size)
            arrays |= write_buckets(draft, graph, of_edges, masters, row, bar)
            for name, frame in of_nodes.items():
                # as many rows in every part: those that lack a node of a type get a row of zeros
                types = list(graph.schema.nodes.values())
                if name != "ndata":
                    types = [range(len(frame.ids))]
                written = split_rows(
                    name,
                    frame.columns,
                    masters.owner[frame.ids.start : frame.ids.stop],
                    types,
                    [draft] * count,
                    node_file(f"{name.removeprefix('ndata')}{{column}}", "{part}", 0),
                    bar,
                    equal=True,
                )
                for column, of_parts in written.items():
                    for p, array in enumerate(of_parts):
                        arrays[f"{column}/{p}"] = array
        facts = _facts(graph, method, number) | {"num_partitions": count, "size": size, "epoch": 0}
        facts |= _names(frames)
        # a folder without types is, byte for byte, that of versions before there were types
        if graph.schema != Schema.of_one_type(graph.num_nodes, graph.num_edges):
            facts["schema"] = graph.schema.to_json()
        Manifest(*Partitions.layout, arrays, facts).write(draft)
    return Partitions.open(path, verify=False)  # it has just been written


def _rows(schema: Schema, masters: Masters, num_parts: int) -> Array:
    """Return the row of every node among the rows of all parts, part after part."""
    part = rows_of_part(schema, num_parts)
    kind = numpy_type(id_type(num_parts * part.num_nodes))
    size = kind.type(part.num_nodes)
    rows: Array = masters.place.astype(kind) + masters.owner.astype(kind) * size
    # a type begins at the same row in every part, whatever parts have of the types before it
    before = np.zeros(num_parts, np.int64)
    for ids, of_type in zip(schema.nodes.values(), part.nodes.values(), strict=True):
        nodes = slice(ids.start, ids.stop)
        owner = masters.owner[nodes]
        rows[nodes] += (of_type.start - before).astype(kind)[owner]
        before += np.bincount(owner, minlength=num_parts)
    return rows


@checked
def partition_graph(
    graph: Graph,
    folder: FileLike,
    num_parts: int,
    *,
    method: str | IdsLike = "metis",
    edges: str = "in",
    train: IdsLike | None = None,
    val: IdsLike | None = None,
    test: IdsLike | None = None,
    ndata: Sequence[str] | None = None,
    edata: Sequence[str] | None = None,
    columns: Mapping[str, NewColumn] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    progress: bool = True,
) -> GraphParts:
    """Cut a graph into parts, each for one process, and write them into a folder.

    Every node has one *master*, the part that owns it and its columns. Every edge lies in one part.
    A node that is an end of an edge of a part, and whose master is another part, is a *mirror*
    there. The folder appears whole or not at all. It has a folder per part, so that a machine can
    be given the files of the parent and its own part only.

    Arrays of the graph and columns may be memory-mapped and larger than memory: edges are read
    twice, columns once, and the edges of each part once more, to count mirrors; all in pieces. In
    memory are about 40 bytes a node and 100 MB, and for "metis" the whole graph.

    Args:
        graph: the graph.
        folder: made when missing.
        num_parts: number of parts. Some may be empty; "metis" takes at most as many as there are
            nodes.
        method: how masters are chosen. "metis": few edges between parts (needs pymetis); "random":
            equal sizes; "ranges": consecutive ids, equal sizes; "hash": a hash of id and seed, so
            that sizes are about equal; "train-first": random with the training nodes in the first
            parts; or the part of every node, integers ``[num_nodes]``.
        edges: where edges lie. "in": with the master of their destination, so that the in-edges of
            a node are in one part. "out": with the master of their source (the outgoing edge-cut of
            Gill et al.).
        train, val, test: ids of nodes that the folder keeps, ascending; repeats count once.
        ndata, edata, columns, overwrite, progress: as for ``distributed.write_partitions``; names
            may be those of columns of single types and relations.
        seed: of "metis", "random" and "hash".

    Raises ValueError for columns whose rows do not fit, "train-first" without training nodes, and
    more parts than nodes with "metis"; KeyError for an unknown column, IndexError for an id that is
    no node or part, FileExistsError for a folder that is there, ImportError without pymetis,
    OSError where the disk is full.

    Source: Gill, Dathathri, Hoang, Pingali, "A study of partitioning policies for graph analytics
    on large-scale distributed platforms", PVLDB 12(4), 2018 (masters, mirrors, edge-cuts).

    >>> import tempfile
    >>> graph = Graph.from_edges([0, 1, 2, 3, 0], [1, 2, 3, 0, 2])
    >>> parts = partition_graph(graph, tempfile.mkdtemp(), 2, method="ranges", progress=False)
    >>> parts, parts.part(1).rows, parts.part(1).src
    (GraphParts(2 parts, 4 nodes, 5 edges, edges: in), ...
    """
    count = as_count(num_parts, "num_parts", 1)
    number = as_int(seed, "seed")
    check_one_of(edges, "edges", EDGES)
    split = _split_of(graph, train, val, test)
    frames = chosen_frames(graph, ndata, edata, columns)
    of_edges = frames["edata"].columns
    node_frames = {name: frame for name, frame in frames.items() if name != "edata"}
    path = Path(folder)
    with new_folder(path, overwrite=overwrite) as draft:
        masters = cut_nodes(graph, count, method, split.get("train"), number)
        folders = [part_folder(draft, k) for k in range(count)]
        for of_part in folders:
            of_part.mkdir()
        grouped = GroupedEdges(graph, masters.owner, count, edges)
        with _bar(graph, node_frames.values(), progress=progress) as bar:
            grouped.count(bar.update)
            arrays, parts = _write_parts(
                grouped, masters, of_edges, draft, folders, bar, of_rows=edges != "in"
            )
            # mapped for the call only: Windows renames no folder with a mapped file
            _write_columns(
                node_frames,
                masters.owner,
                map_array(draft, arrays["edge_owner"]),
                parts,
                folders,
                bar,
            )
        _write_masters(graph, masters, parts, folders, of_rows=edges == "in")
        mirrors = _mirrors(folders, parts, masters)
        arrays |= write_arrays(draft, {"owner": masters.owner, "place": masters.place})
        arrays |= write_arrays(draft, {**split, "mirrors": mirrors})
        facts = {
            **_facts(graph, method, number),
            **_names(frames),
            "num_parts": count,
            "nodeflow": __version__,
            "cut": grouped.cut,
            "edges": edges,
            "schema": graph.schema.to_json(),
            "sizes": _sizes_of_parts(masters, grouped, mirrors, split.get("train")),
        }
        _write_manifests(draft, folders, arrays, parts, facts)
    return GraphParts.open(path, verify=False)  # it has just been written


def _sizes_of_parts(
    masters: Masters, edges: GroupedEdges, mirrors: Ints, train: Ints | None
) -> dict[str, list[int] | None]:
    """Return the numbers of nodes, edges, mirrors and training nodes of the parts."""
    sizes: dict[str, list[int] | None] = {
        "masters": masters.sizes.tolist(),
        "edges": edges.edges.tolist(),
        "mirrors": mirrors.sum(1).tolist(),
        "train": None,
    }
    if train is not None:
        sizes["train"] = np.bincount(masters.owner[train], minlength=edges.size).tolist()
    return sizes


def _split_of(graph: Graph, *parts: IdsLike | None) -> dict[str, Ints]:
    """Return the training, validation and test nodes that were given, by name, ascending."""
    split = {}
    for name, ids in zip(SPLIT, parts, strict=False):
        if ids is not None:
            split[name] = np.unique(as_ids(ids, name, graph.num_nodes))
    return split


def _write_columns(
    frames: Mapping[str, FrameColumns],
    owner: Array,
    edge_owner: Array,
    parts: Sequence[_Files],
    folders: Sequence[Path],
    bar: Any,
) -> None:
    """Write columns of nodes and of relations, whose parts are given; add the files to those of
    parts.
    """
    for name, frame in frames.items():
        prefix = "node-" if name == "ndata" else name
        owners = owner if name.startswith("n") else edge_owner
        of_frame = owners[frame.ids.start : frame.ids.stop]
        types = [range(len(of_frame))]
        written = split_rows(
            name, frame.columns, of_frame, types, folders, f"{prefix}{{column}}.npy", bar
        )
        _put_in_parts(parts, written)


def _write_masters(
    graph: Graph,
    masters: Masters,
    parts: Sequence[_Files],
    folders: Sequence[Path],
    *,
    of_rows: bool,
) -> None:
    """Write the masters of each part; ``of_rows``: and where their in-edges begin, which are all
    in the part.
    """
    degrees = np.diff(graph.indptr) if of_rows else np.zeros(0, np.int64)
    for k, part in enumerate(parts):
        nodes = masters.nodes(k)
        part.update(write_arrays(folders[k], {"masters": nodes}))
        if of_rows:
            part["rows"] = part["masters"]
            part.update(write_arrays(folders[k], {"indptr": sums(degrees[nodes])}))


def _write_parts(
    edges: GroupedEdges,
    masters: Masters,
    columns: dict[str, Column],
    draft: Path,
    folders: list[Path],
    bar: Any,
    *,
    of_rows: bool,
) -> tuple[_Files, list[_Files]]:
    """Write the edges of all parts, and their book: the place of every edge; describe the files of
    both.

    ``of_rows``: the destinations of the edges of each part are written too; else they are its
    masters.
    """
    sizes = edges.edges  # of the first pass; the second counts anew
    # The first pass has counted, so every file has its final size and is only appended to.
    outs = _columns_of_parts(edges, columns, folders, of_rows=of_rows)
    book = EdgeArrays(draft, edges.graph.num_edges)
    book.add("edge_owner", torch.from_numpy(masters.owner[:0]).dtype)
    largest = int(sizes.max(initial=0))
    book.add("edge_place", id_type(largest))
    widest = max(map(row_bytes, columns.values()), default=1)
    # as many edges at a time as have about this many bytes of columns
    most = max(_BYTES // max(widest, 1), 1)
    for unsorted in edges.pieces(most):
        begin, piece = unsorted.sorted(edges.size)
        book.put(piece.ids, {"edge_owner": piece.group, "edge_place": piece.place})
        outs["src"].append(piece.src, begin)
        outs["edge_ids"].append(piece.ids, begin)
        if of_rows:
            # a row begins where a group comes to another destination
            begin_of_rows = sums(piece.starts)[begin]
            outs["rows"].append(piece.dst[piece.starts], begin_of_rows)
            outs["indptr"].append(piece.place[piece.starts], begin_of_rows)
        # columns are those of the whole graph, so rows are asked for by parent id
        parents = torch.from_numpy(piece.ids.astype(np.int64, copy=False))
        for name, column in columns.items():
            outs[f"edata/{name}"].append(fetch_rows(column, parents), begin)
        bar.update(len(piece.src))
    if of_rows:
        # rows begin where counted above; the last entry of each part is where its last row ends
        outs["indptr"].append(sizes, np.arange(len(sizes) + 1))
    parts: list[_Files] = [{} for _ in folders]
    _put_in_parts(parts, {name: out.finish() for name, out in outs.items()})
    return book.finish(), parts


def _columns_of_parts(
    edges: GroupedEdges, columns: dict[str, Column], folders: list[Path], *, of_rows: bool
) -> dict[str, SplitColumn]:
    """Make the files of the edges of all parts, by name; see ``_write_parts``."""
    sizes = edges.edges
    numbers = {
        "src": (id_type(edges.graph.num_nodes), sizes),
        "edge_ids": (id_type(edges.graph.num_edges), sizes),
    }
    if of_rows:
        numbers["rows"] = (torch.int64, edges.rows)
        numbers["indptr"] = (torch.int64, edges.rows + 1)
    outs = {}
    for name, (dtype, num_rows) in numbers.items():
        outs[name] = SplitColumn(folders, f"{name}.npy", torch.empty(0, dtype=dtype), num_rows)
    for i, (name, column) in enumerate(columns.items()):
        outs[f"edata/{name}"] = SplitColumn(folders, f"edge-{i}.npy", column, sizes)
    return outs


def _put_in_parts(parts: Sequence[_Files], written: Mapping[str, Sequence[ArrayFile]]) -> None:
    """Add arrays, by name and part, to the files of every part."""
    for name, arrays in written.items():
        for part, array in zip(parts, arrays, strict=True):
            part[name] = array


def _bar(graph: Graph, frames: Iterable[FrameColumns], *, progress: bool) -> Any:
    """Make a bar of the edges, which are read twice, and of the rows of frames that are split."""
    rows = sum(len(frame.ids) * len(frame.columns) for frame in frames)
    return progress_bar("parts", 2 * graph.num_edges + rows, " rows", shown=progress)


def _facts(graph: Graph, method: str | IdsLike, seed: int) -> dict[str, Any]:
    """Facts about the graph and its cut, for the manifest of either folder."""
    how = method if isinstance(method, str) else "given"
    return {"num_nodes": graph.num_nodes, "num_edges": graph.num_edges, "method": how, "seed": seed}


def _names(frames: Mapping[str, FrameColumns]) -> dict[str, list[str]]:
    """The names of the columns of all nodes and edges, and of single types and relations."""
    return {name: list(frame.columns) for name, frame in frames.items()}


def _mirrors(folders: list[Path], described: list[_Files], masters: Masters) -> Ints:
    """Return at ``[k, p]`` how many nodes whose master is p are mirrors in part k, int64
    ``[num_parts, num_parts]``.
    """
    count = len(folders)
    mirrors = np.zeros((count, count), np.int64)
    owner = masters.owner
    # a mark per node, set anew for every part: sets of the ids of all edges would not fit in memory
    seen = np.zeros(len(owner), np.bool_)
    for k, folder in enumerate(folders):
        seen[:] = False
        for name in ("src", "rows"):
            ids = map_array(folder, described[k][name])
            for first in range(0, len(ids), _IDS):
                seen[ids[first : first + _IDS]] = True
        mirrors[k] = np.bincount(owner[seen], minlength=count)
        mirrors[k, k] = 0
    return mirrors


def _write_manifests(
    draft: Path, folders: Sequence[Path], arrays: _Files, parts: Sequence[_Files], facts: Any
) -> None:
    """Write the manifests of a folder and of its parts, with a hash of everything that is in them,
    by the checksums of files: it tells parts of other cuts.
    """
    text = json.dumps([facts, arrays, *parts], sort_keys=True, default=ArrayFile.facts)
    identity = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    # the manifest of the folder comes last: a folder without it is none
    for k, files in enumerate(parts):
        of_part = {"part": k, "identity": identity}
        Manifest(*GraphPart.layout, files, of_part).write(folders[k])
    Manifest(*GraphParts.layout, arrays, facts | {"identity": identity}).write(draft)
