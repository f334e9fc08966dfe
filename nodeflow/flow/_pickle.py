"""A NodeFlow as plain arrays and back, for pickling: shared arrays are stored once, unused memory is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodeflow._base.frozen import Lazy
from nodeflow._rows.packing import Pool, restored
from nodeflow.flow._flow import Flow, FlowParts
from nodeflow.flow._layer import Layer
from nodeflow.graph import Frame, find_graph
from nodeflow.ops import Structure

if TYPE_CHECKING:
    from nodeflow.flow._node_flow import NodeFlow


def pack(batch: NodeFlow) -> dict[str, Any]:
    """Return the state of ``batch``, with the identity of its parent graph in place of the graph.

    Columns are stored by value, without gradient; registered layer computations are left out.
    """
    pool = Pool()
    layers = []
    for layer in batch.layers:
        ids = pool.add(layer.parent_nid if layer.has_parent else None)
        layers.append((layer.num_nodes, ids, pool.add(layer.context), _columns(pool, layer.data)))
    numbers: dict[int, int] = {}
    structures: list[Any] = []
    flows: list[Any] = []
    for pair, flow in batch.flows.items():
        s = flow.structure
        if id(s) not in numbers:
            numbers[id(s)] = len(structures)
            structures.append((pool.add(s.indptr), pool.add(s.indices), s.num_src))
        lazy = flow.lazy_parts()
        cells = [None if cell is None else pool.add(cell.get()) for cell in (lazy["parent_eid"], lazy["weight"])]
        flows.append((pair, numbers[id(s)], cells, lazy["needs_weight"], _columns(pool, flow.data)))
    return {
        "layers": layers,
        "structures": structures,
        "flows": flows,
        "seeds": (pool.add(batch.seed_index), pool.add(batch.seed_ids if batch.has_seed_ids else None)),
        "seed_data": _columns(pool, batch.seed_data),
        "graph": None if batch.parent is None else batch.parent.uid,
        "seed_layout": batch.seed_layout,
        "memory": pool.memory(),
    }


def unpack(cls: type[NodeFlow], state: dict[str, Any]) -> NodeFlow:
    """Return the NodeFlow of a state. Its parent is the graph of that identity, or None if this process has none."""
    memory = state["memory"]

    def frame(rows: int, columns: dict[str, Any]) -> Frame:
        return Frame(rows, {name: restored(memory, column) for name, column in columns.items()})

    layers = [
        Layer._trusted(n, restored(memory, ids), frame(n, columns), context=restored(memory, context))
        for n, ids, context, columns in state["layers"]
    ]
    structures = [Structure(restored(memory, p), restored(memory, i), n) for p, i, n in state["structures"]]
    flows = []
    for (i, j), at, cells, needed, columns in state["flows"]:
        structure = structures[at]
        edge, weight = (None if cell is None else Lazy.of(restored(memory, cell)) for cell in cells)
        parts: FlowParts = {"parent_eid": edge, "weight": weight, "needs_weight": needed}
        parts["data"] = frame(structure.num_edges, columns)
        flows.append(Flow._trusted(structure, layers[i], layers[j], (i, j), **parts))
    index, ids = (restored(memory, value) for value in state["seeds"])
    graph, layout = find_graph(state["graph"]), state["seed_layout"]
    batch = cls._trusted(layers, flows, parent=graph, seed_index=index, seed_ids=ids, seed_layout=layout)
    batch.seed_data.update(frame(batch.seed_data.num_rows, state["seed_data"]))
    return batch


def _columns(pool: Pool, frame: Frame) -> dict[str, Any]:
    return {name: pool.add(column) for name, column in frame.items()}
