"""A graph that was cut for processes: which part has which node and edge, the parts themselves, and
their sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from nodeflow._core.base.checks import Ints, as_count, as_index
from nodeflow._core.base.frozen import Frozen, Lazy
from nodeflow._core.base.types import Array
from nodeflow._core.rows.rows import Rows
from nodeflow._core.schema import sizes as in_words
from nodeflow._files.disk.arrays import ArrayFile, map_array, map_column
from nodeflow._files.disk.checked import check_ends, check_ids
from nodeflow._files.disk.manifest import Manifest
from nodeflow.distributed._partitions import CutGraph, check_shapes, sound
from nodeflow.distributed._split import EDGES
from nodeflow.graph import SPLIT, columns_of

_PIECE = 2**22  # ids that are looked at together
# how names of the arrays of owners and places begin
_BOOK = {"node": "", "edge": "edge_"}


class GraphParts(CutGraph):
    """A graph in a folder, cut into parts for processes by ``partition_graph``. ``GraphParts.open``
    opens it.

    ``edges`` says where edges lie, "in" or "out". ``train``, ``val`` and ``test`` are ids of nodes,
    ascending, or None. ``mirrors``, int64 ``[num_parts, num_parts]``, has at ``[k, p]`` the number
    of nodes whose master is p and that are mirrors in part k. ``identity`` tells this cut from
    every other one: a hash of all that is in it. ``schema`` has the node types and relations.

    >>> import nodeflow, tempfile
    >>> ring = nodeflow.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> nodeflow.distributed.partition_graph(ring, tempfile.mkdtemp(), 2, progress=False, method="ranges")
    GraphParts(2 parts, 4 nodes, 4 edges, edges: in)
    """

    layout = ("graph parts", 1)
    edges: str
    identity: str
    sizes: Mapping[str, Any]
    mirrors: Ints
    val: Ints | None
    test: Ints | None

    def _read(self, facts: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        count = self.num_parts
        sizes = facts["sizes"]
        # what earlier versions could write, and later ones do not read
        if facts["edges"] not in EDGES or facts.get("renumbered"):
            raise ValueError("it is a grid of parts, or renumbered; cut the graph again")
        self._set(edges=facts["edges"], identity=str(facts["identity"]), sizes=sizes)
        as_count(facts["cut"], "cut")
        for of_parts in sizes.values():
            for size in of_parts or ():
                as_count(size, "a size")
        # readers make arrays of these sizes, so they must be those of the whole
        lengths = {len(sizes[name]) for name in ("masters", "edges", "mirrors")}
        totals = (sum(sizes["masters"]), sum(sizes["edges"]))
        if lengths != {count} or totals != (self.num_nodes, self.num_edges):
            raise ValueError("the sizes of the parts do not fit those of the graph")
        nodes = (self.num_nodes,)
        edges = (self.num_edges,)
        book = {"owner": nodes, "place": nodes, "edge_owner": edges, "edge_place": edges}
        return {"mirrors": (count, count), **book}

    def _check(self, arrays: Mapping[str, ArrayFile]) -> None:
        for prefix, kind in (("", "masters"), ("edge_", "edges")):
            owner = arrays[f"{prefix}owner"]
            _check_places(self.folder, owner, arrays[f"{prefix}place"], np.array(self.sizes[kind]))
        for name in SPLIT:
            if name in arrays:
                check_ids(self.folder, arrays[name], self.num_nodes)

    def _take_arrays(self) -> None:
        for name in ("mirrors", *SPLIT):
            self._set(**{name: self._arrays.get(name)})

    def owners(self, ids: Ints, kind: str = "node") -> Ints:
        """Return the parts of the masters of nodes, or ("edge") in which edges lie, int64 ``[k]``,
        without checks.
        """
        return self._arrays[f"{_BOOK[kind]}owner"][ids].astype(np.int64)

    def places(self, ids: Ints, kind: str = "node") -> Ints:
        """Return the rows of nodes among the masters, or ("edge") of edges in the arrays, of their
        parts, as above.
        """
        return self._arrays[f"{_BOOK[kind]}place"][ids].astype(np.int64)

    def part(self, number: int) -> GraphPart:
        """Open a part.

        Raises IndexError for a number that is no part, ValueError for a folder that is missing,
        damaged, or of another cut.
        """
        k = as_index(number, "part", self.num_parts)
        return GraphPart(self, k, verify=self._verify)

    def report(self) -> PartsReport:
        """Return the sizes of the parts, the cut and the replication factor; printed, it is a
        table.
        """
        sizes = self.sizes
        sharing = (self.mirrors > 0) | (self.mirrors.T > 0)
        partners = sharing.sum(1).tolist()
        train = sizes["train"]
        return PartsReport(
            num_nodes=self.num_nodes,
            num_edges=self.num_edges,
            cut_edges=int(self.manifest.facts["cut"]),
            masters=tuple(sizes["masters"]),
            edges=tuple(sizes["edges"]),
            mirrors=tuple(sizes["mirrors"]),
            partners=tuple(partners),
            train=None if train is None else tuple(train),
        )

    def __repr__(self) -> str:
        types = in_words({name: len(ids) for name, ids in self.schema.nodes.items()})
        return self._shown(
            f"{self.num_parts} parts",
            f"{self.num_nodes} nodes{types}",
            f"{self.num_edges} edges",
            f"edges: {self.edges}",
        )


def _check_places(folder: Path, owner: ArrayFile, place: ArrayFile, sizes: Ints) -> None:
    """Raise ValueError unless every place is one of the part that owns it, of which ``sizes`` has
    the number.
    """
    # compiled loops trust owners and places, so they are checked here, once, piece by piece
    owners = map_array(folder, owner)
    places = map_array(folder, place)
    damage = f"{folder / owner.file} or {place.file} is damaged: it"
    if owners.dtype.kind not in "iu" or places.dtype.kind not in "iu":
        raise ValueError(f"{damage} holds no integers")
    for start in range(0, len(owners), _PIECE):
        parts = owners[start : start + _PIECE]
        rows = places[start : start + _PIECE]
        outside = parts.min() < 0 or parts.max() >= len(sizes)
        if outside or rows.min() < 0 or (rows >= sizes[parts]).any():
            raise ValueError(f"{damage} names a part or a place that there is not")


def part_folder(folder: Path, part: int) -> Path:
    """Return the folder of a part."""
    return folder / f"part-{part}"


class GraphPart(Frozen):
    """One part of a graph in a folder of parts: its masters and its edges. ``GraphParts.part``
    opens it.

    All arrays are mapped and read-only, and all ids are those of the whole graph.

    ``masters``, int64 ``[m]``, are the nodes that the part owns, and ``rows``, int64 ``[r]``, those
    with a row of in-edges here, both ascending. With edges "in" both are the same, and a row may be
    empty; else rows are the destinations of the edges here. The in-edges of ``rows[i]`` are
    ``indptr[i]`` to ``indptr[i + 1]`` of ``src`` and ``edge_ids``, int32 or int64 ``[num_edges]``,
    in the order in which ``Graph.csc()`` of the whole graph has them. ``ndata`` maps names to
    columns with a row per master, ``edata`` to columns with a row per edge here. ``frames`` has
    columns of single types and relations, whose rows belong to ``ids_here``. ``part`` is the number
    of the part, ``identity`` the cut that it belongs to.

    >>> import nodeflow, tempfile
    >>> ring = nodeflow.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> nodeflow.distributed.partition_graph(ring, tempfile.mkdtemp(), 2, progress=False, method="ranges").part(1)
    GraphPart(1: 2 masters, 2 edges)
    """

    layout = ("graph part", 1)
    folder: Path
    part: int
    identity: str
    masters: Ints
    rows: Ints
    indptr: Ints
    src: Array
    edge_ids: Array
    ndata: dict[str, Tensor | Rows]
    edata: dict[str, Tensor | Rows]
    frames: dict[str, dict[str, Tensor | Rows]]
    _ascending: Lazy[Array]

    def __init__(self, parts: GraphParts, part: int, *, verify: bool | None = None) -> None:
        folder = part_folder(parts.folder, part)
        num_masters = parts.sizes["masters"][part]
        num_edges = parts.sizes["edges"][part]
        self._set(folder=folder, part=part, identity=parts.identity)
        # a part that was checked beside another folder is checked again: bounds of its ids are
        # the folder's
        key = f"{part} {parts.identity} {parts.num_nodes} {parts.num_edges} {num_edges}"
        check = partial(self._check, parts)
        try:
            manifest = Manifest.read(folder, *self.layout, verify=verify, check=check, key=key)
        except FileNotFoundError as error:
            raise ValueError(f"part {part} is missing: {error}; copy its folder there") from None
        arrays = manifest.arrays
        with sound(folder):
            (rows,) = arrays["rows"].shape
            shapes = {
                "masters": (num_masters,),
                "indptr": (rows + 1,),
                "src": (num_edges,),
                "edge_ids": (num_edges,),
            }
            check_shapes(arrays, shapes)

        def frame(prefix: str, num_rows: int) -> dict[str, Tensor | Rows]:
            """The columns whose names begin with ``prefix`` in the manifest."""
            keys = [key for key in arrays if key.startswith(f"{prefix}/")]
            with sound(folder):
                check_shapes(arrays, dict.fromkeys(keys, (num_rows,)))
            return {key.removeprefix(f"{prefix}/"): map_column(folder, arrays[key]) for key in keys}

        self._set(**{name: map_array(folder, arrays[name]) for name in ("rows", *shapes)})
        self._set(ndata=frame("ndata", num_masters), edata=frame("edata", num_edges))
        # of types and relations: how many of their rows are here is known by the arrays
        self._set(_ascending=Lazy(lambda: np.sort(self.edge_ids)), frames={})
        for kind, ranges in (("nodes", parts.schema.nodes), ("edges", parts.schema.relations)):
            for i, ids in enumerate(ranges.values()):
                prefix = columns_of(kind, i)
                self.frames[prefix] = frame(prefix, len(self.ids_here(kind, ids)))

    def _check(self, parts: GraphParts, manifest: Manifest) -> None:
        """Raise ValueError for a part of another cut, and for ids out of bounds."""
        facts = manifest.facts
        arrays = manifest.arrays
        if (facts.get("part"), facts.get("identity")) != (self.part, self.identity):
            raise ValueError(
                f"{self.folder} holds part {facts.get('part')} of cut {facts.get('identity')}, and "
                f"not part {self.part} of {self.identity}: it comes from another folder"
            )
        with sound(self.folder):
            nodes = [arrays[name] for name in ("masters", "rows", "src")]
            edge_ids = arrays["edge_ids"]
            indptr = arrays["indptr"]
        for array in nodes:
            check_ids(self.folder, array, parts.num_nodes)
        check_ids(self.folder, edge_ids, parts.num_edges, "edge")
        check_ends(self.folder, indptr, parts.sizes["edges"][self.part])

    @property
    def num_edges(self) -> int:
        """Number of edges of the part."""
        return len(self.src)

    def ids_here(self, kind: str, ids: range) -> Array:
        """Return those of a range of ids, of "nodes" or of "edges", that are masters, or edges
        here; ascending.
        """
        ids_of_part = self.masters if kind == "nodes" else self._ascending.get()
        first, last = np.searchsorted(ids_of_part, [ids.start, ids.stop])
        return ids_of_part[first:last]

    def __repr__(self) -> str:
        return f"GraphPart({self.part}: {len(self.masters)} masters, {self.num_edges} edges)"


class PartsReport(NamedTuple):
    """Sizes of the parts of a graph: ``GraphParts.report`` makes them, and ``print`` shows them as
    a table.

    ``masters``, ``edges``, ``mirrors`` and ``partners`` have a number per part: nodes that it owns,
    edges in it, nodes that its edges need from others, and other parts with which it shares a node.
    ``train`` are training nodes, None where none were given. ``cut_edges`` is the number of edges
    whose two ends have different masters.

    >>> import nodeflow, tempfile
    >>> ring = nodeflow.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> cut = nodeflow.distributed.partition_graph(ring, tempfile.mkdtemp(), 2, method="ranges", progress=False)
    >>> cut.report().edges
    (2, 2)
    """

    num_nodes: int
    num_edges: int
    cut_edges: int
    masters: tuple[int, ...]
    edges: tuple[int, ...]
    mirrors: tuple[int, ...]
    partners: tuple[int, ...]
    train: tuple[int, ...] | None

    @property
    def replication_factor(self) -> float:
        """Mean number of parts that hold a node, as master or mirror; 1 for a graph without
        nodes.
        """
        return (self.num_nodes + sum(self.mirrors)) / self.num_nodes if self.num_nodes else 1.0

    @property
    def cut(self) -> float:
        """Share of the edges whose two ends have different masters; 0 for a graph without edges."""
        return self.cut_edges / self.num_edges if self.num_edges else 0.0

    def __str__(self) -> str:
        columns: dict[str, Iterable[int]] = {
            "part": range(len(self.masters)),
            "masters": self.masters,
            "edges": self.edges,
            "mirrors": self.mirrors,
            "partners": self.partners,
        }
        if self.train is not None:
            columns["train"] = self.train
        cells = []
        for name, values in columns.items():
            texts = [name, *map("{:,}".format, values)]
            width = max(map(len, texts))
            cells.append([text.rjust(width) for text in texts])
        lines = map("  ".join, zip(*cells, strict=True))
        shares = (
            f"replication factor {self.replication_factor:.2f}, {self.cut:.1%} of the edges cut"
        )
        return "\n".join([*lines, shares])
