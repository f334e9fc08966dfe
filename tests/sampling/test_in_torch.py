"""Samplers in operations of torch draw what the compiled ones draw, bit for bit, and read nothing on the host."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, fingerprint, graph_of_all, sampled
from torch.utils._python_dispatch import TorchDispatchMode

from nodeflow import FullSampler, Graph, LinkSampler, NeighborSampler, NodeFlowLoader
from nodeflow.testing import check_sampler
from nodeflow.testing._repeat_checks import global_states

WITH_FORM = [
    "full", "neighbor", "neighbor, replace", "neighbor, reuse", "neighbor, disjoint", "neighbor, filter",
]  # fmt: skip
OPTIONS = [{}, {"direction": "out"}, {"direction": "both"}, {"weight": "w"}, {"include_dst": False}]
CASES = [(name, o) for name in WITH_FORM for o in OPTIONS if not (name == "neighbor, reuse" and "include_dst" in o)]


def both(sampler, seeds, **options):
    """The fingerprints of two batches that must be one, the second in torch."""
    return fingerprint(sampler(seeds, **options)), fingerprint(sampler.in_torch()(seeds, **options))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_same_batches(name, options, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU that torch can use")
    compiled = FAMILIES[name](graph_of_all(), **options)
    in_torch = compiled.in_torch(device)
    for epoch in range(40):
        batch = sampled(name, in_torch, epoch=epoch)
        assert batch.back.parent_nid.device.type == batch.flows[0].weight.device.type == device
        assert fingerprint(batch.to("cpu")) == fingerprint(sampled(name, compiled, epoch=epoch))


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_FORM)
def test_same_batches_of_many_seeds(name):
    graph = graph_of_all()
    for seed in range(1000):
        options = {} if name == "full" else {"seed": seed}
        compiled = FAMILIES[name](graph, **options)
        seeds = np.random.default_rng(seed).integers(graph.num_nodes, size=seed % 23)
        first, again = both(compiled, seeds, epoch=seed)
        assert first == again


@pytest.fixture(scope="module")
def hubs():
    """Nodes of 70,000 and 40 edges, some of them parallel, and of fewer; ids of 64 bits."""
    rng = np.random.default_rng(0)
    degrees = np.concatenate([[70_000, 40, 0], rng.integers(0, 7, 70_000)])
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = rng.integers(len(degrees), size=indptr[-1])
    return Graph(indptr, indices, edge_ids=rng.permutation(len(indices)), copy=False)


@pytest.mark.parametrize("fanouts", [[40, 2], [3, 65], [-1, 5], [5, -1], [70_001, 1]], ids=str)
@pytest.mark.parametrize("options", [{}, {"replace": True}, {"reuse": True}, {"include_dst": False}], ids=str)
def test_hubs(hubs, fanouts, options):
    seeds = [0, 2, 1, 0, *range(60_000, 60_400)]
    if not (options.get("replace") and max(fanouts) > 70_000):
        first, again = both(NeighborSampler(hubs, fanouts, seed=3, **options), seeds)
        assert first == again


def test_keys_of_contexts_beyond_31_bits(hubs):
    seeds = np.arange(31_000)
    assert hubs.num_nodes * len(seeds) > 2**31
    first, again = both(NeighborSampler(hubs, [2], disjoint=True), seeds)
    assert first == again


@pytest.mark.parametrize("options", [{}, {"replace": True}], ids=str)
def test_edges_left_out(hubs, options):
    compiled = NeighborSampler(hubs, [4, 9], **options)
    for left_out in (range(0, hubs.num_edges, 3), hubs.in_edges([1])[2], []):
        other = compiled.in_torch().without_edges(left_out)
        assert other.backend == "torch on cpu"
        assert fingerprint(other([0, 1, 5])) == fingerprint(compiled.without_edges(left_out)([0, 1, 5]))


@pytest.mark.parametrize("name", WITH_FORM)
def test_contracts(name):
    report = check_sampler(FAMILIES[name](graph_of_all()).in_torch())
    assert not report.failed
    assert {"structure", "reproducible", "threads", "pickles", "global state", "marginals"} <= set(report.passed)


class Waits(TorchDispatchMode):
    """Counts what waits for a device: numbers read on the host, and results of a size that depends on the content."""

    NAMES = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "equal", "is_nonzero", "bincount", "item")

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        by_mask = name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        if by_mask or any(word in name for word in self.NAMES):
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("options", [{"replace": True}, {}, {"reuse": True}, {"include_dst": False}], ids=str)
@pytest.mark.parametrize("fanouts", [[10, 5, 64], [-1, -1, -1], [65, 65, 65]], ids=str)
def test_waits_per_flow(fanouts, options):
    """A flow waits for the number of its edges, and for that of its nodes.

    With the first number comes whether numbers must be drawn again; not so for large fanouts.
    """
    sampler = NeighborSampler(graph_of_all(), fanouts, **options).in_torch()
    with Waits() as waits:
        batch = sampler([5, 11, 5, 30], batch_number=0)
        drawn = dict(waits.counts)
        assert batch.flows[0].weight.shape == batch.flows[0].parent_eid.shape
    assert sum(drawn.values()) == 3 * (3 if max(fanouts) > 64 else 2) + 1  # one for the number of distinct seeds
    assert waits.counts == drawn


def test_numbers_that_are_drawn_again(hubs):
    """About one of 60,000 numbers below 70,000 is rejected: such draws wait once or twice more."""
    found = set()
    for seed in range(20):
        sampler = NeighborSampler(hubs, [20_000], seed=seed)
        in_torch = sampler.in_torch()
        with Waits() as waits:
            batch = in_torch([0])
        found.add(waits.counts["_local_scalar_dense"])
        assert fingerprint(batch) == fingerprint(sampler([0]))
    assert min(found) == 4  # one for the seeds, three for a large fanout
    assert max(found) > 5


@pytest.mark.parametrize("name", WITH_FORM)
def test_nothing_is_read_on_the_host(name, monkeypatch):
    sampler, expected = FAMILIES[name](graph_of_all(), weight="w"), {}
    expected = fingerprint(sampled(name, sampler))
    in_torch = sampler.in_torch()

    def refuse(*_):
        raise AssertionError("a tensor was read as an array")

    with monkeypatch.context() as patch:
        for method in ("numpy", "__array__", "tolist"):
            patch.setattr(torch.Tensor, method, refuse)
        batch = sampled(name, in_torch)
        _ = [(flow.weight, flow.parent_eid) for flow in batch.flows]
    assert fingerprint(batch) == expected


def test_nothing_else_decides(hubs):
    """Neither global generators, nor the number of threads, nor operations that are not deterministic."""
    sampler = NeighborSampler(hubs, [40, 40, 3]).in_torch()
    expected, before, threads = fingerprint(sampler(range(2000))), global_states(), torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    try:
        for number in (1, 4):
            torch.set_num_threads(number)
            assert fingerprint(sampler(range(2000))) == expected
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads)
    assert global_states() == before


def test_which_form_draws():
    sampler = NeighborSampler(graph_of_all(), [2, 3])
    in_torch = sampler.in_torch()
    assert (sampler.backend, in_torch.backend) == ("compiled", "torch on cpu")
    assert "torch" not in repr(sampler)
    assert repr(in_torch).endswith("; draws in torch on cpu")
    assert in_torch.settings == sampler.settings  # a run may go on in the other form
    assert pickle.loads(pickle.dumps(in_torch)).backend == "torch on cpu"
    assert in_torch.candidates([5]).eid.equal(sampler.candidates([5]).eid)
    assert in_torch.estimand().equal(sampler.estimand())
    pairs = [NodeFlowLoader(each, range(60), 16, num_workers=2) for each in (sampler, in_torch)]
    for first, again in zip(*pairs, strict=True):
        assert fingerprint(first) == fingerprint(again)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in WITH_FORM])
def test_refusals(name):
    sampler = FAMILIES[name](graph_of_all())
    with pytest.raises(TypeError, match=f"{type(sampler).__name__} draws in compiled loops only.*have"):
        sampler.in_torch()


def test_more_refusals():
    class Own(NeighborSampler):
        pass

    with pytest.raises(TypeError, match="Own draws in compiled loops only"):
        Own(graph_of_all(), [2]).in_torch()
    with pytest.raises(ValueError, match="is not there"):
        FullSampler(graph_of_all(), 1).in_torch("cuda:99")
    with pytest.raises(ValueError, match="no draws on the device meta"):
        FullSampler(graph_of_all(), 1).in_torch("meta")
    with pytest.raises(TypeError, match="LinkSampler draws in compiled loops only"):
        LinkSampler(NeighborSampler(graph_of_all(), [2]).in_torch())
    typed = Graph.typed({"a": 3, "b": 2}, {("a", "r", "b"): ([0], [1]), ("b", "s", "a"): ([0], [1])})
    with pytest.raises(TypeError, match="several relations"):
        NeighborSampler(typed, [2]).in_torch()
