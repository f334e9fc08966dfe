"""Columns copied between a NodeFlow and its parent graph, and maps between their ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import ALL, LARGEST, _All, as_ids, as_index, check_type, describe
from nodeflow._core.peers.peers import ALONE
from nodeflow._core.rows.rows import fetch_rows, is_read_only
from nodeflow.flow._flow import Flow
from nodeflow.flow._layer import Layer, LayerPart
from nodeflow.graph import Frame, Graph, OfType

if TYPE_CHECKING:
    from nodeflow._core.base.types import IdsLike
    from nodeflow.flow._node_flow import NodeFlow
    from nodeflow.flow._types import NamesLike


class _Copy(NamedTuple):
    """Columns that go from one frame to another, in either direction.

    Attributes:
        part: number of the layer, or pair of layers of the flow.
        frame: the frame of that layer or flow, or of a type in it.
        rows: for each of its rows the row in the parent's frame, -1 for none.
        parent: the parent's frame.
        names: the columns.
    """

    part: Any
    frame: Frame
    rows: Tensor
    parent: Frame
    names: list[str]


def map_to_parent_nid(batch: NodeFlow, nid: IdsLike) -> Tensor:
    """Return the parent ids of nodes given by NodeFlow id, int64 ``[k]``. Raises IndexError for an
    unknown id.
    """
    return _looked_up(batch, nid, "nid", batch.layers, "layer", "node")


def map_to_parent_eid(batch: NodeFlow, eid: IdsLike) -> Tensor:
    """Return the parent ids of edges given by NodeFlow id, int64 ``[k]`` (-1 for an edge without a
    parent edge).
    """
    flows = [flow for _, flow in batch.flows.items()]
    return _looked_up(batch, eid, "eid", flows, "flow", "edge")


def _looked_up(
    batch: NodeFlow,
    value: IdsLike,
    name: str,
    parts: Sequence[Layer | Flow],
    kind: str,
    what: str,
) -> Tensor:
    """Return the parent ids of NodeFlow ids; raises ValueError for one in a part without these."""
    total = sum(map(len, parts))
    ids = torch.from_numpy(as_ids(value, name, total, what)).to(batch.device)
    # no parent id, and not -1 either, which edges without a parent edge have
    unknown = torch.iinfo(torch.int64).min
    known = [ids.new_empty(0)]
    for part in parts:
        if part.has_parent:
            known.append(_parent_ids(part))
        else:
            known.append(ids.new_full((len(part),), unknown))
    wanted = torch.cat(known)[ids]
    orphans = wanted == unknown
    if bool(orphans.any()):
        index = int(orphans.nonzero()[0])
        raise ValueError(
            f"{name}[{index}] is {int(ids[index])}, which is in a {kind} made without parent ids"
        )
    return wanted


def _parent_ids(part: Layer | LayerPart | Flow) -> Tensor:
    """Return the parent ids of a layer or flow; raises ValueError where there are none."""
    if isinstance(part, Flow):
        return part.parent_eid
    return part.parent_nid


def check_fits(batch: NodeFlow, graph: Graph) -> None:
    """Raise TypeError or IndexError unless every parent id of ``batch`` is an id of ``graph``."""
    check_type(graph, "graph", Graph, "a nodeflow.Graph")
    for i, layer in enumerate(batch.layers):
        if layer.has_parent:
            as_ids(layer.parent_nid, f"layers[{i}].parent_nid", graph.num_nodes)
    for (i, j), flow in batch.flows.items():
        if flow.has_parent:
            as_ids(
                flow.parent_eid, f"flows[{i}, {j}].parent_eid", graph.num_edges, "edge", lower=-1
            )


@checked
def map_from_parent_nid(
    batch: NodeFlow,
    layer: int,
    parent_nid: IdsLike,
    *,
    remap_local: bool = False,
    allow_missing: bool = False,
) -> Tensor:
    """Return the NodeFlow ids that parent nodes have in one layer, int64 ``[k]``.

    Args:
        layer: the layer to look in.
        parent_nid: parent ids.
        remap_local: give local ids (rows of the layer) instead of NodeFlow ids.
        allow_missing: give -1 for a parent node that is not in the layer, instead of raising
            KeyError.
    """
    i = as_index(layer, "layer", batch.num_layers)
    upper = LARGEST if batch.parent is None else batch.parent.num_nodes
    ids = torch.from_numpy(as_ids(parent_nid, "parent_nid", upper)).to(batch.device)
    rows = batch.layers[i].rows_of(ids)
    missing = rows < 0
    if not allow_missing and bool(missing.any()):
        index = int(missing.nonzero()[0])
        raise KeyError(
            f"parent node {int(ids[index])} (parent_nid[{index}]) is not in layer {i}; "
            "allow_missing=True gives -1 instead"
        )
    if remap_local:
        return rows
    return torch.where(missing, -1, rows + sum(batch.layer_sizes[:i]))


def copy_from_parent(
    batch: NodeFlow, ndata: NamesLike | EllipsisType = ..., edata: NamesLike | EllipsisType = ...
) -> None:
    """Copy columns of the parent's frames to the frames of layers and flows, on this NodeFlow's
    device.

    Without arguments it copies all columns; with one of the two, nothing of the other kind.

    Args:
        ndata: which node columns: ``ALL``, None, a list of names for every layer, or a dict from
            layer number to ``ALL`` or a list of names, as in ``{0: ["feat"], -1: ["label"]}``.
        edata: which edge columns, likewise by flow number (or pair of layers for flows that skip
            layers). Edges without a parent edge get zeros.

    Raises KeyError for an unknown column, ValueError without a parent graph; then no frame has
    changed.
    """
    # all columns are gathered before the first frame changes, so that an error changes none; where
    # several processes hold the graph, an error in one of them is raised in all
    copied = []
    peers = ALONE if batch.parent is None else batch.parent.peers
    with peers.together("columns of a batch"):
        for copy in _planned_copies(batch, ndata, edata, from_parent=True):
            columns = {name: _rows_at(name, copy.parent[name], copy.rows) for name in copy.names}
            copied.append((copy.frame, columns))
    for frame, columns in copied:
        frame.update({name: column.to(batch.device) for name, column in columns.items()})


def copy_to_parent(
    batch: NodeFlow, ndata: NamesLike | EllipsisType = ..., edata: NamesLike | EllipsisType = ...
) -> None:
    """Write columns of layers and flows into the parent's frames, at the rows of their parent ids.

    The arguments choose columns as in ``copy_from_parent``. Layers are written in order. Where
    several layers hold one parent node, **the value of the layer nearest to the seeds stays**. The
    same holds for edges in several flows (flows that skip layers come last). Where one flow holds
    an edge repeatedly, or one layer a node in several contexts, the last row stays.

    A column that the parent has is written in place, without gradient: graphs that share the tensor
    see it too. Other columns are new in the parent; the rows that are not written are zeros, or
    what ``Frame.set_initializer`` says.

    Raises ValueError for a column whose rows have another shape or type than the parent's, or whose
    memory in the parent cannot be written (a memory-mapped file); then the parent is as it was.
    """
    writes = []
    targets = {}
    # all checks come before the first write
    for copy in _planned_copies(batch, ndata, edata, from_parent=False):
        # an edge may be there repeatedly, a node in contexts
        last = _last_of_each(copy.rows)
        for name in copy.names:
            values = _dense(name, copy.frame[name])[last]
            key = (id(copy.parent), name)
            if key not in targets and name in copy.parent:
                targets[key] = copy.parent[name]
            elif key not in targets:
                targets[key] = copy.parent.initial(name, copy.parent.num_rows, values)
            _check_write(name, targets[key], values)
            writes.append((copy.parent, name, copy.rows[last], values))
    for frame, name, rows, values in writes:
        target = targets[id(frame), name]
        with torch.no_grad():
            target[rows.to(target.device)] = values.to(target.device)
        frame[name] = target


def node_columns(batch: NodeFlow, ndata: NamesLike) -> list[tuple[int, list[str]]]:
    """Return the numbers of the layers that get columns of all nodes, each with their names.

    Raises what ``copy_from_parent`` raises for ``ndata``.
    """
    copies = _planned_copies(batch, ndata, None, from_parent=True)
    return [
        (copy.part, copy.names) for copy in copies if copy.frame is batch.layers[copy.part].data
    ]


def _planned_copies(
    batch: NodeFlow,
    ndata: NamesLike | EllipsisType,
    edata: NamesLike | EllipsisType,
    *,
    from_parent: bool,
) -> list[_Copy]:
    """Return what is copied of every layer, then of every flow, none of it copied yet.

    Raises KeyError for a column that is not where it is read.
    """
    graph = batch.parent
    if graph is None:
        raise ValueError(
            "this NodeFlow has no parent graph; attach one with batch.with_parent(graph)"
        )
    default = ALL if ndata is ... and edata is ... else None
    nodes = default if ndata is ... else ndata
    edges = default if edata is ... else edata
    layers = _by_part(
        nodes,
        "ndata",
        dict(enumerate(batch.layers)),
        lambda key: as_index(key, "layer", len(batch)),
    )
    flows = _by_part(edges, "edata", dict(batch.flows.items()), lambda key: batch.flows[key].layers)
    sides = (
        ("ndata", "layer", layers, graph.ndata, graph.nodes),
        ("edata", "flow", flows, graph.edata, graph.relations),
    )
    copies = []
    for argument, kind, parts, frame_of_all, types in sides:
        if not parts:
            continue
        # of thousands of types few have columns; no layer is asked for the nodes of the others
        typed = [name for name, of_type in types.items() if of_type.data]
        for key, part, names in parts:
            if from_parent:
                owner = f"the parent graph's {argument}"
                frames = _frames_of(part, frame_of_all, types, typed)
                sources = [parent for _, _, parent in frames]
            else:
                owner = f"{kind} {key}"
                frames = _frames_of(part, frame_of_all, types, part.typed_frames())
                sources = [frame for frame, _, _ in frames]
            wanted = _names(names, argument, sources, owner)
            for (frame, rows, parent), source in zip(frames, sources, strict=True):
                present = [name for name in wanted if name in source]
                if present:
                    copies.append(_Copy(key, frame, rows, parent, present))
    return copies


def _frames_of(
    part: Layer | Flow, frame_of_all: Frame, types: Mapping[Any, OfType], names: Iterable[Any]
) -> list[tuple[Frame, Tensor, Frame]]:
    """Return the frame of a layer or flow, then those of some types in it.

    Each comes with the rows in the parent's frame, and that frame.
    """
    frames = [(part.data, _parent_ids(part), frame_of_all)]
    for name in names:
        of_type = types[name]
        if of_type.data is not frame_of_all:
            typed = part.of(name)
            rows = _parent_ids(typed)
            # whose parent ids count from the first relation on
            if isinstance(typed, Flow):
                rows = rows - of_type.ids.start
            frames.append((typed.data, rows, of_type.data))
    return frames


def _by_part(
    choice: NamesLike, name: str, parts: Mapping[Any, Layer | Flow], normal: Callable[[Any], object]
) -> list[tuple[object, Layer | Flow, object]]:
    """Return each layer or flow with the names chosen for it, in order, under its number or pair of
    layers.

    Those without parent ids take no part in a choice for all.
    """
    if choice is None:
        return []
    if not isinstance(choice, Mapping):
        return [(key, part, choice) for key, part in parts.items() if part.has_parent]
    if any(isinstance(key, str) for key in choice):
        raise TypeError(
            f"{name} is a dict by layer or flow, as in {{0: ['x']}}, not by type: {name}=['x'] "
            "copies the columns 'x' of all types that have one"
        )
    chosen = {normal(key): names for key, names in choice.items()}
    if len(chosen) < len(choice):
        raise ValueError(f"{name} names one layer or flow twice: {list(choice)}")
    return [(key, part, chosen[key]) for key, part in parts.items() if key in chosen]


def _names(names: object, argument: str, frames: Sequence[Frame], owner: str) -> list[str]:
    present = list(dict.fromkeys(name for frame in frames for name in frame))
    if isinstance(names, _All):
        return present
    is_listed = isinstance(names, Iterable) and not isinstance(names, str)
    columns: list[str] = list(names) if is_listed else []  # type: ignore[call-overload]
    if not is_listed or not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"{argument} must be ALL, None, a list of column names, or a dict of such lists by "
            f"layer or flow, as in {{0: ['x'], -1: ['y']}}; got {describe(names)}"
        )
    for name in columns:
        # before anything is written
        if name not in present:
            raise KeyError(
                f"no column {name!r} in {owner}, which has "
                f"{', '.join(map(repr, present)) or 'no columns'}"
            )
    return columns


def _last_of_each(ids: Tensor) -> Tensor:
    """Return the last row of every parent id; rows without one (-1) are left out."""
    kept = (ids >= 0).nonzero().squeeze(1)
    # a stable sort keeps the rows of one id in their order, so that the last of them is the last row
    ascending, order = torch.sort(ids[kept], stable=True)
    last = torch.ones_like(ascending, dtype=torch.bool)
    last[:-1] = ascending[1:] != ascending[:-1]
    return kept[order[last]]


def _rows_at(name: str, column: Tensor, ids: Tensor) -> Tensor:
    """Return the rows of a column of the parent; zeros for an edge without a parent edge, whose id
    is -1.
    """
    # added self-loops have no parent edge, whose row would be the last one
    missing = ids < 0
    if not bool(missing.any()):
        return fetch_rows(column, ids)
    present = _dense(name, fetch_rows(column, ids[~missing]))
    missing = missing.to(present.device)
    rows = present.new_zeros((len(ids), *present.shape[1:]))
    return rows.masked_scatter(~missing.view(-1, *[1] * (present.ndim - 1)), present)


def _dense(name: str, values: Tensor) -> Tensor:
    if values.layout != torch.strided:
        raise ValueError(
            f"column {name!r} is sparse; only dense columns can be written or padded here: name "
            "the others"
        )
    return values


def _check_write(name: str, target: Tensor, values: Tensor) -> None:
    if not isinstance(target, Tensor):
        raise TypeError(
            f"column {name!r} of the parent is fetched from {type(target).__name__}: it cannot be "
            "written"
        )
    _dense(name, target)
    if target.shape[1:] != values.shape[1:] or target.dtype != values.dtype:
        raise ValueError(
            f"column {name!r} of the parent has rows of shape {tuple(target.shape[1:])} and "
            f"{target.dtype}, the batch has {tuple(values.shape[1:])} and {values.dtype}"
        )
    # writing to either kind of memory ends the process or changes other rows
    repeats = zip(target.shape, target.stride(), strict=True)
    if any(size > 1 and stride == 0 for size, stride in repeats):
        why = "rows that share memory (it is expanded)"
    elif is_read_only(target):
        why = "read-only memory (such as a memory-mapped file)"
    else:
        return
    raise ValueError(
        f"column {name!r} of the parent has {why}, so it cannot be written in place; replace "
        "it by a copy of its own first: column.clone()"
    )
