"""Nodes in contexts: one number for a node and the context that it is in."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.edges.forms import Form


class Contexts(NamedTuple):
    """Node v in context c has the number ``c * num_nodes + v``; where all are in one context, v."""

    num_nodes: int
    form: Form
    several: bool

    def bound(self, contexts: Ints | None) -> int:
        """Return the number below which all numbers are, for these contexts."""
        if contexts is None:
            return self.num_nodes
        return self.num_nodes * (int(contexts.max(initial=0)) + 1)

    def joined(self, nodes: Ints, contexts: Ints | None) -> Ints:
        """Return the numbers of nodes in contexts, in an array of their own."""
        return nodes.copy() if contexts is None else nodes + self.num_nodes * contexts

    def split(self, numbers: Ints) -> tuple[Tensor, Tensor | None]:
        """Return the nodes and contexts of numbers, as tensors."""
        if not self.several:
            return self.form.tensor(numbers), None
        nodes = self.form.tensor(numbers % self.num_nodes)
        return nodes, self.form.tensor(numbers // self.num_nodes)

    def of_sources(self, indptr: Ints, sources: Ints, contexts: Tensor | None) -> Ints:
        """Return the numbers of the sources of edges, whose destinations are in ``contexts``."""
        if contexts is not None:
            starts = self.form.array(contexts) * self.num_nodes
            self.form.add_to_rows(indptr, sources, starts)  # in place: sources are ours
        return sources
