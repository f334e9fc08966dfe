"""Checked links: triples (source, relation, destination) or pairs without relations; and the
queries they answer.

A query is (node, relation) on one side; known answers are grouped by query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor

from nodeflow._core.base.checks import LARGEST, Ints, as_array, as_ids
from nodeflow._core.base.types import Array

SIDES = ("destination", "source")
"""The ends of a link that queries ask for, or that negatives replace."""

LinksLike: TypeAlias = "Tensor | Array | list[Any]"
KnownLike: TypeAlias = "LinksLike | list[Tensor] | tuple[Any, ...] | None"


class Links(NamedTuple):
    """Links ``[n]``: their sources, relations and destinations; ``relation`` is None where there
    are none.

    The links 0 -7-> 3 and 2 -5-> 0 are ``Links(src=[0, 2], relation=[7, 5], dst=[3, 0])``.
    """

    src: Ints
    relation: Ints | None
    dst: Ints

    def ends(self, side: str) -> tuple[Ints, Ints]:
        """The known ends of queries for ``side``, and the ends on that side, which answer them."""
        if side == "destination":
            return (self.src, self.dst)
        return (self.dst, self.src)

    def at(self, rows: Ints) -> Links:
        """Return some of the links."""
        if self.relation is None:
            relation = None
        else:
            relation = self.relation[rows]
        return Links(self.src[rows], relation, self.dst[rows])


def joined(parts: Sequence[Links], with_relations: bool) -> Links:
    """Return the links of all parts, which all have relations or none."""
    empty = np.zeros(0, np.int64)
    src = np.concatenate([empty, *(part.src for part in parts)])
    dst = np.concatenate([empty, *(part.dst for part in parts)])
    if not with_relations:
        return Links(src, None, dst)
    # parts without relations are empty
    relations = [part.relation for part in parts if part.relation is not None]
    return Links(src, np.concatenate([empty, *relations]), dst)


def as_links(
    value: object, name: str, num_nodes: int, relations: bool | None = None, why: str = ""
) -> Links:
    """Check triples ``[n, 3]`` or pairs ``[n, 2]``, and copy them; an empty list has either width.

    ``relations`` says whether there must be relations, for the reason ``why``; None: either.
    """
    array = as_array(value, name)
    shapes = {2: "[n, 2], a row (source, destination)"}
    shapes[3] = "[n, 3], a row (source, relation, destination)"
    if relations is not None:
        shapes = {2 + relations: shapes[2 + relations]}
    if array.ndim == 1 and array.size == 0:
        # an empty list has no second dimension
        array = np.zeros((0, min(shapes)), np.int64)
    if array.ndim != 2 or array.shape[1] not in shapes:
        rule = " or ".join(shapes.values()) + f" {why}".rstrip()
        raise ValueError(f"{name} must have shape {rule}, got shape {array.shape}")
    # one copy makes every column contiguous, and keeps later changes by the caller out
    columns = np.array(array.T, order="C")
    last = len(columns) - 1
    src = as_ids(columns[0], f"{name}[:, 0]", num_nodes)
    dst = as_ids(columns[last], f"{name}[:, {last}]", num_nodes)
    relation = None
    if last == 2:
        relation = as_ids(columns[1], f"{name}[:, 1]", LARGEST, "relation")
    return Links(src, relation, dst)


def as_known(
    value: object, num_nodes: int, relations: bool, why: str = "as the triples have"
) -> Links:
    """Check known positives: links, a list of several arrays of them, or None for none."""
    parts = {"known": value}
    if value is None:
        parts = {}
    elif isinstance(value, (list, tuple)) and all(getattr(part, "ndim", 0) == 2 for part in value):
        parts = {f"known[{i}]": part for i, part in enumerate(value)}
    links = [as_links(part, name, num_nodes, relations, why) for name, part in parts.items()]
    return joined(links, relations)


class Queries:
    """The distinct pairs (node, relation) among those given, ascending by relation, then by node.

    Nodes [4, 0, 4] with relations [1, 1, 1] give ``node`` [0, 4] and ``relation`` [1, 1];
    ``number`` [1, 0, 1] is the index of each given pair among them. ``relation`` None: without
    relations.
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
        """Return the number of the query of each (node, relation), -1 where it is not among
        them.
        """
        return _places(self._keys, self._keys_of(node, relation))

    def answers(self, links: Links, side: str, columns: Ints | None = None) -> tuple[Ints, Ints]:
        """Return ``(indptr, answers)``: the distinct answers that links give to each query for
        ``side``, ascending.

        ``columns`` has the number of each node as an answer, ``[num_nodes]``, -1 for one that is
        none; None: its id.
        """
        near, far = links.ends(side)
        number = self.find(near, links.relation)
        if columns is None:
            answer = far
        else:
            answer = columns[far]
        counted = (number >= 0) & (answer >= 0)
        # sorting one number per pair sorts by query, then by answer, and drops repeats
        pairs = np.unique(number[counted] * self._num_nodes + answer[counted])
        row, answer = np.divmod(pairs, self._num_nodes)
        return pointers(row, len(self)), answer

    def _keys_of(self, node: Ints, relation: Ints | None) -> Ints:
        """One number for every (node, relation); -1 for a relation that no query has."""
        if relation is None:
            return node
        # relations may be arbitrary integers: their ranks keep key = rank * num_nodes + node small
        kind = _places(self._relations, relation)
        return np.where(kind < 0, -1, kind * self._num_nodes + node)


def pointers(rows: Array, count: int) -> Ints:
    """Return the ``indptr`` of entries that belong to ``count`` ``rows``."""
    counts = np.bincount(rows, minlength=count)
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def _places(ascending: Ints, values: Ints) -> Ints:
    """Return the index of each value in an ascending array without repeats, -1 where it is not
    there.
    """
    if not len(ascending):
        return np.full(len(values), -1)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return np.where(ascending[places] == values, places, -1)
