"""Checks of a sampler's batches: what they hold, and that they depend on what they should and on
nothing else.
"""

from __future__ import annotations

import hashlib
import pickle
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow.flow import Flow, NodeFlow
from nodeflow.sampling import Sampler, TemporalNeighborSampler
from nodeflow.sampling.base import BoundSampler, RowSampler, SamplerBase
from nodeflow.testing._assertions import (
    assert_reproducible,
    assert_valid,
    parts_of,
    same,
    tensor_as_bytes,
)
from nodeflow.testing._graphs import dense
from nodeflow.testing._run import Skipped
from nodeflow.testing._sampler_case import SamplerCase, direction_of, mask_of

_EPOCHS = 5


def batches(case: SamplerCase) -> Iterator[NodeFlow]:
    """Yield a few batches of the case."""
    for epoch in range(_EPOCHS):
        yield case.call(epoch=epoch)


def flows_of(case: SamplerCase) -> Iterator[tuple[int, Flow]]:
    """Yield the number of every flow of a few batches, and the flow."""
    for batch in batches(case):
        yield from enumerate(batch.flows)


def structure(case: SamplerCase) -> None:
    """Every invariant of a NodeFlow holds, and the batch belongs to the sampler's graph and
    seeds.
    """
    for batch in batches(case):
        assert_valid(batch)
        assert batch.parent is case.graph, "batch.parent is not the sampler's graph"
        flows = case.sampler.num_flows
        assert batch.num_flows == flows, (
            f"the batch has {batch.num_flows} flows, the sampler says {flows}"
        )
        if case.sampler.seed_kind == "node":
            _check_seeds(batch, case.seeds)


def _check_seeds(batch: NodeFlow, seeds: list[int]) -> None:
    index = batch.seed_index
    assert len(index) == len(seeds), f"seed_index has {len(index)} rows for {len(seeds)} seeds"
    rows = batch.seeds[index].tolist()
    assert rows == seeds, f"seed_index leads to the nodes {rows}, but the seeds are {seeds}"


def order(case: SamplerCase) -> None:
    """Layers begin with the nodes of the next one, new ones in order of first appearance; without
    it, sorted.
    """
    if not isinstance(case.sampler, Sampler):
        raise Skipped("it does not derive from Sampler, whose order is promised")
    for batch in batches(case):
        if batch.back.context is None:
            # a batch has a row per distinct seed, in the order in which they first come
            distinct = list(dict.fromkeys(case.seeds))
            assert batch.seeds.tolist() == distinct, (
                f"the last layer is {batch.seeds.tolist()}, not the seeds {distinct}"
            )
        for i, flow in enumerate(batch.flows):
            src = flow.src_layer.parent_nid.tolist()
            if not case.sampler.include_dst:
                keys = _keys(batch, i)
                assert keys == sorted(keys), f"layer {i} is not sorted: {src}"
                continue
            size = flow.num_dst
            assert _keys(batch, i)[:size] == _keys(batch, i + 1), (
                f"layer {i} does not begin with the nodes of layer {i + 1}"
            )
            sources = flow.edges()[0].tolist()
            new = list(dict.fromkeys(row for row in sources if row >= size))
            rows = list(range(size, flow.num_src))
            assert new == rows, (
                f"the new nodes of layer {i} are not in order of first appearance: {src[size:]}"
            )


def _keys(batch: NodeFlow, i: int) -> list[tuple[int, int]]:
    layer = batch.layers[i]
    if layer.context is None:
        contexts = [0] * len(layer)
    else:
        contexts = layer.context.tolist()
    return list(zip(contexts, layer.parent_nid.tolist(), strict=True))


def edges(case: SamplerCase) -> None:
    """Every edge of a flow is the edge of the graph that its id says, in the direction of the
    sampler.
    """
    ends = case.graph.edges()
    direction = direction_of(case.sampler)
    for i, flow in flows_of(case):
        src, dst = parents(flow)
        if flow.has_parent:
            eid = flow.parent_eid
        else:
            eid = torch.full_like(src, -1)
        if bool((eid < 0).any()):
            if not isinstance(case.sampler, Sampler):
                raise Skipped("its edges are not those of the graph: they have no ids")
            case.estimand(case.seeds[0])  # edges of a sampler that estimates no sum may be new
            wrong = int((eid < 0).nonzero()[0])
            u = int(src[wrong])
            v = int(dst[wrong])
            raise AssertionError(f"flow {i} has an edge {u} -> {v} that is not in the graph")
        along = (ends[0][eid] == src) & (ends[1][eid] == dst)
        against = (ends[0][eid] == dst) & (ends[1][eid] == src)
        right = {"in": along, "out": against}.get(direction, along | against)
        if not bool(right.all()):
            wrong = int((~right).nonzero()[0])
            u = int(src[wrong])
            v = int(dst[wrong])
            e = int(eid[wrong])
            real = f"{int(ends[0][e])} -> {int(ends[1][e])}"
            raise AssertionError(
                f"flow {i} has an edge {u} -> {v} with the id {e}, but edge {e} of the graph is "
                f"{real} (direction {direction!r})"
            )


def parents(flow: Flow) -> tuple[Tensor, Tensor]:
    """Return the parent ids of source and destination of every edge."""
    src, dst = flow.edges()
    return flow.src_layer.parent_nid[src], flow.dst_layer.parent_nid[dst]


def fanouts(case: SamplerCase) -> None:
    """No destination has more edges, of a relation or an edge type, than its fanout; fixed sizes
    are as many as there are.
    """
    sampler = case.sampler
    sizes = getattr(sampler, "fanouts", None)
    if not getattr(sampler, "fixed_sizes", True):
        raise Skipped("its fanouts are means (fixed_sizes is False)")
    if isinstance(sampler, RowSampler) and len(sampler.kinds.names) > 1 and sizes is not None:
        _fanouts_per_type(case, sampler, sizes)
        return
    if not isinstance(sizes, (tuple, list)) or not all(isinstance(size, int) for size in sizes):
        raise Skipped("it has no attribute fanouts of numbers")
    is_exact = getattr(sampler, "fixed_sizes", False) and isinstance(sampler, Sampler)
    # edges of the future and of weight 0 are never drawn
    is_exact &= not case.times and getattr(sampler, "prob", None) is None
    for batch in batches(case):
        for i, flow in enumerate(batch.flows):
            size = sizes[i]
            first = 0
            # with reuse, nodes that are destinations again keep what they drew in a later flow
            if getattr(sampler, "reuse", False) and i + 2 < batch.num_layers:
                first = batch.layers[i + 2].num_nodes
            drawn = flow.in_degrees[first:]
            nodes = flow.dst_layer.parent_nid[first:]
            if size >= 0:
                _at_first(drawn > size, f"flow {i} has more than {size} edges at node", nodes)
            if is_exact:
                words = f"flow {i} does not have min(fanout, degree) edges at node"
                _at_first(drawn != _full_sizes(sampler, nodes, size), words, nodes)


def _full_sizes(sampler: Any, nodes: Tensor, size: int) -> Tensor:
    """The numbers of edges that nodes have where their fanout is reached."""
    degrees: Tensor = sampler.candidates(nodes).degrees
    if size < 0:
        return degrees
    if getattr(sampler, "replace", False):
        return torch.where(degrees > 0, size, 0)
    return degrees.clamp(max=size)


def _fanouts_per_type(case: SamplerCase, sampler: RowSampler, sizes: Sequence[Any]) -> None:
    """No destination has more edges of a relation, or of an edge type, than its fanout for that."""
    kinds = torch.from_numpy(sampler.kinds.of_edges())
    for i, flow in flows_of(case):
        numbers = sampler.kinds.numbers(sizes[i])
        for kind, (name, size) in enumerate(zip(sampler.kinds.names, numbers, strict=True)):
            if size >= 0:
                rows = flow.edges()[1][kinds[flow.parent_eid] == kind]
                counts = torch.bincount(rows, minlength=flow.num_dst)
                words = f"flow {i} has more than {size} edges of type {name} at node"
                _at_first(counts > int(size), words, flow.dst_layer.parent_nid)


def repeats(case: SamplerCase) -> None:
    """No destination has an edge twice, unless the sampler draws with replacement (``replace``)."""
    if getattr(case.sampler, "replace", False):
        raise Skipped("it draws with replacement")
    for i, flow in flows_of(case):
        if flow.num_edges and flow.has_parent:
            dst = flow.edges()[1]
            eid = flow.parent_eid
            pairs, counts = torch.stack([dst, eid])[:, eid >= 0].unique(dim=1, return_counts=True)
            _at_first(
                counts > 1,
                f"flow {i} has edge",
                pairs[1],
                " twice at one destination; with replacement set replace",
            )


def _at_first(wrong: Tensor, words: str, ids: Tensor, more: str = "") -> None:
    assert not bool(wrong.any()), f"{words} {int(ids[wrong.nonzero()[0, 0]])}{more}"


def repeated_seeds(case: SamplerCase) -> None:
    """A repeated seed has one row, to which ``seed_index`` leads."""
    if case.sampler.seed_kind != "node" or case.sampler.most_seeds is not None:
        raise Skipped("seeds are not nodes")
    if not case.seeds:
        raise Skipped("there are no seeds")
    seeds = [*case.seeds, case.seeds[0], case.seeds[-1]]
    batch = case.call(seeds)
    assert_valid(batch)
    _check_seeds(batch, seeds)


def isolated_seeds(case: SamplerCase) -> None:
    """A seed without neighbours has a row, and no edges."""
    if case.sampler.seed_kind != "node":
        raise Skipped("seeds are not nodes")
    degrees = case.graph.in_degrees() + case.graph.out_degrees()
    alone = [v for v in case.sampler.possible_seeds if degrees[v] == 0][:1]
    if not alone:
        raise Skipped("no node is without edges")
    if case.times:
        case.times[alone[0]] = max(case.times.values())
    for others in ([], case.seeds)[: case.sampler.most_seeds]:
        seeds = list(dict.fromkeys([*alone, *others]))
        batch = case.call(seeds)
        assert_valid(batch)
        _check_seeds(batch, seeds)
        for flow in batch.flows:
            edges_of = flow.in_degrees[flow.dst_layer.parent_nid == alone[0]]
            assert not edges_of.any(), f"node {alone[0]} has no neighbours, but edges in the batch"


def no_seeds(case: SamplerCase) -> None:
    """A call without seeds gives a batch without nodes, or ValueError where the sampler needs
    some.
    """
    try:
        batch = case.call([])
    except ValueError:
        if case.sampler.most_seeds is None:
            raise
        return
    assert_valid(batch)
    assert len(batch.seed_index) == 0, f"a batch of no seeds has {len(batch.seed_index)} seeds"
    if case.sampler.seed_kind == "node":
        assert sum(batch.layer_sizes) == 0, (
            f"a batch of no seeds has layers of {batch.layer_sizes} nodes"
        )


def future(case: SamplerCase) -> None:
    """No edge of a seed's batch is later than the seed's time."""
    name = getattr(case.sampler, "time", None)
    if not case.times:
        raise Skipped("it takes no times")
    if not isinstance(name, str):
        raise Skipped("it has no attribute time, the name of the column of times")
    # edges and nodes have times, and types may: the package knows what a seed of a time sees
    reference = TemporalNeighborSampler(
        case.graph.view(direction_of(case.sampler)),
        [-1],
        time=name,
        strict=getattr(case.sampler, "strict", False),
    )
    for seed in case.seeds:
        limit = case.times[seed]
        is_late = reference.estimand(limit) == 0
        for epoch in range(_EPOCHS):
            for i, flow in enumerate(case.call([seed], epoch=epoch).flows):
                words = f"seed {seed} at time {limit} sees the future: in flow {i} edge"
                _at_first(is_late[flow.parent_eid], words, flow.parent_eid, " is later")


def excluded(case: SamplerCase) -> None:
    """No edge that the filter or ``without_edges`` leaves out is drawn."""
    if not isinstance(case.sampler, BoundSampler):
        raise Skipped("its edges have no filter")
    is_even = torch.arange(case.graph.num_edges) % 2 == 0
    hidden = torch.zeros_like(is_even)
    mask = mask_of(case.sampler)
    if mask is not None:
        hidden = torch.from_numpy(~mask)
    samplers: list[tuple[SamplerBase, Tensor]] = [
        (case.sampler, hidden),
        # what draws edges that are left out reads the graph itself, past every filter
        (case.sampler.without_edges(is_even.nonzero().flatten()), is_even),
    ]
    for sampler, left_out in samplers:
        for epoch in range(_EPOCHS):
            for i, flow in enumerate(case.call(sampler=sampler, epoch=epoch).flows):
                if flow.has_parent:
                    eid = flow.parent_eid[flow.parent_eid >= 0]
                    words = ", which the filter or without_edges leaves out"
                    _at_first(left_out[eid], f"flow {i} has edge", eid, words)


_THREADS = 4


def reproducible(case: SamplerCase) -> None:
    """The same call gives the same batch: again, after other draws, with other global states, of a
    new sampler.
    """
    times = [case.times[seed] for seed in case.seeds if case.times]
    assert_reproducible(case.sampler, case.seeds, times=times or None)
    try:
        again = case.other(case.graph, case.seeds)
    except Skipped as reason:
        raise AssertionError(f"the sampler cannot be made again: {reason}") from None
    same("a new sampler with the same settings", case.call(), case.call(sampler=again.sampler))


def threads(case: SamplerCase) -> None:
    """Batches that threads draw at the same time are those that one thread draws."""
    epochs = range(2 * _THREADS)
    alone = [case.call(epoch=epoch) for epoch in epochs]
    with ThreadPoolExecutor(_THREADS) as pool:
        together = list(pool.map(lambda epoch: case.call(epoch=epoch), epochs))
    for first, again in zip(alone, together, strict=True):
        same("a call from one of several threads", first, again)


def pickles(case: SamplerCase) -> None:
    """A pickled batch is the same batch, and a pickled sampler draws the same."""
    batch = case.call()
    same("pickling a batch", batch, pickle.loads(pickle.dumps(batch)))
    try:
        data = pickle.dumps(case.sampler)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise Skipped(f"the sampler cannot be pickled: {error}") from None
    same("a pickled sampler", batch, case.call(sampler=pickle.loads(data)))


def calls(case: SamplerCase) -> None:
    """A seed draws the same whichever other seeds are in the call, of a sampler that says so
    (``by_row``).
    """
    if not (isinstance(case.sampler, Sampler) and case.sampler.by_row):
        raise Skipped("by_row is False: a draw may depend on the other seeds")
    if case.times:
        raise Skipped("seeds of one time draw together")
    # one batch number for all calls: it is a part of the key of a draw
    whole = _drawn(case.call(batch_number=0))
    for seeds in filter(None, (case.seeds[::-1], case.seeds[:1], case.seeds[1:])):
        drawn = _drawn(case.call(seeds, batch_number=0))
        for seed in seeds:
            edges = whole.get(seed, [])
            others = drawn.get(seed, [])
            assert edges == others, (
                f"seed {seed} draws {edges} in a call with the seeds {case.seeds}, and {others} "
                f"with {seeds}: by_row says that it depends on its own edges alone"
            )


def _drawn(batch: NodeFlow) -> dict[int, list[tuple[int, int]]]:
    """The edge ids and sources of the last flow, by seed."""
    drawn: dict[int, list[tuple[int, int]]] = {}
    flow = batch.flows[-1]
    src, dst = parents(flow)
    for u, v, e in zip(src.tolist(), dst.tolist(), flow.parent_eid.tolist(), strict=True):
        drawn.setdefault(v, []).append((u, e))
    return {seed: sorted(edges) for seed, edges in drawn.items()}


def epochs(case: SamplerCase) -> None:
    """Draws of other epochs and batch numbers are other draws, of a sampler that draws at random."""
    count = 12
    by_epoch = {_fingerprint(case.call(epoch=i)) for i in range(count)}
    others = {_fingerprint(case.call(batch_number=i)) for i in range(count)}
    seeded = {_fingerprint(case.call(sampler=case.reseeded())), _fingerprint(case.call())}
    if len(by_epoch) > 1:
        return
    if len(others) > 1 or len(seeded) > 1:
        raise AssertionError(
            f"{count} epochs have the same draws, but another seed or batch number has others"
        )
    raise Skipped("nothing is random: all draws are the same")


def _fingerprint(batch: NodeFlow) -> frozenset[tuple[str, bytes]]:
    """The hashes of the structure, ids and weights of a batch."""
    tensors = (part for part in parts_of(batch) if isinstance(part[1], Tensor))
    return frozenset((name, tensor_bytes(part)) for name, part in tensors)


def global_state(case: SamplerCase) -> None:
    """A call leaves the global random states of Python, numpy and torch as they were."""
    before = global_states()
    case.call()
    for name, state in global_states().items():
        assert state == before[name], f"a call changes the global random state of {name}"


def global_states() -> dict[str, object]:
    """Return the global random states of Python, numpy and torch, in a form that can be
    compared.
    """
    _, keys, *numbers = np.random.get_state()  # noqa: NPY002  the global state is what is meant
    return {
        "random": random.getstate(),
        "numpy": (*numbers, np.asarray(keys).tobytes()),
        "torch": torch.get_rng_state().numpy().tobytes(),
    }


def untouched(case: SamplerCase) -> None:
    """A call changes neither the seeds nor the graph and its columns."""
    seeds = torch.tensor(case.seeds, dtype=torch.int64)
    # an array may share its memory with what the sampler makes of it
    array = seeds.clone().numpy()
    before = _bytes_of(case)
    for ids, what in ((seeds, "tensor"), (array, "array")):
        case.call(ids)  # type: ignore[arg-type]
        assert ids.tolist() == case.seeds, (
            f"a call changes the {what} of seeds: {case.seeds} became {ids.tolist()}"
        )
    for name, value in _bytes_of(case).items():
        assert value == before[name], f"a call changes {name} of the graph"


def _bytes_of(case: SamplerCase) -> dict[str, bytes]:
    """The hashes of the structure and the columns of a graph."""
    names = ("indptr", "indices", "edge ids")
    arrays: dict[str, Any] = dict(zip(names, case.graph.csc(), strict=True))
    for word, frame in (("ndata", case.graph.ndata), ("edata", case.graph.edata)):
        arrays |= {f"{word}[{name!r}]": column for name, column in dense(frame).items()}
    return {name: tensor_bytes(array) for name, array in arrays.items() if array is not None}


def tensor_bytes(value: Any) -> bytes:
    """Return the hash of the bytes of an array or tensor."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = tensor_as_bytes(value).numpy()
    content = np.ascontiguousarray(value).tobytes()
    return hashlib.sha256(content).digest()
