"""Loaders of a graph that lies on several ranks: the shares of every step are the batch of one process."""

from __future__ import annotations

from typing import Any

import pytest
from _support.loader_tools import seeds_of
from _support.ranks import Parts, ThreadTransport, run_ranks
from _support.sampler_families import FAMILIES, NODES, graph_of_all
from _support.share_tools import joined, options_of, rows_of

from nodeflow import NodeFlowLoader
from nodeflow.random import Random

WHOLE = graph_of_all()
OWNER = Random(4).integers(range(NODES), 3).tolist()


@pytest.mark.parametrize("name", ["neighbor", "neighbor, disjoint", "labor", "temporal"])
@pytest.mark.parametrize("share", ["even", "owned"])
def test_shares_are_the_batch_of_one_process(name: str, share: str) -> None:
    """Rank and number of processes, and under "owned" the owners, are those of the graph; a last share may be empty."""
    parts, sampler = Parts(WHOLE, OWNER, 3), FAMILIES[name](WHOLE)
    given = options_of(name, sampler)
    single = list(NodeFlowLoader(sampler, batch_size=12, shuffle=True, **given))

    def drawn(transport: ThreadTransport) -> list[Any]:
        sampler = FAMILIES[name](parts.on(transport))
        loader = NodeFlowLoader(sampler, batch_size=4, shuffle=True, share=share, **given)
        assert (loader.rank, loader.world_size, len(loader)) == (transport.rank, 3, 2)
        return list(loader)

    ranks = run_ranks(3, drawn)
    assert [len(batches[1].seed_index) for batches in ranks].count(0) == 2  # 13 = 12 + 1
    for *shares, whole in zip(*ranks, single, strict=True):
        assert joined(shares) == rows_of(whole)
    if share == "owned":
        for rank, batches in enumerate(ranks):
            assert all(OWNER[seed] == rank for batch in batches for seed in seeds_of(batch))
