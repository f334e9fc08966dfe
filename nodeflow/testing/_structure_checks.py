"""Checks of what a sampler's batches hold: ids, order, fanouts, what must not be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import BoundSampler, RowSampler, SamplerBase
from nodeflow.testing._assertions import assert_valid
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
            raise AssertionError(
                f"flow {i} has an edge {int(src[wrong])} -> {int(dst[wrong])} that is not in the "
                "graph"
            )
        along = (ends[0][eid] == src) & (ends[1][eid] == dst)
        against = (ends[0][eid] == dst) & (ends[1][eid] == src)
        right = {"in": along, "out": against}.get(direction, along | against)
        if not bool(right.all()):
            wrong = int((~right).nonzero()[0])
            e = int(eid[wrong])
            raise AssertionError(
                f"flow {i} has an edge {int(src[wrong])} -> {int(dst[wrong])} with the id {e}, but "
                f"edge {e} of the graph is {int(ends[0][e])} -> {int(ends[1][e])} (direction "
                f"{direction!r})"
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
    strict = getattr(case.sampler, "strict", False)
    for seed in case.seeds:
        limit = case.times[seed]
        for epoch in range(_EPOCHS):
            for i, flow in enumerate(case.call([seed], epoch=epoch).flows):
                times = _times(case.graph, name, flow)
                if strict:
                    late = times >= limit
                else:
                    late = times > limit
                words = f"seed {seed} at time {limit} sees the future: in flow {i} edge"
                _at_first(late, words, flow.parent_eid, " is later")


def _times(graph: Graph, name: str, flow: Flow) -> Tensor:
    """The time of every edge of a flow: the latest of its own and that of the node it comes from.

    An edge without a time has the smallest number.
    """
    eid = flow.parent_eid
    nodes = flow.src_layer.parent_nid[flow.edges()[0]]
    columns = [(graph.ndata, 0, nodes), (graph.edata, 0, eid)]
    columns += [(part.data, part.ids.start, nodes) for part in graph.nodes.values()]
    columns += [(part.data, part.ids.start, eid) for part in graph.relations.values()]
    times: Tensor | None = None
    for frame, start, ids in columns:
        if name in frame:
            column = torch.as_tensor(frame[name])
            if column.is_floating_point():
                least = -torch.inf
            else:
                least = torch.iinfo(torch.int64).min
            if times is None:
                times = column.new_full((len(eid),), least)
            else:
                times = times
            has_time = (ids >= start) & (ids < start + frame.num_rows)
            times[has_time] = times[has_time].maximum(column[ids[has_time] - start])
    assert times is not None, f"neither nodes nor edges have a column {name!r}"
    return times


def excluded(case: SamplerCase) -> None:
    """No edge that the filter or ``without_edges`` leaves out is drawn."""
    if not isinstance(case.sampler, BoundSampler):
        raise Skipped("its edges have no filter")
    is_even = torch.arange(case.graph.num_edges) % 2 == 0
    mask = mask_of(case.sampler)
    if mask is None:
        hidden = torch.zeros_like(is_even)
    else:
        hidden = ~torch.from_numpy(np.array(mask))
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
