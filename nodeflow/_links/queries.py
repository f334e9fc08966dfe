"""Questions about links: which nodes answer (node, relation), grouped by what is asked."""

from __future__ import annotations

import numpy as np

from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._links.links import Links


class Queries:
    """The distinct pairs (node, relation) among those given, ascending by relation, then by node.

    Of nodes [4, 0, 4] with relations [1, 1, 1] these are ``node`` [0, 4] and ``relation`` [1, 1]; ``number`` [1, 0, 1]
    says which of them each given one is.

    Args:
        node, relation: the pairs, ``[n]`` each; ``relation`` None: without relations.
        num_nodes: number of nodes.
    """

    def __init__(self, node: Ints, relation: Ints | None, num_nodes: int) -> None:
        self._num_nodes = max(num_nodes, 1)
        self._relations = np.zeros(1, np.int64) if relation is None else np.unique(relation)
        self._keys, self.number = np.unique(self._keys_of(node, relation), return_inverse=True)
        kind, self.node = np.divmod(self._keys, self._num_nodes)
        self.relation: Ints | None = None if relation is None else self._relations[kind]

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, node: Ints, relation: Ints | None) -> Ints:
        """Return the number of the query of each (node, relation), -1 where it is not among them."""
        return _places(self._keys, self._keys_of(node, relation))

    def answers(self, links: Links, side: str, columns: Ints | None = None) -> tuple[Ints, Ints]:
        """Return ``(indptr, answers)``: the distinct answers that links give to each query, ascending.

        Args:
            links: links, of which those that answer no query are left out.
            side: the end that is asked for.
            columns: what stands for each node as an answer, ``[num_nodes]``, -1 for a node that is none; None: its id.
        """
        near, far = links.ends(side)
        number, answer = self.find(near, links.relation), far if columns is None else columns[far]
        counted = (number >= 0) & (answer >= 0)
        pairs = np.unique(number[counted] * self._num_nodes + answer[counted])
        row, answer = np.divmod(pairs, self._num_nodes)
        return pointers(row, len(self)), answer

    def _keys_of(self, node: Ints, relation: Ints | None) -> Ints:
        """One number for every (node, relation); -1 for a relation that no query has."""
        if relation is None:
            return node
        # relations may be any numbers: their places keep the keys small
        kind = _places(self._relations, relation)
        keys: Ints = np.where(kind < 0, -1, kind * self._num_nodes + node)
        return keys


def pointers(rows: Array, count: int) -> Ints:
    """Return the ``indptr`` of entries that belong to ``rows``, of which there are ``count``."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=count), dtype=np.int64)])


def _places(ascending: Ints, values: Ints) -> Ints:
    """Return the index of each value in an ascending array without repeats, -1 where it is not there."""
    if not len(ascending):
        return np.full(len(values), -1)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.where(ascending[places] == values, places, -1)
