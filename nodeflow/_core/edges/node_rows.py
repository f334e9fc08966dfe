"""Which rows of edges a node has: one, or one per kind of edges that it can have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.edges.forms import COMPILED, Form, Placed, TwoForms
from nodeflow._core.in_torch.ragged import rows_of_nodes

NO_KINDS: Ints = np.zeros(0, np.int64)
"""Kinds of rows where there is only one."""
_ROWS_OF_NODES = TwoForms(kernels.csr.rows_of_nodes, rows_of_nodes)


class NodeRows(Frozen):
    """The rows of edges that nodes have, a row per kind of edges (a relation, or an edge type).

    The nodes of a range have rows of the same kinds. The rows of a node follow each other, as do
    those of nodes. So a few numbers per range say where all rows are, and there are no rows for
    kinds that cannot occur.

    Args:
        ends: the first node behind each range, ascending; the first range begins at node 0.
        kinds: the kinds of which the nodes of each range have rows, ascending.

    Nodes 0 and 1 have edges of kind 0, nodes 2 to 4 of the kinds 0 and 2:

    >>> rows = NodeRows([2, 5], [[0], [0, 2]])
    >>> rows.num_rows, rows.of(np.array([4, 1]))
    (8, (array([6, 7, 1]), array([0, 2, 0]), array([0, 2, 3])))
    """

    __slots__ = ("_placed", "begins", "ends", "first_kind", "kinds", "num_kinds")
    ends: Ints
    begins: Ints
    first_kind: Ints
    kinds: Ints
    num_kinds: int
    _placed: Placed

    def __init__(self, ends: Sequence[int] | Ints, kinds: Sequence[Sequence[int] | Ints]) -> None:
        nodes = np.diff(ends, prepend=0)
        counts = [len(part) for part in kinds]
        # of ranges of nodes, not of nodes: a few numbers for a schema of any size
        all_kinds = np.concatenate([NO_KINDS, *kinds]).astype(np.int64)
        begins = np.append(0, np.cumsum(nodes * counts))
        first_kind = np.append(0, np.cumsum(counts))
        self._set(
            ends=np.asarray(ends, np.int64),
            begins=begins.astype(np.int64),
            first_kind=first_kind.astype(np.int64),
            kinds=all_kinds,
            num_kinds=int(all_kinds.max(initial=0)) + 1,
        )
        self._set(_placed=Placed(self.ends, self.begins, self.first_kind, self.kinds))

    @classmethod
    @lru_cache(maxsize=256)
    def one_each(cls, num_nodes: int) -> NodeRows:
        """Return the layout in which every node has one row, of one kind."""
        return cls([num_nodes], [[0]])

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.begins[-1])

    @property
    def is_plain(self) -> bool:
        """Whether the rows are the nodes."""
        return len(self.ends) == 1 and len(self.kinds) == 1

    def of(self, nodes: Ints, form: Form = COMPILED) -> tuple[Ints, Ints, Ints]:
        """Return the rows of k nodes, node by node, their kinds, and where each begin, ``[k + 1]``.

        Arrays are of ``form``. Where the rows are the nodes, kinds are not listed, since
        there is only one.
        """
        if self.is_plain:
            return nodes, NO_KINDS, np.arange(len(nodes) + 1)
        return form.of(_ROWS_OF_NODES)(nodes, *self._placed.at(form))  # type: ignore[no-any-return]

    def first(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the first row of each node, and the number of its rows."""
        if self.is_plain:
            return nodes, np.ones(len(nodes), np.int64)
        part = np.searchsorted(self.ends, nodes, side="right")
        count = np.diff(self.first_kind)[part]
        start = np.append(0, self.ends)[part]
        return self.begins[part] + (nodes - start) * count, count

    def of_edges(self, nodes: Ints, kinds: Ints) -> Ints:
        """Return the row of each edge, from its node and its kind: one that the node has."""
        part = np.searchsorted(self.ends, nodes, side="right")
        # the pairs of a range and a kind ascend, so no table of all ranges by all kinds is needed
        range_of_kind = np.repeat(np.arange(len(self.ends)), np.diff(self.first_kind))
        pairs = range_of_kind * self.num_kinds + self.kinds
        place = kernels.csr.ranges_of(part * self.num_kinds + kinds, pairs) - self.first_kind[part]
        return self.first(nodes)[0] + place  # type: ignore[no-any-return]

    def kinds_of(self, rows: Ints) -> Ints:
        """Return the kind of each of some rows."""
        # of ranges that begin at one row all but the last are without rows
        part = np.searchsorted(self.begins, rows, side="right") - 1
        count = np.diff(self.first_kind)[part]
        return self.kinds[self.first_kind[part] + (rows - self.begins[part]) % count]

    def restricted(self, nodes: Ints) -> NodeRows:
        """Return the layout of some nodes, ascending, which are numbered from 0."""
        kinds = np.split(self.kinds, self.first_kind[1:-1])
        return NodeRows(np.searchsorted(nodes, self.ends), kinds)
