"""Checks of what a sampler's batches hold: ids, order, fanouts, what must not be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow.flow import Flow, NodeFlow
from nodeflow.graph import Graph
from nodeflow.sampling import Sampler
from nodeflow.sampling.base import BoundSampler, RowSampler
from nodeflow.testing._assertions import assert_valid
from nodeflow.testing._foreign import ForeignSampler
from nodeflow.testing._run import Skipped
from nodeflow.testing._sampler_case import SamplerCase, direction_of, mask_of, with_filter

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
            new = list(dict.fromkeys(row for row in flow.edges()[0].tolist() if row >= size))
            rows = list(range(size, flow.num_src))
            assert new == rows, (
                f"the new nodes of layer {i} are not in order of first appearance: {src[size:]}"
            )


def _keys(batch: NodeFlow, i: int) -> list[tuple[int, int]]:
    layer = batch.layers[i]
    contexts = [0] * len(layer) if layer.context is None else layer.context.tolist()
    return list(zip(contexts, layer.parent_nid.tolist(), strict=True))


def edges(case: SamplerCase) -> None:
    """Every edge of a flow is the edge of the graph that its id says, in the direction of the
    sampler.
    """
    ends = case.graph.edges()
    estimates = isinstance(case.sampler, Sampler) and _estimand(case.sampler, case) is not None
    for i, flow in flows_of(case):
        if not flow.num_edges:
            continue
        src, dst = parents(flow)
        eid = flow.parent_eid if flow.has_parent else torch.full_like(src, -1)
        if bool((eid < 0).any()):
            if not estimates:
                raise Skipped("its edges are not those of the graph: they have no ids")
            at = int((eid < 0).nonzero()[0])
            raise AssertionError(
                f"flow {i} has an edge {int(src[at])} -> {int(dst[at])} that is not in the graph"
            )
        along = (ends[0][eid] == src) & (ends[1][eid] == dst)
        against = (ends[0][eid] == dst) & (ends[1][eid] == src)
        direction = direction_of(case.sampler)
        right = {"in": along, "out": against}.get(direction, along | against)
        if not bool(right.all()):
            at = int((~right).nonzero()[0])
            e = int(eid[at])
            raise AssertionError(
                f"flow {i} has an edge {int(src[at])} -> {int(dst[at])} with the id {e}, but edge "
                f"{e} of the graph is {int(ends[0][e])} -> {int(ends[1][e])} (direction "
                f"{direction!r})"
            )


def parents(flow: Flow) -> tuple[Tensor, Tensor]:
    """Return the parent ids of source and destination of every edge."""
    src, dst = flow.edges()
    return flow.src_layer.parent_nid[src], flow.dst_layer.parent_nid[dst]


def _estimand(sampler: Any, case: SamplerCase) -> Tensor | None:
    """The estimand of a sampler; None where it estimates no sum."""
    with suppress(TypeError):
        time = next(iter(case.times.values())) if case.times else None
        return cast("Tensor", sampler.estimand() if time is None else sampler.estimand(time))
    return None


def fanouts(case: SamplerCase) -> None:
    """No destination has more edges than its fanout; a sampler of fixed sizes draws as many as
    there are.
    """
    sizes = getattr(case.sampler, "fanouts", None)
    if not isinstance(sizes, (tuple, list)) or not all(isinstance(size, int) for size in sizes):
        raise Skipped("it has no attribute fanouts of numbers")
    if isinstance(case.sampler, RowSampler) and len(case.sampler.kinds.names) > 1:
        raise Skipped("its fanouts are of each relation or edge type")
    exact = getattr(case.sampler, "fixed_sizes", False) and not case.times
    if not getattr(case.sampler, "fixed_sizes", True):
        raise Skipped("its fanouts are means (fixed_sizes is False)")
    weighted = getattr(case.sampler, "prob", None) is not None
    for batch, (i, flow) in (
        (b, numbered) for b in batches(case) for numbered in enumerate(b.flows)
    ):
        # with reuse, nodes that are destinations again keep what they drew in a later flow
        first = (
            batch.layers[i + 2].num_nodes
            if getattr(case.sampler, "reuse", False) and i + 2 < batch.num_layers
            else 0
        )
        drawn = flow.in_degrees[first:]
        nodes = flow.dst_layer.parent_nid[first:]
        if sizes[i] >= 0:
            _at_first(drawn > sizes[i], f"flow {i} has more than {sizes[i]} edges at node", nodes)
        if exact and isinstance(case.sampler, Sampler) and not weighted:
            degrees = case.sampler.candidates(nodes).degrees
            replace = getattr(case.sampler, "replace", False) and sizes[i] >= 0
            full = (
                torch.where(degrees > 0, sizes[i], 0)
                if replace
                else degrees.clamp(max=sizes[i])
                if sizes[i] >= 0
                else degrees
            )
            _at_first(
                drawn != full, f"flow {i} does not have min(fanout, degree) edges at node", nodes
            )


def fanouts_per_type(case: SamplerCase) -> None:
    """No destination has more edges of a relation, or of an edge type, than its fanout for that."""
    sampler = case.sampler
    sizes = getattr(case.sampler, "fanouts", None)
    if not isinstance(sampler, RowSampler) or len(sampler.kinds.names) < 2 or sizes is None:
        raise Skipped("it has no fanouts by relation or edge type")
    if not sampler.fixed_sizes:
        raise Skipped("its fanouts are means (fixed_sizes is False)")
    kinds = torch.from_numpy(sampler.kinds.of_edges())
    for i, flow in flows_of(case):
        nodes = flow.dst_layer.parent_nid
        for number, (name, size) in enumerate(
            zip(sampler.kinds.names, sampler.kinds.numbers(sizes[i]), strict=True)
        ):
            if size >= 0:
                own = flow.edges()[1][kinds[flow.parent_eid] == number]
                counts = torch.bincount(own, minlength=flow.num_dst)
                _at_first(
                    counts > int(size),
                    f"flow {i} has more than {size} edges of type {name} at node",
                    nodes,
                )


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
    alone = (
        ((case.graph.in_degrees() == 0) & (case.graph.out_degrees() == 0))
        .nonzero()
        .flatten()
        .tolist()
    )
    alone = [node for node in alone if node in case.sampler.possible_seeds][:1]
    if not alone:
        raise Skipped("no node is without edges")
    case.times.update(
        {seed: max(case.times.values(), default=0) for seed in alone} if case.times else {}
    )
    for seeds in (alone, [*alone, *case.seeds])[: case.sampler.most_seeds]:
        batch = case.call(list(dict.fromkeys(seeds)))
        assert_valid(batch)
        _check_seeds(batch, list(dict.fromkeys(seeds)))
        row = int(batch.seed_index[0])
        edges = [
            int(f.in_degrees[row])
            for f in batch.flows
            if row < f.num_dst and int(f.dst_layer.parent_nid[row]) == alone[0]
        ]
        assert not any(edges), f"node {alone[0]} has no neighbours, but edges in the batch"


def no_seeds(case: SamplerCase) -> None:
    """A call without seeds gives a batch without nodes, or ValueError where the sampler needs
    some.
    """
    none: list[int] = []
    try:
        batch = case.call(none)
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
        for epoch in range(_EPOCHS):
            for i, flow in enumerate(case.call([seed], epoch=epoch).flows):
                eid = flow.parent_eid
                times = _times(case.graph, name, flow)
                late = times >= case.times[seed] if strict else times > case.times[seed]
                _at_first(
                    late,
                    f"seed {seed} at time {case.times[seed]} sees the future: in flow {i} edge",
                    eid,
                    " is later",
                )


def _times(graph: Graph, name: str, flow: Flow) -> Tensor:
    """The time of every edge of a flow: the later of its own and that of the node it comes from;
    the smallest: none.
    """
    eid = flow.parent_eid
    nodes = flow.src_layer.parent_nid[flow.edges()[0]]
    columns = [
        (torch.arange(graph.num_nodes), graph.ndata, nodes),
        (torch.arange(graph.num_edges), graph.edata, eid),
    ]
    columns[1:1] = [(torch.tensor(part.ids), part.data, nodes) for part in graph.nodes.values()]
    columns[-1:-1] = [(torch.tensor(part.ids), part.data, eid) for part in graph.relations.values()]
    times: Tensor | None = None
    for ids, frame, places in columns:
        if name in frame:
            column = torch.as_tensor(frame[name])
            none = -torch.inf if column.is_floating_point() else torch.iinfo(torch.int64).min
            times = column.new_full((len(eid),), none) if times is None else times
            own = torch.isin(places, ids)
            times[own] = times[own].maximum(column[places[own] - ids[0]])
    assert times is not None, f"neither nodes nor edges have a column {name!r}"
    return times


def excluded(case: SamplerCase) -> None:
    """No edge that the filter or ``without_edges`` leaves out is drawn."""
    if not isinstance(case.sampler, BoundSampler) or isinstance(case.sampler, ForeignSampler):
        raise Skipped("its edges have no filter")
    left_out = torch.arange(0, case.graph.num_edges, 2)
    own = mask_of(case.sampler)
    # hides those of even ids too
    filtered = with_filter(case.sampler, torch.arange(case.graph.num_edges) % 2 == 1)
    for sampler, mask in (
        (case.sampler, own),
        (case.sampler.without_edges(left_out), None),
        (filtered, None),
    ):
        if sampler is None:
            continue
        hidden = torch.zeros(case.graph.num_edges, dtype=torch.bool)
        if sampler is not case.sampler:
            hidden[left_out] = True
        elif mask is not None:
            hidden |= ~torch.from_numpy(np.array(mask))
        for epoch in range(_EPOCHS):
            for i, flow in enumerate(case.call(sampler=sampler, epoch=epoch).flows):
                eid = (
                    flow.parent_eid[flow.parent_eid >= 0]
                    if flow.has_parent
                    else torch.empty(0, dtype=torch.int64)
                )
                _at_first(
                    hidden[eid],
                    f"flow {i} has edge",
                    eid,
                    ", which the filter or without_edges leaves out",
                )
