"""The protocol: samplers of one's own, in few lines, with every option the built-in ones have."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from sampler_reference import fingerprint, picked_positions, random_graph, star
from torch import Tensor

from nodeflow import FullSampler, Graph, NeighborSampler, NodeFlowLoader, Sampler
from nodeflow.sampling import Choice, Step, assemble, edges_along


class Bernoulli(Sampler):
    """Keeps every edge with probability ``rate``."""

    def __init__(self, graph: Graph, num_flows: int, rate: float, **options) -> None:
        super().__init__(graph, num_flows, **options)
        self.rate = rate

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < self.rate, weight=1 / self.rate)


class With(Sampler):
    """Asks a function for its choice."""

    def __init__(self, graph: Graph, function, num_flows: int = 1, **options) -> None:
        super().__init__(graph, num_flows, **options)
        self.function = function

    def choose(self, dst: Tensor, step: Step) -> Choice:
        return self.function(self, dst, step)


MODES = [{}, {"include_dst": False}, {"reuse": True}, {"direction": "out"}, {"direction": "out", "reuse": True}]


# ---- a Bernoulli sampler in every mode


@pytest.mark.parametrize("options", MODES, ids=str)
def test_bernoulli(options):
    graph = random_graph(0, 60, 900)
    batch = Bernoulli(graph, 2, 0.5, seed=1, **options)([3, 4, 3])
    batch.validate()
    assert batch.seed_index.tolist() == [0, 1, 0]
    all_edges = graph.out_edges if options.get("direction") == "out" else graph.in_edges
    for i, flow in enumerate(batch.flows):
        for v, picked in zip(flow.dst_layer.parent_nid.tolist(), picked_positions(batch, i), strict=True):
            every = all_edges([v])[2].tolist()
            assert [e for e in every if e in picked] == picked  # a subset, in the graph's order
        assert flow.weight.equal(torch.full((flow.num_edges,), 2.0))
        assert 0 < flow.num_edges < int(all_edges(flow.dst_layer.parent_nid)[2].numel())


def test_bernoulli_keeps_all_or_nothing_at_the_ends():
    graph = random_graph(1)
    assert fingerprint(Bernoulli(graph, 2, 1.0)([1, 2])) == fingerprint(FullSampler(graph, 2)([1, 2]))
    assert Bernoulli(graph, 2, 1e-30)([1, 2]).flow_sizes == (0, 0)
    assert Bernoulli(graph, 2, 0.5)([]).layer_sizes == (0, 0, 0)


def test_bernoulli_rate():
    # 40,000 independent edges at rate 0.3: within 5 standard errors
    kept = Bernoulli(star(40_000), 1, 0.3)([0]).flow_sizes[0]
    assert abs(kept / 40_000 - 0.3) < 5 * math.sqrt(0.3 * 0.7 / 40_000)


@pytest.mark.parametrize("options", MODES, ids=str)
def test_bernoulli_in_the_loader(options):
    graph = random_graph(2, 60, 900)
    sampler = Bernoulli(graph, 2, 0.5, **options)
    alone = [fingerprint(sampler(seeds)) for seeds in torch.arange(60).split(16)]
    for workers in (0, 2):
        loader = NodeFlowLoader(sampler, range(60), 16, num_workers=workers)
        assert [fingerprint(batch) for batch in loader] == alone


# ---- what a sampler chooses from


def test_candidates():
    graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    found = []

    def look(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        edges = sampler.candidates(dst)
        found.append((edges.src, edges.dst, edges.eid, edges.indptr, edges.degrees, edges.dst_nid, len(edges)))
        return edges.select([0])

    With(graph, look)([2, 3, 1])
    src, dst, eid, indptr, degrees, dst_nid, size = found.pop()
    assert (src.tolist(), dst.tolist(), eid.tolist()) == ([0, 1, 0, 2], [2, 2, 1, 1], [2, 3, 0, 1])
    assert (indptr.tolist(), degrees.tolist(), dst_nid.tolist(), size) == ([0, 2, 2, 4], [2, 0, 2], [2, 3, 1], 4)
    assert {t.dtype for t in (src, dst, eid, indptr, degrees, dst_nid)} == {torch.int64}
    With(graph, look, direction="out")([0])
    src, dst, eid, *_ = found.pop()
    assert (src.tolist(), dst.tolist(), eid.tolist()) == ([1, 2], [0, 0], [0, 2])  # src is the neighbour


@pytest.mark.parametrize("dst", [torch.tensor([9]), torch.tensor([-1]), torch.tensor([0, 2**40])])
def test_candidates_of_unknown_nodes_raise(dst):
    with pytest.raises(IndexError, match=r"dst\[\d\] is"):
        With(star(3), lambda sampler, _, step: sampler.candidates(dst).select([0]))([0])


def test_candidates_of_other_nodes():
    """Two steps in one: the edges of a neighbour; the kind of ids does not matter."""
    graph = Graph.from_edges([1, 2, 3], [0, 1, 2])
    sampler = With(graph, lambda s, dst, _: s.candidates(dst).select([0]))
    for dst in ([1, 2], np.array([1, 2], np.int32), torch.tensor([1, 2], dtype=torch.int32)):
        assert sampler.candidates(dst).src.tolist() == [2, 3]


@pytest.mark.parametrize(
    "keep",
    [
        torch.tensor([True, False, True, True]),
        np.array([True, False, True, True]),
        [0, 2, 3],
        torch.tensor([0, 2, 3], dtype=torch.int32),
    ],
)
def test_select(keep):
    graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    batch = With(graph, lambda s, dst, _: s.candidates(dst).select(keep, weight=torch.tensor([1.0, 2.0, 3.0])))(
        [2, 3, 1]
    )
    assert picked_positions(batch) == [[2], [], [0, 1]]
    assert batch.flows[0].weight.tolist() == [1, 2, 3]


def test_select_repeated_rows():
    graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    batch = With(graph, lambda s, dst, _: s.candidates(dst).select([1, 1, 1, 2], weight=0.5))([2, 3, 1])
    assert picked_positions(batch) == [[3, 3, 3], [], [0]]
    assert batch.flows[0].weight.tolist() == [0.5] * 4
    batch.validate()


@pytest.mark.parametrize(
    ("keep", "weight", "error", "words"),
    [
        ([2, 0], None, ValueError, "ascending"),
        ([0, 4], None, IndexError, r"keep\[1\] is 4"),
        ([-1], None, IndexError, r"keep\[0\] is -1"),
        ([0.5], None, TypeError, "keep must"),
        (torch.tensor([True]), None, ValueError, "one entry per candidate"),
        (np.array([[True] * 4]), None, ValueError, "one entry per candidate"),
        ([0, 1], torch.ones(3), ValueError, "weight must have shape"),
        ([0, 1], torch.ones(2, 1), ValueError, "weight must have shape"),
    ],
)
def test_bad_select(keep, weight, error, words):
    graph = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0])
    with pytest.raises(error, match=words):
        With(graph, lambda s, dst, _: s.candidates(dst).select(keep, weight))([2, 3, 1])


# ---- edges that are no edges of the parent graph


@pytest.mark.parametrize("options", MODES, ids=str)
def test_choice_by_sources(options):
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=6)

    def around(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        return Choice(np.arange(len(dst) + 1), src=(dst + 1) % 6)

    batch = With(graph, around, 2, **options)([5, 1])
    assert batch.seeds.tolist() == [5, 1]
    assert batch.flows[1].src_layer.parent_nid[batch.flows[1].indices].tolist() == [0, 2]
    for flow in batch.flows:
        assert flow.parent_eid.tolist() == [-1] * flow.num_edges
        assert flow.parent_eid.dtype == torch.int64
        assert flow.weight.tolist() == [1.0] * flow.num_edges
    batch.validate()


def test_choice_by_sources_with_edge_ids():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=6)
    graph.edata["w"] = torch.tensor([10.0, 20.0, 30.0])
    choice = Choice([0, 2], src=[1, 5], eid=[1, -1], weight=[0.5, 4.0])  # an edge and an added self-loop of node 2
    batch = With(graph, lambda *_: choice)([2])
    assert batch.flows[0].parent_eid.tolist() == [1, -1]
    assert batch.flows[0].weight.tolist() == [0.5, 4.0]
    batch.copy_from_parent(None, ["w"])
    assert batch.fdata[0]["w"].tolist() == [20.0, 0.0]
    batch.validate()


def test_parent_and_other_edges_in_one_reused_structure():
    graph = Graph.from_edges([1, 2, 3], [0, 1, 2])

    def mixed(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        if step.flow == 1:
            edges = sampler.candidates(dst)
            return edges.select(torch.ones(len(edges), dtype=torch.bool), weight=3.0)
        return Choice([0, *[1] * len(dst)], src=[3])

    batch = With(graph, mixed, 2, reuse=True)([0])
    assert [flow.parent_eid.tolist() for flow in batch.flows] == [[0, -1], [0]]
    assert [flow.weight.tolist() for flow in batch.flows] == [[3.0, 1.0], [3.0]]
    assert batch.front.parent_nid.tolist() == [0, 1, 3]
    batch.validate()


# ---- bad choices


GRAPH = Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0], num_nodes=5)  # in-edges of 2: positions 3 and 4, ids 2 and 3


@pytest.mark.parametrize("options", [{}, {"include_dst": False}, {"reuse": True}], ids=str)
@pytest.mark.parametrize(
    ("choice", "error", "words"),
    [
        (lambda: None, TypeError, "choose must return a Choice, got NoneType"),
        (lambda: ([0, 1], [3]), TypeError, "choose must return a Choice, got tuple"),
        (lambda: Choice([0, 1], [5]), IndexError, r"positions of the Choice\[0\] is 5"),
        (lambda: Choice([0, 1], [-1]), IndexError, r"positions of the Choice\[0\] is -1"),
        (lambda: Choice([0, 2], [3, 2**62]), IndexError, r"positions of the Choice\[1\]"),
        (lambda: Choice([0, 1], [2]), ValueError, "edges of its destination 2 lie at 3 to 4"),
        (lambda: Choice([0, 1, 2], [3, 4]), ValueError, "for 2 destinations, not for 1"),
        (lambda: Choice([0], []), ValueError, "for 0 destinations, not for 1"),
        (lambda: Choice([0, 1], src=[5]), IndexError, r"src of the Choice\[0\] is 5"),
        (lambda: Choice([0, 1], src=[-1]), IndexError, r"src of the Choice\[0\] is -1"),
        (lambda: Choice([0, 1], src=[0], eid=[5]), IndexError, r"eid of the Choice\[0\] is 5"),
        (lambda: Choice([0, 1], src=[0], eid=[-2]), IndexError, r"eid of the Choice\[0\] is -2"),
    ],
)
def test_bad_choices(choice, error, words, options):
    before = GRAPH.indices.tobytes(), GRAPH.indptr.tobytes()
    with pytest.raises(error, match=words):
        With(GRAPH, lambda *_: choice(), **options)([2])
    assert (GRAPH.indices.tobytes(), GRAPH.indptr.tobytes()) == before
    # the thread's scratch memory is back in order
    assert FullSampler(GRAPH, 1)([2]).flows[0].parent_eid.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Choice([0, 1]), ValueError, "either positions or src"),
        (lambda: Choice([0, 1], [0], src=[0]), ValueError, "either positions or src"),
        (lambda: Choice([], []), ValueError, "indptr must rise from 0"),
        (lambda: Choice([0, 2], [0]), ValueError, "indptr must rise from 0 to the number of chosen edges 1"),
        (lambda: Choice([1, 1], [0]), ValueError, "indptr must rise"),
        (lambda: Choice([0, 2, 1], [0]), ValueError, "indptr must rise"),
        (lambda: Choice([0.0, 1.0], [0]), TypeError, "indptr must be"),
        (lambda: Choice([0, 1], [0.5]), TypeError, "positions must be"),
        (lambda: Choice([0, 1], [True]), TypeError, "positions must be"),
        (lambda: Choice([0, 1], torch.tensor([[0]])), TypeError, "positions must be"),
        (lambda: Choice([0, 1], src=torch.tensor([0.0])), TypeError, "src must be"),
        (lambda: Choice([0, 1], 3), TypeError, "positions must be"),
        (lambda: Choice([0, 1], src=[0], eid=[1, 2]), ValueError, "eid must have one entry"),
        (lambda: Choice([0, 1], [0], weight=[1.0, 2.0]), ValueError, "weight must have shape"),
        (lambda: Choice([0, 1], [0], eid=[1]), ValueError, "eid goes with src"),
    ],
)
def test_choices_that_cannot_be_made(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_choice_takes_lists_tensors_and_read_only_arrays():
    graph = Graph(np.array([0, 2, 3]), np.array([1, 0, 0]))
    kinds = [
        ([0, 2, 3], [0, 1, 2]),
        (torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2], dtype=torch.int32)),
        (graph.indptr, graph.edge_ids),  # read-only: must neither warn nor be shared
        (np.array([0, 2, 3], np.uint8), range(3)),
    ]
    expected = fingerprint(FullSampler(graph, 1)([0, 1]))
    for indptr, positions in kinds:
        assert fingerprint(With(graph, lambda *_, c=(indptr, positions): Choice(*c))([0, 1])) == expected


def test_a_choice_is_safe_from_later_writes():
    """A sampler may use one buffer for all its choices."""
    graph = Graph(np.array([0, 2, 3]), np.array([1, 0, 0]))
    buffers = np.array([0, 2, 3]), np.array([0, 1, 2])
    batch = With(graph, lambda *_: Choice(*buffers))([0, 1])
    buffers[0][:] = buffers[1][:] = 99
    assert fingerprint(batch) == fingerprint(FullSampler(graph, 1)([0, 1]))


def test_weights_made_on_demand():
    calls = []

    def weight() -> Tensor:
        calls.append(1)
        return torch.tensor([2.0, 3.0], dtype=torch.float64)

    batch = With(GRAPH, lambda *_: Choice([0, 2], [3, 4], weight=weight))([2])
    assert not calls
    assert batch.flows[0].weight.equal(torch.tensor([2.0, 3.0]))
    assert batch.flows[0].weight.dtype == torch.float32
    assert len(calls) == 1
    wrong = With(GRAPH, lambda *_: Choice([0, 2], [3, 4], weight=lambda: torch.ones(3)))([2])
    with pytest.raises(ValueError, match="weight must have shape"):
        wrong.flows[0].weight  # noqa: B018  asking for it makes it


def test_estimator_weights_of_the_neighbor_sampler_are_made_on_demand(monkeypatch):
    import nodeflow.sampling.neighbor as module

    calls = []
    real = module._inverse_rate
    monkeypatch.setattr(module, "_inverse_rate", lambda *a: calls.append(1) or real(*a))
    batch = NeighborSampler(random_graph(0), [2, 2])([1, 2])
    assert not calls
    assert len(batch.flows[0].weight) == batch.flow_sizes[0]
    assert len(calls) == 1


# ---- what choose is called with


def test_choose_sees_flows_from_the_last_and_distinct_destinations():
    graph = random_graph(3)
    seen: list[tuple[int, list[int]]] = []

    def note(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        assert dst.dtype == torch.int64
        seen.append((step.flow, dst.tolist()))
        edges = sampler.candidates(dst)
        return edges.select(torch.ones(len(edges), dtype=torch.bool))

    batch = With(graph, note, 3)([7, 3, 7])
    assert [flow for flow, _ in seen] == [2, 1, 0]
    assert [dst for _, dst in seen] == [layer.parent_nid.tolist() for layer in batch.layers][:0:-1]
    seen.clear()
    batch = With(graph, note, 3, reuse=True)([7, 3, 7])
    assert [flow for flow, _ in seen] == [2, 1, 0]
    # together once each, in the order of the layers
    assert [v for _, dst in seen for v in dst] == batch.layers[1].parent_nid.tolist()


def test_random_numbers_of_a_step():
    """Fixed by seed, epoch, batch and flow, and different where one of these is."""
    graph = star(3)
    keys: list[int] = []

    def note(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        keys.append(step.random.key)
        return Choice([0] * (len(dst) + 1), [])

    calls = list(itertools.product([0, 1], [0, 1], [None, 0, 1, 5]))
    for seed, epoch, batch in calls * 2:
        With(graph, note, 2, seed=seed)([0], epoch=epoch, batch=batch)
    half = len(keys) // 2
    assert keys[:half] == keys[half:]
    assert len(set(keys[:half])) == half == 2 * len(calls)


# ---- samplers inside samplers


def test_nested_samplers():
    """One that calls another, whole batches of it, while its own numbering is under way."""
    graph = random_graph(4, 200, 3000)
    inner = NeighborSampler(graph, [4, -1], seed=9)

    def nested(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        batch = inner(dst[:1].tolist() * 2 + [0])
        batch.validate()
        assert fingerprint(batch) == expected.setdefault(int(dst[0]), fingerprint(inner(dst[:1].tolist() * 2 + [0])))
        edges = sampler.candidates(dst)
        return edges.select(step.random.uniform(edges.eid) < 0.3, weight=1 / 0.3)

    expected: dict[int, str] = {}
    plain = [Bernoulli(graph, 3, 0.3, include_dst=dst)([5, 6, 5]) for dst in (True, False)]
    for include_dst, other in zip((True, False), plain, strict=True):
        assert fingerprint(With(graph, nested, 3, include_dst=include_dst)([5, 6, 5])) == fingerprint(other)


def test_a_sampler_that_delegates_its_choice():
    graph = random_graph(5)

    class Delegating(Sampler):
        def __init__(self, graph: Graph) -> None:
            super().__init__(graph, 2)
            self.inner = NeighborSampler(graph, [3, 2])

        def choose(self, dst: Tensor, step: Step) -> Choice:
            return self.inner.choose(dst, step)

    assert fingerprint(Delegating(graph)([1, 2])) == fingerprint(NeighborSampler(graph, [3, 2])([1, 2]))


def test_an_exception_in_choose_reaches_the_caller_and_leaves_no_trace():
    class OwnError(Exception):
        pass

    def fail(sampler: Sampler, dst: Tensor, step: Step) -> Choice:
        if step.flow == 0:
            raise OwnError("not today")
        return sampler.candidates(dst).select([0])

    graph = random_graph(6)
    expected = fingerprint(NeighborSampler(graph, [3, 3])(range(40)))
    with pytest.raises(OwnError, match="not today"):
        With(graph, fail, 2)(range(40))
    assert fingerprint(NeighborSampler(graph, [3, 3])(range(40))) == expected


def test_a_sampler_without_choose_cannot_be_made():
    class Nothing(Sampler):
        pass

    with pytest.raises(TypeError, match="choose"):
        Nothing(star(2), 1)


# ---- unbiasedness, by enumeration of all that can be chosen


def subsets(degree: int, fanout: int) -> list[tuple[int, ...]]:
    return list(itertools.combinations(range(degree), min(degree, fanout)))


@pytest.mark.parametrize("options", [{}, {"include_dst": False}, {"reuse": True}], ids=str)
def test_weighted_sum_is_unbiased_exactly(options):
    """Two flows on five nodes: probability times estimate, summed over every choice of every node, is the full sum.

    Fresh draws make the two-flow estimate unbiased too. With reuse a node that is a destination twice (0 is its own
    neighbour's neighbour) uses one draw in both flows, so there only the last flow is compared.
    """
    edges = [(1, 0), (2, 0), (3, 0), (0, 1), (2, 1), (4, 1), (2, 3), (3, 2), (4, 2)]
    graph = Graph.from_edges(*zip(*edges, strict=True))
    arrays = edges_along(graph, "in")
    degree = np.diff(graph.indptr)
    fanout, h = 2, torch.tensor([1.0, -2.0, 3.5, 7.0, 0.25], dtype=torch.float64)
    full = FullSampler(graph, 2, include_dst=options.get("include_dst", True))([0, 1])

    def through(batch, levels: int) -> Tensor:
        value = h[batch.layers[2 - levels].parent_nid]
        for i in range(2 - levels, 2):
            value = batch.flows[i].aggregate(value, "sum", weight=batch.flows[i].weight.double())
        return value

    # a table says which subset each (flow, node) takes; all tables together are the probability space
    slots = [(flow, v) for flow in ((1,) if options.get("reuse") else (1, 0)) for v in range(5)]
    slots = [(flow, v) for flow, v in slots if flow == 0 or v in (0, 1) or options.get("reuse")]
    spaces = [subsets(degree[v], fanout) for _, v in slots]
    mean = [torch.zeros(2, dtype=torch.float64) for _ in range(2)]
    total = 0.0
    for picks in itertools.product(*spaces):
        table = dict(zip(slots, picks, strict=True))
        probability = math.prod(1 / len(space) for space in spaces)

        def choose(dst: Tensor, flow: int, table=table) -> Choice:
            chosen = [table[1 if options.get("reuse") else flow, v] for v in dst.tolist()]
            starts = graph.indptr[dst.numpy()]
            positions = [s + p for s, picked in zip(starts.tolist(), chosen, strict=True) for p in picked]
            sizes = [len(picked) for picked in chosen]
            weight = [degree[v] / len(p) for v, p in zip(dst.tolist(), chosen, strict=True) for _ in p]
            return Choice(np.cumsum([0, *sizes]), np.array(positions, np.int64), weight=weight)

        batch = assemble(graph, arrays, [0, 1], 2, choose, **options)
        for levels in (1, 2):
            mean[levels - 1] += probability * through(batch, levels)
        total += probability
    assert total == pytest.approx(1, abs=1e-12)
    torch.testing.assert_close(mean[0], through(full, 1), rtol=0, atol=1e-12)
    if not options.get("reuse"):
        torch.testing.assert_close(mean[1], through(full, 2), rtol=0, atol=1e-12)


def test_sampled_weights_are_those_of_the_enumeration():
    """The built-in sampler gives each subset the weights under which the enumeration above is unbiased."""
    graph = star(4)
    values = torch.tensor([1.0, 10.0, 100.0, 1000.0], dtype=torch.float64)
    estimates = {}
    for epoch in range(400):
        batch = NeighborSampler(graph, [3])([0], epoch=epoch)
        picked = tuple(sorted(picked_positions(batch)[0]))
        h = torch.cat([torch.zeros(1, dtype=torch.float64), values])[batch.front.parent_nid]
        weight = batch.flows[0].weight.double()
        estimates[picked] = batch.flows[0].aggregate(h, "sum", weight=weight).item()
    assert len(estimates) == 4
    # float32 weights: 4/3 is right to 2**-24
    assert sum(estimates.values()) / 4 == pytest.approx(1111, rel=1e-7)


def test_a_choice_may_be_given_again():
    """Local ids are written over the ids of a kernel's choice; the choice of somebody else must stay as it is."""
    graph = random_graph(5)
    kept: dict[int, Choice] = {}

    class Again(Sampler):
        def choose(self, dst, step):
            if step.flow not in kept:
                edges = self.candidates(dst)
                kept[step.flow] = Choice(edges.indptr, src=edges.src, eid=edges.eid)
            return kept[step.flow]

    sampler = Again(graph, 2)
    first, second = sampler([1, 2, 3]), sampler([1, 2, 3])
    for one, two in zip(first.flows, second.flows, strict=True):
        assert torch.equal(one.indices, two.indices)
    second.validate()
