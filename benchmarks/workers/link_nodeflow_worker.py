"""nodeflow on the work of ``link_evaluation.py``: ``metrics.rank_links``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from link_work import Links, serve

import nodeflow
from nodeflow import metrics, nn


def make(links: Links, decoder: str, _: int) -> tuple[Callable[[], float], str]:
    kind = {"distmult": nn.DistMult, "complex": nn.ComplEx}[decoder]
    model = kind(links.nodes.shape[1], len(links.relations))
    with torch.no_grad():
        model.relation.copy_(links.relations)
    # every edge is known, also those of the test split that are not evaluated
    known = [links.train, links.valid]
    return (
        lambda: metrics.rank_links(model, links.nodes, links.test, known=known).mrr,
        f"nodeflow {nodeflow.__version__}",
    )


if __name__ == "__main__":
    serve(make)
