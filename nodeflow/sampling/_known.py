"""Known positives: which nodes answer (node, relation), from the edges of a graph and from lists of triples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nodeflow._base.checks import Ints, as_array, as_ids, describe, first_true
from nodeflow._base.types import Array
from nodeflow._rows.rows import whole_column
from nodeflow.graph import Graph
from nodeflow.graph._storage import Stored

_MOST_RELATIONS = 2**31


class Links(NamedTuple):
    """Edges or pairs of nodes ``[n]``; ``rel`` is None where there are no relations."""

    src: Ints
    rel: Ints | None
    dst: Ints

    @classmethod
    def of(cls, value: object, name: str, graph: Graph, with_relations: bool) -> Links:
        """Check pairs ``[n, 2]``, or with relations triples ``[n, 3]`` of (source, relation, destination)."""
        ids, width = as_array(value, name), 3 if with_relations else 2
        if ids.ndim != 2 or ids.shape[1] != width:
            why = "(source, relation, destination), since relation= is given"
            why = why if with_relations else "(source, destination); for relations pass relation=, their edge column"
            raise ValueError(f"{name} must have shape [n, {width}], a row {why}, got shape {ids.shape}")
        src, dst = (as_ids(ids[:, i], f"{name}[:, {i}]", graph.num_nodes).copy() for i in (0, width - 1))
        rel = as_ids(ids[:, 1], f"{name}[:, 1]", _MOST_RELATIONS, "relation").copy() if with_relations else None
        return cls(src, rel, dst)

    def ends(self, side: str) -> tuple[Ints, Ints]:
        """The ends that are kept when negatives take the place of a side, and those of that side."""
        return (self.src, self.dst) if side == "destination" else (self.dst, self.src)

    def at(self, rows: Ints) -> Links:
        """Return some of the links."""
        return Links(self.src[rows], None if self.rel is None else self.rel[rows], self.dst[rows])

    def table(self) -> Ints:
        """The links as rows, int64 ``[n, 2]`` or ``[n, 3]``."""
        rows: Ints = np.stack([self.src, self.dst] if self.rel is None else [self.src, self.rel, self.dst], 1)
        return rows


def relations_of(graph: Graph, name: str) -> Array:
    """Return the relation of every edge, checked: whole numbers from 0.

    Of a graph that lies on several processes, those of the edges held here.
    """
    held = graph.held
    column = as_array(whole_column(held.edata[name]), f"the edge column {name!r}")
    if column.shape != (held.num_edges,) or column.dtype.kind not in "iu":
        raise TypeError(f"relation: the edge column {name!r} must hold an integer per edge, got {describe(column)}")
    if (i := first_true((column < 0) | (column >= _MOST_RELATIONS))) is not None:
        edge = i if held.whole is None else held.whole.edge_ids[i]
        raise ValueError(
            f"relation: the edge column {name!r} must hold numbers from 0, but edge {edge} has {column[i]}"
        )
    return column


class Known(NamedTuple):
    """The nodes that answer a question: row i has ``nodes[indptr[i] : indptr[i + 1]]``, ascending, for node ``own[i]``.

    Row u is that of node u, or with ``questions`` that of the i-th of them (see ``question``).
    """

    indptr: Ints
    nodes: Stored
    own: Ints
    questions: Ints | None = None

    @classmethod
    def collect(cls, num_nodes: int, links: Links, side: str, asked: Links | None) -> Known:
        """Collect links as answers for a side; ``asked`` are seeds, to which nothing may be known.

        None: any seed, so that behind the rows of questions every node has one to which nothing is known.

        Cost: the links in sorted order; 24 bytes a link while they are sorted, and 4 (8 for many nodes) a link then.
        """
        kept, far = links.ends(side)
        questions, rows, own = None, kept, np.arange(num_nodes)
        if links.rel is not None:
            keys = question(kept, links.rel)
            more = keys[:0] if asked is None or asked.rel is None else question(asked.ends(side)[0], asked.rel)
            questions = np.unique(np.concatenate([keys, more]))
            rows, own = np.searchsorted(questions, keys), questions // _MOST_RELATIONS
            if asked is None:
                own = np.concatenate([own, np.arange(num_nodes)])
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(rows, minlength=len(own)))])
        narrow = np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64
        return cls(indptr, far[np.lexsort((far, rows))].astype(narrow), own, questions)

    def renumbered(self, rank: Ints) -> Known:
        """Return the same with node v written as ``rank[v]``."""
        rows, nodes = np.repeat(np.arange(len(self.own)), np.diff(self.indptr)), rank[self.nodes]
        return self._replace(nodes=nodes[np.lexsort((nodes, rows))].astype(self.nodes.dtype), own=rank[self.own])


def as_filter(value: bool | str, chunk: int | None, known: object, graph: Graph) -> bool | str:
    """Return ``filter_known`` of a link sampler, checked against its other settings: a bool, or "mark"."""
    if isinstance(value, str) and value != "mark":
        raise ValueError(f"filter_known must be False, True or 'mark', got {value!r}")
    found = value if value == "mark" else bool(value)
    if found is True and chunk is not None:
        raise ValueError(
            "chunk and filter_known=True cannot go together: negatives that several edges share would have to be "
            "unknown to all their sources; leave out one of them, or use filter_known='mark'"
        )
    if known is not None and not found:
        raise ValueError("known is what filter_known looks at, so pass filter_known=True or 'mark' too")
    if found and known is None and graph.peers is not None:
        raise TypeError(
            "filter_known looks at all edges of the graph, and this graph lies on several processes, of which each "
            "holds a part; pass known=, a table of known pairs that every process holds, or leave filter_known out"
        )
    return found


def question(near: Ints, rel: Ints) -> Ints:
    """Return one number for a node and a relation, in the order of the nodes."""
    numbers: Ints = near * _MOST_RELATIONS + rel
    return numbers
