"""NodeFlowLoader: order, workers, exceptions, early ends, and columns."""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from contextlib import nullcontext

import pytest
import torch
from _support.loader_tools import epoch, fingerprint, make, random_graph, seeds_of
from torch import Tensor

from nodeflow import (
    Graph,
    LinkSampler,
    NeighborSampler,
    NodeFlowLoader,
    Sampler,
)
from nodeflow.sampling.base import Choice, Step

pytestmark = pytest.mark.usefixtures("no_thread_is_left_behind")

WORKERS = [0, 1, 2, 4]


def loader_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("nodeflow-loader")]


class Failing(Sampler):
    """Raises for batches that hold a certain seed, after all others have been sampled."""

    def __init__(self, graph: Graph, seed_node: int, error: BaseException) -> None:
        super().__init__(graph, 1)
        self.seed_node = seed_node
        self.error = error

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
    assert [fingerprint(b) for b in batches] == [
        fingerprint(sampler(part, epoch=0)) for part in seeds.split(16)
    ]
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
        {"weights": [k / 59 for k in range(60)]},
    ],
    ids=str,
)
def test_same_batches_for_any_number_of_workers(options):
    found = []
    for workers, prefetch in [(0, 2), (1, 0), (1, 1), (1, 5), (2, 2), (3, 0), (4, 1), (8, 9)]:
        loader = make(**{"prefetch": prefetch, **options, "num_workers": workers})
        found.append([epoch(loader) for _ in range(3)])
    assert all(other == found[0] for other in found)
    assert len(set(map(tuple, found[0]))) == 3


def test_shuffle_gives_every_seed_once_in_another_order_each_epoch():
    orders = [
        [v for batch in loader for v in seeds_of(batch)]
        for loader in [make(shuffle=True)] * 5 + [make(shuffle=True, seed=1)]
    ]
    assert all(sorted(order) == list(range(60)) for order in orders)
    assert len({tuple(order) for order in [*orders, range(60)]}) == 7


def test_the_order_and_the_draws_have_seeds_of_their_own():
    graph = random_graph()
    by_order = [
        [
            seeds_of(b)
            for b in NodeFlowLoader(
                NeighborSampler(graph, [2], seed=s), range(60), 16, shuffle=True
            )
        ]
        for s in (0, 1)
    ]
    assert by_order[0] == by_order[1]


def test_every_epoch_draws_afresh_and_set_epoch_chooses_one():
    loader = make(shuffle=True)
    epochs = [epoch(loader) for _ in range(4)]
    assert loader.epoch == 3
    assert len({batch for prints in epochs for batch in prints}) == sum(map(len, epochs))
    loader.set_epoch(2)
    assert [epoch(loader), epoch(loader)] == epochs[2:]
    loader.set_epoch(0)
    assert [epoch(loader), epoch(loader)] == epochs[:2]
    next(iter(loader))
    loader.set_epoch(3)
    assert epoch(loader) == epochs[3]
    plain = make()
    list(plain)
    assert epoch(plain) == [
        fingerprint(plain.sampler(part, epoch=1)) for part in torch.arange(60).split(16)
    ]


@pytest.mark.parametrize(
    ("number", "size"), [(0, 4), (1, 4), (4, 4), (5, 4), (8, 4), (9, 4), (3, 100), (10, 1)]
)
def test_len_and_drop_last(number, size):
    loader = make(range(number), size)
    sizes, again = ([len(batch.seeds) for batch in loader] for _ in range(2))
    assert sizes == again == [min(size, number - start) for start in range(0, number, size)]
    assert len(loader) == len(sizes)
    whole = make(range(number), size, drop_last=True)
    assert [len(batch.seeds) for batch in whole] == [size] * (number // size)
    assert len(whole) == number // size


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
    other = make(shuffle=True)
    expected = [epoch(other), epoch(other)]
    both = [
        (fingerprint(a), fingerprint(b)) for a, b in zip(iter(loader), iter(loader), strict=True)
    ]
    assert [list(prints) for prints in zip(*both, strict=True)] == expected


# ---- ahead of the caller


@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (1, 3), (2, 2)])
def test_threads_sample_ahead_but_not_without_end(workers, prefetch):
    sampler = Gated(random_graph())
    batches = iter(NodeFlowLoader(sampler, range(60), 1, num_workers=workers, prefetch=prefetch))
    next(batches)
    most = 1 + workers * prefetch
    with sampler.progress:
        # while the caller holds the first batch, the others come without being asked for
        assert sampler.progress.wait_for(lambda: len(sampler.begun) == most, timeout=600)
        assert threading.get_ident() not in sampler.threads
    next(batches)
    with sampler.progress:
        assert sampler.progress.wait_for(lambda: len(sampler.begun) == most + 1, timeout=600)
    batches.close()
    assert len(sampler.begun) == most + 1


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_without_prefetching_nothing_is_sampled_while_the_caller_computes(workers):
    sampler = Gated(random_graph())
    batches = iter(NodeFlowLoader(sampler, range(7), 1, num_workers=workers, prefetch=0))
    for given in range(1, 8):
        next(batches)
        at_once = max(workers, 1)  # and only when the caller has used up those before
        assert sorted(sampler.begun) == list(range(min(7, -(-given // at_once) * at_once)))
    assert list(batches) == []
    assert threading.get_ident() in sampler.threads


# ---- exceptions and early ends


class OwnError(Exception):
    """A type that needs two arguments."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{number}: {text}")
        self.number = number


@pytest.mark.parametrize(("workers", "prefetch"), [(0, 2), (1, 2), (3, 0), (4, 2), (4, 0)])
@pytest.mark.parametrize(
    "error", [OwnError(3, "no luck"), ValueError("no luck"), KeyError("no luck")], ids=repr
)
def test_an_exception_reaches_the_caller_as_it_is(workers, prefetch, error):
    loader = NodeFlowLoader(
        Failing(random_graph(), 37, error), range(60), 8, num_workers=workers, prefetch=prefetch
    )
    given = []
    with pytest.raises(type(error), match="no luck") as caught:
        given.extend(seeds_of(batch) for batch in loader)
    assert caught.value is error
    assert given == [list(range(k, k + 8)) for k in (0, 8, 16, 24)]  # all batches before it
    # one that resumes here tries the failed batch again
    assert loader.state_dict()["batch_number"] == 4
    # which does not end the epoch silently
    silent = Failing(random_graph(), 37, StopIteration("oops"))
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(NodeFlowLoader(silent, range(60), 8, num_workers=workers, prefetch=prefetch))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("number", [0, 1, 2, 4])
def test_no_way_out_leaves_a_thread(workers, number):
    loader = make(num_workers=workers)

    def leave(raising: bool = False) -> None:
        for k, _ in enumerate(loader, 1):
            assert bool(loader_threads()) == (workers > 0)
            if k == number and raising:
                raise OwnError(1, "in the caller")
            if k == number:
                return

    leave()
    assert not loader_threads()
    with pytest.raises(OwnError) if number else nullcontext():
        leave(raising=True)
    assert not loader_threads()
    # asked to close, or just dropped, also where no batch was asked for
    for end in ("close", "__del__"):
        batches = iter(loader)
        for _ in range(number):
            next(batches)
        if end == "close":
            batches.close()
        del batches
        assert not loader_threads()
    list(itertools.islice(loader, number))
    assert not loader_threads()


# ---- columns


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("ndata", "edata", "by_layer", "by_flow"),
    [
        ({0: ["x"], -1: ["label"]}, {1: ["w"]}, [["x"], [], ["label"]], [[], ["w"]]),
        (["x"], ["w"], [["x"]] * 3, [["w"]] * 2),
        (None, None, [[]] * 3, [[]] * 2),
    ],
)
def test_columns_are_copies_in_the_layers_chosen(workers, ndata, edata, by_layer, by_flow):
    graph = random_graph()
    before = {name: column.clone() for name, column in graph.ndata.items()}
    for batch in make(graph=graph, num_workers=workers, ndata=ndata, edata=edata):
        assert [list(frame) for frame in batch.ldata] == by_layer
        assert [list(frame) for frame in batch.fdata] == by_flow
        for layer in batch.layers:
            assert all(
                column.equal(before[name][layer.parent_nid]) for name, column in layer.data.items()
            )
            for column in layer.data.values():
                column.zero_()
        for flow in batch.flows:
            assert all(
                column.equal(graph.edata["w"][flow.parent_eid]) for column in flow.data.values()
            )
    assert all(graph.ndata[name].equal(column) for name, column in before.items())


def test_device():
    expected = epoch(make())
    assert [fingerprint(batch) for batch in make(device="cpu", num_workers=1)] == expected
    for batch in make(device=torch.device("meta"), ndata={0: ["x"]}):
        assert batch.device.type == "meta"
        assert batch.ldata[0]["x"].device.type == "meta"


# ---- arguments


def test_it_travels():
    loader = make(shuffle=True)
    next(iter(loader))
    for other in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)):
        assert other.state_dict() == loader.state_dict()
        other.set_epoch(0)
        assert epoch(other) == epoch(make(shuffle=True))


def test_all_seeds_by_default_and_by_a_mask():
    nodes = NeighborSampler(Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0]), [1])
    links = LinkSampler(nodes)
    assert NodeFlowLoader(links, batch_size=3).seeds.tolist() == [0, 1, 2, 3]
    assert NodeFlowLoader(nodes, "all", 2).seeds.tolist() == [0, 1, 2, 3]
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    rows = [True, False, False, True]
    masks = [rows, tuple(rows), torch.tensor(rows), torch.tensor(rows).numpy()]
    masks += [pandas.Series(rows), pandas.Series(rows, dtype="boolean"), polars.Series(rows)]
    masks += [arrow.array(rows), arrow.chunked_array([rows])]
    numbers = [polars.Series([0, 3]), pandas.Series([0, 3], dtype="Int64")]  # these are ids
    for chosen in masks + numbers:
        found = [sampler(chosen).seed_ids for sampler in (nodes, links)]
        found += [NodeFlowLoader(sampler, chosen).seeds for sampler in (nodes, links)]
        found.append(nodes({"node": chosen}).seeds)
        assert [ids.tolist() for ids in found] == [[0, 3]] * 5
    missing = [True, None, False, True]
    for column in (polars.Series(missing), pandas.Series(missing, dtype="boolean")):
        with pytest.raises(TypeError, match="seeds must have no missing entries, but row 1 has"):
            nodes(column)


def test_what_lightning_asks_of_a_validation_loader():
    """Every loader with a ``sampler``: for a batch sampler, a data set, arguments that it saved, an
    epoch to be set.
    """
    loader = NodeFlowLoader(NeighborSampler(random_graph(), [2]), [0, 1], batch_size=1)
    assert loader.batch_sampler is None
    assert not isinstance(loader.sampler, torch.utils.data.RandomSampler)
    assert not any(
        hasattr(loader, name)
        for name in ("dataset", "worker_init_fn", "__pl_saved_kwargs", "_iterator")
    )
    assert not hasattr(loader.sampler, "set_epoch")
    assert len(loader) == len(list(iter(loader))) == 2
