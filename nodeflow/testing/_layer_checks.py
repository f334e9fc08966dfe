"""Checks of a layer that maps the rows of a flow's sources to rows of its destinations."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import torch
from torch import Tensor

from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph, with_types_of
from nodeflow.sampling import NeighborSampler
from nodeflow.testing._graphs import dense
from nodeflow.testing._layer_case import LayerCase, with_floats
from nodeflow.testing._run import Skipped
from nodeflow.testing._sampler_checks import global_states, tensor_bytes

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
    case.copy_columns(batch)
    return batch


def one_node(case: LayerCase) -> None:
    """A graph of one node, alone and with itself as its only neighbour."""
    for ends in ([], [0]):
        small = case.cut(ends, ends, 1)
        out = small.run(small.flow(), small.h)
        _finite(out.detach(), "the result of one node")


def nodes_permuted(case: LayerCase) -> None:
    """Nodes in another order have the same rows, in that order."""
    size = case.graph.num_nodes
    random = torch.Generator().manual_seed(1)
    types = case.graph.schema.nodes.values()
    order = torch.cat([torch.randperm(len(ids), generator=random) + ids.start for ids in types])
    place = torch.empty_like(order).scatter_(0, order, torch.arange(size))
    src, dst = case.graph.edges()
    other = Graph.from_edges(
        place[src],
        place[dst],
        num_nodes=size,
        edata=dense(case.graph.edata),
        ndata={name: column[order] for name, column in dense(case.graph.ndata).items()},
    )
    other = with_types_of(other, case.graph, order.numpy(), np.arange(case.graph.num_edges))
    permuted = LayerCase(case.layer, other)
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
            f"{what}: row {row} is {_short(rows[row])}, and should be {_short(wanted[row])}; the "
            f"largest difference is {float(difference.max()):.3g}"
        )


def _short(row: Tensor) -> str:
    values = [f"{value:.4g}" for value in row.detach().flatten().tolist()[:4]]
    return f"[{', '.join(values)}{', ...' * (row.numel() > 4)}]"


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
