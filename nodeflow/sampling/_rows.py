"""Samplers whose rows draw on their own: every destination chooses among its edges, whatever the others choose."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._base.checks import Ints
from nodeflow._base.types import Array
from nodeflow.graph._edges import Edges
from nodeflow.sampling._choice import Choice
from nodeflow.sampling._reader import Reader
from nodeflow.sampling._sampler import Sampler, Step


class Rows(NamedTuple):
    """The rows that draw.

    Attributes:
        numbers: number of each row in the edge arrays, int64 ``[n]``.
        ident: the id that the random numbers of each row belong to, int64 ``[n]``. It is the number of the row in the
            whole graph (the parent id, where a node has one row), plus the number of all rows for every context before.
        contexts: the context of each row, int64 ``[n]``; None without contexts.
    """

    numbers: Ints
    ident: Ints
    contexts: Ints | None

    def where(self, mask: NDArray[np.bool_], index: Ints | None = None) -> Rows:
        """Some of the rows, under other indices where these are given (one for every row)."""
        taken = self.numbers if index is None else index
        return Rows(taken[mask], self.ident[mask], None if self.contexts is None else self.contexts[mask])


class Drawn(NamedTuple):
    """What rows drew: ``indptr`` ``[n + 1]``, and per drawn edge its position and its neighbour, ``[E]``.

    Positions are int32 or int64, neighbours int64 (they become local ids in place). ``inverse`` gives 1 / probability
    (with replacement: 1 / number of times drawn on average), ``[E]``; None is 1. ``varies``
    says whether it may differ between the drawn edges of a node; None: compare the weights when somebody asks.
    """

    indptr: Ints
    positions: Array
    src: Ints
    inverse: Callable[[], Array] | None
    varies: bool | None = None


class RowSampler(Sampler):
    """Base of samplers in which every row draws on its own; they say how in ``draw_rows``.

    Edge filters, edges left out, several rows per node and estimator weights are dealt with here.
    """

    @abstractmethod
    def draw_rows(self, edges: Edges, rows: Rows, step: Step) -> Drawn:
        """Draw for ``rows`` of ``edges``, which may be an excerpt of the whole (then ``edges`` has no patch)."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        """Choose edges of the destinations ``dst`` for flow ``step.flow``."""
        reader, nodes = self.reader, dst.numpy()
        edges = reader.edges
        index = edges.rows_of(nodes)
        rows = Rows(index, index, None)
        if step.contexts is not None:
            contexts = np.repeat(step.contexts.numpy(), edges.rows_per_node)
            rows = Rows(index, index + edges.num_rows * contexts, contexts)
        drawn = self.draw_rows(edges, rows, step) if edges.patch is None else self._draw_patched(edges, rows, step)
        indptr = drawn.indptr
        if edges.rows_per_node > 1:
            indptr = np.ascontiguousarray(indptr[:: edges.rows_per_node])
        needed = drawn.varies if reader.weights is None else True
        weight = estimator_weight(reader, drawn.positions, drawn.inverse)
        return Choice.of_kernel(indptr, drawn.positions, drawn.src, weight, needs_weight=needed)

    def _draw_patched(self, edges: Edges, rows: Rows, step: Step) -> Drawn:
        """Rows that lack edges for a while draw from an excerpt; the others from the whole."""
        patch = edges.patch
        assert patch is not None
        index = np.minimum(np.searchsorted(patch.rows, rows.numbers), max(len(patch.rows) - 1, 0))
        hit = patch.rows[index] == rows.numbers if len(patch.rows) else np.zeros(len(index), np.bool_)
        if not hit.any():
            return self.draw_rows(edges, rows, step)
        whole = self.draw_rows(edges, rows.where(~hit), step)
        part = self.draw_rows(patch.edges, rows.where(hit, index), step)
        return _interleaved(whole, part._replace(positions=patch.positions[part.positions]), hit)


def estimator_weight(
    reader: Reader, positions: Ints, inverse: Callable[[], Array] | None
) -> Callable[[], Tensor] | None:
    """Return a function that makes the estimator weights of drawn edges; None where they are all 1."""
    if reader.weights is None and inverse is None:
        return None
    return lambda: reader.estimator_weight(reader.weighted(positions, None if inverse is None else inverse()))


def _interleaved(whole: Drawn, part: Drawn, from_part: NDArray[np.bool_]) -> Drawn:
    """Two draws as one: row i is the next row of ``part`` where ``from_part`` says so, else of ``whole``."""
    joint = np.concatenate([whole.indptr, part.indptr[1:] + whole.indptr[-1]])
    order = np.empty(len(from_part), np.int64)
    order[~from_part] = np.arange(len(whole.indptr) - 1)
    order[from_part] = np.arange(len(part.indptr) - 1) + len(whole.indptr) - 1
    indptr, index = kernels.csr.csr_rows(joint, order)
    positions, src = (
        np.concatenate([w, p])[index] for w, p in ((whole.positions, part.positions), (whole.src, part.src))
    )
    if whole.inverse is None and part.inverse is None:
        return Drawn(indptr, positions, src, None, False)

    def inverse() -> Array:
        each = [np.ones(len(d.src)) if d.inverse is None else d.inverse() for d in (whole, part)]
        joined: Array = np.concatenate(each)[index]
        return joined

    return Drawn(indptr, positions, src, inverse, None if whole.varies is None else whole.varies or part.varies)
