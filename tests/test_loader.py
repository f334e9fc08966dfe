"""NodeFlowLoader: order, workers, exceptions, early ends, resuming, and columns."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import pickle
import threading

import numpy as np
import pytest
import torch
from torch import Tensor

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlow, NodeFlowLoader, Sampler
from nodeflow.sampling import Choice, Step

WORKERS = [0, 1, 2, 4]


def random_graph(seed: int = 0, nodes: int = 60, edges: int = 500) -> Graph:
    rng = np.random.default_rng(seed)
    graph = Graph.from_edges(rng.integers(nodes, size=edges), rng.integers(nodes, size=edges), num_nodes=nodes)
    graph.ndata["x"] = torch.arange(nodes * 2.0).view(nodes, 2)
    graph.ndata["label"] = torch.arange(nodes) % 3
    graph.edata["w"] = torch.arange(edges) * 0.5
    return graph


def fingerprint(batch: NodeFlow) -> str:
    digest = hashlib.sha256()
    tensors = [batch.seed_index, *(layer.parent_nid for layer in batch.layers)]
    for flow in batch.flows:
        tensors += [flow.indptr, flow.indices, flow.parent_eid, flow.weight]
    for frame in (*batch.ldata, *batch.fdata):
        tensors += [frame[name] for name in sorted(frame)]
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def make(seeds=range(60), batch_size: int = 16, graph: Graph | None = None, **options) -> NodeFlowLoader:
    return NodeFlowLoader(NeighborSampler(graph or random_graph(), [2, 3]), seeds, batch_size, **options)


def epoch(loader: NodeFlowLoader) -> list[str]:
    return [fingerprint(batch) for batch in loader]


def seeds_of(batch: NodeFlow) -> list[int]:
    return batch.seeds[batch.seed_index].tolist()


def loader_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("nodeflow-loader")]


@pytest.fixture(autouse=True)
def _no_thread_is_left_behind():
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


class Failing(Sampler):
    """Raises for batches that hold a certain seed, after all others have been sampled."""

    def __init__(self, graph: Graph, seed_node: int, error: BaseException) -> None:
        super().__init__(graph, 1)
        self.seed_node, self.error = seed_node, error

    def choose(self, dst: Tensor, step: Step) -> Choice:
        if self.seed_node in dst.tolist():
            raise self.error
        edges = self.candidates(dst)
        return edges.select(torch.ones(len(edges), dtype=torch.bool))


class Gated(Sampler):
    """Counts the batches begun; waits at a gate."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, 1)
        self.begun: list[int] = []
        self.threads: set[int] = set()
        self.progress = threading.Condition()

    def choose(self, dst: Tensor, step: Step) -> Choice:
        with self.progress:
            self.begun.append(int(dst[0]))
            self.threads.add(threading.get_ident())
            self.progress.notify_all()
        return Choice([0] * (len(dst) + 1), [])


# ---- order


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_are_the_seeds_in_order(workers):
    seeds = torch.arange(60).flip(0)
    sampler = NeighborSampler(random_graph(), [2, 3])
    loader = NodeFlowLoader(sampler, seeds, 16, num_workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 4
    assert [seeds_of(batch) for batch in batches] == [part.tolist() for part in seeds.split(16)]
    assert [fingerprint(b) for b in batches] == [fingerprint(sampler(part, epoch=0)) for part in seeds.split(16)]
    for batch in batches:
        batch.validate()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": True},
        {"shuffle": True, "drop_last": True, "seed": 3},
        {"seeds": [5, 5, 1, 2, 5, 1, 59, 5, 5, 5, 5], "batch_size": 3, "shuffle": True},
        {"ndata": {0: ["x"], -1: ["label"]}, "edata": ["w"]},
        {"batch_size": 1, "shuffle": True, "prefetch": 1},
    ],
    ids=str,
)
def test_same_batches_for_any_number_of_workers(options):
    found = []
    for workers, prefetch in [(0, 2), (1, 1), (1, 5), (2, 2), (4, 1), (8, 9)]:
        loader = make(**{"prefetch": prefetch, **options, "num_workers": workers})
        found.append([epoch(loader) for _ in range(3)])
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffle_gives_every_seed_once_in_another_order_each_epoch(workers):
    loader = make(shuffle=True, num_workers=workers)
    orders = [[v for batch in loader for v in seeds_of(batch)] for _ in range(5)]
    assert all(sorted(order) == list(range(60)) for order in orders)
    assert len({tuple(order) for order in orders}) == 5
    assert list(range(60)) not in orders
    again = make(shuffle=True, num_workers=workers)
    assert [[v for batch in again for v in seeds_of(batch)] for _ in range(5)] == orders
    other = make(shuffle=True, seed=1)
    assert [v for batch in other for v in seeds_of(batch)] not in orders


def test_the_order_and_the_draws_have_seeds_of_their_own():
    graph = random_graph()
    by_order = [
        [seeds_of(b) for b in NodeFlowLoader(NeighborSampler(graph, [2], seed=s), range(60), 16, shuffle=True)]
        for s in (0, 1)
    ]
    assert by_order[0] == by_order[1]


def test_every_epoch_draws_afresh():
    loader = make()
    first, second = epoch(loader), epoch(loader)
    assert not set(first) & set(second)
    assert loader.epoch == 1
    sampler = loader.sampler
    assert second == [fingerprint(sampler(part, epoch=1)) for part in torch.arange(60).split(16)]


def test_set_epoch():
    loader = make(shuffle=True)
    epochs = [epoch(loader) for _ in range(4)]
    loader.set_epoch(2)
    assert epoch(loader) == epochs[2]
    assert epoch(loader) == epochs[3]
    loader.set_epoch(0)
    assert [epoch(loader), epoch(loader)] == epochs[:2]
    next(iter(loader))
    loader.set_epoch(3)
    assert epoch(loader) == epochs[3]


@pytest.mark.parametrize(("number", "size"), [(0, 4), (1, 4), (4, 4), (5, 4), (8, 4), (9, 4), (3, 100), (10, 1)])
@pytest.mark.parametrize("workers", [0, 2])
def test_len_and_drop_last(number, size, workers):
    loader = make(range(number), size, num_workers=workers)
    sizes = [len(batch.seeds) for batch in loader]
    assert sizes == [min(size, number - start) for start in range(0, number, size)]
    assert len(loader) == len(sizes)
    whole = make(range(number), size, num_workers=workers, drop_last=True)
    assert [len(batch.seeds) for batch in whole] == [size] * (number // size)
    assert len(whole) == number // size


def test_no_seeds():
    for workers in (0, 2):
        loader = make([], num_workers=workers)
        assert len(loader) == 0
        assert [list(loader), list(loader)] == [[], []]


def test_repeated_seeds():
    loader = make([7, 7, 3, 7, 7, 3, 7], 3)
    batches = list(loader)
    assert [seeds_of(batch) for batch in batches] == [[7, 7, 3], [7, 7, 3], [7]]
    assert [batch.seeds.tolist() for batch in batches] == [[7, 3], [7, 3], [7]]
    # two like batches of one epoch are two draws
    assert fingerprint(batches[0]) != fingerprint(batches[1])


def test_the_loader_keeps_its_own_copy_of_the_seeds():
    seeds = torch.arange(10)
    loader = make(seeds, 4)
    seeds += 20
    assert [seeds_of(batch) for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_two_iterations_at_once():
    loader = make(shuffle=True, num_workers=1)
    expected = [epoch(make(shuffle=True)), []]
    other = make(shuffle=True)
    other.set_epoch(1)
    expected[1] = epoch(other)
    first, second = iter(loader), iter(loader)
    found = [[], []]
    for a, b in zip(first, second, strict=True):
        found[0].append(fingerprint(a))
        found[1].append(fingerprint(b))
    assert found == expected


# ---- ahead of the caller


@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (1, 3), (2, 2)])
def test_threads_sample_ahead_but_not_without_end(workers, prefetch):
    sampler = Gated(random_graph())
    batches = iter(NodeFlowLoader(sampler, range(60), 1, num_workers=workers, prefetch=prefetch))
    next(batches)
    most = 1 + workers * prefetch
    with sampler.progress:
        # while the caller holds the first batch, the others come without being asked for
        assert sampler.progress.wait_for(lambda: len(sampler.begun) == most, timeout=60)
        assert threading.get_ident() not in sampler.threads
    next(batches)
    with sampler.progress:
        assert sampler.progress.wait_for(lambda: len(sampler.begun) == most + 1, timeout=60)
    batches.close()
    assert len(sampler.begun) == most + 1


def test_without_workers_nothing_is_sampled_ahead():
    sampler = Gated(random_graph())
    batches = iter(NodeFlowLoader(sampler, range(60), 1))
    next(batches)
    next(batches)
    assert sampler.begun == [0, 1]
    assert sampler.threads == {threading.get_ident()}


# ---- exceptions and early ends


class OwnError(Exception):
    """A type that needs two arguments, as pickling or wrapping would not survive."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{number}: {text}")
        self.number = number


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("error", [OwnError(3, "no luck"), ValueError("no luck"), KeyError("no luck")], ids=repr)
def test_an_exception_reaches_the_caller_as_it_is(workers, error):
    loader = NodeFlowLoader(Failing(random_graph(), 37, error), range(60), 8, num_workers=workers)
    given = []
    with pytest.raises(type(error), match="no luck") as caught:
        given.extend(seeds_of(batch) for batch in loader)
    assert caught.value is error
    assert given == [list(range(k, k + 8)) for k in (0, 8, 16, 24)]  # all batches before it
    assert loader.state_dict()["batch"] == 4  # one that resumes here tries the failed batch again
    assert not loader_threads()


@pytest.mark.parametrize("workers", [0, 2])
def test_stop_iteration_in_a_sampler_does_not_end_the_epoch_silently(workers):
    loader = NodeFlowLoader(Failing(random_graph(), 37, StopIteration("oops")), range(60), 8, num_workers=workers)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_unknown_column_raises(workers):
    loader = make(num_workers=workers, ndata={0: ["y"]})
    with pytest.raises(KeyError, match="no column 'y'"):
        list(loader)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("number", [1, 2, 4])
def test_leaving_early_leaves_no_thread(workers, number):
    loader = make(num_workers=workers)
    for k, _ in enumerate(loader, 1):
        assert bool(loader_threads()) == (workers > 0)
        if k == number:
            break
    assert not loader_threads()


@pytest.mark.parametrize("workers", [1, 4])
def test_other_ways_out_leave_no_thread(workers):
    loader = make(num_workers=workers)

    def by_return() -> NodeFlow:
        for batch in loader:
            return batch
        raise AssertionError

    by_return()
    assert not loader_threads()

    def by_exception() -> None:
        for _ in loader:
            raise OwnError(1, "in the caller")

    with pytest.raises(OwnError):
        by_exception()
    assert not loader_threads()

    batches = iter(loader)
    next(batches)
    batches.close()
    assert not loader_threads()

    batches = iter(loader)
    next(batches)
    del batches
    assert not loader_threads()

    iter(loader)  # never asked for a batch
    assert not loader_threads()
    list(itertools.islice(loader, 2))
    assert not loader_threads()
    list(loader)
    assert not loader_threads()


# ---- resuming


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize(
    "options", [{}, {"shuffle": True, "drop_last": True}, {"seeds": [1, 2, 1] * 15, "shuffle": True}]
)
def test_resume_at_every_batch(workers, options):
    """The state at any point, given to a new loader with another number of workers: the rest is the same."""

    def loader(w: int) -> NodeFlowLoader:
        return make(**{"batch_size": 13, **options, "num_workers": w})

    straight = loader(0)
    epochs = [epoch(straight) for _ in range(4)]
    size = len(straight)

    running = loader(workers)
    states = [(running.state_dict(), 0, 0)]  # state, epoch and batch that come next
    for e in range(2):
        for k, _ in enumerate(running, 1):
            states.append((running.state_dict(), e, k))
        states.append((running.state_dict(), e + 1, 0))
    for state, e, k in states:
        resumed = loader(2 - workers % 2)
        resumed.load_state_dict(json.loads(json.dumps(state)))  # plain numbers: it can be stored anywhere
        assert resumed.state_dict() == state
        if k == size:
            e, k = e + 1, 0
        assert epoch(resumed) == epochs[e][k:]
        assert epoch(resumed) == epochs[e + 1]


def test_state_before_a_batch_is_asked_for():
    loader = make(shuffle=True)
    epochs = [epoch(loader) for _ in range(3)]
    batches = iter(loader)  # epoch 3 has begun, and has given nothing
    resumed = make(shuffle=True)
    resumed.load_state_dict(loader.state_dict())
    assert epoch(resumed) == [fingerprint(batch) for batch in batches]
    loader.set_epoch(1)
    resumed.load_state_dict(loader.state_dict())
    assert epoch(resumed) == epochs[1]


def test_workers_that_are_ahead_do_not_count():
    loader = make(shuffle=True, num_workers=2, prefetch=4)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (0, 1)
    rest = [fingerprint(batch) for batch in batches]
    resumed = make(shuffle=True)
    resumed.load_state_dict(state)
    assert epoch(resumed) == rest


def test_a_loader_can_go_back():
    loader = make(shuffle=True, num_workers=1)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [fingerprint(batch) for batch in batches]
    epoch(loader)
    loader.load_state_dict(state)
    assert epoch(loader) == rest
    assert loader.epoch == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 15}, "batch_size=16, this one has 15"),
        ({"shuffle": True}, "shuffle"),
        ({"drop_last": True}, "drop_last"),
        ({"seed": 1}, "seed=0, this one has 1"),
        ({"seeds": range(59)}, "num_seeds=60, this one has 59"),
        ({"seeds": [*range(59), 0]}, "seeds"),
        ({"seeds": range(59, -1, -1)}, "seeds"),
    ],
)
def test_state_of_another_loader_raises(options, words):
    state = make().state_dict()
    loader = make(**options)
    next(iter(loader))
    before = loader.state_dict()
    with pytest.raises(ValueError, match=words):
        loader.load_state_dict(state)
    assert loader.state_dict() == before


def test_state_of_another_sampler_raises():
    graph = random_graph()
    state = NodeFlowLoader(NeighborSampler(graph, [2], seed=1), [0]).state_dict()
    with pytest.raises(ValueError, match="sampler_seed=1, this one has 0"):
        NodeFlowLoader(NeighborSampler(graph, [2]), [0]).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda s: None, ValueError),
        (lambda s: {}, ValueError),
        (lambda s: {k: v for k, v in s.items() if k != "epoch"}, ValueError),
        (lambda s: {**s, "batch": 5}, ValueError),
        (lambda s: {**s, "batch": -1}, ValueError),
        (lambda s: {**s, "epoch": -2}, ValueError),
        (lambda s: {**s, "epoch": 0.5}, TypeError),
        (lambda s: {**s, "batch": None}, TypeError),
    ],
)
def test_broken_states_raise(change, error):
    loader = make()
    before = loader.state_dict()
    with pytest.raises(error):
        loader.load_state_dict(change(before))
    assert loader.state_dict() == before


# ---- columns


@pytest.mark.parametrize("workers", [0, 2])
def test_columns_by_layer(workers):
    graph = random_graph()
    loader = make(graph=graph, num_workers=workers, ndata={0: ["x"], -1: ["label"]}, edata={1: ["w"]})
    for batch in loader:
        assert [list(frame) for frame in batch.ldata] == [["x"], [], ["label"]]
        assert [list(frame) for frame in batch.fdata] == [[], ["w"]]
        assert batch.ldata[0]["x"].equal(graph.ndata["x"][batch.front.parent_nid])
        assert batch.ldata[-1]["label"].equal(graph.ndata["label"][batch.seeds])
        assert batch.fdata[1]["w"].equal(graph.edata["w"][batch.flows[1].parent_eid])


def test_columns_of_every_layer():
    graph = random_graph()
    for batch in make(graph=graph, ndata=["x"], edata=["w"], num_workers=1):
        for layer in batch.layers:
            assert layer.data["x"].equal(graph.ndata["x"][layer.parent_nid])
        for flow in batch.flows:
            assert flow.data["w"].equal(graph.edata["w"][flow.parent_eid])


def test_no_columns_unless_asked_for():
    for batch in make(num_workers=1):
        assert [list(frame) for frame in (*batch.ldata, *batch.fdata)] == [[]] * 5


def test_columns_are_copies():
    graph = random_graph()
    before = graph.ndata["x"].clone()
    for batch in make(graph=graph, ndata={0: ["x"]}):
        batch.ldata[0]["x"].zero_()
    assert graph.ndata["x"].equal(before)


def test_device():
    expected = epoch(make())
    assert [fingerprint(batch) for batch in make(device="cpu", num_workers=1)] == expected
    for batch in make(device=torch.device("meta"), ndata={0: ["x"]}):
        assert batch.device.type == "meta"
        assert batch.ldata[0]["x"].device.type == "meta"


# ---- arguments


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: NodeFlowLoader(lambda seeds: seeds, [0]), TypeError, "sampler must be a nodeflow Sampler"),
        (lambda s: NodeFlowLoader(s, [0], 0), ValueError, "batch_size must be at least 1"),
        (lambda s: NodeFlowLoader(s, [0], 2.0), TypeError, "batch_size must be an integer"),
        (lambda s: NodeFlowLoader(s, [0], True), TypeError, "batch_size must be an integer"),
        (lambda s: NodeFlowLoader(s, [0], num_workers=-1), ValueError, "num_workers must be at least 0"),
        (lambda s: NodeFlowLoader(s, [0], prefetch=0), ValueError, "prefetch must be at least 1"),
        (lambda s: NodeFlowLoader(s, [0], seed="a"), TypeError, "seed must be an integer"),
        (lambda s: NodeFlowLoader(s, [0, 60]), IndexError, r"seeds\[1\] is 60"),
        (lambda s: NodeFlowLoader(s, [0]).set_epoch(-1), ValueError, "epoch must be at least 0"),
        (lambda s: NodeFlowLoader(s, [0], device="nonsense"), RuntimeError, "nonsense"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call(NeighborSampler(random_graph(), [2]))


def test_repr():
    loader = NodeFlowLoader(FullSampler(Graph.from_edges([0], [1]), 1), [0, 1], 1)
    assert repr(loader).startswith("NodeFlowLoader(2 seeds in 2 batches of 1, ")


def test_it_travels():
    loader = make(shuffle=True)
    next(iter(loader))
    for other in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)):
        assert other.state_dict() == loader.state_dict()
        other.set_epoch(0)
        assert epoch(other) == epoch(make(shuffle=True))
