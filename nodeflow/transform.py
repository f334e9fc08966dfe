"""New graphs from a graph, random splits of its nodes and edges, and columns computed from its
structure.

Every function leaves its graph as it is. Columns that need no new rows are shared with the graph,
not copied. Functions that leave out or renumber nodes or edges say where the rest came from, in the
node column "parent_nid" and the edge column "parent_eid": ids in the graph that was given to the
function. These columns replace those of an earlier call, so two calls compose as
``first.ndata["parent_nid"][second.ndata["parent_nid"]]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    Ints,
    as_array,
    as_ids,
    as_int,
    check_one_of,
    describe,
    first_true,
)
from nodeflow._core.base.types import EdgeFilter, IdsLike, NumbersLike
from nodeflow._core.edges.columns import edge_mask
from nodeflow._core.edges.view import EdgeView, as_view
from nodeflow._core.random import Random, derive_key
from nodeflow._core.rows.rows import concat_rows, take_rows, whole_column, zero_rows
from nodeflow.graph import Frame, Graph, with_reverses, with_types_of

__all__ = [
    "add_reverse_edges",
    "add_self_loops",
    "degrees",
    "edge_norm",
    "filter_edges",
    "is_symmetric",
    "random_split",
    "reorder",
    "reverse",
    "subgraph",
]

IN_DEGREE: Final = "in_degree"
OUT_DEGREE: Final = "out_degree"
DEGREES: Final = (IN_DEGREE, OUT_DEGREE)
"""Names of the node columns with the degrees of destinations and of sources: see ``degrees``."""


@checked
def reverse(graph: Graph) -> Graph:
    """Return the graph with every edge turned round; edge ids, node and edge columns stay.

    Of several relations each becomes its reverse: ("a", "r", "b") becomes ("b", "rev_r", "a").

    >>> reverse(Graph.from_edges([0], [1])).edges()
    (tensor([1]), tensor([0]))
    """
    if graph.schema.has_several:
        return with_reverses(graph, keep=False)
    src, dst = graph.edges()
    return Graph.from_edges(
        dst, src, num_nodes=graph.num_nodes, ndata=graph.ndata, edata=graph.edata
    )


@checked
def add_reverse_edges(graph: Graph, *, mark: str | None = None) -> Graph:
    """Return the graph with the reverse of every edge added, so that messages go both ways.

    The reversed edges come after those of ``graph``, in the same order. A reversed edge has the
    values of its edge in every edge column. Self-loops get no reverse. Where both directions exist
    already, both get their reverse: such a pair is then joined by two edges each way, and ``mean``
    over neighbours counts it twice. Ask ``is_symmetric`` first: a symmetric graph needs no reverses
    (``nodeflow train`` leaves it as it is). Of several relations the reverses, also of self-loops,
    are relations of their own: ("b", "rev_r", "a") for ("a", "r", "b"), but for those that the
    graph has already.

    Args:
        mark: name of a new int8 edge column that is 0 for an edge of ``graph`` and 1 for an added
            one.

    Raises ValueError when the column ``mark`` exists.

    >>> add_reverse_edges(Graph.from_edges([0, 2], [1, 2])).edges()
    (tensor([0, 2, 1]), tensor([1, 2, 0]))
    """
    if graph.schema.has_several:
        return _marked(graph, with_reverses(graph, keep=True), mark)
    src, dst = graph.edges()
    added = (src != dst).nonzero().squeeze(1)
    return _with_edges(graph, dst[added], src[added], added, mark)


@checked
def add_self_loops(
    graph: Graph, *, mark: str | None = None, edata: Mapping[str, float] | None = None
) -> Graph:
    """Return the graph with an edge from every node to itself added, also for nodes that have such
    an edge already.

    The loop of node ``v`` is edge ``num_edges + v``; its rows of edge columns are zeros, or the
    numbers in ``edata``.

    Args:
        mark: name of a new int8 edge column that is 0 for an edge of ``graph`` and 1 for an added
            one.
        edata: by name of an edge column, the number that the loops have in it, such as an edge type
            of their own.

    Raises ValueError when the column ``mark`` exists, KeyError for a name in ``edata`` that is no
    edge column.

    >>> graph = Graph.from_edges([0], [1], edata={"kind": torch.tensor([0])})
    >>> add_self_loops(graph, edata={"kind": 1}).edata["kind"]
    tensor([0, 1, 1])
    """
    nodes = torch.from_numpy(np.arange(graph.num_nodes))
    with_loops = _with_edges(graph, nodes, nodes, None, mark)
    for name, number in (edata or {}).items():
        if name not in graph.edata:
            raise KeyError(
                f"edata: the graph has no edge column {name!r}; it has "
                f"{', '.join(graph.edata) or 'none'}"
            )
        with_loops.edata[name][graph.num_edges :] = number  # a new column: it has new rows
    return with_loops


@checked
def edge_norm(graph: Graph | EdgeView, norm: str = "both") -> Tensor:
    """Return the entries of the normalised adjacency as an edge column, float32 ``[num_edges]``, by
    edge id.

    For an edge u -> v with d_out(u) the number of edges that leave u, and d_in(v) the number that
    enter v:

    - "both": 1 / sqrt(d_out(u) d_in(v)), as in GCN (Kipf, Welling 2017; they add self-loops first:
      ``add_self_loops``);
    - "right": 1 / d_in(v), so that the edges that enter a node add up to 1: a mean over its
      in-neighbours;
    - "left": 1 / d_out(u), so that the edges that leave a node add up to 1.

    Repeated edges count one by one.

    Args:
        graph: the graph, or a view of it, as of the sampler: edges that it leaves out count in no
            degree, and have 0; the direction "out" swaps "right" and "left", because the sums are
            then over out-edges. Weights do not count.
        norm: "both", "right" or "left".

    Raises ValueError for another ``norm``, and for a view in both directions.

    >>> graph = Graph.from_edges([0, 1, 0], [2, 2, 1])
    >>> edge_norm(graph, "right")
    tensor([0.5000, 0.5000, 1.0000])
    >>> graph.edata["p"] = edge_norm(graph)  # for graph.view(weight="p")
    """
    check_one_of(norm, "norm", ("both", "right", "left"))
    view = as_view(graph)
    check_one_of(view.direction, "direction", ("in", "out"))
    src, dst = view.graph.edges()
    kept = view.with_weight(None).numbers()
    num_nodes = view.graph.num_nodes
    leaving = torch.bincount(src, kept, num_nodes)[src]
    entering = torch.bincount(dst, kept, num_nodes)[dst]
    if norm == "both":
        entries = (leaving * entering).rsqrt()
    elif (norm == "right") == (view.direction == "in"):
        entries = entering.reciprocal()
    else:
        entries = leaving.reciprocal()
    return torch.where(kept > 0, entries, 0.0).float()


@checked
def degrees(graph: Graph | EdgeView) -> dict[str, Tensor]:
    """Return the node columns "in_degree" and "out_degree", float32 ``[num_nodes]`` each, by node
    id.

    They are what convolutions with ``degrees="parent"`` divide by: in_degree is the number of edges
    over which a node sums as a destination, out_degree the number of sums that a node is in as a
    source. Set them once, and let batches copy them: ``ndata=["in_degree", "out_degree"]`` of a
    loader, or ``batch.copy_from_parent``.

    Args:
        graph: the graph, or a view of it, as of the sampler: edges count by its weights, and not
            where it leaves them out; with the direction "out" the sums are over out-edges, which
            swaps the columns.

    Raises ValueError for a view in both directions.

    >>> graph = Graph.from_edges([0, 1, 0], [2, 2, 1])
    >>> graph.ndata.update(degrees(graph))
    >>> graph.ndata["in_degree"], graph.ndata["out_degree"]
    (tensor([0., 1., 2.]), tensor([2., 1., 0.]))
    """
    view = as_view(graph)
    check_one_of(view.direction, "direction", ("in", "out"))
    src, dst = view.graph.edges()
    counts = view.numbers()
    entering = torch.bincount(dst, counts, view.graph.num_nodes).float()
    leaving = torch.bincount(src, counts, view.graph.num_nodes).float()
    if view.direction == "out":
        return dict(zip(DEGREES, (leaving, entering), strict=True))
    return dict(zip(DEGREES, (entering, leaving), strict=True))


@checked
def is_symmetric(graph: Graph) -> bool:
    """Whether every edge u -> v comes with an edge v -> u (as often, where edges are repeated).

    >>> is_symmetric(Graph.from_edges([0, 1], [1, 0])), is_symmetric(Graph.from_edges([0], [1]))
    (True, False)
    """
    src, dst = graph.edges()
    # sorted, edges and reversed edges are the same list if and only if all have reverses
    by_dst = np.lexsort((src.numpy(), dst.numpy()))
    by_src = np.lexsort((dst.numpy(), src.numpy()))
    return torch.equal(src[by_dst], dst[by_src]) and torch.equal(dst[by_dst], src[by_src])


@checked
def subgraph(graph: Graph, nodes: IdsLike) -> Graph:
    """Return the subgraph that some nodes induce: these nodes, and all edges between two of them.

    Node i of the result is ``nodes[i]``. Edges keep their order. Every column keeps its rows of
    these nodes and edges. Two new columns map back: ``ndata["parent_nid"]`` and
    ``edata["parent_eid"]``, int64, hold the ids in ``graph``. Columns that were computed from
    edges, as by ``degrees`` and ``edge_norm``, keep their old values: compute them again.

    Args:
        graph: the graph.
        nodes: ids of nodes, each once, in any order, type after type; for a mask pass
            ``mask.nonzero().flatten()``.

    Raises ValueError for a node that occurs twice, and for types in another order, IndexError for
    an id that is not a node.

    >>> graph = Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 1])
    >>> part = subgraph(graph, [2, 1])
    >>> part.edges(), part.ndata["parent_nid"], part.edata["parent_eid"]
    ((tensor([1, 0]), tensor([0, 1])), tensor([2, 1]), tensor([1, 3]))
    """
    ids = as_ids(nodes, "nodes", graph.num_nodes)
    return _induced(graph, ids, "nodes")


@checked
def filter_edges(graph: Graph, mask: EdgeFilter) -> Graph:
    """Return the graph with some of its edges and all of its nodes.

    Edges keep their order, node columns are shared. ``edata["parent_eid"]``, int64, holds the edge
    ids in ``graph``. Columns that were computed from edges, as by ``degrees`` and ``edge_norm``,
    keep the values of ``graph``. (A view, ``graph.view(where=mask)``, needs no new graph.)

    Args:
        graph: the graph.
        mask: which edges to keep: one bool per edge, the name of such an edge column, or a function
            of ``graph.edata`` that returns a mask.

    Raises TypeError for a mask that is not bool, ValueError for one of another length, KeyError for
    an unknown column.

    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0], edata={"kind": torch.tensor([0, 1, 0])})
    >>> filter_edges(graph, lambda edata: edata["kind"] == 0).edata["parent_eid"]
    tensor([0, 2])
    """
    checked = edge_mask(graph, mask)
    if checked is None:
        raise TypeError(
            "mask must be one bool per edge, the name of an edge column or a function, got None"
        )
    kept = np.flatnonzero(checked.mask)
    src, dst = (end.numpy()[kept] for end in graph.edges())
    edata = _chosen(graph.edata, "parent_eid", kept)
    part = Graph.from_edges(src, dst, num_nodes=graph.num_nodes, ndata=graph.ndata, edata=edata)
    return with_types_of(part, graph, np.arange(graph.num_nodes), kept)


@checked
def reorder(graph: Graph, order: IdsLike) -> Graph:
    """Return the graph with its nodes numbered anew: node i of the result is ``order[i]``.

    Edge ids stay, edge columns are shared. ``ndata["parent_nid"]``, int64, holds the ids in
    ``graph``, that is, ``order``. Nodes that are used together can be given ids that lie together
    in memory.

    Raises ValueError for an ``order`` that is not a permutation of the node ids, or not type after
    type.

    >>> graph = Graph.from_edges([0, 1], [1, 2])
    >>> reorder(graph, graph.in_degrees().argsort(descending=True, stable=True)).edges()
    (tensor([2, 0]), tensor([0, 1]))
    """
    ids = as_ids(order, "order", graph.num_nodes)
    if len(ids) != graph.num_nodes:
        raise ValueError(
            f"order must hold each of the {graph.num_nodes} nodes once, got {len(ids)} ids"
        )
    return _induced(graph, ids, "order", graph.edata)


@checked
def random_split(
    graph: Graph,
    fractions: NumbersLike | None = None,
    *,
    counts: IdsLike | None = None,
    of: str = "nodes",
    among: IdsLike | None = None,
    seed: int = 0,
) -> tuple[Tensor, ...]:
    """Split the nodes or the edges of a graph at random; return the ids of every part, int64,
    ascending.

    Edges are split by pairs of nodes: all edges between the same two nodes, in both directions,
    fall into one part. So an edge of one part does not give away its reverse in another. Parts then
    have fractions and counts of pairs.

    The items, n nodes or n pairs, are put in a random order, every order being equally likely, and
    the order is cut. With fractions the cuts are at the multiples of n, rounded: a part of fraction
    f has less than one item more or less than ``f * n``. Equal arguments give equal parts;
    ``nodeflow.random`` draws the order.

    Args:
        graph: the graph.
        fractions: a fraction of the items per part; they add up to 1.
        counts: in place of ``fractions`` a number of items per part; -1, for one part, is all that
            the others leave. They add up to the number of items.
        of: "nodes" or "edges".
        among: ids of the nodes (or edges) to split, each once, such as those with a label; None
            splits all.
        seed: which of the random orders.

    Raises TypeError unless either ``fractions`` or ``counts`` are given, or for numbers of another
    kind, ValueError for numbers that leave items over, are negative, or are more than there is, or
    an ``among`` with an id twice, IndexError for unknown ids.

    >>> graph = Graph.from_edges([0, 1, 2, 3], [1, 0, 3, 2])
    >>> [part.tolist() for part in random_split(graph, [0.5, 0.25, 0.25])]
    [[0, 1], [3], [2]]
    >>> [part.tolist() for part in random_split(graph, counts=[1, -1], of="edges")]
    [[2, 3], [0, 1]]
    """
    check_one_of(of, "of", ("nodes", "edges"))
    if (fractions is None) == (counts is None):
        both = "neither" if counts is None else "both"
        raise TypeError(
            f"pass fractions, as in [0.8, 0.1, 0.1], or counts=, as in [1000, -1]; got {both}"
        )
    total = graph.num_nodes if of == "nodes" else graph.num_edges
    if among is None:
        ids = np.arange(total)
    else:
        ids = np.sort(as_ids(among, "among", total, of.removesuffix("s")))
    if (i := first_true(ids[1:] == ids[:-1])) is not None:
        raise ValueError(f"among must hold every id once, but {ids[i]} occurs more than once")
    # an item is what falls into one part as a whole: a node, or all edges of a pair of nodes
    item = np.arange(len(ids))
    noun = of
    if of == "edges":  # number of the node pair of every edge
        pairs = torch.stack(graph.edges()).numpy()
        ends = np.sort(pairs[:, ids], axis=0)
        noun = "pairs of nodes with an edge"
        item = np.unique(ends, axis=1, return_inverse=True)[1].ravel()
    size = int(item.max(initial=-1)) + 1
    if counts is None:
        cuts = _cuts_by_fraction(fractions, size)
    else:
        cuts = _cuts_by_count(counts, size, noun)
    rank = np.empty(size, np.int64)
    key = derive_key("split", as_int(seed, "seed"))
    order = Random(key).permutation(size)
    rank[order.numpy()] = np.arange(size)
    # each item looks up its own place in the order: ids then stay ascending within a part
    part = np.searchsorted(cuts, rank, side="right")[item]
    return tuple(torch.from_numpy(ids[part == number]) for number in range(len(cuts)))


def _induced(graph: Graph, ids: Ints, name: str, edata: Frame | None = None) -> Graph:
    """Return the subgraph of some nodes, which must be there once, and of the edges among them;
    ``edata`` are its edge columns, None: the rows of those of ``graph``.
    """
    local = np.full(graph.num_nodes, -1, np.int64)
    local[ids] = np.arange(len(ids))
    if (i := first_true(local[ids] != np.arange(len(ids)))) is not None:
        raise ValueError(f"{name} must hold every node once, but node {ids[i]} occurs repeatedly")
    src, dst = (local[end.numpy()] for end in graph.edges())
    kept = np.flatnonzero((src >= 0) & (dst >= 0))
    ndata = _chosen(graph.ndata, "parent_nid", ids)
    columns = _chosen(graph.edata, "parent_eid", kept) if edata is None else edata
    part = Graph.from_edges(src[kept], dst[kept], num_nodes=len(ids), ndata=ndata, edata=columns)
    return with_types_of(part, graph, ids, kept)


def _of_parts(values: object, name: str, kinds: str, example: str) -> NDArray[Any]:
    """Return a number per part, of the ``kinds`` of numpy."""
    array = as_array(values, name, "numbers")
    if array.ndim != 1 or len(array) == 0 or array.dtype.kind not in kinds:
        raise TypeError(f"{name} must be a list like {example}, got {describe(values)}")
    return array


def _cuts_by_fraction(fractions: object, size: int) -> Ints:
    """Return where every part ends in an order of ``size`` items."""
    values = _of_parts(fractions, "fractions", "iuf", "[0.8, 0.1, 0.1]")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"fractions must not be negative, got {values.tolist()}")
    ends = np.cumsum(values.astype(np.float64))
    if abs(ends[-1] - 1) > 1e-6:
        raise ValueError(
            f"fractions must add up to 1, got {values.tolist()}; pass numbers of items as counts="
        )
    # sums such as 0.8 + 0.1 + 0.1 are 1 but for rounding
    ends[-1] = 1
    return np.minimum(np.floor(ends * size + 0.5 + 1e-9 * size), size).astype(np.int64)


def _cuts_by_count(counts: object, size: int, noun: str) -> Ints:
    """Return where every part ends in an order of ``size`` items."""
    values = _of_parts(counts, "counts", "iu", "[1000, 100, -1], of integers")
    is_open = values == -1
    if (values < -1).any() or is_open.sum() > 1:
        raise ValueError(
            "counts must be at least 0, but for one -1 that stands for the rest, got "
            f"{values.tolist()}"
        )
    left = size - int(values[~is_open].sum())
    if left < 0 or (left > 0 and not is_open.any()):
        raise ValueError(
            f"counts must add up to the {size} {noun}, but {left} are left by {values.tolist()}; "
            "one part may be -1 for the rest"
        )
    return np.cumsum(np.where(is_open, left, values.astype(np.int64)))


def _chosen(frame: Frame, name: str, ids: Ints) -> dict[str, Tensor]:
    """Return the rows ``ids`` of all columns, and a column ``name`` with these ids."""
    rows = torch.from_numpy(ids.copy())  # as_ids shares the array of the user
    return {**{column: take_rows(frame[column], rows) for column in frame}, name: rows}


def _with_edges(
    graph: Graph, src: Tensor, dst: Tensor, like: Tensor | None, mark: str | None
) -> Graph:
    """Add edges whose columns are the rows ``like`` of the graph's, or zeros."""
    graph.schema.check_one_type("an addition of edges")
    columns = Frame(graph.num_edges + len(src))
    for name, column in graph.edata.items():
        more = zero_rows(column, len(src)) if like is None else take_rows(column, like)
        columns[name] = concat_rows([whole_column(column), more])
    ends = (torch.cat(pair) for pair in zip(graph.edges(), (src, dst), strict=True))
    both = Graph.from_edges(*ends, num_nodes=graph.num_nodes, ndata=graph.ndata, edata=columns)
    return _marked(graph, both, mark)


def _marked(graph: Graph, both: Graph, mark: str | None) -> Graph:
    """Return a graph with a column ``mark`` that is 1 for the edges after those of ``graph``; None:
    without.
    """
    if mark is not None:
        if mark in graph.edata:
            raise ValueError(
                f"the graph has an edge column {mark!r} already; choose another name for mark"
            )
        both.edata[mark] = (np.arange(both.num_edges) >= graph.num_edges).astype(np.int8)
    return both
