"""Cutting a graph into the parts that processes hold: a folder that is written in two passes over the edges."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from nodeflow._base.checks import Ints, as_count, as_ids, as_int, check_one_of, check_type
from nodeflow._base.types import Array, FileLike, IdsLike
from nodeflow._base.version import __version__
from nodeflow._disk.arrays import ArrayFile, describe_array, map_array, write_array
from nodeflow._disk.folders import new_folder
from nodeflow._disk.manifest import Manifest
from nodeflow.distributed._graph_part import PART_KIND, part_folder
from nodeflow.distributed._graph_parts import KIND, SPLIT, VERSION, GraphParts
from nodeflow.distributed._grid import EDGES, grid_of
from nodeflow.distributed._part_edges import EdgeSplit
from nodeflow.graph import Graph
from nodeflow.partitions import Masters, NewColumn, cut_nodes, edge_columns, node_columns, split_nodes

_BYTES = 2**23  # bytes of the rows of a piece, about
_IDS = 2**22  # ids that are looked at together


def partition_graph(
    graph: Graph,
    folder: FileLike,
    num_parts: int,
    *,
    method: str | IdsLike = "metis",
    edges: str = "in",
    balance: bool = False,
    train: IdsLike | None = None,
    val: IdsLike | None = None,
    test: IdsLike | None = None,
    ndata: Sequence[str] | None = None,
    edata: Sequence[str] | None = None,
    columns: Mapping[str, NewColumn] | None = None,
    renumber: bool = False,
    seed: int = 0,
    overwrite: bool = False,
    progress: bool = True,
) -> GraphParts:
    """Cut a graph into parts, each for one process, and write them into a folder.

    Every node has one *master*, the part that owns it and its columns. Every edge lies in one part. A node that is an
    end of an edge of a part, and whose master is another part, is a *mirror* there. The folder appears whole or not at
    all. It has a folder per part, so that a machine can be given the files of the parent and its own part only.

    Arrays of the graph and columns may be memory-mapped and larger than memory: edges are read twice, columns once,
    and the edges of each part once more, to count mirrors; all in pieces. In memory are about 40 bytes a node and
    100 MB; for "metis", and for ``balance`` with "metis" or an array, the whole graph.

    Args:
        graph: the graph.
        folder: made when missing.
        num_parts: number of parts. Some may be empty; "metis" takes at most as many as there are nodes.
        method: how masters are chosen. "metis": few edges between parts (needs pymetis); "random": equal sizes;
            "ranges": consecutive ids, equal sizes; "hash": a hash of id and seed, so that sizes are about equal;
            "train-first": random with the training nodes in the first parts; or the part of every node, integers
            ``[num_nodes]``.
        edges: where edges lie. "in": with the master of their destination, so that the in-edges of a node are in one
            part. "out": with the master of their source (the outgoing edge-cut of Gill et al.). "grid": the Cartesian
            vertex-cut. Parts form a grid, as square as their number allows, and an edge from a master in part i to a
            master in part j lies in the part in the grid row of i and the grid column of j: every part shares nodes
            with at most rows + columns - 2 others.
        balance: spread training nodes, and the other nodes too, so that each part has the mean number within 5 %
            (or the whole numbers next to it). "random", "ranges" and "hash" cut the two kinds apart, "hash" then by
            the order of the hashes; after "metis" and in a given array nodes are moved, those first whose parts lose
            the fewest inner edges.
        train, val, test: ids of nodes that the folder keeps, ascending; repeats count once.
        ndata, edata: names of the columns of the graph to write; None: all.
        columns: more node columns: tensors with a row per node, ``Rows``, or functions of ids (int64 ``[k]``) that
            return rows ``[k, ...]``. They are called for all nodes, in order.
        renumber: give the nodes of each part consecutive ids, in the order of their old ones, and then the edges, in
            the order of the arrays of the part. The folder is then one of the renumbered graph, and all ids in it are
            new; the old ones are ``original_nodes`` and ``original_edges`` of the result.
        seed: of "metis", "random" and "hash".
        overwrite: replace a folder that is there.
        progress: show a bar.

    Raises ValueError for columns whose rows do not fit, ``balance`` without training nodes, and more parts than nodes
    with "metis"; KeyError for an unknown column, IndexError for an id that is no node or
    part, FileExistsError for a folder that is there, ImportError without pymetis, OSError where the disk is full.

    Sources: Boman, Devine, Rajamanickam, "Scalable matrix computations on large scale-free graphs using 2D graph
    partitioning", SC 2013 (the grid over masters of any method). Gill, Dathathri, Hoang, Pingali, "A study of
    partitioning policies for graph analytics on large-scale distributed platforms", PVLDB 12(4), 2018 (masters,
    mirrors, edge-cuts, Cartesian vertex-cut).

    >>> import tempfile
    >>> graph = Graph.from_edges([0, 1, 2, 3, 0], [1, 2, 3, 0, 2])
    >>> parts = partition_graph(graph, tempfile.mkdtemp(), 2, method="ranges", progress=False)
    >>> parts, parts.part(1).rows, parts.part(1).src
    (GraphParts(2 parts, 4 nodes, 5 edges, edges: in), ...
    """
    check_type(graph, "graph", Graph, "a nodeflow Graph")
    count, number = as_count(num_parts, "num_parts", 1), as_int(seed, "seed")
    check_one_of(edges, "edges", EDGES)
    for name, value in (("balance", balance), ("renumber", renumber)):
        check_type(value, name, bool, "a bool")
    given = zip(SPLIT, (train, val, test), strict=True)
    split = {name: np.unique(as_ids(ids, name, graph.num_nodes)) for name, ids in given if ids is not None}
    nodes, of_edges = node_columns(graph, ndata, columns), edge_columns(graph, edata)
    path = Path(folder)
    with new_folder(path, overwrite=overwrite) as draft:
        masters = cut_nodes(graph, count, method, split.get("train"), number, balance=balance)
        folders = [part_folder(draft, k) for k in range(count)]
        for one in folders:
            one.mkdir()
        arrays = _write_book(draft, masters, split, renumber)
        described = _write_masters(folders, masters, edges, renumber)
        cut = EdgeSplit(graph, masters, edges, renumber)
        total = 2 * graph.num_edges + graph.num_nodes * len(nodes)
        with tqdm(total=total, disable=not progress, desc="parts", unit=" rows", leave=False) as bar:
            counts = cut.count(bar)
            written, book = cut.write(draft, folders, of_edges, counts, bar)
            for i, (name, column) in enumerate(nodes.items()):
                files = [one / f"node-{i}.npy" for one in folders]
                out = split_nodes(
                    column, name, graph.num_nodes, lambda ids: masters.owner[ids], files, masters.sizes, _BYTES, bar
                )
                for arrays_of_part, array in zip(described, out.finish(folders), strict=True):
                    arrays_of_part[f"ndata/{name}"] = array
        arrays |= book
        for arrays_of_part, more in zip(described, written, strict=True):
            arrays_of_part |= more
        mirrors = _mirrors(folders, described, masters, renumber)
        write_array(draft / "mirrors.npy", mirrors)
        arrays["mirrors"] = describe_array(draft, "mirrors.npy")
        trained = masters.owner[split["train"]] if "train" in split else None
        facts: dict[str, Any] = {
            "num_nodes": graph.num_nodes, "num_edges": graph.num_edges, "num_parts": count,
            "method": method if isinstance(method, str) else "given", "edges": edges,
            "grid": list(grid_of(count)) if edges == "grid" else None, "balance": balance, "renumbered": renumber,
            "seed": number, "cut": counts.cut,
            "ndata": _columns(described[0], "ndata/"), "edata": _columns(described[0], "edata/"),
            "sizes": {
                "masters": masters.sizes.tolist(), "edges": counts.edges.tolist(), "mirrors": mirrors.sum(1).tolist(),
                "train": None if trained is None else np.bincount(trained, minlength=count).tolist(),
            },
            "nodeflow": __version__,
        }  # fmt: skip
        facts["identity"] = _identity(facts, [arrays, *described])
        for k, (one, arrays_of_part) in enumerate(zip(folders, described, strict=True)):
            Manifest(PART_KIND, VERSION, arrays_of_part, {"part": k, "identity": facts["identity"]}).write(one)
        Manifest(KIND, VERSION, arrays, facts).write(draft)
    return GraphParts.open(path)


def _write_book(draft: Path, masters: Masters, split: Mapping[str, Ints], renumber: bool) -> dict[str, ArrayFile]:
    """Write where nodes are, and the nodes of the split."""
    if renumber:
        arrays: dict[str, Array] = {"node_begin": masters.begin, "original_nodes": masters.order}
    else:
        arrays = {"owner": masters.owner, "place": masters.place}
    arrays |= {name: np.sort(masters.renumbered(ids)) if renumber else ids for name, ids in split.items()}
    for name, array in arrays.items():
        write_array(draft / f"{name}.npy", array)
    return {name: describe_array(draft, f"{name}.npy") for name in arrays}


def _write_masters(folders: list[Path], masters: Masters, edges: str, renumber: bool) -> list[dict[str, ArrayFile]]:
    """Write the masters of every part, which with "in" are its rows too."""
    described = []
    for k, folder in enumerate(folders):
        nodes = np.arange(masters.begin[k], masters.begin[k + 1]) if renumber else masters.nodes(k)
        write_array(folder / "masters.npy", nodes)
        array = describe_array(folder, "masters.npy")
        described.append({"masters": array, "rows": array} if edges == "in" else {"masters": array})
    return described


def _mirrors(folders: list[Path], described: list[dict[str, ArrayFile]], masters: Masters, renumber: bool) -> Ints:
    """Return at ``[k, p]`` how many nodes whose master is p are mirrors in part k, int64 ``[num_parts, num_parts]``."""
    count = len(folders)
    mirrors = np.zeros((count, count), np.int64)
    owner = np.repeat(np.arange(count, dtype=masters.owner.dtype), masters.sizes) if renumber else masters.owner
    seen = np.zeros(len(owner), np.bool_)
    for k, folder in enumerate(folders):
        seen[:] = False
        for name in ("src", "rows"):
            ids = map_array(folder, described[k][name])
            for first in range(0, len(ids), _IDS):
                seen[ids[first : first + _IDS]] = True
        for first in range(0, len(owner), _IDS):
            at = slice(first, first + _IDS)
            mirrors[k] += np.bincount(owner[at][seen[at]], minlength=count)
        mirrors[k, k] = 0
    return mirrors


def _columns(arrays: Mapping[str, ArrayFile], prefix: str) -> list[dict[str, Any]]:
    """Return the names of columns with the type and shape of their rows."""
    return [
        {"name": name.removeprefix(prefix), "dtype": array.dtype, "row": list(array.shape[1:])}
        for name, array in arrays.items() if name.startswith(prefix)
    ]  # fmt: skip


def _identity(facts: Mapping[str, Any], arrays: Sequence[Mapping[str, ArrayFile]]) -> str:
    """Return a hash of everything that is in the folder, by the checksums of its files."""
    everything = [facts, *({name: array.facts() for name, array in some.items()} for some in arrays)]
    return hashlib.blake2b(json.dumps(everything, sort_keys=True).encode(), digest_size=16).hexdigest()
