"""Exact sums of the input rows, which a history computes once."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow._base.checks import describe
from nodeflow._base.types import EdgeFilter
from nodeflow._rows.rows import Rows, entries_of, layout_of
from nodeflow.graph import Graph
from nodeflow.propagation import Propagation


def sums_of_inputs(propagation: Propagation, inputs: Tensor | Rows) -> Tensor:
    """Return the sums of ``inputs`` over all neighbours of every node, ``[num_nodes, width]``.

    Where the graph lies on several processes, the sums are those of the nodes owned here; collective.

    Raises TypeError for what is neither a dense nor a sparse CSR tensor nor ``Rows``, ValueError for another shape or
    type, rows that are learned, and numbers or sums that are not finite.
    """
    size = propagation.graph.num_nodes
    layouts = (torch.strided, torch.sparse_csr)
    if not isinstance(inputs, Tensor | Rows) or layout_of(inputs) not in layouts:
        raise TypeError(f"inputs must be a dense or sparse CSR tensor, got {describe(inputs)}")
    if len(inputs.shape) != 2 or inputs.shape[0] != size or not inputs.dtype.is_floating_point:
        raise ValueError(
            f"inputs must have a row per node, floats [{size}, width], got {inputs.dtype} {tuple(inputs.shape)}"
        )
    if isinstance(inputs, Tensor) and inputs.requires_grad:
        raise ValueError("inputs that are learned change, so their sums do not stay exact: leave out inputs")
    sums = propagation.sums_of_column(inputs)
    if not finite(entries_of(sums)):
        raise ValueError("inputs must be finite, and their sums too")
    return sums


def propagation_of(graph: Graph, *, weight: str | None, direction: str, edge_filter: EdgeFilter | None) -> Propagation:
    """Return the propagation of a history; collective. Raises ValueError where edges of a node lie in several parts."""
    propagation = Propagation(graph, weight=weight, direction=direction, edge_filter=edge_filter)
    propagation.plan.check_together(direction)
    return propagation


def finite(values: Tensor) -> bool:
    """Return whether all numbers are finite."""
    # a finite sum has finite terms, and takes a fraction of the time; a sum that is not finite may only be too large
    return bool(torch.isfinite(values.sum()) or torch.isfinite(values).all())
