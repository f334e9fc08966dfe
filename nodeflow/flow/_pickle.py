"""A NodeFlow as plain arrays and back, for pickling: shared arrays are stored once, unused memory
is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodeflow._base.frozen import Lazy
from nodeflow._rows.packing import Piece, Pool, restored
from nodeflow._runtime import process
from nodeflow._schema.schema import Schema
from nodeflow.flow._flow import Flow
from nodeflow.flow._flow_parts import FlowParts
from nodeflow.flow._layer import Layer
from nodeflow.graph import Frame
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow, SeedLayout


def pack(batch: NodeFlow) -> tuple[Any, ...]:
    """Return the state of ``batch``, with the identity of its parent graph in place of the graph.

    Columns are stored by value, without gradient; registered layer computations are left out.
    """
    structures = {id(flow.structure): flow.structure for _, flow in batch.flows.items()}
    numbers = {key: number for number, key in enumerate(structures)}
    flows: list[Any] = []
    for pair, flow in batch.flows.items():
        lazy = flow.lazy_parts()
        eid, weight = (
            None if cell is None else cell.get() for cell in (lazy["parent_eid"], lazy["weight"])
        )
        frames = _packed(flow.typed_frames())
        flows.append(
            (
                pair,
                numbers[id(flow.structure)],
                eid,
                weight,
                lazy["needs_weight"],
                dict(flow.data),
                frames,
            )
        )
    layers = [
        (
            x.num_nodes,
            x.parent_nid if x.has_parent else None,
            x.context,
            dict(x.data),
            _packed(x.typed_frames()),
        )
        for x in batch.layers
    ]
    schemas = [x.schema if x.has_schema else None for x in batch.layers]
    edges = [(s.indptr, s.indices, s.num_src) for s in structures.values()]
    seeds = batch.seed_index, batch.seed_ids if batch.has_seed_ids else None, dict(batch.seed_data)
    pool = Pool()
    state = pool.add((tuple(layers), tuple(edges), tuple(flows), seeds))
    uid = None if batch.parent is None else batch.parent.uid
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
    layers = [
        Layer._trusted(
            n, nid, Frame(n, columns), context=context, schema=schema, frames=_frames(frames)
        )
        for (n, nid, context, columns, frames), schema in zip(nodes, schemas, strict=True)
    ]
    structures = [Structure._trusted(*parts) for parts in edges]
    flows = []
    for (i, j), at, *cells, needed, columns, frames in parts_of_flows:
        eid, weight = (None if cell is None else Lazy.of(cell) for cell in cells)
        parts: FlowParts = {"parent_eid": eid, "weight": weight, "needs_weight": needed}
        parts["data"] = Frame(structures[at].num_edges, columns)
        parts["frames"] = _frames(frames)
        flows.append(Flow._trusted(structures[at], layers[i], layers[j], (i, j), **parts))
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
