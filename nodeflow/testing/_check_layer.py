"""``check_layer``: all checks of a layer in one call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import as_count, check_type
from nodeflow.graph import Graph, Schema
from nodeflow.testing import _layer_checks as layers
from nodeflow.testing._layer_case import LayerCase, layer_graph
from nodeflow.testing._report import Report
from nodeflow.testing._run import EXAMPLES, TRIALS, Check, checks_of, chosen, run_checks

LAYER_CHECKS = checks_of(
    layers.shapes,
    layers.no_neighbours,
    layers.empty_flows,
    layers.one_node,
    layers.nodes_permuted,
    layers.edges_permuted,
    layers.gradients,
    layers.weights,
    layers.narrow_types,
    layers.untouched,
    layers.repeatable,
    layers.batch,
)
# others are quick on one graph alone, or make graphs of their own
for _name in ("shapes", "nodes permuted", "edges permuted", "weights", "batch"):
    LAYER_CHECKS[_name] = LAYER_CHECKS[_name]._replace(examples=EXAMPLES)
LAYER_CHECKS["compile"] = Check("compile", layers.compiled, makes_graph=True)


def check_layer(
    layer: nn.Module | Callable[[], nn.Module],
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
        layer: a module, such as a ``FlowConv``, or a function that makes one.
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
    words = "a torch.nn.Module, or a function that makes one"
    check_type(layer, "layer", Callable, words)
    if isinstance(layer, nn.Module):
        module = layer
    else:
        module = layer()
    check_type(module, "layer", nn.Module, words)
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
        copy.deepcopy(module).eval(), layer_graph(width, edge_columns or {}, graph, schema)
    )
    subject = " ".join(repr(module).split())
    with torch.random.fork_rng(devices=[]):
        return run_checks(
            subject,
            selected,
            lambda _: [case],
            expect_fail or {},
            budget,
            weights="weights",
        )
