"""Samplers in operations of torch draw what the compiled ones draw, bit for bit, and read nothing
on the host.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, call_of, fingerprint, graph_of_all, sampled
from _support.views import viewed
from torch.utils._python_dispatch import TorchDispatchMode

from nodeflow import (
    FastGCNSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LayerSampler,
    NeighborSampler,
    NodeFlowLoader,
    TemporalNeighborSampler,
)
from nodeflow._core.in_torch import kept, labor
from nodeflow.testing import check_sampler


def random_states():
    """The global random states of Python, numpy and torch."""
    _, keys, *numbers = np.random.get_state()  # noqa: NPY002  the global state is what is meant
    return random.getstate(), keys.tolist(), numbers, torch.get_rng_state().tolist()


WITH_FORM = [
    "full", "neighbor", "neighbor, replace", "neighbor, reuse", "neighbor, disjoint", "neighbor, "
                                                                                      "filter",
    "neighbor, types", "neighbor, prob, replace", "temporal", "temporal, recent",
    "labor", "labor, sequential", "labor, dependent layers",
    "layer", "fastgcn", "fastgcn, poisson", "ladies",
]  # fmt: skip
OPTIONS = [{}, {"direction": "out"}, {"direction": "both"}, {"weight": "w"}, {"include_dst": False}]
WITH_LINKS = [*WITH_FORM, "link"]  # whose negatives are drawn on the host
# options that these do not have, or not in torch
WITHOUT = [("neighbor, reuse", "include_dst"), ("ladies", "weight")]
CASES = [
    (name, o)
    for name in WITH_LINKS
    for o in OPTIONS
    if not any((name, option) in WITHOUT for option in o)
]


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


@pytest.fixture(scope="module", params=[np.int32, pytest.param(np.int64, marks=pytest.mark.slow)])
def hubs(request):
    """Nodes of 70,000 and 40 edges, some of them parallel, and of fewer."""
    rng = np.random.default_rng(0)
    degrees = np.concatenate([[70_000, 40, 0], rng.integers(0, 7, 70_000)])
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = rng.integers(len(degrees), size=indptr[-1]).astype(request.param)
    return Graph(indptr, indices, edge_ids=rng.permutation(len(indices)), copy=False)


@pytest.mark.parametrize("fanouts", [[40, 2], [3, 65], [-1, 5], [5, -1], [70_001, 1]], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"reuse": True}, {"include_dst": False}], ids=str
)
def test_hubs(hubs, fanouts, options):
    seeds = [0, 2, 1, 0, *range(60_000, 60_400)]
    if not (options.get("replace") and max(fanouts) > 70_000):
        first, again = both(viewed(NeighborSampler, hubs, fanouts, seed=3, **options), seeds)
        assert first == again


def test_keys_of_contexts_beyond_31_bits(hubs):
    seeds = np.arange(31_000)
    assert hubs.num_nodes * len(seeds) > 2**31
    first, again = both(NeighborSampler(hubs, [2], disjoint=True), seeds)
    assert first == again


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.bool_])
@pytest.mark.parametrize("options", [{}, {"disjoint": True}, {"include_dst": False}], ids=str)
def test_weighted(hubs, kind, options):
    rng = np.random.default_rng(1)
    weights = np.where(
        rng.random(hubs.num_edges) < 0.3, 0, rng.exponential(3, hubs.num_edges)
    ).astype(kind)
    indptr, indices, edge_ids = hubs.csc()
    graph = Graph(indptr, indices, edge_ids=edge_ids, edata={"p": torch.from_numpy(weights)})
    seeds = [0, 2, 1, 0, *range(6_000, 6_300)]
    for fanouts in ([5, 40], [3, -1]):
        first, again = both(
            viewed(NeighborSampler, graph, fanouts, prob="p", replace=True, **options), seeds
        )
        assert first == again


FANOUTS = [
    [3, 2],
    [{"writes": 2, "cites": -1}, 1],
    [{"at": 1}, {"rev_at": 0, "cites": 3, "writes": 65}],
]


def typed():
    return Graph.typed(
        {"author": 40, "paper": 50, "venue": 3, "alone": 2},
        {
            relation: tuple(np.random.default_rng(i).integers(0, sizes, (400, 2)).T)
            for i, (relation, sizes) in enumerate(
                {("author", "writes", "paper"): (40, 50), ("paper", "cites", "paper"): (50, 50),
                 ("paper", "at", "venue"): (50, 3)}.items()
            )
        },
        reverse=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options", [{}, {"replace": True}, {"reuse": True}, {"disjoint": True}], ids=str
)
@pytest.mark.parametrize("fanouts", FANOUTS, ids=str)
def test_relations(fanouts, options):
    graph = typed()
    seeds = {"paper": range(0, 50, 3), "venue": [2], "author": [4, 1, 4], "alone": [0]}
    for sampler in (
        viewed(NeighborSampler, graph, fanouts, **options),
        NeighborSampler(graph, fanouts),
    ):
        in_torch = pickle.loads(pickle.dumps(sampler.in_torch()))
        for epoch in range(5):
            batch = sampler(seeds, epoch=epoch)
            again = in_torch(seeds, epoch=epoch)
            assert fingerprint(batch) == fingerprint(again)
            for flow, same in zip(batch.flows, again.flows, strict=True):
                for relation in graph.schema.relations:
                    assert flow.of(relation).parent_eid.equal(same.of(relation).parent_eid)


TIMES = [
    {"strict": True},
    {"since": 4},
    {"since": 0, "strict": True},
    {"replace": True},
    {"include_dst": False},
]
TIMES += [{"strategy": "recent", "since": 6}, {"reuse": True}, {"edge_type": "type"}]


@pytest.mark.parametrize("options", TIMES, ids=str)
@pytest.mark.parametrize("floats", [False, True])
def test_times(options, floats):
    graph = graph_of_all()
    graph.edata["when"] = graph.edata["time"].double() / 2 if floats else graph.edata["time"]
    sampler = viewed(TemporalNeighborSampler, graph, [-1, 3, 2], time="when", **options)
    times = np.arange(60) % 23 if not floats else np.arange(60) % 23 / 2
    for epoch in range(10):
        first, again = both(sampler, np.arange(60) % graph.num_nodes, times=times, epoch=epoch)
        assert first == again


@pytest.fixture
def small_pieces(monkeypatch):
    """A call that sets how many edges are looked at together."""
    return lambda size: monkeypatch.setattr(kept, "_PIECE", size)


@pytest.mark.parametrize("piece", [None, 1, 1000])
@pytest.mark.parametrize("method", ["poisson", "sequential"])
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_dependency": 3}, {"batch_dependency": None}, {"layer_dependency": True}],
    ids=str,
)
def test_labor(hubs, options, method, piece, small_pieces):
    """Also where rows are looked at in pieces, a hub larger than one."""
    if piece is not None:
        small_pieces(piece)
    seeds = [0, 2, 1, 0, *range(6_000, 6_400 if piece is None else 6_010)]
    for fanouts in ([5, 40], [-1, 3]):
        sampler = viewed(LaborSampler, hubs, fanouts, method=method, seed=3, **options)
        first, again = both(sampler, seeds, batch_number=4)
        assert first == again


def test_labor_looks_at_more_numbers_where_too_few_are_small(hubs, monkeypatch):
    monkeypatch.setattr(labor, "_enough", lambda count: 0.01 * count.double())
    first, again = both(
        LaborSampler(hubs, [5, 300], method="sequential"), [0, 2, 1, *range(6_000, 6_300)]
    )
    assert first == again


LAYERS = [
    (kind, {"draw": draw})
    for kind in (LayerSampler, FastGCNSampler)
    for draw in ("replacement", "poisson", "systematic")
]
LAYERS += [
    (FastGCNSampler, {"draw": "poisson", "weight": "w"}),
    (FastGCNSampler, {"weight": "w"}),
    (LadiesSampler, {}),
]


@pytest.mark.parametrize("piece", [None, 1, 1000])
@pytest.mark.parametrize(("kind", "options"), LAYERS, ids=str)
def test_layers(hubs, kind, options, piece, small_pieces):
    """Also where fewer nodes can be drawn than are wanted, and where the seeds have no edges."""
    if piece is not None:
        small_pieces(piece)
    graph = Graph(*hubs.csc()[:2], edge_ids=hubs.csc()[2])
    graph.edata["w"] = torch.arange(graph.num_edges) % 7
    sampler = viewed(kind, graph, [500, 60], seed=2, **options)
    left_out = sampler.without_edges([*range(0, 70_000, 2), *graph.in_edges([1])[2].tolist()])
    for seeds in ([0, 2, 1, 0, *range(6_000, 6_010)], [1], [2], []):
        for each in (sampler, left_out):
            first, again = both(each, seeds)
            assert first == again


@pytest.mark.parametrize("draw", ["replacement", "poisson", "systematic"])
@pytest.mark.parametrize("kind", [LayerSampler, FastGCNSampler])
def test_layers_of_several_node_types(kind, draw):
    graph = typed()
    sizes = [{"author": 5, "paper": 3}, {"paper": 6, "venue": 2}]
    for epoch in range(5):
        first, again = both(
            kind(graph, sizes, draw=draw), {"paper": [3, 7], "venue": [1]}, epoch=epoch
        )
        assert first == again


@pytest.mark.parametrize("name", WITH_FORM)
def test_edges_left_out_by_every_sampler(name):
    sampler = FAMILIES[name](graph_of_all(), weight=None if name == "ladies" else "w")
    for left_out in (range(0, sampler.graph.num_edges, 3), sampler.graph.in_edges([5])[2], []):
        expected = fingerprint(sampled(name, sampler.without_edges(left_out)))
        assert fingerprint(sampled(name, sampler.in_torch().without_edges(left_out))) == expected
        assert fingerprint(sampled(name, sampler.without_edges(left_out).in_torch())) == expected


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", WITH_FORM)
def test_contracts(name):
    seeds, more = call_of(name)
    report = check_sampler(FAMILIES[name](graph_of_all()).in_torch(), seeds, **more)
    assert not report.failed
    wanted = {"structure", "reproducible", "threads", "pickles", "global state", "excluded"}
    assert wanted | (set() if name == "temporal, recent" else {"marginals"}) <= set(report.passed)


class Waits(TorchDispatchMode):
    """Counts what waits for a device: numbers read on the host, and results of a size that depends
    on the content.
    """

    NAMES = (
        "_local_scalar_dense",
        "nonzero",
        "masked_select",
        "unique",
        "equal",
        "is_nonzero",
        "bincount",
        "item",
    )

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        by_mask = name == "index" and any(i is not None and i.dtype == torch.bool for i in args[1])
        if by_mask or any(word in name for word in self.NAMES):
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "options", [{"replace": True}, {}, {"reuse": True}, {"include_dst": False}], ids=str
)
@pytest.mark.parametrize("fanouts", [[10, 5, 64], [-1, -1, -1], [65, 65, 65]], ids=str)
def test_waits_per_flow(fanouts, options):
    """A flow waits for the number of its edges, and for that of its nodes.

    With the first number comes whether numbers must be drawn again; not so for large fanouts.
    """
    sampler = viewed(NeighborSampler, graph_of_all(), fanouts, **options).in_torch()
    with Waits() as waits:
        batch = sampler([5, 11, 5, 30], batch_number=0)
        drawn = dict(waits.counts)
        assert batch.flows[0].weight.shape == batch.flows[0].parent_eid.shape
    # one for the number of distinct seeds
    assert sum(drawn.values()) == 3 * (3 if max(fanouts) > 64 else 2) + 1
    assert waits.counts == drawn


def test_waits_of_other_samplers():
    """Rows of several relations wait for their number, LABOR for the numbers of in-edges and of
    kept ones.

    Layers wait for the numbers of in-edges, of candidates of each type, of nodes drawn, and of
    edges from these.
    """
    waits = {
        "neighbor, types": 4,
        "temporal": 2,
        "temporal, recent": 2,
        "labor": 3,
        "labor, sequential": 6,
    }
    waits |= {"layer": 7, "fastgcn": 3, "fastgcn, poisson": 3, "ladies": 6}
    for name, most in waits.items():
        sampler = FAMILIES[name](graph_of_all()).in_torch()
        with Waits() as waits:
            sampled(name, sampler, batch_number=0)
        assert 0 < waits.counts.total() <= sampler.num_flows * most + 1, name


def test_numbers_that_are_drawn_again(hubs):
    """About one of 60,000 numbers below 70,000 is rejected: such draws wait once or twice more."""
    found = set()
    for seed in range(20):
        sampler = NeighborSampler(hubs, [20_000], seed=seed)
        in_torch = sampler.in_torch()
        with Waits() as waits:
            batch = in_torch([0])
        found.add(waits.counts.total())
        assert fingerprint(batch) == fingerprint(sampler([0]))
    assert min(found) == 4  # one for the seeds, three for a large fanout
    assert max(found) > 5


@pytest.mark.parametrize("name", WITH_FORM)
def test_nothing_is_read_on_the_host(name, monkeypatch):
    sampler = FAMILIES[name](graph_of_all(), weight=None if name == "ladies" else "w")
    expected = {}
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
    """Neither global generators, nor the number of threads, nor operations that are not
    deterministic.
    """
    several = [
        NeighborSampler(hubs, [40, 40, 3]),
        LaborSampler(hubs, [40, 3]),
        FastGCNSampler(hubs, [400, 300]),
    ]
    several += [LaborSampler(hubs, [40, 3], method="sequential"), LadiesSampler(hubs, [400, 300])]
    samplers = [sampler.in_torch() for sampler in several]
    before = random_states()
    threads = torch.get_num_threads()
    expected = [fingerprint(sampler(range(2000))) for sampler in samplers]
    torch.use_deterministic_algorithms(True)
    try:
        for number in (1, 4):
            torch.set_num_threads(number)
            assert [fingerprint(sampler(range(2000))) for sampler in samplers] == expected
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads)
    assert random_states() == before


def test_which_form_draws():
    sampler = NeighborSampler(graph_of_all(), [2, 3])
    in_torch = sampler.in_torch()
    assert (sampler.backend, in_torch.backend) == ("compiled", "torch on cpu")
    assert "torch" not in repr(sampler)
    assert repr(in_torch).endswith("; draws in torch on cpu")
    assert in_torch.settings == sampler.settings  # a run may go on in the other form
    assert pickle.loads(pickle.dumps(in_torch)).backend == "torch on cpu"
    assert in_torch.candidates([5]).eid.equal(sampler.candidates([5]).eid)
    for name in WITH_FORM:
        one = FAMILIES[name](graph_of_all(), **({"edge_type": "type"} if "labor" in name else {}))
        times = [7] if name == "temporal" else []
        if name != "temporal, recent":
            assert one.in_torch().estimand(*times).equal(one.estimand(*times))
    pairs = [NodeFlowLoader(each, range(60), 16, num_workers=2) for each in (sampler, in_torch)]
    for first, again in zip(*pairs, strict=True):
        assert fingerprint(first) == fingerprint(again)
