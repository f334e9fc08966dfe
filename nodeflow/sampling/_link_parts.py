"""Parts of a link sampler: checks of its arguments, and the rows of a batch as they are scored:
pairs, and groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import (
    LARGEST,
    Ints,
    as_array,
    check_one_of,
    check_range,
    describe,
    first_true,
    lasting,
)
from nodeflow._core.base.dates import as_moments
from nodeflow._core.base.types import Array, Floats, NumbersLike
from nodeflow._core.links import Links, LinksLike, as_links
from nodeflow._core.rows.columns import as_column, column_of_numbers
from nodeflow._core.rows.rows import whole_column
from nodeflow._core.schema import Relation, Schema
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._one_process import check_one_process
from nodeflow.sampling._pps import check_weights
from nodeflow.sampling._times import NO_TIME, exact, no_times, time_column, times_of_nodes

LinksByName: TypeAlias = "Mapping[str, LinksLike] | Mapping[Relation, LinksLike]"
"""Pairs ``[n, 2]`` by relation, in ids within the types of both ends."""

Exclude: TypeAlias = "str | Sequence[str | Relation] | None"
"""Which edges no node of a link batch may draw; see ``LinkSampler``."""


def as_filter(value: bool | str, known: object, graph: Graph) -> bool | str:
    """Return ``filter_known`` of a link sampler, checked against its other settings: a bool, or
    "mark".
    """
    if isinstance(value, str) and value != "mark":
        raise ValueError(f"filter_known must be False, True or 'mark', got {value!r}")
    if known is not None and not value:
        raise ValueError(
            "known is what filter_known looks at, so pass filter_known=True or 'mark' too"
        )
    if value and known is None:
        check_one_process(graph, "LinkSampler(filter_known=True)")
    return value if value == "mark" else bool(value)


def as_exclude(
    value: Exclude, sampler: SamplerBase, *, edges: bool
) -> str | tuple[Relation, ...] | None:
    """Return ``exclude`` of a link sampler, checked; ``edges``: whether its seeds are edges."""
    if not isinstance(value, list | tuple):
        check_one_of(value, "exclude", ("self", "reverse", None))
    if value == "self" and not edges:
        raise ValueError("exclude='self' is for seeds that are edges; for pairs take 'reverse'")
    if value is not None and not callable(getattr(sampler, "without_edges", None)):
        raise TypeError(
            f"exclude={value!r} needs a sampler that can leave edges out for one batch, but "
            f"{type(sampler).__name__} has no without_edges; use exclude=None"
        )
    if value is None or isinstance(value, str):
        return value
    return tuple(sampler.graph.schema.relation(name) for name in value)


def by_name(value: object, name: str, schema: Schema, relation: str | None) -> object:
    """Return links that are given by the names of their relations as an array; others as they are.

    Ids within types become those of the graph, and names numbers, which pairs of the only relation
    are without.
    """
    if not isinstance(value, Mapping):
        return value
    if relation is not None:
        raise TypeError(
            f"{name} by names of relations has those of graph.schema, so leave "
            f"relation={relation!r} out"
        )
    parts = [np.zeros((0, 3), np.int64)]
    for key, pairs in value.items():
        of_key = schema.relation(key)
        label = f"{name}[{key!r}]"
        ends = as_links(pairs, label, LARGEST, relations=False)
        columns = []
        for i, ids, node_type in ((0, ends.src, of_key[0]), (1, ends.dst, of_key[2])):
            nodes = schema.ids(node_type)
            check_range(ids, f"{label}[:, {i}]", len(nodes), f"{node_type} node")
            columns.append(ids + nodes.start)
        columns.insert(1, np.full(len(ends.src), schema.number(of_key)))
        parts.append(np.stack(columns, 1))
    links = np.concatenate(parts)
    return links if len(schema.relations) > 1 else links[:, ::2]


def as_pairs(value: object, graph: Graph, relation: str | None) -> Links:
    """Return ``pairs`` of a link sampler, checked: triples with the relations of an edge column, or
    of the schema.

    Pairs without relations stay so: theirs need not be in the schema, which may have only those of
    messages.
    """
    schema = graph.schema
    name = "pairs"
    triples = None if len(schema.relations) > 1 else False
    why = "for relations pass relation=, their edge column"
    if relation is not None:
        triples = True
        why = "since relation= is given"
    links = as_links(by_name(value, name, schema, relation), name, graph.num_nodes, triples, why)
    if relation is not None or links.relation is None:
        return links
    check_range(links.relation, f"{name}[:, 1]", len(schema.relations), "relation")
    relations = list(schema.relations)
    types = list(schema.nodes)
    for end, ids in ((0, links.src), (2, links.dst)):
        ends = np.array([types.index(names[end]) for names in relations])
        given = schema.types_of(ids)
        if (i := first_true(given != ends[links.relation])) is not None:
            raise ValueError(
                f"{name}[{i}] is a link of {relations[links.relation[i]]}, but its end {ids[i]} is "
                f"of type {types[given[i]]!r}"
            )
    return links


def check_shared(types: Ints, size: int, schema: Schema) -> None:
    """Raise ValueError where ``size`` seeds in turn, which share negatives, need them of several
    types.
    """
    first = np.arange(len(types)) // size * size
    if (i := first_true(types != types[first])) is not None:
        names = list(schema.nodes)
        raise ValueError(
            f"seeds {first[i]} and {i} of the batch share their negatives (chunk={size}), but need "
            f"them of types {names[types[first[i]]]!r} and {names[types[i]]!r}; order the seeds by "
            "relation, with a loader for each relation if it shuffles, or leave chunk out"
        )


def as_labels(value: NumbersLike | None, pairs: Links | None) -> Tensor | None:
    """Return ``labels`` of a link sampler, checked: a number per pair, in a tensor of its own."""
    if value is None:
        return None
    if pairs is None:
        raise ValueError(
            "labels are of pairs, so pass pairs too; those of edges are a column of graph.edata"
        )
    value = lasting(value)
    array = as_array(value, "labels", "numbers")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"labels must be numbers, got dtype {array.dtype}")
    if array.shape != (len(pairs.src),):
        raise ValueError(
            f"labels must have one entry per pair ({len(pairs.src)}), got shape {array.shape}; "
            "columns of several numbers per pair go to the loader: NodeFlowLoader(..., "
            "seed_data={'label': labels})"
        )
    # an array of Python's floats would be float64
    if isinstance(value, list | tuple):
        return column_of_numbers(value, "labels").clone()
    return as_column(array, "labels").clone()


def node_weights(graph: Graph, value: object) -> Floats:
    """Return weights of nodes, float64 ``[num_nodes]``, given as numbers or as the name of a node
    column.
    """
    name = "negatives"
    if isinstance(value, str):
        if value not in graph.ndata:
            raise ValueError(
                f"negatives must be 'uniform' or 'degree', the name of a node column, or a weight "
                f"per node, got {value!r}"
            )
        name = f"negatives: the node column {value!r}"
        value = whole_column(graph.ndata[value])
    array = as_array(value, name)
    if array.dtype.kind not in "iuf" or array.shape != (graph.num_nodes,):
        raise ValueError(
            f"{name} must hold a number per node ({graph.num_nodes}), got {describe(array)}"
        )
    weights: Floats = array.astype(np.float64)
    check_weights(weights, name)
    if not weights.any():
        raise ValueError(f"{name} must not be 0 for all nodes, since none could be drawn")
    return weights


def birth_times(sampler: SamplerBase, value: object) -> Array:
    """Return the time from which on each node exists, int64 or float64 ``[num_nodes]``."""
    graph = sampler.graph
    if value is None:
        column = str(getattr(sampler, "time", ""))
        of_nodes = times_of_nodes(graph, column)
        if column in graph.edata:
            firsts = _first_times(graph, column)
            if of_nodes is None:
                return firsts
            return np.where(of_nodes == NO_TIME[of_nodes.dtype.kind], firsts, of_nodes)
        if of_nodes is None:
            raise TypeError(
                f"birth is missing: {type(sampler).__name__} has no column of times, of all edges "
                "or of nodes; pass a time per node, or the name of a node column"
            )
        return of_nodes
    if isinstance(value, str):
        value = whole_column(graph.ndata[value])
    array = as_moments(value, "birth", f"node ({graph.num_nodes})", (graph.num_nodes,))
    wrong, rule = no_times(np.where(np.isinf(array), 0, array), array.dtype, integers=True)
    if (i := first_true(wrong)) is not None:
        raise ValueError(f"birth must be {rule}, but node {i} has {array[i]}")
    return np.array(exact(array))


def _first_times(graph: Graph, column: str) -> Array:
    """The time of the first edge of every node in either direction; the largest number for a node
    without edges.
    """
    held = graph.held_part
    times = time_column(graph, column)
    never = np.inf if times.dtype.kind == "f" else np.iinfo(np.int64).max
    births = np.full(graph.num_nodes, never, times.dtype)
    for ends in graph.find_edges(held.whole.edge_ids_of(np.arange(held.num_edges))):
        np.minimum.at(births, ends.numpy(), times)
    seen = np.flatnonzero(births != never)
    for nodes, first in graph.peers.gather("times of first edges", [seen, births[seen]]):
        births[nodes] = np.minimum(births[nodes], first)
    return births


MARKS = "known_negatives"
"""The column of ``seed_data`` that says which negatives are known positives."""


class LinkChunk(NamedTuple):
    """C groups of n seeds that share K negatives each. All are rows of the last layer but
    ``relation``.

    ``batch.chunks`` of a ``LinkSampler`` has them, on the device of the batch.

    >>> from nodeflow import Graph, LinkSampler, NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    >>> (chunk,) = LinkSampler(NeighborSampler(graph, [1]), num_negatives=3, chunk=2)([0, 1, 2, 3]).chunks
    >>> chunk.side, chunk.src.tolist(), chunk.dst.tolist(), chunk.negatives.shape
    ('destination', [[0, 1], [2, 3]], [[1, 2], [3, 0]], torch.Size([2, 3]))
    """

    side: str
    """The end that negatives replace, "destination" or "source"."""
    src: Tensor
    """Sources, int64 ``[C, n]``."""
    relation: Tensor | None
    """Relations, int64 ``[C, n]``; None for links without."""
    dst: Tensor
    """Destinations, int64 ``[C, n]``."""
    negatives: Tensor
    """Negatives, int64 ``[C, K]``."""
    known: Tensor | None
    """Which negatives are known positives of a seed, bool ``[C, n, K]``; None without
    ``filter_known="mark"``.
    """


class LinkLayout(NamedTuple):
    """The layout of the seeds of a link batch in its ``seed_index`` and ``seed_data``."""

    sides: tuple[str, ...]  # the ends that negatives replace; two sides alternate
    relation: str | None  # the column of ``seed_data`` with relations; None for none
    chunk: int  # number of consecutive seeds that share their negatives

    def columns(self, side: str) -> slice:
        """Return the columns of the negatives that take the place of a side."""
        return slice(self.sides.index(side), None, len(self.sides))

    def chunks(self, batch: NodeFlow) -> list[LinkChunk]:
        """Return the seeds of a batch in groups that share negatives: whole groups, and one of the
        seeds left over.
        """
        index = batch.seed_index
        data = batch.seed_data
        relation = None if self.relation is None else data[self.relation]
        marks = data.get(MARKS)
        size = min(self.chunk, max(len(index), 1))
        count, left_over = divmod(len(index), size)
        # a batch without seeds is one chunk of no groups, so that scores still depend on all
        # parameters
        groups = [(0, count, size)]
        if left_over:
            groups.append((count * size, 1, left_over))
        parts: list[LinkChunk] = []
        for side in self.sides:
            columns = self.columns(side)
            for first, count, n in groups:
                rows = slice(first, first + count * n)
                shape = (count, n)
                kinds = None if relation is None else relation[rows].unflatten(0, shape)
                known = None if marks is None else marks[rows, columns].unflatten(0, shape)
                src = index[rows, 0].unflatten(0, shape)
                dst = index[rows, 1].unflatten(0, shape)
                negatives = index[rows, 2:][:, columns].unflatten(0, shape)[:, 0]
                parts.append(LinkChunk(side, src, kinds, dst, negatives, known))
        return parts


def paired(index: Tensor, corrupt: str) -> Tensor:
    """Return the ends of every seed, then of its negatives, ``[B, 1 + K, 2]``, from a
    ``seed_index`` ``[B, 2 + K]``.
    """
    # of rows (destination, negatives), and the same with the source instead
    dst = index[:, 1:].clone()
    src = index[:, :1].expand_as(dst).clone()
    if corrupt != "destination":
        replaced = slice(1, None) if corrupt == "source" else slice(2, None, 2)
        src[:, replaced] = dst[:, replaced]
        dst[:, replaced] = dst[:, :1]
    return torch.stack([src, dst], -1)
