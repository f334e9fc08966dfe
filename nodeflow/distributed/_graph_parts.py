"""A graph that was cut into parts: which part has which node and edge, and the parts themselves."""

from __future__ import annotations

import numpy as np

from nodeflow._base.checks import Ints, as_index
from nodeflow._base.types import Array
from nodeflow._disk.arrays import map_array
from nodeflow.distributed._graph_part import GraphPart, part_folder
from nodeflow.distributed._report import PartsReport
from nodeflow.partitions import CutGraph

KIND, VERSION = "graph parts", 1
SPLIT = ("train", "val", "test")


class GraphParts(CutGraph):
    """A graph in a folder, cut into parts for processes by ``partition_graph``. ``GraphParts.open`` opens it.

    ``train``, ``val`` and ``test`` are ids of nodes, ascending, or None. ``mirrors``, int64
    ``[num_parts, num_parts]``, has at ``[k, p]`` the number of nodes whose master is p and that are mirrors in part k.
    ``original_nodes`` and ``original_edges`` are the ids before ``renumber``, by the new ones; else None. All arrays
    are read-only and mapped.

    >>> import tempfile
    >>> from nodeflow import Graph
    >>> from nodeflow.distributed import partition_graph
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     partition_graph(graph, folder + "/ring", 2, method="ranges", progress=False)
    ...     parts = GraphParts.open(folder + "/ring")
    ...     print(parts.num_parts, parts.method, parts.part(0).masters)
    GraphParts(2 parts, 4 nodes, 4 edges, edges: in)
    2 ranges [0 1]
    """

    __slots__ = ("_book", "mirrors", "original_edges", "original_nodes", "test", "val")
    layout = (KIND, VERSION)
    mirrors: Ints
    val: Ints | None
    test: Ints | None
    original_nodes: Ints | None
    original_edges: Ints | None
    _book: dict[str, Array]

    def _map(self) -> None:
        arrays = {name: map_array(self.folder, array) for name, array in self.manifest.arrays.items()}
        optional = (*SPLIT, "original_nodes", "original_edges")
        self._set(_book=arrays, mirrors=arrays["mirrors"], **{name: arrays.get(name) for name in optional})

    @property
    def edges(self) -> str:
        """Where edges lie: "in", "out" or "grid"."""
        return str(self.manifest.facts["edges"])

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the grid of parts, None without one."""
        grid = self.manifest.facts["grid"]
        return None if grid is None else (int(grid[0]), int(grid[1]))

    @property
    def renumbered(self) -> bool:
        """Whether ids are those of the renumbered graph."""
        return bool(self.manifest.facts["renumbered"])

    @property
    def identity(self) -> str:
        """A string that tells this partition from every other one: a hash of all that is in it."""
        return str(self.manifest.facts["identity"])

    def owners(self, nodes: Ints) -> Ints:
        """Return the parts of the masters of nodes, int64 ``[k]``; ids are not checked."""
        return _owners(self._book, "owner", "node_begin", nodes)

    def places(self, nodes: Ints) -> Ints:
        """Return the rows of nodes among the masters of their parts, int64 ``[k]``; ids are not checked."""
        return _places(self._book, "place", "node_begin", nodes)

    def edge_owners(self, edge_ids: Ints) -> Ints:
        """Return the parts in which edges lie, int64 ``[k]``; ids are not checked."""
        return _owners(self._book, "edge_owner", "edge_begin", edge_ids)

    def edge_places(self, edge_ids: Ints) -> Ints:
        """Return the places of edges in the arrays of their parts, int64 ``[k]``; ids are not checked."""
        return _places(self._book, "edge_place", "edge_begin", edge_ids)

    def part(self, number: int) -> GraphPart:
        """Open a part.

        Raises IndexError for a number that is no part, ValueError for a folder that is missing, damaged, or of another
        partition.
        """
        k, sizes = as_index(number, "part", self.num_parts), self.manifest.facts["sizes"]
        return GraphPart(
            part_folder(self.folder, k), k, self.identity, sizes["masters"][k], sizes["edges"][k], verify=self._verify
        )

    def report(self) -> PartsReport:
        """Return the sizes of the parts, the cut and the replication factor; printed, it is a table."""
        sizes, sharing = self.manifest.facts["sizes"], (self.mirrors > 0) | (self.mirrors.T > 0)
        return PartsReport(
            num_nodes=self.num_nodes, num_edges=self.num_edges, cut_edges=int(self.manifest.facts["cut"]),
            masters=tuple(sizes["masters"]), edges=tuple(sizes["edges"]), mirrors=tuple(sizes["mirrors"]),
            partners=tuple(sharing.sum(1).tolist()), train=None if sizes["train"] is None else tuple(sizes["train"]),
        )  # fmt: skip

    def _sizes(self) -> list[str]:
        grid = "" if self.grid is None else f" {self.grid[0]} x {self.grid[1]}"
        sizes = [f"{self.num_parts} parts", f"{self.num_nodes} nodes", f"{self.num_edges} edges"]
        return [*sizes, f"edges: {self.edges}{grid}"]

    def _fits(self) -> bool:
        count = self.num_parts
        expected: dict[str, tuple[int, ...]] = {"mirrors": (count, count)}
        if self.renumbered:
            expected |= dict.fromkeys(("node_begin", "edge_begin"), (count + 1,))
            expected |= {"original_nodes": (self.num_nodes,), "original_edges": (self.num_edges,)}
        else:
            expected |= dict.fromkeys(("owner", "place"), (self.num_nodes,))
            expected |= dict.fromkeys(("edge_owner", "edge_place"), (self.num_edges,))
        shapes = {name: self.manifest.arrays[name].shape for name in expected}
        sizes = self.manifest.facts["sizes"]
        lengths = {len(sizes[name]) for name in ("masters", "edges", "mirrors")}
        totals = sum(sizes["masters"]), sum(sizes["edges"])
        whole = shapes == expected and lengths == {count} and totals == (self.num_nodes, self.num_edges)
        return whole and all(map(str, (self.identity, self.method, self.edges, self.grid, self.ndata, self.edata)))


def _owners(book: dict[str, Array], table: str, begin: str, ids: Ints) -> Ints:
    if table in book:
        return book[table][ids].astype(np.int64)
    return np.searchsorted(book[begin], ids, side="right") - 1


def _places(book: dict[str, Array], table: str, begin: str, ids: Ints) -> Ints:
    if table in book:
        return book[table][ids].astype(np.int64)
    found: Ints = ids - book[begin][np.searchsorted(book[begin], ids, side="right") - 1]
    return found
