"""A NodeFlow and its parent graph: maps between their ids, and columns copied in both
directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from nodeflow._base.calls import checked
from nodeflow._base.checks import ALL, LARGEST, _All, as_ids, as_index, check_type, describe
from nodeflow._peers.peers import ALONE
from nodeflow._rows.rows import fetch_rows, is_read_only
from nodeflow.flow._flow import Flow
from nodeflow.flow._layer import Layer, LayerPart
from nodeflow.graph import Frame, Graph, OfType

if TYPE_CHECKING:
    from nodeflow._base.types import IdsLike
    from nodeflow.flow._node_flow import NodeFlow
    from nodeflow.flow._types import NamesLike


# the frame of a layer or flow, the parent ids of its rows, the parent's frame, and the columns to
# copy between them
_Copied: TypeAlias = tuple[Frame, Tensor, Frame, list[str]]


def map_to_parent_nid(batch: NodeFlow, nid: IdsLike) -> Tensor:
    """Return the parent ids of nodes given by NodeFlow id, int64 ``[k]``. Raises IndexError for an
    unknown id.
    """
    parts = [
        (layer.num_nodes, layer.parent_nid if layer.has_parent else None) for layer in batch.layers
    ]
    return _looked_up(batch, nid, "nid", parts, "layer", "node")


def map_to_parent_eid(batch: NodeFlow, eid: IdsLike) -> Tensor:
    """Return the parent ids of edges given by NodeFlow id, int64 ``[k]`` (-1 for an edge without a
    parent edge).
    """
    parts = [
        (flow.num_edges, flow.parent_eid if flow.has_parent else None)
        for _, flow in batch.flows.items()
    ]
    return _looked_up(batch, eid, "eid", parts, "flow", "edge")


def _looked_up(
    batch: NodeFlow,
    value: IdsLike,
    name: str,
    parts: list[tuple[int, Tensor | None]],
    part: str,
    what: str,
) -> Tensor:
    """Return the parent ids of NodeFlow ids, from the size and the parent ids of every layer or
    flow.

    Raises ValueError for an id in a part that has no parent ids.
    """
    ids = torch.from_numpy(as_ids(value, name, sum(size for size, _ in parts), what)).to(
        batch.device
    )
    none = torch.iinfo(torch.int64).min
    whole = [ids.new_full((size,), none) if own is None else own for size, own in parts]
    wanted = torch.cat([ids.new_empty(0), *whole])[ids]
    orphans = wanted == none
    if bool(orphans.any()):
        at = int(orphans.nonzero()[0])
        raise ValueError(
            f"{name}[{at}] is {int(ids[at])}, which is in a {part} made without parent ids"
        )
    return wanted


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
        at = int(missing.nonzero()[0])
        raise KeyError(
            f"parent node {int(ids[at])} (parent_nid[{at}]) is not in layer {i}; "
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
    copied: list[tuple[Frame, dict[str, Tensor]]] = []
    peers = ALONE if batch.parent is None else batch.parent.peers
    with peers.together("columns of a batch"):
        for frame, ids, parent, names in _planned_copies(batch, ndata, edata, from_parent=True):
            copied.append(
                (
                    frame,
                    {name: _rows_at(name, parent[name], ids).to(batch.device) for name in names},
                )
            )
    for frame, columns in copied:
        frame.update(columns)


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
    writes: list[tuple[Frame, str, Tensor, Tensor]] = []
    for held, ids, parent, names in _planned_copies(batch, ndata, edata, from_parent=False):
        last = _last_of_each(ids)  # an edge may be there repeatedly, a node in several contexts
        writes += [(parent, name, ids[last], _dense(name, held[name])[last]) for name in names]
    targets: dict[tuple[int, str], Tensor] = {}
    for frame, name, _, values in writes:  # all checks come before the first write
        key = (id(frame), name)
        if key not in targets:
            new = name not in frame
            targets[key] = frame.initial(name, frame.num_rows, values) if new else frame[name]
        _check_write(name, targets[key], values)
    for frame, name, ids, values in writes:
        target = targets[id(frame), name]
        with torch.no_grad():
            target[ids.to(target.device)] = values.to(target.device)
        frame[name] = target


def node_columns(batch: NodeFlow, ndata: NamesLike) -> list[tuple[int, list[str]]]:
    """Return the numbers of the layers that a choice of node columns is for, each with the names;
    raises as a copy.
    """
    of = {id(layer.data): i for i, layer in enumerate(batch.layers)}
    copied = _planned_copies(batch, ndata, None, from_parent=True)
    return [(of[id(frame)], names) for frame, _, _, names in copied if id(frame) in of]


def _planned_copies(
    batch: NodeFlow,
    ndata: NamesLike | EllipsisType,
    edata: NamesLike | EllipsisType,
    *,
    from_parent: bool,
) -> list[_Copied]:
    """Return what is copied of every layer, then of every flow; the columns of the frame read are
    known to be there.
    """
    default = ALL if ndata is ... and edata is ... else None
    nodes, edges = (
        default if isinstance(names, EllipsisType) else names for names in (ndata, edata)
    )
    if batch.parent is None:
        raise ValueError(
            "this NodeFlow has no parent graph; attach one with batch.with_parent(graph)"
        )
    layers = _by_part(
        nodes,
        "ndata",
        dict(enumerate(batch.layers)),
        lambda key: as_index(key, "layer", len(batch)),
    )
    flows = _by_part(edges, "edata", dict(batch.flows.items()), lambda key: batch.flows[key].layers)
    graph = batch.parent
    sides: tuple[tuple[str, str, Frame, Mapping[Any, OfType], Any], ...] = (
        ("ndata", "layer", graph.ndata, graph.nodes, layers),
        ("edata", "flow", graph.edata, graph.relations, flows),
    )
    copied: list[_Copied] = []
    for argument, what, parent, types, chosen in sides:
        # of thousands of types few have columns; no layer is asked for the nodes of the others
        of_parent = (
            [name for name, of in types.items() if of.data] if from_parent and chosen else []
        )
        for key, part, names in chosen:
            pairs = _frames_of(
                part, parent, types, of_parent if from_parent else list(part.typed_frames())
            )
            frames = (
                [parent for _, _, parent in pairs]
                if from_parent
                else [frame for frame, _, _ in pairs]
            )
            owner = f"the parent graph's {argument}" if from_parent else f"{what} {key}"
            wanted = _names(names, argument, frames, owner)
            for (frame, ids, other), source in zip(pairs, frames, strict=True):
                copied.append((frame, ids, other, [name for name in wanted if name in source]))
    return [one for one in copied if one[3]]


def _frames_of(
    part: Layer | Flow, whole: Frame, types: Mapping[Any, OfType], read: Iterable[Any]
) -> list[tuple[Frame, Tensor, Frame]]:
    """Return the frame of a layer or flow and those of the types ``read``: with ids, and the frame
    of the parent.
    """
    if isinstance(part, Layer):
        frames = [(part.data, part.parent_nid, whole)]  # raises where there are none
    else:
        frames = [(part.data, part.parent_eid, whole)]
    for name in read:
        of = types[name]
        if of.data is whole:
            continue
        own = part.of(name)
        ids = own.parent_nid if isinstance(own, LayerPart) else own.parent_eid - of.ids.start
        frames.append((own.data, ids, of.data))
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
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(
            f"{argument} must be ALL, None, a list of column names or a dict of such lists, got "
            f"{describe(names)}"
        )
    columns = list(names)
    if not all(isinstance(name, str) for name in columns):
        raise TypeError(
            f"{argument} must name columns; for a choice per layer or flow give a dict, as in {{0: "
            f"['x'], -1: ['y']}}; got {describe(columns)}"
        )
    for name in columns:
        if name not in present:  # before anything is written
            raise KeyError(
                f"no column {name!r} in {owner}, which has "
                f"{', '.join(map(repr, present)) or 'no columns'}"
            )
    return columns


def _last_of_each(ids: Tensor) -> Tensor:
    """Return the last row of every parent id; rows without one (-1) are left out."""
    kept = (ids >= 0).nonzero().squeeze(1)
    ascending, order = torch.sort(ids[kept], stable=True)
    last = torch.ones_like(ascending, dtype=torch.bool)
    last[:-1] = ascending[1:] != ascending[:-1]
    return kept[order[last]]


def _rows_at(name: str, column: Tensor, ids: Tensor) -> Tensor:
    """Return the rows of a column of the parent; zeros for an edge without a parent edge, whose id
    is -1.
    """
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
    overlaps = any(
        size > 1 and stride == 0 for size, stride in zip(target.shape, target.stride(), strict=True)
    )
    if is_read_only(target) or overlaps:
        why = (
            "rows that share memory (it is expanded)"
            if overlaps
            else "read-only memory (such as a memory-mapped file)"
        )
        raise ValueError(
            f"column {name!r} of the parent has {why}, so it cannot be written in place; replace "
            "it by a copy of its own first: column.clone()"
        )
