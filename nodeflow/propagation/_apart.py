"""Full passes over a graph that lies on several processes, each of which computes the nodes that it owns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from nodeflow._base.checks import as_count, as_ids, check_num_rows
from nodeflow._base.types import IdsLike
from nodeflow._rows.rows import Rows, fetch_rows
from nodeflow.graph._fetch_apart import fetch_apart
from nodeflow.propagation._full_pass import LayeredModel
from nodeflow.propagation._part import PartPropagation


def pass_apart(
    model: LayeredModel, propagation: PartPropagation, h: Tensor | Rows, *, nodes: IdsLike | None,
    chunk_size: int | None, progress: bool,
) -> Tensor:  # fmt: skip
    """Return the outputs of a model at ``nodes``, None: at those that this process owns; collective.

    The other arguments are those of ``layers_apart``.
    """
    graph = propagation.graph
    for entering in layers_apart(model, propagation, h, chunk_size=chunk_size, progress=progress):
        rows = entering
    if nodes is None:
        return rows
    peers: Any = graph.peers
    with peers.together("outputs of nodes", exchanges=2):
        wanted = as_ids(nodes, "nodes", graph.num_nodes)
        places = graph.held.parts.places  # type: ignore[attr-defined]
        return fetch_apart(peers, "outputs", wanted, peers.owners, lambda ids: rows[torch.from_numpy(places(ids))])


def layers_apart(
    model: LayeredModel, propagation: PartPropagation, h: Tensor | Rows, *, chunk_size: int | None, progress: bool
) -> Iterator[Tensor]:
    """Yield the rows that enter each convolution, then the outputs, of the nodes that this process owns; collective.

    Each process computes its own nodes, and rows of mirrors travel before every convolution but the first, of which
    the inputs travel. ``h``: rows of all nodes, fetched for the nodes here. Raises ValueError for a graph whose edges
    do not lie with their destinations.
    """
    graph, plan = propagation.graph, propagation.plan
    graph.held.csc()  # raises where the edges of a node lie in several parts
    check_num_rows(h.shape, "h", graph.num_nodes, "node of the graph")
    size = max(plan.num_masters, 1) if chunk_size is None else as_count(chunk_size, "chunk_size", 1)
    modes = {module: module.training for module in model.modules()}
    model.eval()
    kept: list[Tensor] = []
    ranges = [(start, min(start + size, plan.num_masters)) for start in range(0, max(plan.num_masters, 1), size)]
    rows = fetch_rows(h, torch.from_numpy(plan.nodes))
    try:
        with tqdm(total=len(model.convs) * len(ranges), disable=not progress, desc="full pass", leave=False) as bar:
            for i in range(len(model.convs)):
                if i:
                    rows = torch.cat([rows, plan.broadcast(rows)])
                rows = model.activate(i, rows)
                yield rows[: plan.num_masters]
                kept += [] if model.jumping is None or not i else [rows[: plan.num_masters]]
                rows = torch.cat([_convolved(model, i, propagation, rows, *bounds, bar.update) for bounds in ranges])
    finally:
        for module, training in modes.items():
            module.training = training
    if model.jumping is not None:
        rows = model.jumping([*kept, model.activate(len(model.convs), rows)])
    yield rows


def _convolved(
    model: LayeredModel, i: int, propagation: PartPropagation, rows: Tensor, start: int, stop: int,
    advance: Callable[[], object],
) -> Tensor:  # fmt: skip
    out = model.convolve(i, propagation.flow(start, stop, rows.device), rows)
    advance()
    return out
