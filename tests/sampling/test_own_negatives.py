"""LinkSampler: negatives that are a matrix, or a function of the links of a batch."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from _support.sampler_families import fingerprint

from nodeflow import Graph, LinkSampler, NeighborSampler, NodeFlowLoader, TemporalNeighborSampler

GRAPH = Graph.from_edges([0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0], num_nodes=9)
BASE = NeighborSampler(GRAPH, [2])
MATRIX = torch.arange(18).view(6, 3) % 9
TYPED = Graph.typed(
    {"user": 4, "item": 3},
    {("user", "buys", "item"): ([0, 1, 2], [0, 1, 2]), ("item", "like", "item"): ([0], [1])},
)


def beside(links: Any, count: int, random: Any) -> torch.Tensor:
    """Negatives near the destination, at random distances."""
    size = len(links.dst)
    return (
        links.dst[:, None] + 1 + random.integers(torch.arange(size * count), 4).view(size, count)
    ) % 9


def chosen(batch: Any) -> torch.Tensor:
    ids: torch.Tensor = batch.seeds[batch.seed_index[:, 2:]]
    return ids


@pytest.mark.parametrize(
    "kind", [lambda m: m, lambda m: m.numpy(), lambda m: m.int(), lambda m: m.tolist()]
)
def test_a_matrix_has_the_negatives_of_every_seed(kind):
    links = LinkSampler(BASE, num_negatives=3, negatives=kind(MATRIX))
    batch = links([4, 0, 4])
    assert chosen(batch).equal(MATRIX[[4, 0, 4]])
    assert batch.chunks[0].negatives.shape == (3, 3)
    loader = NodeFlowLoader(links, "all", 4, shuffle=True)
    for batch in loader:
        assert chosen(batch).equal(MATRIX[batch.seed_ids])
    other = LinkSampler(BASE, num_negatives=3, negatives=MATRIX.flip(0))
    assert other.settings["negatives"] != links.settings["negatives"]
    assert "6 rows" in repr(links)


def test_a_function_draws_by_the_key_of_the_batch():
    links = LinkSampler(BASE, num_negatives=5, negatives=beside, seed=3)
    batch = links([0, 1, 2])
    distance = (chosen(batch) - torch.tensor([[1], [2], [3]])) % 9
    assert ((distance >= 1) & (distance <= 4)).all()
    assert len(distance.unique()) > 1
    assert fingerprint(batch) == fingerprint(pickle.loads(pickle.dumps(links))([0, 1, 2]))
    for other in (
        links([0, 1, 2], epoch=1),
        LinkSampler(BASE, num_negatives=5, negatives=beside)([0, 1, 2]),
    ):
        assert not chosen(other).equal(chosen(batch))
    assert links.settings["negatives"] == "beside"
    whole = list(NodeFlowLoader(links, "all", 4))
    workers = list(NodeFlowLoader(links, "all", 4, num_workers=2))
    assert list(map(fingerprint, whole)) == list(map(fingerprint, workers))
    # two processes draw for the whole step, so that its negatives are those of one process
    parts = [list(NodeFlowLoader(links, "all", 2, rank=rank, world_size=2)) for rank in range(2)]
    assert torch.cat([chosen(part[0]) for part in parts]).equal(chosen(whole[0]))


def test_sides_relations_and_marks():
    seen = []

    def by_type(links: Any, count: int, random: Any) -> np.ndarray[Any, Any]:
        seen.append((links.src.tolist(), links.relation.tolist(), links.dst.tolist()))
        return np.tile([4, 0, 6, 1], (len(links.src), 1))

    links = LinkSampler(
        NeighborSampler(TYPED, [1]), num_negatives=4, corrupt="both", negatives=by_type
    )
    batch = links([1, 0])
    assert seen == [([1, 0], [0, 0], [5, 4])]
    pairs, _ = links.pairs_of(batch)
    assert batch.seeds[pairs[0]].tolist() == [[1, 5], [1, 4], [0, 5], [1, 6], [1, 5]]
    with pytest.raises(ValueError, match=r"row 0 .* 'item', as the source .*, got 'user'"):
        links([3])
    marked = LinkSampler(BASE, num_negatives=3, negatives=[[1, 2, 3]] * 6, filter_known="mark")(
        [0, 1]
    )
    # 1 is itself
    assert marked.seed_data["known_negatives"].tolist() == [
        [True, False, False],
        [True, True, False],
    ]


@pytest.mark.parametrize("count", [0, 1])
def test_sides_without_a_negative(count):
    links = LinkSampler(
        BASE, num_negatives=count, corrupt="both", negatives=torch.full((6, count), 7)
    )
    assert chosen(links([2, 3])).tolist() == [[7] * count] * 2
    assert chosen(links([])).shape == (0, count)


def test_with_times():
    graph = Graph.from_edges([0, 1], [1, 2], num_nodes=4, edata={"time": torch.tensor([1, 2])})
    links = LinkSampler(TemporalNeighborSampler(graph, [2]), num_negatives=1, negatives=[[3], [0]])
    assert chosen(links([1, 0], times=[5, 5])).tolist() == [[0], [3]]
