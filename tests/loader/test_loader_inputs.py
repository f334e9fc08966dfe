"""NodeFlowLoader(inputs=...): when a function is called, samplers that learn from losses, seeds
that end.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator

import pytest
import torch
from _support.loader_tools import epoch, fingerprint, make, random_graph, seeds_of

from nodeflow import (
    ClusterSampler,
    FullSampler,
    Graph,
    LayerSampler,
    LinkSampler,
    NeighborSampler,
    NodeFlow,
    NodeFlowLoader,
)
from nodeflow.testing import assert_same_node_flow

pytestmark = pytest.mark.usefixtures("no_thread_is_left_behind")

MODES = [(0, 2), (1, 2), (3, 1), (1, 0), (3, 0)]  # num_workers, prefetch


def by_inputs(candidates, step):
    return step.inputs[candidates.nid]


class LossSampler(LayerSampler):
    """Prefers nodes whose loss was large when they last were seeds."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, [6], score=by_inputs)
        self._losses = torch.ones(graph.num_nodes)

    def losses(self, seeds):
        return self._losses

    def learn(self, batch: NodeFlow) -> None:
        losses = self._losses.clone()
        losses[batch.seeds] = 0.1 + batch.layer_sizes[0] * batch.flow_sizes[0] % 7
        self._losses = losses

    def state_dict(self):
        return {"losses": self._losses}

    def load_state_dict(self, state):
        self._losses = state["losses"]


def learning(
    workers: int = 0, prefetch: int = 2, ahead: int = 0, wrap: bool = False
) -> tuple[NodeFlowLoader, LossSampler]:
    own = LossSampler(random_graph())
    sampler = LinkSampler(own) if wrap else own
    options = {"shuffle": True, "num_workers": workers, "prefetch": prefetch}
    return NodeFlowLoader(
        sampler, range(60), 10, inputs=own.losses, inputs_ahead=ahead, **options
    ), own


def run(loader: NodeFlowLoader, own: LossSampler) -> Iterator[str]:
    for batch in loader:
        yield fingerprint(batch)
        own.learn(batch)


@pytest.mark.parametrize(("workers", "prefetch"), MODES)
def test_a_tensor_goes_to_every_draw(workers, prefetch):
    graph = random_graph()
    sampler = LayerSampler(graph, [6], score=by_inputs)
    scores = torch.arange(1.0, 61)
    loader = NodeFlowLoader(
        sampler, range(60), 20, inputs=scores, num_workers=workers, prefetch=prefetch
    )
    for number, batch in enumerate(loader):
        assert_same_node_flow(batch, sampler(range(20 * number, 20 * number + 20), inputs=scores))


@pytest.mark.parametrize("ahead", [0, 2, 9])
@pytest.mark.parametrize(("workers", "prefetch"), MODES)
def test_a_function_is_called_in_order_by_the_caller_a_fixed_number_ahead(workers, prefetch, ahead):
    calls: list[list[int]] = []

    def inputs(seeds):
        assert threading.current_thread() is threading.main_thread()
        calls.append(seeds.tolist())
        return torch.ones(60)

    sampler = LayerSampler(random_graph(), [6], score=by_inputs)
    options = {
        "inputs": inputs,
        "inputs_ahead": ahead,
        "num_workers": workers,
        "prefetch": prefetch,
    }
    loader = NodeFlowLoader(sampler, range(60), 10, **options)
    assert calls == []
    seeds = []
    for number, batch in enumerate(loader):
        assert len(calls) == min(number + 1 + ahead, 6)
        seeds.append(batch.seeds.tolist())
    assert calls == seeds


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize(("workers", "prefetch"), MODES[1:])
def test_a_sampler_that_learns_from_losses_draws_the_same_for_any_workers(workers, prefetch, ahead):
    straight = learning(ahead=ahead)
    threaded = learning(workers, prefetch, ahead)
    for _ in range(2):
        assert list(run(*straight)) == list(run(*threaded))
    assert torch.equal(straight[1].losses(None), threaded[1].losses(None))
    fixed = NodeFlowLoader(straight[1], range(60), 10, shuffle=True, inputs=torch.ones(60))
    assert epoch(fixed) != list(run(*learning(ahead=ahead)))  # it does learn


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(("workers", "ahead"), [(0, 0), (2, 0), (0, 2), (2, 2)])
def test_resume_with_the_state_of_the_sampler(workers, ahead, wrap):
    whole = learning(ahead=ahead, wrap=wrap)
    first = list(run(*whole))
    second = list(run(*whole))
    for stop in range(7):
        loader, own = learning(workers, 2, ahead, wrap)
        batches = iter(loader)
        for _ in range(stop):
            own.learn(next(batches))
        state = loader.state_dict()
        batches.close()
        resumed, other = learning(1 - workers // 2, 2, ahead, wrap)
        resumed.load_state_dict(state)
        wanted = second if stop == 6 else first[stop:]
        if stop:  # at 0 the epoch begins in either case
            assert list(run(resumed, other)) == wanted


def test_states_that_do_not_fit():
    graph = random_graph()
    plain = make(graph=graph, inputs=lambda seeds: None)
    other = make(graph=graph)
    with pytest.raises(ValueError, match="inputs_ahead=0, this one has None"):
        other.load_state_dict(plain.state_dict())
    loader, _ = learning()
    state = loader.state_dict()
    del state["sampler_state"]
    with pytest.raises(ValueError, match=r"state of samplers \[\], this one needs \['sampler'\]"):
        loader.load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "options", [{}, {"shuffle": True}, {"weights": torch.arange(9.0)}], ids=str
)
def test_rows_come_with_their_seeds(workers, options):
    seeds = [5, 5, 1, 2, 5, 1, 59, 5, 7]
    node = torch.tensor(seeds)
    columns = {
        "node": node,
        "twice": torch.stack([node, 2 * node], 1).double(),
        "array": node.numpy(),
    }
    loader = make(seeds, 4, seed_data=columns, num_workers=workers, **options)
    assert loader.state_dict() == make(seeds, 4, **options).state_dict()
    for batch in loader:
        asked = torch.tensor(seeds_of(batch))
        assert batch.seed_data.num_rows == len(batch.seed_index) == len(asked)
        assert batch.seed_data["node"].equal(asked)
        assert batch.seed_data["array"].equal(asked)
        assert batch.seed_data["twice"].equal(torch.stack([asked, 2 * asked], 1).double())
        batch.validate()


def test_targets_of_edges_and_parts():
    graph = random_graph()
    for sampler in (
        LinkSampler(NeighborSampler(graph, [2])),
        ClusterSampler(graph, 1, torch.arange(60) % 9),
    ):
        ids = torch.arange(sampler.num_seeds)
        for batch in NodeFlowLoader(sampler, ids, 4, shuffle=True, seed_data={"y": 3 * ids}):
            assert batch.seed_data["y"].equal(3 * batch.seed_ids)
            batch.validate()


def one() -> NodeFlow:
    return next(iter(make([3, 9, 3], 3, seed_data={"y": torch.tensor([1.0, 2.0, 3.0])})))


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b[1:],
        lambda b: b.to("cpu"),
        lambda b: b.with_parent(None),
        lambda b: pickle.loads(pickle.dumps(b)),
        copy.deepcopy,
        lambda b: FullSampler(b.parent, 1)(b.front.parent_nid).append(b),
    ],
)
def test_it_goes_where_the_batch_goes(change):
    batch = one()
    other = change(batch)
    other.validate()
    assert other.seed_data["y"].tolist() == [1, 2, 3]
    other.seed_data["z"] = torch.zeros(3)
    assert list(batch.seed_data) == ["y"]


def test_other_seeds_have_no_data_of_these():
    batch = one()
    assert batch.to("meta").seed_data["y"].device.type == "meta"
    assert list(batch[:-1].seed_data) == []
    assert batch[:-1].seed_data.num_rows == batch.layer_sizes[-2]
    other = batch.with_seeds(seed_index=torch.tensor([0]))
    assert (list(other.seed_data), other.seed_data.num_rows) == ([], 1)


def test_every_batch_has_a_frame_for_seeds():
    batch = NeighborSampler(random_graph(), [2])([4, 4])
    assert (batch.seed_data.num_rows, len(batch.seed_data)) == (2, 0)
    batch.seed_data["y"] = torch.ones(2)
    with pytest.raises(ValueError, match="2 rows"):
        batch.seed_data["y"] = torch.ones(1)
    with pytest.raises(AssertionError, match="columns of seed_data"):
        assert_same_node_flow(batch, NeighborSampler(random_graph(), [2])([4, 4]))
