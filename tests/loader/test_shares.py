"""Several processes share the steps of an epoch: whose seeds are where, and draws that are those of
one process.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.loader_tools import fingerprint, seeds_of
from _support.sampler_families import FAMILIES, LAYERED, NODES, graph_of_all
from _support.share_tools import MORE, UNION, joined, loaders, options_of, rows_of, sampler_of
from hypothesis import given, strategies as st

from nodeflow import LinkSampler, NeighborSampler, NodeFlowLoader
from nodeflow.loader._shares import Shares
from nodeflow.random import Random
from nodeflow.sampling import LadiesSampler, Sampler
from nodeflow.sampling.base import RowSampler, SamplerBase

GRAPH = graph_of_all()
OWNER = Random(3).integers(range(NODES), 4)


def epochs(sampler: SamplerBase, world_size: int, **options: Any) -> list[list[Any]]:
    """The batches of two epochs, by rank."""
    found = []
    for loader in loaders(sampler, world_size, **options):
        found.append([batch for _ in range(2) for batch in loader])
    return found


# ---- whose seeds


@given(
    st.integers(0, 40),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_every_seed_is_in_one_share(size, world_size, batch_size, together, owned, drop_last):
    """The shares of a step are its seeds, in their order; even ones differ by at most one unit."""
    order = Random(size).permutation(size)
    owner = Random(1).integers(range(max(size, 1)), world_size).numpy() if owned else None
    ranks = [Shares(batch_size, rank, world_size, together, owner) for rank in range(world_size)]
    steps = [shares.num_steps(size, drop_last) for shares in ranks]
    total = batch_size * world_size
    assert steps == [size // total if drop_last else -(-size // total)] * world_size
    for k in range(steps[0]):
        step = order[k * total : (k + 1) * total].tolist()
        shares = [each.of(order, k).ours.tolist() for each in ranks]
        assert sorted(chain(*shares)) == sorted(step)
        for mine in shares:  # in the order of the step, and whole units
            assert mine == [seed for seed in step if seed in mine]
            assert all(
                len({seed in mine for seed in step[i : i + together]}) == 1
                for i in range(0, len(step), together)
            )
        if not owned:
            assert list(chain(*shares)) == step
            units = [-(-len(mine) // together) for mine in shares]
            assert max(units) - min(units) <= 1
            assert together > 1 or max(map(len, shares)) <= batch_size
        else:
            assert all(owner[mine[0]] == rank for rank, mine in enumerate(shares) if mine)
        assert {each.seed_weight(size, k) for each in ranks} == {world_size / len(step)}


def test_steps_are_the_batches_of_one_process():
    sampler = NeighborSampler(GRAPH, [2, 3])
    given = {"seeds": range(NODES), "shuffle": True, "total": 8}
    (single,) = epochs(sampler, 1, **given)
    ranks = epochs(sampler, 4, **given)
    assert [len(batches) for batches in ranks] == [len(single)] * 4 == [16] * 4
    for k, whole in enumerate(single):
        assert list(chain(*(seeds_of(batches[k]) for batches in ranks))) == seeds_of(whole)
    assert [len(batches[7].seeds) for batches in ranks] == [1] * 4  # 60 = 7 * 8 + 4
    assert [seeds_of(batch) for batch in loaders(sampler, 4, **given)[2].draws(1)] == [
        seeds_of(batch) for batch in ranks[2][8:]
    ]


@pytest.mark.parametrize("share", ["even", "owned"])
def test_weights_times_and_rows_go_with_their_seeds(share):
    """Drawn seeds, in rows of two, with times of their own: the union is the batch of one
    process.
    """
    sampler = sampler_of("temporal", GRAPH)
    pairs = torch.arange(26).view(13, 2)
    when = torch.arange(13)
    given = {
        "seeds": pairs, "times": when, "weights": when + 1,
        "seed_data": {"when": when},
    }  # fmt: skip
    more = {} if share == "even" else {"share": OWNER % 2}
    (single,) = epochs(sampler, 1, **given)
    ranks = epochs(sampler, 2, **given, **more)
    assert len({tuple(batch.seeds[batch.seed_index][:, 0].tolist()) for batch in single}) == 4
    for k, whole in enumerate(single):
        parts = [batches[k] for batches in ranks]
        for batch in (whole, *parts):
            seeds = batch.seeds[batch.seed_index]
            times = batch.back.data["time"][batch.seed_index]
            assert batch.seed_index.shape[1:] == (2,)
            assert seeds.equal(pairs[batch.seed_data["when"]])
            assert times.equal(batch.seed_data["when"].unsqueeze(1).expand(-1, 2))
        assert joined(parts) == rows_of(whole)
        drawn = torch.cat([batch.seed_data["when"] for batch in parts])
        assert drawn.sort().values.equal(whole.seed_data["when"].sort().values)


def test_a_function_of_inputs_sees_its_own_seeds():
    seen: list[list[int]] = []
    sampler = NeighborSampler(GRAPH, [2])
    loader = NodeFlowLoader(
        sampler, range(10), 3, inputs=lambda s: seen.append(s.tolist()), rank=1, world_size=2
    )
    assert [seeds_of(batch) for batch in loader] == seen == [[3, 4, 5], [8, 9]]


# ---- the draws


@pytest.mark.parametrize("name", [*UNION, *MORE])
@examples(6)
@given(data=st.data())
def test_shares_together_are_the_batch_of_one_process(name, data):
    """The same edges with the same weights, bit for bit, for every layer, node and context."""
    sampler = sampler_of(name, GRAPH)
    if name in LAYERED and data.draw(st.booleans(), "sampled neighbours only"):
        sampler = LAYERED[name](GRAPH, include_dst=False, weight="w")
    top = sampler.num_seeds - 1
    seeds = data.draw(st.lists(st.integers(0, top), min_size=1, max_size=20), "seeds")
    given: dict[str, Any] = {"seeds": seeds, "shuffle": data.draw(st.booleans()), "seed": 4}
    if sampler.takes_times:
        given["times"] = data.draw(
            st.lists(st.integers(0, 20), min_size=len(seeds), max_size=len(seeds)), "times"
        )
    world_size = data.draw(st.integers(1, 4), "world_size")
    more = {"share": lambda ids: ids % world_size} if data.draw(st.booleans(), "owned") else {}
    (single,) = epochs(sampler, 1, **given)
    ranks = epochs(sampler, world_size, **given, **more)
    for k, whole in enumerate(single):
        parts = [batches[k] for batches in ranks]
        assert joined(parts) == rows_of(whole)
        for batch in parts:
            batch.validate()
        if world_size == 1:
            assert fingerprint(parts[0]) == fingerprint(whole)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in UNION])
def test_other_families_draw_for_their_share(name):
    """Each of these depends on the other seeds; the docs name them. Their shares are valid batches
    all the same.
    """
    sampler = sampler_of(name, GRAPH)
    size = 2 if name.startswith("saint") else 12
    given = {**options_of(name, sampler), "total": size}
    ranks = epochs(sampler, 2, **given)
    for batch in chain(*ranks):
        batch.validate()
    assert [b.num_flows for b in ranks[0]] == [sampler.num_flows] * len(ranks[1])
    if name == "cluster" or name.startswith("saint"):
        return
    single = epochs(sampler, 1, **given)[0]
    # the day that it holds, the table in docs/loader.md has another row
    with pytest.raises(AssertionError):
        assert all(
            joined(list(parts)) == rows_of(whole)
            for *parts, whole in zip(*ranks, single, strict=True)
        )


@pytest.mark.parametrize("kind", ["node", "edge", "walk"])
def test_subgraphs_of_saint_are_those_of_one_process(kind):
    sampler = sampler_of(f"saint, {kind}", GRAPH)
    single = [fingerprint(batch) for batch in NodeFlowLoader(sampler, range(5), 1)]
    ranks = [[*NodeFlowLoader(sampler, range(5), 1, rank=rank, world_size=2)] for rank in range(2)]
    assert [fingerprint(ranks[k % 2][k // 2]) for k in range(5)] == single
    empty = ranks[1][2]
    assert sum(empty.layer_sizes) == 0
    assert empty.back.data["loss_weight"].shape == (0,)
    with pytest.raises(ValueError, match="one subgraph"):
        next(
            iter(
                NodeFlowLoader(sampler, [0, 1], 1, rank=0, world_size=2, share=lambda ids: ids * 0)
            )
        )


def test_layers_that_draw_as_a_whole_draw_independently():
    """The mean over two shares of the same destinations varies half as much; with common draws it
    varied as one does.

    400 steps: the ratio of variances has a standard error of about 0.05 around 1/2.
    """
    sampler = LadiesSampler(GRAPH, [4], include_dst=False)
    hub = int(GRAPH.in_degrees().argmax())
    values = torch.linspace(-1, 2, NODES).double()
    means = []
    singles = []
    both = [
        NodeFlowLoader(sampler, [hub] * 800, 1, rank=rank, world_size=2, num_workers=0)
        for rank in range(2)
    ]
    for parts in zip(*both, strict=True):
        sums = [
            float((b.flows[0].weight * values[b.front.parent_nid][b.flows[0].indices]).sum())
            for b in parts
        ]
        means.append(sum(sums) / 2)
        singles.append(sums[0])
    ratio = torch.tensor(means).var() / torch.tensor(singles).var()
    assert 0.3 < ratio < 0.7


class Halves(RowSampler):
    """A sampler of a user's own, which knows nothing of steps."""

    def draw_rows(self, edges, rows, step):
        return sampler_of("bernoulli, rates", self.graph).draw_rows(edges, rows, step)


class Delegates(SamplerBase):
    """Overrides ``draw_batch``."""

    def _sample(self, seeds, keys):
        raise AssertionError

    def draw_batch(self, seeds, call):
        return sampler_of("neighbor", self.graph)(seeds, epoch=call.epoch)


class Thirds(Sampler):
    """Draws edges by their ids."""

    def choose(self, dst, step):
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 1 / 3, prob=1 / 3)


def test_samplers_of_ones_own():
    for sampler in (Halves(GRAPH, 2), Thirds(GRAPH, 2)):
        (single,) = epochs(sampler, 1, seeds=range(24))
        ranks = epochs(sampler, 3, seeds=range(24))
        assert all(
            joined(list(parts)) == rows_of(whole)
            for *parts, whole in zip(*ranks, single, strict=True)
        )
    ranks = epochs(Delegates(GRAPH, 2), 3, seeds=range(24))
    assert [seeds_of(batches[1]) for batches in ranks] == [
        [12, 13, 14, 15],
        [16, 17, 18, 19],
        [20, 21, 22, 23],
    ]


LINKS: dict[str, Any] = {
    "both sides": lambda: LinkSampler(
        NeighborSampler(GRAPH, [2, 3]), num_negatives=3, corrupt="both"
    ),
    "degree, without itself": lambda: LinkSampler(
        NeighborSampler(GRAPH, [2, 3]), negatives="degree", exclude="self"
    ),
    "chunks": lambda: LinkSampler(NeighborSampler(GRAPH, [2, 3]), num_negatives=4, chunk=3),
    "unknown": lambda: LinkSampler(
        NeighborSampler(GRAPH, [2, 3]), num_negatives=2, filter_known=True
    ),
    "times": lambda: LinkSampler(sampler_of("temporal", GRAPH), num_negatives=2, chunk=2),
    "numbered": lambda: LinkSampler(sampler_of("labor, several batches", GRAPH), num_negatives=2),
    "disjoint": lambda: LinkSampler(sampler_of("neighbor, disjoint", GRAPH), num_negatives=2),
    "scopes": lambda: LinkSampler(sampler_of("shadow", GRAPH), exclude="reverse"),
    "pairs": lambda: LinkSampler(
        NeighborSampler(GRAPH, [2]), pairs=np.arange(NODES).reshape(-1, 2), num_negatives=0
    ),
}


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("share", ["even", "owned"])
def test_negatives_are_those_of_one_process(name, share):
    links = LINKS[name]()
    seeds = Random(2).permutation(links.num_seeds)[:23]
    given: dict[str, Any] = {"seeds": seeds, "total": 12}
    if links.takes_times:
        given["times"] = torch.arange(23) + 5
    more = {} if share == "even" else {"share": Random(5).integers(range(links.num_seeds), 2)}
    (single,) = epochs(links, 1, **given)
    ranks = epochs(links, 2, **given, **more)
    for *parts, whole in zip(*ranks, single, strict=True):
        of_seed = {}
        for batch in parts:
            nodes = batch.seeds[batch.seed_index].tolist()
            of_seed.update(zip(batch.seed_ids.tolist(), nodes, strict=True))
            # negatives that a group shares are those of each of its seeds
            for chunk in batch.chunks:
                pairs = torch.stack([chunk.src, chunk.dst], -1).view(-1, 2).tolist()
                shared = chunk.negatives.repeat_interleave(chunk.src.shape[1], 0).tolist()
                table = {tuple(row[:2]): row[2:] for row in batch.seed_index.tolist()}
                for pair, mine in zip(pairs, shared, strict=True):
                    assert set(mine) <= set(table[tuple(pair)])
        wanted = dict(
            zip(whole.seed_ids.tolist(), whole.seeds[whole.seed_index].tolist(), strict=True)
        )
        assert of_seed == wanted
        assert joined(parts) == rows_of(whole)
