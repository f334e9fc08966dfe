"""Draws of layer-wise samplers in both forms: compiled loops, and operations of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array, Floats
from nodeflow._core.edges.edges import NOTHING, Edges
from nodeflow._core.edges.forms import Form, TwoForms
from nodeflow._core.edges.numbering import Numbering
from nodeflow._core.in_torch import layerwise
from nodeflow._core.random import derive_key
from nodeflow.sampling._pps import Picked, laid_out, list_probabilities, pick, pick_systematic


def _drawn(edges: Edges, rows: Ints, size: int, key: int) -> Any:
    # to draw edges uniformly is to draw their sources by their number of edges: no list of the
    # candidates is needed
    sources, total = kernels.layerwise.draw_edges(
        edges.indptr, edges.indices, rows, edges.left_out, size, np.uint64(key)
    )
    nodes, times = np.unique(sources, return_counts=True)
    return nodes, times, total


def _drawn_in_torch(edges: Edges, rows: Any, size: int, key: int) -> Any:
    arrays = edges.arrays
    return layerwise.draw_edges(
        arrays.indptr, arrays.indices, rows, edges.form.array(edges.left_out), size, key
    )


DRAWN = TwoForms(_drawn, _drawn_in_torch)
"""Sources of ``size`` edges of rows, drawn uniformly with replacement, how often each, and the
number of all edges.
"""


def _edges_from(edges: Edges, rows: Ints, num_nodes: int, nodes: Ints, column: Array) -> Any:
    return kernels.layerwise.edges_from(
        edges.indptr, edges.indices, rows, nodes, column, edges.left_out
    )


def _edges_from_in_torch(edges: Edges, rows: Any, num_nodes: int, nodes: Any, column: Array) -> Any:
    assert not len(column)  # a sum of floats would depend on its order
    arrays = edges.arrays
    every_edge: Any = layerwise.edges_from(arrays.indptr, arrays.indices, num_nodes, rows, nodes)
    indptr, positions, source = edges.staying(*every_edge)
    count = nodes.new_zeros(len(nodes)).scatter_add_(0, source, nodes.new_ones(len(source)))
    return indptr, positions, source, count.double()


EDGES_FROM = TwoForms(_edges_from, _edges_from_in_torch)
"""The edges of rows from the distinct ``nodes``: ``indptr``, positions, index of the source in
``nodes``.

The fourth result is the sum of squared weights (``column``, by position; empty: 1) of these edges,
for each node.
"""


def _edges_by_chance(edges: Edges, rows: Ints, prob: Floats, key: int) -> Any:
    return kernels.layerwise.edges_by_chance(
        edges.indptr, edges.indices, rows, prob, np.uint64(key)
    )


def _by_chance_in_torch(edges: Edges, rows: Any, prob: Any, key: int) -> Any:
    return layerwise.edges_by_chance(edges.arrays.indptr, edges.arrays.indices, rows, prob, key)


BY_CHANCE = TwoForms(_edges_by_chance, _by_chance_in_torch)
"""``indptr`` and positions of the edges of rows from nodes that are drawn: node u with probability
``prob[u]``.
"""


def _sources(edges: Edges, rows: Ints, num_nodes: int) -> Ints:
    _, positions = edges.staying(*kernels.csr.csr_rows(edges.indptr, rows))
    with Numbering(num_nodes) as numbering:
        numbering.extend(edges.indices[positions].astype(np.int64, copy=False))
        return numbering.nodes


def _sources_in_torch(edges: Edges, rows: Any, num_nodes: int) -> Any:
    arrays = edges.arrays
    left_out = edges.form.array(edges.left_out)
    return layerwise.sources_of(arrays.indptr, arrays.indices, num_nodes, rows, left_out)


SOURCES = TwoForms(_sources, _sources_in_torch)
"""The distinct sources of the edges of rows, below ``num_nodes``, in order of first appearance."""


def _pick(ids: Ints, scores: Floats | None, size: int, draw: str, key: int) -> Picked:
    return pick(np.ones(len(ids)) if scores is None else scores, ids, size, draw, key)


def _pick_in_torch(ids: Any, scores: None, size: int, draw: str, key: int) -> Picked:
    # candidates of equal scores differ by their ids only: which places are drawn depends on their
    # number alone
    equal = np.ones(len(ids))
    if draw == "replacement":
        return pick(equal, NOTHING, size, draw, key)
    prob = list_probabilities(equal, size)
    if draw == "systematic":
        line = laid_out(prob, np.arange(len(ids)), None)
        picked = pick_systematic(line, prob, key)
        # with equal scores the line of the draw is the same for any ids: it is drawn on the host,
        # and only the order of the ids, a hash of each, is made on the device
        order = layerwise.hash_order(ids, derive_key(key, 1))
        places: Any = order.index_select(0, ids.new_tensor(picked.places)).sort().values
        return picked._replace(places=places)
    below = layerwise.is_below(ids, float(prob[:1].sum()), key)
    drawn: Any = below.nonzero().view(-1)
    return Picked.once(drawn, prob[: len(drawn)])


PICK = TwoForms(_pick, _pick_in_torch)
"""Draw ``size`` of the candidates ``ids`` in proportion to their scores, or equally; see ``pick``.

In torch scores must be equal (None); ``places`` are an array of the form or of the host, ``times``
and ``mean`` of the host.
"""


def joined(form: Form, parts: Sequence[Picked]) -> Picked:
    """Return what was picked of several lists together; ``places`` are an array of the form."""
    places = form.joined([form.array(NOTHING), *(form.array(part.places) for part in parts)])
    times = np.concatenate([NOTHING, *(part.times for part in parts)])
    return Picked(places, times, np.concatenate([np.zeros(0), *(part.mean for part in parts)]))
