"""A NodeFlow and its parent graph: maps between their ids, and columns copied in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch
from torch import Tensor

from nodeflow._base.checks import ALL, LARGEST, _All, as_ids, as_index, check_type, describe
from nodeflow._rows.rows import fetch_rows, is_read_only
from nodeflow.graph import Frame

if TYPE_CHECKING:
    from nodeflow._base.types import IdsLike
    from nodeflow.flow._node_flow import NodeFlow
    from nodeflow.flow._types import NamesLike
    from nodeflow.graph import Graph

_K = TypeVar("_K", int, tuple[int, int])  # the number of a layer, or the pair of layers of a flow
_Owned: TypeAlias = tuple[Frame, str]
"""A frame, and words that say whose it is."""


def map_to_parent_nid(batch: NodeFlow, nid: IdsLike) -> Tensor:
    """Return the parent ids of nodes given by NodeFlow id, int64 ``[k]``. Raises IndexError for an unknown id."""
    ids = torch.from_numpy(as_ids(nid, "nid", sum(batch.layer_sizes))).to(batch.device)
    parent_ids = [layer.parent_nid if layer.has_parent else None for layer in batch.layers]
    return _looked_up(ids, parent_ids, batch.layer_sizes, "nid", "layer")


def map_to_parent_eid(batch: NodeFlow, eid: IdsLike) -> Tensor:
    """Return the parent ids of edges given by NodeFlow id, int64 ``[k]`` (-1 for an edge without a parent edge)."""
    flows = [batch.flows[pair] for pair in batch.flows.pairs()]
    ids = torch.from_numpy(as_ids(eid, "eid", sum(flow.num_edges for flow in flows), "edge")).to(batch.device)
    parent_ids = [flow.parent_eid if flow.has_parent else None for flow in flows]
    return _looked_up(ids, parent_ids, [flow.num_edges for flow in flows], "eid", "flow")


def _looked_up(ids: Tensor, parent_ids: list[Tensor | None], sizes: Sequence[int], name: str, part: str) -> Tensor:
    """Return the parent ids of NodeFlow ids; raises ValueError for an id in a part that has no parent ids."""
    none = torch.iinfo(torch.int64).min
    whole = [ids.new_full((n,), none) if own is None else own for own, n in zip(parent_ids, sizes, strict=True)]
    wanted = torch.cat([ids.new_empty(0), *whole])[ids]
    orphans = wanted == none
    if bool(orphans.any()):
        at = int(orphans.nonzero()[0])
        raise ValueError(f"{name}[{at}] is {int(ids[at])}, which is in a {part} made without parent ids")
    return wanted


def check_fits(batch: NodeFlow, graph: Graph) -> None:
    """Raise TypeError or IndexError unless every parent id of ``batch`` is an id of ``graph``."""
    check_graph(graph, "graph")
    for i, layer in enumerate(batch.layers):
        if layer.has_parent:
            as_ids(layer.parent_nid, f"layers[{i}].parent_nid", graph.num_nodes)
    for i, j in batch.flows.pairs():
        flow = batch.flows[i, j]
        if flow.has_parent:
            as_ids(flow.parent_eid, f"flows[{i}, {j}].parent_eid", graph.num_edges, "edge", lower=-1)


def check_graph(graph: object, name: str) -> None:
    """Raise TypeError for anything but a Graph."""
    from nodeflow.graph import Graph

    check_type(graph, name, Graph, "a nodeflow.Graph")


def map_from_parent_nid(
    batch: NodeFlow, layer: int, parent_nid: IdsLike, *, remap_local: bool = False, allow_missing: bool = False
) -> Tensor:
    """Return the NodeFlow ids that parent nodes have in one layer, int64 ``[k]``.

    Args:
        layer: the layer to look in.
        parent_nid: parent ids.
        remap_local: give local ids (rows of the layer) instead of NodeFlow ids.
        allow_missing: give -1 for a parent node that is not in the layer, instead of raising KeyError.
    """
    i = as_index(layer, "layer", batch.num_layers)
    upper = LARGEST if batch.parent is None else batch.parent.num_nodes
    ids = torch.from_numpy(as_ids(parent_nid, "parent_nid", upper)).to(batch.device)
    rows = batch.layers[i].rows_of(ids)
    missing = rows < 0
    if not allow_missing and bool(missing.any()):
        at = int(missing.nonzero()[0])
        node = f"parent node {int(ids[at])} (parent_nid[{at}])"
        raise KeyError(f"{node} is not in layer {i}; allow_missing=True gives -1 instead")
    if remap_local:
        return rows
    return torch.where(missing, -1, rows + sum(batch.layer_sizes[:i]))


def copy_from_parent(batch: NodeFlow, ndata: NamesLike = ALL, edata: NamesLike = ALL) -> None:
    """Copy columns of the parent's frames to the frames of layers and flows, on this NodeFlow's device.

    Args:
        ndata: which node columns: ``ALL``, None, a list of names for every layer, or a dict from layer number to
            ``ALL`` or a list of names, as in ``{0: ["feat"], -1: ["label"]}``.
        edata: which edge columns, likewise by flow number (or pair of layers for flows that skip layers). Edges
            without a parent edge get zeros.

    Raises KeyError for an unknown column, ValueError without a parent graph; then no frame has changed.
    """
    graph = _graph(batch)
    copied: list[tuple[Frame, dict[str, Tensor]]] = []
    for i, names in _chosen_layers(batch, ndata, lambda _: (graph.ndata, "the parent graph's ndata")).items():
        layer = batch.layers[i]
        columns = {name: fetch_rows(graph.ndata[name], layer.parent_nid).to(batch.device) for name in names}
        copied.append((layer.data, columns))
    for pair, names in _chosen_flows(batch, edata, lambda _: (graph.edata, "the parent graph's edata")).items():
        flow = batch.flows[pair]
        columns = {name: _edge_rows(name, graph.edata[name], flow.parent_eid).to(batch.device) for name in names}
        copied.append((flow.data, columns))
    for frame, columns in copied:
        frame.update(columns)


def copy_to_parent(batch: NodeFlow, ndata: NamesLike = ALL, edata: NamesLike = ALL) -> None:
    """Write columns of layers and flows into the parent's frames, at the rows of their parent ids.

    The arguments choose columns as in ``copy_from_parent``. Layers are written in order. Where several layers hold one
    parent node, **the value of the layer nearest to the seeds stays**. The same holds for edges in several flows (flows
    that skip layers come last). Where one flow holds an edge repeatedly, or one layer a node in several contexts, the
    last row stays.

    A column that the parent has is written in place, without gradient: graphs that share the tensor see it too. Other
    columns are new in the parent, with zeros in the rows that are not written.

    Raises ValueError for a column whose rows have another shape or type than the parent's, or whose memory in the
    parent cannot be written (a memory-mapped file); then the parent is as it was.
    """
    graph = _graph(batch)
    writes: list[tuple[Frame, str, Tensor, Tensor]] = []
    for i, names in _chosen_layers(batch, ndata, lambda i: (batch.ldata[i], f"layer {i}")).items():
        layer = batch.layers[i]
        for name in names:
            ids: Tensor = layer.parent_nid
            rows = layer.data[name]
            if layer.context is not None:  # a node may be there in several contexts
                last = _last_of_each(ids)
                ids, rows = ids[last], _dense(name, rows)[last]
            writes.append((graph.ndata, name, ids, rows))
    for pair, names in _chosen_flows(batch, edata, lambda pair: (batch.fdata[pair], f"flow {pair}")).items():
        flow = batch.flows[pair]
        last = _last_of_each(flow.parent_eid)
        for name in names:
            writes.append((graph.edata, name, flow.parent_eid[last], _dense(name, flow.data[name])[last]))
    made: dict[tuple[int, str], Tensor] = {}
    for frame, name, _, values in writes:  # all checks come before the first write
        key = (id(frame), name)
        if name not in frame and key not in made:
            made[key] = values.new_zeros((frame.num_rows, *_dense(name, values).shape[1:]), requires_grad=False)
        _check_write(name, made[key] if key in made else frame[name], values)
    for frame, name, ids, values in writes:
        column = made.get((id(frame), name))
        target = frame[name] if column is None else column
        with torch.no_grad():
            values = values.detach().to(target.device)
            shared = values.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
            target[ids.to(target.device)] = values.clone() if shared else values
        frame[name] = target


def _graph(batch: NodeFlow) -> Graph:
    if batch.parent is None:
        raise ValueError("this NodeFlow has no parent graph; attach one with batch.with_parent(graph)")
    return batch.parent


def _chosen_layers(batch: NodeFlow, choice: NamesLike, frame: Callable[[int], _Owned]) -> dict[int, list[str]]:
    # layers without parent nodes take no part in a choice that speaks of all layers
    every = [i for i in range(batch.num_layers) if batch.layers[i].has_parent]
    return _chosen(choice, "ndata", every, lambda key: as_index(key, "layer", batch.num_layers), frame)


def _chosen_flows(
    batch: NodeFlow, choice: NamesLike, frame: Callable[[tuple[int, int]], _Owned]
) -> dict[tuple[int, int], list[str]]:
    every = [pair for pair in batch.flows.pairs() if batch.flows[pair].has_parent]
    return _chosen(choice, "edata", every, lambda key: batch.flows[key].layers, frame)


def _chosen(
    choice: NamesLike, name: str, every: list[_K], normal: Callable[[Any], _K], frame: Callable[[_K], _Owned]
) -> dict[_K, list[str]]:
    """Turn a choice of columns into column names per layer (or flow), in order."""
    if choice is None:
        return {}
    if isinstance(choice, Mapping):
        per_part = {normal(key): names for key, names in choice.items()}
        if len(per_part) < len(choice):
            raise ValueError(f"{name} names one layer or flow twice: {list(choice)}")
    else:
        per_part = dict.fromkeys(every, choice)
    order = {key: at for at, key in enumerate(every)}  # keys that are not there raise when their ids are asked for
    keys = sorted(per_part, key=lambda key: order.get(key, 0))
    return {key: _names(per_part[key], name, *frame(key)) for key in keys}


def _names(names: object, argument: str, frame: Frame, owner: str) -> list[str]:
    if isinstance(names, _All):
        return list(frame)
    names = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else names
    if isinstance(names, list) and not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"{argument} must name columns; for a choice per layer or flow give a dict, as in {{0: ['x'], -1: ['y']}}; "
            f"got {describe(names)}"
        )
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(
            f"{argument} must be ALL, None, a list of column names or a dict of such lists, got {describe(names)}"
        )
    columns = list(names)
    for name in columns:
        if name not in frame:  # before anything is written
            raise KeyError(f"no column {name!r} in {owner}, which has {', '.join(map(repr, frame)) or 'no columns'}")
    return columns


def _last_of_each(ids: Tensor) -> Tensor:
    """Return the last row of every parent id; rows without one (-1) are left out."""
    kept = (ids >= 0).nonzero().squeeze(1)
    ascending, order = torch.sort(ids[kept], stable=True)
    last = torch.ones_like(ascending, dtype=torch.bool)
    last[:-1] = ascending[1:] != ascending[:-1]
    return kept[order[last]]


def _edge_rows(name: str, column: Tensor, eid: Tensor) -> Tensor:
    missing = eid < 0
    if not bool(missing.any()):
        return fetch_rows(column, eid)
    found = _dense(name, fetch_rows(column, eid[~missing]))
    missing = missing.to(found.device)
    rows = found.new_zeros((len(eid), *found.shape[1:]))
    return rows.masked_scatter(~missing.view(-1, *[1] * (found.ndim - 1)), found)


def _dense(name: str, values: Tensor) -> Tensor:
    if values.layout != torch.strided:
        raise ValueError(f"column {name!r} is sparse; only dense columns can be written or padded here")
    return values


def _check_write(name: str, target: Tensor, values: Tensor) -> None:
    if not isinstance(target, Tensor):
        raise TypeError(f"column {name!r} of the parent is fetched from {type(target).__name__}: it cannot be written")
    _dense(name, target)
    if target.shape[1:] != _dense(name, values).shape[1:] or target.dtype != values.dtype:
        raise ValueError(
            f"column {name!r} of the parent has rows of shape {tuple(target.shape[1:])} and {target.dtype}, "
            f"the batch has {tuple(values.shape[1:])} and {values.dtype}"
        )
    overlaps = any(size > 1 and stride == 0 for size, stride in zip(target.shape, target.stride(), strict=True))
    if is_read_only(target) or overlaps:
        why = (
            "rows that share memory (it is expanded)" if overlaps else "read-only memory (such as a memory-mapped file)"
        )
        raise ValueError(
            f"column {name!r} of the parent has {why}, so it cannot be written in place; replace it by a copy of its "
            "own first: column.clone()"
        )
