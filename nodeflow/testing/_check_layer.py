"""``check_layer``: all checks of a layer in one call; the checks, and the small flows that they make."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import as_count, check_type, describe
from nodeflow.flow import Flow, NodeFlow, create_node_flow, flow_from_edges
from nodeflow.graph import Graph, Schema, with_frames
from nodeflow.sampling import NeighborSampler
from nodeflow.testing._graphs import dense, graph_code, graph_like
from nodeflow.testing._report import Report
from nodeflow.testing._run import (
    EXAMPLES,
    TRIALS,
    Check,
    Skipped,
    Small,
    checks_of,
    chosen,
    run_checks,
)
from nodeflow.testing._sampler_checks import global_states, tensor_bytes
from nodeflow.transform import reorder

# the node column of the rows that go into a layer
ROWS = "h"


class LayerCase:
    """A layer, a graph with the node column "h" and the edge columns that the layer reads."""

    # neighbours of the first node of small graphs, beside random ones
    largest = 3
    multi_edges = True

    def __init__(self, layer: nn.Module, graph: Graph) -> None:
        self.layer = layer
        self.graph = graph

    @property
    def h(self) -> Tensor:
        """The rows of the nodes, float32 ``[num_nodes, in_features]``."""
        rows: Tensor = self.graph.ndata[ROWS]
        return rows.clone()

    def flow(
        self,
        *,
        weight: Tensor | None = None,
        order: Tensor | None = None,
        kind: torch.dtype | None = None,
    ) -> Flow:
        """Return the flow of all edges of the graph, from all nodes to all nodes.

        Args:
            weight: estimator weights by edge id, ``[num_edges]``; None: 1.
            order: the edge ids in another order; None: ascending.
            kind: type of the columns of floats; None: as they are.
        """
        if order is None:
            ids = torch.arange(self.graph.num_edges)
        else:
            ids = order
        src, dst = (end[ids] for end in self.graph.edges())
        flow = flow_from_edges(
            src,
            dst,
            num_src=self.graph.num_nodes,
            num_dst=self.graph.num_nodes,
            parent_eid=ids,
            weight=None if weight is None else weight[ids],
        )
        nodes = np.arange(self.graph.num_nodes)
        # whose types the layers have
        batch = create_node_flow([flow], [nodes, nodes], parent=self.graph)
        batch.copy_from_parent()
        if kind is None:
            return batch.flows[0]
        return with_floats(batch.flows[0], kind)

    def run(self, flow: Flow, h: Tensor, layer: nn.Module | None = None) -> Tensor:
        """Return the rows of the destinations."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a layer may say that it ignores weights
            out = (layer or self.layer)(flow, h)
        if not isinstance(out, Tensor) or out.ndim < 1 or out.shape[0] != flow.num_dst:
            raise AssertionError(
                f"the layer must return a row for each of {flow.num_dst} destinations, got "
                f"{describe(out)}"
            )
        return out

    def double(self) -> nn.Module:
        """Return the layer in float64."""
        return copy.deepcopy(self.layer).double()

    def run_double(self, order: Tensor | None = None) -> Tensor:
        """Return the rows of all nodes in float64; ``order`` as of ``flow``."""
        return self.run(self.flow(order=order, kind=torch.float64), self.h.double(), self.double())

    def cut(self, src: Sequence[int], dst: Sequence[int], num_nodes: int) -> LayerCase:
        """Return the case on a small graph of other edges.

        Each of several types has ``num_nodes`` nodes, and each relation the edges.
        """
        if src and not self.graph.num_edges:
            raise Skipped("the graph has no edges")
        ends = np.array([src, dst], np.int64).reshape(2, -1)
        kinds = np.arange(len(src))
        return LayerCase(self.layer, graph_like(self.graph, ends, np.arange(num_nodes), kinds))

    def small(self, graph: Small) -> LayerCase:
        return self.cut(graph.src, graph.dst, graph.num_nodes)

    def code(self, check: str) -> list[str]:
        width = self.h.shape[1]
        layer = " ".join(repr(self.layer).split())
        return [
            graph_code(self.graph),
            f"layer = {layer}",
            f"check_layer(layer, {width}, graph=graph, checks=[{check!r}])",
        ]


def with_floats(flow: Flow, kind: torch.dtype) -> Flow:
    """Return the flow, whose columns of floats become those of a type."""
    for frame in (flow.data, *flow.typed_frames().values()):
        frame.update({n: c.to(kind) for n, c in frame.items() if c.is_floating_point()})
    return flow


def layer_graph(
    in_features: int, edge_columns: Mapping[str, Any], graph: Graph | None, schema: Schema | None
) -> Graph:
    """Return the graph of the arguments of ``check_layer``, with rows of nodes and columns of
    edges.
    """
    if graph is None:
        like = schema or Schema.of_one_type(0, 0)
        random = np.random.default_rng(0)
        edges = {}
        for relation in like.relations:
            src, dst = random.integers(0, 9, (2, 24))
            # a node of many edges, a parallel edge, a self-loop, and nodes without edges
            edges[relation] = np.append(src, [1, 2, 3, 4, 1, 7]), np.append(dst, [0, 0, 0, 0, 0, 7])
        graph = Graph.typed(dict.fromkeys(like.nodes, 11), edges)
    torch_random = torch.Generator().manual_seed(0)
    columns = {}
    for name, column in edge_columns.items():
        if callable(column):
            columns[name] = column(graph.num_edges)
        else:
            columns[name] = torch.rand(graph.num_edges, *column, generator=torch_random)
    ready = dense(graph.ndata).get(ROWS)
    if ready is None or ready.shape[1:] != (in_features,):
        # short in print
        ready = torch.randn(graph.num_nodes, in_features, generator=torch_random).mul(8).round() / 8
    result = with_frames(
        graph, {**dense(graph.ndata), ROWS: ready.float()}, {**dense(graph.edata), **columns}
    )
    for part in result.relations.values():  # where layers of one relation read them
        part.data.update(
            {name: column[part.ids.start : part.ids.stop] for name, column in columns.items()}
        )
    return result


# in-edges: so many ones cannot be summed one by one in bfloat16
_HUB = 2_000
# of float64 results that are summed in another order
_NEAR = 1e-9


def shapes(case: LayerCase) -> None:
    """A finite row for every destination, of the type of the input."""
    out = case.run(case.flow(), case.h)
    assert out.dtype == case.h.dtype, f"rows of {case.h.dtype} became rows of {out.dtype}"
    _finite(out, "the result")


def _finite(rows: Tensor, what: str) -> None:
    wrong = ~rows[:, None].isfinite().flatten(1).all(1)
    assert not bool(wrong.any()), (
        f"{what} has a row that is not finite: row {int(wrong.nonzero()[0])} is "
        f"{rows[wrong][0].tolist()}"
    )


def no_neighbours(case: LayerCase) -> None:
    """Destinations without neighbours have finite rows, and so have the gradients."""
    for small in (case.cut([], [], 3), case.cut([0], [1], 3)):
        h = small.h.requires_grad_()
        out = small.run(small.flow(), h)
        _finite(out.detach(), "the result of nodes without neighbours")
        if out.requires_grad:
            out.sum().backward()
            if h.grad is not None:
                _finite(h.grad, "the gradient of nodes without neighbours")


def empty_flows(case: LayerCase) -> None:
    """Flows without edges, without destinations, and without nodes."""
    for seeds in ([], [0]):
        small = case.cut([], [], 2)
        batch = _batch(small, [1], seeds)
        small.run(batch.flows[0], small.h[batch.layers[0].parent_nid])


def _batch(case: LayerCase, fanouts: list[int], seeds: list[int]) -> NodeFlow:
    batch = NeighborSampler(case.graph, fanouts)(seeds)
    batch.copy_from_parent()
    return batch


def one_node(case: LayerCase) -> None:
    """A graph of one node, alone and with itself as its only neighbour."""
    for ends in ([], [0]):
        small = case.cut(ends, ends, 1)
        out = small.run(small.flow(), small.h)
        _finite(out.detach(), "the result of one node")


def nodes_permuted(case: LayerCase) -> None:
    """Nodes in another order have the same rows, in that order."""
    random = torch.Generator().manual_seed(1)
    types = case.graph.schema.nodes.values()
    order = torch.cat([torch.randperm(len(ids), generator=random) + ids.start for ids in types])
    permuted = LayerCase(case.layer, reorder(case.graph, order))
    _near(case.run_double()[order], permuted.run_double(), "nodes in another order")


def edges_permuted(case: LayerCase) -> None:
    """Edges in another order give the same rows."""
    size = case.graph.num_edges
    first = case.run_double()
    order = torch.randperm(size, generator=torch.Generator().manual_seed(2))
    _near(first, case.run_double(order), "edges in another order")
    # a layer may take the first or the last edge: both orders differ in these
    back = torch.arange(size).flip(0)
    _near(first, case.run_double(back), "edges in reverse order")


def _near(wanted: Tensor, rows: Tensor, what: str, tolerance: float = _NEAR) -> None:
    wanted = wanted.detach()
    rows = rows.detach()
    sizes = wanted.abs().flatten()
    scale = max(sizes.tolist(), default=0.0)
    difference = (wanted - rows).abs()
    far = difference > tolerance * (1 + scale)
    if bool(far.any()):
        row = int(far.nonzero()[0, 0])
        raise AssertionError(
            f"{what}: row {row} is {rows[row].tolist()}, and should be {wanted[row].tolist()}; the "
            f"largest difference is {float(difference.max()):.3g}"
        )


def gradients(case: LayerCase) -> None:
    """Gradients of rows and parameters are those of finite differences, in float64."""
    small = case
    if case.graph.num_nodes > 4:
        small = case.cut([1, 2, 1, 0, 2], [0, 0, 1, 2, 2], 4)
    layer = small.double()
    flow = small.flow(kind=torch.float64)
    names = [name for name, parameter in layer.named_parameters() if parameter.requires_grad]
    values = [p.detach().clone().requires_grad_() for p in layer.parameters() if p.requires_grad]

    def rows(h: Tensor, *parameters: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(
            layer, dict(zip(names, parameters, strict=True)), (flow, h)
        )
        return out

    h = small.h.double().requires_grad_()
    if not rows(h, *values).requires_grad:
        raise Skipped("the result has no gradient")
    try:
        torch.autograd.gradcheck(rows, (h, *values), atol=1e-6, rtol=1e-4)
    except RuntimeError as error:
        raise AssertionError(
            f"gradients differ from finite differences: {str(error).splitlines()[0]}"
        ) from None


def weights(case: LayerCase) -> None:
    """Estimator weights change the result, or ``weight_advice`` or a warning says that they are not
    read.
    """
    if not case.graph.num_edges:
        raise Skipped("the graph has no edges")
    random = torch.Generator().manual_seed(3)
    weight = 0.5 + torch.rand(case.graph.num_edges, generator=random)
    plain = case.run(case.flow(weight=torch.ones_like(weight)), case.h)
    differs = not torch.equal(plain, case.run(case.flow(weight=weight), case.h))
    # a FlowConv keeps the advice that it gave in a warning
    advice = getattr(case.layer, "weight_advice", None)
    if advice is not None or getattr(case.layer, "advised", False):
        assert not differs, (
            "weight_advice says that flow.weight is not read, but the result depends on it"
        )
        return
    if not (case.graph.in_degrees() > 1).any():
        raise Skipped("no node has two neighbours")
    assert differs, (
        "the result does not depend on flow.weight, so it is biased where the sampled edges of a "
        "node have different weights; multiply messages by flow.weight, or set weight_advice to "
        "say that it is not read"
    )


def narrow_types(case: LayerCase) -> None:
    """In bfloat16 the rows are those of float64 up to a few roundings, also of a node with 2,000
    neighbours.
    """
    hub = case.cut(list(range(1, _HUB + 1)), [0] * _HUB, _HUB + 1)
    narrow = copy.deepcopy(case.layer).to(torch.bfloat16)
    h = hub.h.abs().to(torch.bfloat16)  # of one sign, so that a sum is large
    try:
        rows = hub.run(hub.flow(kind=torch.bfloat16), h, narrow)
    except (RuntimeError, TypeError) as error:
        raise Skipped(f"no bfloat16: {str(error).splitlines()[0][:80]}") from None
    # the columns are rounded too, before they are widened
    flow = with_floats(hub.flow(kind=torch.bfloat16), torch.float64)
    exact = hub.run(flow, h.double(), copy.deepcopy(narrow).double())
    rows = rows.double()
    _near(exact[:1], rows[:1], "bfloat16 at a node with 2,000 neighbours", 0.05)
    _near(exact[1:], rows[1:], "bfloat16 at a node without neighbours", 0.05)


def untouched(case: LayerCase) -> None:
    """A call changes neither its rows nor the flow."""
    flow = case.flow(weight=torch.ones(case.graph.num_edges))
    h = case.h
    tensors = {
        "h": h,
        "flow.weight": flow.weight,
        "flow.indices": flow.indices,
        "flow.indptr": flow.indptr,
    }
    tensors |= {f"flow.data[{name!r}]": column for name, column in flow.data.items()}
    before = {name: tensor_bytes(value) for name, value in tensors.items()}
    columns = set(flow.data)
    case.run(flow, h)
    for name, value in tensors.items():
        assert tensor_bytes(value) == before[name], f"a call changes {name}"
    assert set(flow.data) == columns, (
        f"a call leaves columns in flow.data: {sorted(set(flow.data) - columns)}"
    )


def repeatable(case: LayerCase) -> None:
    """In evaluation the same call gives the same bits, leaves the layer and the global random
    states as they were.
    """
    states = global_states()
    before = {name: tensor_bytes(value) for name, value in case.layer.state_dict().items()}
    flow = case.flow()
    h = case.h
    first = case.run(flow, h).detach().clone()
    # other rows in between show what a layer remembers
    case.run(flow, h * 2)
    # read here, because the next call may bring back what the first one left
    after = {name: tensor_bytes(value) for name, value in case.layer.state_dict().items()}
    again = case.run(flow, h)
    assert torch.allclose(first, again, rtol=0, atol=0, equal_nan=True), (
        "the same rows give another result after another call: the layer remembers something"
    )
    for name, value in after.items():
        assert value == before.get(name), f"a call in evaluation changes {name} of the layer"
    for name, state in global_states().items():
        assert state == states[name], (
            f"a call in evaluation changes the global random state of {name}"
        )


def batch(case: LayerCase) -> None:
    """A batch with all neighbours of some nodes gives the rows that the whole graph gives."""
    seeds = torch.arange(case.graph.num_nodes - 1, -1, -2)
    part = _batch(case, [-1], seeds.tolist())
    flow = with_floats(part.flows[0], torch.float64)
    rows = case.run(flow, case.h.double()[part.layers[0].parent_nid], case.double())
    wanted = case.run_double()[seeds]
    what = "a batch with all neighbours differs from the whole graph"
    _near(wanted, rows[part.seed_index], what)


def compiled(case: LayerCase) -> None:
    """``torch.compile`` traces the layer, and its rows are the same."""
    import torch._dynamo as dynamo

    flow = case.flow()
    h = case.h
    eager = case.run(flow, h)
    dynamo.reset()
    try:
        layer = copy.deepcopy(case.layer)
        with warnings.catch_warnings():
            # tracing looks at attributes that warn; where warnings are errors, it would end there
            warnings.simplefilter("ignore")
            rows = torch.compile(lambda flow, h: layer(flow, h), backend="eager")(flow, h)
    finally:
        dynamo.reset()
    _near(eager, rows, "the compiled layer", 1e-5)


LAYER_CHECKS = checks_of(
    shapes,
    no_neighbours,
    empty_flows,
    one_node,
    nodes_permuted,
    edges_permuted,
    gradients,
    weights,
    narrow_types,
    untouched,
    repeatable,
    batch,
)
# others are quick on one graph alone, or make graphs of their own
for _name in ("shapes", "nodes permuted", "edges permuted", "weights", "batch"):
    LAYER_CHECKS[_name] = LAYER_CHECKS[_name]._replace(examples=EXAMPLES)
LAYER_CHECKS["compile"] = Check("compile", compiled, makes_graph=True)


def check_layer(
    layer: nn.Module,
    in_features: int,
    *,
    edge_columns: Mapping[str, tuple[int, ...] | Callable[[int], Tensor]] | None = None,
    graph: Graph | None = None,
    schema: Schema | None = None,
    expect_fail: Mapping[str, str] | None = None,
    checks: Sequence[str] | None = None,
    budget: int = TRIALS,
) -> Report:
    """Check all that a layer of a sampled GNN should do, and return a report that prints as a
    table.

    A copy of the layer is called as ``layer(flow, h)`` on small flows, in evaluation mode.

    ======================== ===========================================================================================
    shapes                   a finite row per destination, of the type of the input
    no neighbours, one node, finite rows and gradients, and rows at all
    empty flows
    nodes permuted,          the same rows for nodes and edges in another order
    edges permuted
    gradients                of rows and parameters by finite differences (gradcheck, float64)
    weights                  ``flow.weight`` changes the result, or ``weight_advice`` says that it does not
    narrow types             bfloat16 near float64, also for 2,000 neighbours
    untouched, repeatable    inputs, parameters and global random states stay; the same call gives the same bits
    batch                    a batch with all neighbours gives the rows of the whole graph
    compile                  ``torch.compile`` gives the same rows
    ======================== ===========================================================================================

    Args:
        layer: a module, such as a ``FlowConv``.
        in_features: width of the rows ``h``.
        edge_columns: columns that the layer reads from ``flow.data``, by name: the shape of a row,
            for random numbers from 0 to 1, or a function of the number of edges that makes the
            column.
        graph: a graph to run on, with edge columns, and with ``ndata["h"]`` as the rows if it is
            there. None: one of 11 nodes of each type and 30 edges of each relation.
        schema: types and relations of that graph, such as ``graph.schema`` of the graph that the
            layer is for. None: one type and one relation, or those of ``graph``.
        expect_fail, checks, budget: as for ``check_sampler``.

    Raises CheckError as ``check_sampler`` does.

    >>> from nodeflow.nn import SAGEConv
    >>> report = check_layer(SAGEConv(4, 3), 4, checks=["shapes", "weights", "batch"])
    >>> report.passed
    ['shapes', 'weights', 'batch']

    A layer for several node types or relations is checked on a small graph of these, ``schema=``.
    """
    check_type(layer, "layer", nn.Module, "a torch.nn.Module")
    selected = chosen(LAYER_CHECKS, checks, expect_fail or {})
    if schema is not None:
        check_type(schema, "schema", Schema, "a Schema, graph.schema")
        if graph is not None:
            raise TypeError(
                "schema is for the graph that is made without graph=, which has types of its own"
            )
    width = as_count(in_features, "in_features", 1)
    if graph is not None:
        # its columns may count its edges, as those of other graphs would not
        selected = [check._replace(examples=0) for check in selected]
    # a copy: calls leave advice, modes and gradients in a module
    case = LayerCase(
        copy.deepcopy(layer).eval(), layer_graph(width, edge_columns or {}, graph, schema)
    )
    subject = " ".join(repr(layer).split())
    with torch.random.fork_rng(devices=[]):
        return run_checks(
            subject,
            selected,
            lambda _: [case],
            expect_fail or {},
            budget,
            weights="weights",
        )
