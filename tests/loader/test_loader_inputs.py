"""NodeFlowLoader(inputs=...): when a function is called, samplers that learn from losses, seeds that end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from _support.loader_tools import epoch, fingerprint, make, random_graph
from torch.utils.data import WeightedRandomSampler

from nodeflow import Graph, LayerSampler, LinkSampler, NeighborSampler, NodeFlow, NodeFlowLoader
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
    return NodeFlowLoader(sampler, range(60), 10, inputs=own.losses, inputs_ahead=ahead, **options), own


def run(loader: NodeFlowLoader, own: LossSampler) -> Iterator[str]:
    for batch in loader:
        yield fingerprint(batch)
        own.learn(batch)


@pytest.mark.parametrize(("workers", "prefetch"), MODES)
def test_a_tensor_goes_to_every_draw(workers, prefetch):
    graph = random_graph()
    sampler = LayerSampler(graph, [6], score=by_inputs)
    scores = torch.arange(1.0, 61)
    loader = NodeFlowLoader(sampler, range(60), 20, inputs=scores, num_workers=workers, prefetch=prefetch)
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
    options = {"inputs": inputs, "inputs_ahead": ahead, "num_workers": workers, "prefetch": prefetch}
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
    straight, threaded = learning(ahead=ahead), learning(workers, prefetch, ahead)
    for _ in range(2):
        assert list(run(*straight)) == list(run(*threaded))
    assert torch.equal(straight[1].losses(None), threaded[1].losses(None))
    fixed = NodeFlowLoader(straight[1], range(60), 10, shuffle=True, inputs=torch.ones(60))
    assert epoch(fixed) != list(run(*learning(ahead=ahead)))  # it does learn


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(("workers", "ahead"), [(0, 0), (2, 0), (0, 2), (2, 2)])
def test_resume_with_the_state_of_the_sampler(workers, ahead, wrap):
    whole = learning(ahead=ahead, wrap=wrap)
    first, second = list(run(*whole)), list(run(*whole))
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
    plain, other = make(graph=graph, inputs=lambda seeds: None), make(graph=graph)
    with pytest.raises(ValueError, match="inputs_ahead=0, this one has None"):
        other.load_state_dict(plain.state_dict())
    loader, _ = learning()
    state = loader.state_dict()
    del state["sampler_state"]
    with pytest.raises(ValueError, match=r"state of samplers \[\], this one needs \['sampler'\]"):
        loader.load_state_dict(state)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"inputs": [1.0] * 60}, TypeError, "inputs must be a tensor or an array with a row per node, or a function"),
        ({"inputs": torch.ones(59)}, ValueError, r"inputs must have a row per node \(60\), got shape \(59,\)"),
        ({"inputs": torch.tensor(1.0)}, ValueError, "inputs must have a row per node"),
        ({"inputs_ahead": 1}, ValueError, "inputs_ahead=1 needs a function as inputs, got NoneType None"),
        ({"inputs": len, "inputs_ahead": -1}, ValueError, "inputs_ahead must be at least 0"),
    ],
)
def test_inputs_that_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        make(**options)


@pytest.mark.parametrize(
    "seeds",
    [
        lambda: WeightedRandomSampler([1.0] * 60, 30),
        lambda: (i for i in range(60)),
        lambda: iter([0, 1]),
        lambda: map(int, "12"),
    ],
)
def test_seeds_that_can_be_read_only_once_are_refused(seeds):
    with pytest.raises(TypeError, match=r"it would be read only once.*loader\.set_epoch\(epoch\)"):
        make(seeds=seeds())


def test_a_loader_for_every_epoch_draws_afresh_with_set_epoch():
    graph = random_graph()
    prints = []
    for number in range(2):
        loader = NodeFlowLoader(NeighborSampler(graph, [2]), list(range(60)))
        loader.set_epoch(number)
        prints += epoch(loader)
    assert prints[0] != prints[1]
    assert epoch(NodeFlowLoader(NeighborSampler(graph, [2]), list(range(60)))) == prints[:1]
