"""A NodeFlow as plain arrays and back, for pickling: shared arrays are stored once, unused memory
is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodeflow._core.rows.packing import Piece, Pool, restored
from nodeflow._core.runtime import process
from nodeflow._core.schema import Schema
from nodeflow.flow._flow import Flow
from nodeflow.flow._layer import Layer
from nodeflow.graph import Frame
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow, SeedLayout


def pack(batch: NodeFlow) -> tuple[Any, ...]:
    """Return the state of ``batch``, with the identity of its parent graph in place of the graph.

    Columns are stored by value, without gradient; registered layer computations are left out.
    """
    numbers: dict[int, int] = {}
    edges: list[tuple[Any, ...]] = []
    flows: list[tuple[Any, ...]] = []
    for pair, flow in batch.flows.items():
        structure = flow.structure
        # flows that share a structure go on sharing it
        if id(structure) not in numbers:
            numbers[id(structure)] = len(edges)
            edges.append((structure.indptr, structure.indices, structure.num_src))
        parts: dict[str, Any] = {**flow.lazy_parts()}
        for name in ("parent_eid", "weight"):
            parts[name] = parts[name] and parts[name].get()
        frames = _packed(flow.typed_frames())
        flows.append((pair, numbers[id(structure)], parts, dict(flow.data), frames))
    layers = []
    schemas = []
    for layer in batch.layers:
        nid = None
        if layer.has_parent:
            nid = layer.parent_nid
        frames = _packed(layer.typed_frames())
        layers.append((layer.num_nodes, nid, layer.context, dict(layer.data), frames))
        schemas.append(layer.schema if layer.has_schema else None)
    seeds = batch.seed_index, batch.seed_ids if batch.has_seed_ids else None, dict(batch.seed_data)
    pool = Pool()
    state = pool.add((tuple(layers), tuple(edges), tuple(flows), seeds))
    if batch.parent is None:
        uid = None
    else:
        uid = batch.parent.uid
    return state, pool.memory(), uid, batch.seed_layout, schemas


def unpack(
    cls: type[NodeFlow],
    state: Any,
    memory: list[Piece],
    uid: str | None,
    layout: SeedLayout | None,
    schemas: list[Schema | None],
) -> NodeFlow:
    """Return the NodeFlow of a state. Its parent is the graph of that identity, or None if this
    process has none.
    """
    nodes, edges, parts_of_flows, (index, ids, seed_columns) = restored(memory, state)
    layers = []
    for (size, nid, context, columns, frames), schema in zip(nodes, schemas, strict=True):
        data = Frame(size, columns)
        typed = _frames(frames)
        layers.append(Layer._trusted(size, nid, data, context=context, schema=schema, frames=typed))
    structures = [Structure._trusted(*parts) for parts in edges]
    flows = []
    for (i, j), number, parts, columns, frames in parts_of_flows:
        structure = structures[number]
        parts["data"] = Frame(structure.num_edges, columns)
        parts["frames"] = _frames(frames)
        flows.append(Flow._trusted(structure, layers[i], layers[j], (i, j), **parts))
    # in another process the batch has no parent until one is attached
    graph = process.graphs.get(uid)
    batch = cls._trusted(
        layers, flows, parent=graph, seed_index=index, seed_ids=ids, seed_layout=layout
    )
    batch.seed_data.update(seed_columns)
    return batch


def _packed(frames: Mapping[Any, Frame]) -> dict[Any, Any]:
    return {name: (frame.num_rows, dict(frame)) for name, frame in frames.items()}


def _frames(packed: Mapping[Any, Any]) -> dict[Any, Frame]:
    return {name: Frame(size, columns) for name, (size, columns) in packed.items()}
