"""check_layer: planted faults are found by name, the package's layers pass, failures can be run
again.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from _support.planted_layers import LAYERS, WIDTH, LastEdge, Right, Unweighted

from nodeflow import Graph, transform
from nodeflow.graph import Schema
from nodeflow.nn import (
    GATConv,
    GINConv,
    GraphConv,
    HGTConv,
    RGCNConv,
    SAGEConv,
    TypedConv,
)
from nodeflow.testing import CheckError, check_layer
from nodeflow.testing._check_layer import LAYER_CHECKS

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = [name for name in LAYER_CHECKS if name != "compile"]


@pytest.mark.parametrize("name", LAYERS)
def test_a_planted_fault_is_found_by_name(name):
    torch.manual_seed(0)
    with pytest.raises(CheckError) as error:
        check_layer(LAYERS[name][0](), WIDTH, checks=QUICK, budget=10)
    assert LAYERS[name][1] in error.value.report.failed


def degrees() -> Graph:
    graph = Graph.from_edges([1, 2, 3, 0, 2, 2], [0, 0, 0, 1, 1, 2], num_nodes=5)
    graph.ndata.update(transform.degrees(graph))
    return graph


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        (Right(), {}),
        (SAGEConv(WIDTH, 2), {}),
        (SAGEConv(WIDTH, 2, weighted=True), {"graph": degrees()}),
        (GraphConv(WIDTH, 2), {}),
        (GATConv(WIDTH, 2), {}),
        (GINConv(torch.nn.Linear(WIDTH, 2)), {}),
        (RGCNConv(WIDTH, 2, 3), {"edge_columns": {"type": lambda n: torch.arange(n) % 3}}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_right_layers_pass(layer, options):
    report = check_layer(layer, WIDTH, checks=QUICK, **options)
    assert {"shapes", "gradients", "weights", "batch"} <= set(report.passed)
    assert layer.training


def test_the_last_line_says_that_weights_of_a_layer_were_not_checked():
    report = check_layer(
        Right(), WIDTH, graph=Graph.from_edges([0, 1], [1, 2]), checks=["shapes", "weights"]
    )
    assert repr(report).splitlines()[-1] == "weights were not checked: no node has two neighbours"
    assert check_layer(Right(), WIDTH, checks=["weights"]).note == ""


@pytest.mark.slow  # the first trace takes long
def test_a_compiled_layer():
    assert check_layer(Right(), WIDTH, checks=["compile"]).outcomes[0].status in (
        "passed",
        "skipped",
    )


class Odd(Right):
    """Counts neighbours, which has no gradient, and refuses bfloat16."""

    def forward(self, flow: Any, h: torch.Tensor) -> torch.Tensor:
        if h.dtype == torch.bfloat16:
            raise TypeError("float32 alone")
        return flow.in_degrees[:, None].to(h.dtype)


def test_checks_that_do_not_apply_say_why():
    report = check_layer(Odd(), WIDTH, checks=["no neighbours", "gradients", "narrow types"])
    assert [o.note for o in report.outcomes] == [
        "",
        "the result has no gradient",
        "no bfloat16: float32 alone",
    ]


def test_a_failure_runs_again():
    torch.manual_seed(0)
    layer = LastEdge()
    with pytest.raises(CheckError) as error:
        check_layer(layer, WIDTH, checks=["edges permuted"])
    lines = [line.strip() for line in str(error.value).splitlines() if line.startswith("    ")]
    # the number of nodes, and three edges or fewer
    assert len(re.findall(r"\d+", lines[0].split(";")[0])) <= 7
    session: dict[str, Any] = {
        "Graph": Graph,
        "torch": torch,
        "check_layer": check_layer,
        "layer": layer,
    }
    with pytest.raises(CheckError, match="edges permuted: edges in"):
        exec("\n".join([lines[0], lines[2]]), session)


def test_expected_failures_and_arguments():
    report = check_layer(
        Unweighted(), WIDTH, checks=["shapes", "weights"], expect_fail={"weights": "a plain mean"}
    )
    assert report.outcomes[1].status == "expected"


# -------------------------------------------------------------------------------------------------
# layers of types

SCHEMA = Schema({"a": 5, "b": 9}, {("a", "x", "b"): 1, ("b", "y", "b"): 7, ("b", "x", "a"): 0})


@pytest.mark.parametrize(
    ("layer", "options"),
    [
        (TypedConv({relation: SAGEConv(WIDTH, 2) for relation in SCHEMA.relations}), {}),
        (
            TypedConv({"y": GATConv(WIDTH, 2, edge_features=1)}, "max"),
            {"edge_columns": {"feat": (1,)}},
        ),
        (HGTConv(WIDTH, 2, SCHEMA, edge_time="dt"), {"edge_columns": {"dt": ()}}),
        (RGCNConv(WIDTH, 2, SCHEMA), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_of_types_pass(layer, options):
    report = check_layer(layer, WIDTH, schema=SCHEMA, checks=QUICK, **options)
    assert report.passed == QUICK
    assert repr(report).startswith(type(layer).__name__) or str(report).startswith(
        type(layer).__name__
    )


class Misplaced(torch.nn.Module):
    """Takes the rows of the first type to be the first rows of a layer, which holds in a whole
    graph alone.
    """

    def forward(self, flow: Any, h: torch.Tensor) -> torch.Tensor:
        scale = torch.ones(flow.num_src, 1).to(h.dtype)
        scale[: len(flow.src_layer.of("a"))] = 2
        return flow.aggregate(h * scale, "sum", weight=flow.weight.to(h.dtype))


class Later(torch.nn.Module):
    """Takes the last edge of a relation."""

    def forward(self, flow: Any, h: torch.Tensor) -> torch.Tensor:
        out = flow.aggregate(h, "sum", weight=flow.weight.to(h.dtype))
        src, dst = flow.of("y").edges()
        return out.index_add(0, dst[-1:], h[src[-1:]])


@pytest.mark.parametrize(("layer", "check"), [(Misplaced(), "batch"), (Later(), "edges permuted")])
def test_a_fault_of_types_is_found_and_runs_again(layer, check):
    with pytest.raises(CheckError) as error:
        check_layer(layer, WIDTH, schema=SCHEMA, checks=QUICK, budget=10)
    assert check in error.value.report.failed
    lines = [line.strip() for line in str(error.value).splitlines() if line.startswith("    ")]
    session: dict[str, Any] = {
        "Graph": Graph,
        "torch": torch,
        "check_layer": check_layer,
        "layer": layer,
    }
    assert lines[0].startswith("graph = Graph.typed(")
    exec(lines[0], session)
    with pytest.raises(CheckError):
        exec(lines[2], session)


def test_a_graph_of_types():
    edges = {
        ("a", "x", "b"): ([0, 2], [0, 1], {"feat": torch.ones(2, 1)}),
        ("b", "y", "b"): ([0, 1], [1, 1]),
    }
    graph = Graph.typed({"a": 3, "b": {"z": torch.ones(2, 2)}}, edges)
    conv = TypedConv({"x": GATConv(WIDTH, 2, edge_features=1), "y": SAGEConv(WIDTH, 2)})
    assert check_layer(conv, WIDTH, graph=graph, checks=QUICK).failed == []
