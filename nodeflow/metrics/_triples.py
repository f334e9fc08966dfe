"""Triples (source, relation, destination), or pairs without relations: checked, and taken from a graph."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import ALL, LARGEST, Ints, _All, as_array, as_ids, describe
from nodeflow._base.types import Array, IdsLike
from nodeflow.graph import Graph

SIDES = ("destination", "source")
TriplesLike: TypeAlias = "Tensor | Array | list[Any]"


class Triples(NamedTuple):
    """Checked triples, ``[n]`` each; ``relation`` is None where there are none."""

    src: Ints
    relation: Ints | None
    dst: Ints

    def ends(self, side: str) -> tuple[Ints, Ints]:
        """The ends that a query for ``side`` gives, and those that it asks for."""
        return (self.src, self.dst) if side == "destination" else (self.dst, self.src)


def triples_of(graph: Graph, relation: str | None = None, edges: IdsLike | _All = ALL) -> Tensor:
    """Return edges of a graph as triples (source, relation, destination), int64 ``[k, 3]``; pairs without a relation.

    Args:
        graph: the graph.
        relation: name of the edge column with a whole number per edge; None gives pairs (source, destination),
            ``[k, 2]``.
        edges: ids of edges, ``[k]``, in the order of the rows; all by default.

    Raises KeyError for a column that the graph has not, TypeError or ValueError for one that is not whole numbers,
    IndexError for an id that is no edge.

    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"kind": torch.tensor([0, 1, 1])})
    >>> triples_of(graph, "kind", [2, 0])
    tensor([[2, 1, 0],
            [0, 0, 1]])
    """
    src, dst = graph.edges() if isinstance(edges, _All) else graph.find_edges(edges)
    if relation is None:
        return torch.stack([src, dst], 1)
    column = torch.as_tensor(graph.edata[relation])
    if not isinstance(edges, _All):
        column = column[torch.from_numpy(as_ids(edges, "edges", graph.num_edges, "edge"))]
    kinds = as_ids(column, f"the edge column {relation!r}", LARGEST, "relation")
    return torch.stack([src, torch.from_numpy(kinds), dst], 1)


def as_triples(
    value: object, name: str, num_nodes: int, width: int | None = None, why: str = "as triples has"
) -> Triples:
    """Check triples ``[n, 3]`` or pairs ``[n, 2]``; an empty list has any width, else it must be ``width``.

    ``why`` it must, for the message.
    """
    array = as_array(value, name)
    if array.ndim == 1 and array.size == 0:
        array = np.zeros((0, width or 3), np.int64)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise ValueError(
            f"{name} must have a row (source, relation, destination) or (source, destination) for each triple, "
            f"[n, 3] or [n, 2], got {describe(array)}"
        )
    if width not in (None, array.shape[1]):
        raise ValueError(
            f"{name} must have {width} columns, {why}, got {array.shape[1]}: either all have relations or none"
        )
    src = as_ids(array[:, 0], f"column 0 of {name}", num_nodes)
    dst = as_ids(array[:, -1], f"column {array.shape[1] - 1} of {name}", num_nodes)
    relation = as_ids(array[:, 1], f"column 1 of {name}", LARGEST, "relation") if array.shape[1] == 3 else None
    return Triples(src, relation, dst)


def as_known(value: object, num_nodes: int, width: int, why: str = "as triples has") -> list[Triples]:
    """Check known positives: triples, or a list of several arrays of them."""
    several = isinstance(value, (list, tuple)) and all(
        isinstance(part, (Tensor, np.ndarray)) and part.ndim == 2 for part in value
    )
    parts = list(value) if several else [value]  # type: ignore[call-overload]
    names = [f"known[{i}]" for i in range(len(parts))] if several else ["known"]
    return [as_triples(part, name, num_nodes, width, why) for part, name in zip(parts, names, strict=True)]


class Asked(NamedTuple):
    """What is asked on one side: every distinct (node, relation) once, with its known positives.

    Known positives are columns of the candidates; those of query i are ``known[known_ptr[i] : known_ptr[i + 1]]``.
    ``which`` is the number of the query of each of the given nodes.
    """

    node: Ints
    relation: Ints | None
    which: Ints
    known_ptr: Ints
    known: Ints


def asked_of(
    nodes: Ints, relation: Ints | None, known: list[Triples], side: str, candidates: Ints | None, num_nodes: int
) -> Asked:
    """Group nodes and relations, ``[n]`` each, by what they ask for."""
    keys, which, kinds = _distinct(nodes, relation, num_nodes)
    query, column = _known_of(keys, kinds, known, side, _columns_of(candidates, num_nodes))
    kind, node = np.divmod(keys, max(num_nodes, 1))
    return Asked(node, None if relation is None else kinds[kind], which, _pointers(query, keys.size), column)


class Queries(NamedTuple):
    """What is asked on one side: every distinct (node, relation) once, with its answers and its known positives.

    Answers and known positives are columns of the candidates; those of query i are
    ``answers[answer_ptr[i] : answer_ptr[i + 1]]``, and so on. ``triple`` is the number of the triple of each answer.
    """

    node: Ints
    relation: Ints | None
    answer_ptr: Ints
    answers: Ints
    triple: Ints
    known_ptr: Ints
    known: Ints


def queries_of(triples: Triples, known: list[Triples], side: str, candidates: Ints | None, num_nodes: int) -> Queries:
    """Group triples by what they ask for; raises ValueError for an answer that is no candidate."""
    given, asked = triples.ends(side)
    keys, which, kinds = _distinct(given, triples.relation, num_nodes)
    columns = _columns_of(candidates, num_nodes)
    if (columns[asked] < 0).any():
        i = int((columns[asked] < 0).argmax())
        raise ValueError(
            f"triples[{i}] has the {side} {asked[i]}, which is not among the candidates; add it to candidates, or "
            "leave the triple out"
        )
    order = np.argsort(which, kind="stable")
    query, column = _known_of(keys, kinds, known, side, columns)
    kind, node = np.divmod(keys, max(num_nodes, 1))
    return Queries(
        node=node,
        relation=None if triples.relation is None else kinds[kind],
        answer_ptr=_pointers(which, keys.size),
        answers=columns[asked[order]],
        triple=order,
        known_ptr=_pointers(query, keys.size),
        known=column,
    )


def _distinct(nodes: Ints, relation: Ints | None, num_nodes: int) -> tuple[Ints, Ints, Ints]:
    """Return the distinct keys of nodes and relations, ascending, the place of each among them, and all relations."""
    kinds = np.zeros(0, np.int64) if relation is None else np.unique(relation)
    keys, which = np.unique(_keys(nodes, relation, kinds, num_nodes), return_inverse=True)
    return keys, which, kinds


def _columns_of(candidates: Ints | None, num_nodes: int) -> Ints:
    """Return the column of every node among the candidates, -1 for one that is not there."""
    if candidates is None:
        return np.arange(num_nodes)
    columns = np.full(num_nodes, -1)
    columns[candidates] = np.arange(candidates.size)
    return columns


def _known_of(keys: Ints, kinds: Ints, known: list[Triples], side: str, columns: Ints) -> tuple[Ints, Ints]:
    """Return the known positives of queries: the place of a key, ascending, and the column of a candidate."""
    num_nodes = columns.size
    pairs = [np.zeros(0, np.int64)]
    for part in known:
        ends, others = part.ends(side)
        of_query = _keys(ends, part.relation, kinds, num_nodes)
        at = np.searchsorted(keys, of_query)
        found = (at < keys.size) & (columns[others] >= 0)
        found[found] = keys[at[found]] == of_query[found]
        pairs.append(at[found] * num_nodes + columns[others[found]])
    return np.divmod(np.unique(np.concatenate(pairs)), max(num_nodes, 1))


def _keys(ends: Ints, relation: Ints | None, kinds: Ints, num_nodes: int) -> Ints:
    """One number for every (relation, node), ascending by relation; -1 for a relation that is not in ``kinds``."""
    if relation is None:
        return ends
    if kinds.size == 0:
        return np.full(ends.size, -1)
    kind = np.minimum(np.searchsorted(kinds, relation), kinds.size - 1)
    keys: Ints = np.where(kinds[kind] == relation, kind * num_nodes + ends, -1)
    return keys


def _pointers(rows: Array, count: int) -> Ints:
    """The ``indptr`` of things that belong to ``rows``."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=count), dtype=np.int64)])
