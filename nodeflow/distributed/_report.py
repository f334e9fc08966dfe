"""The sizes of the parts of a graph."""

from __future__ import annotations

from typing import NamedTuple


class PartsReport(NamedTuple):
    """How a graph was cut: ``GraphParts.report`` makes it, and ``print`` shows it as a table.

    ``masters``, ``edges``, ``mirrors`` and ``partners`` have a number per part: nodes that it owns, edges in it, nodes
    that its edges need from others, and other parts with which it shares a node. ``train`` are training nodes, None
    where none were given. ``cut_edges`` is the number of edges whose two ends have different masters.

    >>> import tempfile
    >>> from nodeflow import Graph
    >>> from nodeflow.distributed import partition_graph
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = partition_graph(graph, folder + "/ring", 2, method="ranges", progress=False)
    ...     report = parts.report()
    >>> report.masters, report.edges, report.cut_edges
    ((2, 2), (2, 2), 2)
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
        """In how many parts a node is, master and mirrors, on average; 1 for a graph without nodes."""
        return (self.num_nodes + sum(self.mirrors)) / self.num_nodes if self.num_nodes else 1.0

    @property
    def cut(self) -> float:
        """Share of the edges whose two ends have different masters; 0 for a graph without edges."""
        return self.cut_edges / self.num_edges if self.num_edges else 0.0

    @property
    def node_balance(self) -> float:
        """Masters of the largest part over their mean, 1 where all parts are equal."""
        return _balance(self.masters)

    @property
    def edge_balance(self) -> float:
        """Edges of the largest part over their mean."""
        return _balance(self.edges)

    @property
    def train_balance(self) -> float | None:
        """Training nodes of the part with most of them over their mean; None where none were given."""
        return None if self.train is None else _balance(self.train)

    def __str__(self) -> str:
        columns = {"part": tuple(range(len(self.masters))), "masters": self.masters, "edges": self.edges,
                   "mirrors": self.mirrors, "partners": self.partners}  # fmt: skip
        if self.train is not None:
            columns["train"] = self.train
        cells = [[name, *(f"{value:,}" for value in values)] for name, values in columns.items()]
        widths = [max(map(len, column)) for column in cells]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
                 for row in zip(*cells, strict=True)]  # fmt: skip
        train = "" if self.train_balance is None else f", training nodes {self.train_balance:.2f}"
        largest = f"nodes {self.node_balance:.2f}, edges {self.edge_balance:.2f}{train}"
        return "\n".join([
            *table, f"replication factor {self.replication_factor:.2f}, {self.cut:.1%} of the edges cut",
            f"largest over mean: {largest}",
        ])  # fmt: skip


def _balance(sizes: tuple[int, ...]) -> float:
    return max(sizes) * len(sizes) / sum(sizes) if any(sizes) else 1.0
