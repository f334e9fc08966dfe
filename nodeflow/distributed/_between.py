"""The edges between nodes of a graph that lies on several processes, asked of those that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow._edges.queries import Between
from nodeflow._peers.held import Peers
from nodeflow._peers.routes import Routes
from nodeflow.distributed._held import HeldPart


def edges_between(peers: Peers, held: HeldPart, u: Ints, v: Ints) -> tuple[Ints, Ints]:
    """Return ``(indptr, edge ids)`` of all edges from ``u[i]`` to ``v[i]``, ascending for each pair; collective.

    A pair that is asked for repeatedly travels once. Raises ValueError for a graph that was cut into a grid.
    """
    distinct, index = np.unique(np.stack([u, v]), axis=1, return_inverse=True)
    lie = held.parts.edges
    if lie not in ("in", "out"):
        raise ValueError(
            f"edge_ids needs a graph that was partitioned with edges='in' or 'out'; this one has edges={lie!r}, so any "
            "process may hold an edge between two nodes"
        )
    owner = peers.owners(distinct[1 if lie == "in" else 0])
    routes = Routes(owner, peers.size)
    questions = peers.exchange("pairs of nodes", routes.parcels(*distinct))
    answers = [list(_found(held, *arrays)) if arrays else [] for arrays in questions]
    found = [arrays for arrays in peers.exchange("edges between nodes", answers) if arrays]
    counts, ids = (np.concatenate([np.zeros(0, np.int64), *(arrays[i] for arrays in found)]) for i in range(2))
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    indptr, at = kernels.csr.csr_rows(ends, routes.back()[index.reshape(-1)])
    return indptr, ids[at]


def _found(held: HeldPart, u: Ints, v: Ints) -> tuple[Ints, Ints]:
    """The number of edges held here from each ``u[i]`` to ``v[i]``, and their parent ids."""
    inward = held.parts.edges == "in"
    arrays: tuple[Ints, Array, Any] = held.csc() if inward else held.csr()
    indptr, other, ids = arrays
    near, far = (v, u) if inward else (u, v)
    rows, row = np.unique(held.parts.places(near), return_inverse=True)
    ends, position = kernels.csr.csr_rows(indptr, rows)
    edges = held.whole.edge_ids_of(position if ids is None else ids[position])
    return Between(far, row, ends, other[position], edges, num_nodes=held.whole.num_nodes).grouped()
