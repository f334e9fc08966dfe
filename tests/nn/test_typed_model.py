"""TypedLinear and TypedModel: the rows of all types, batches, full passes, learned rows, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from _support.typed_nn import TYPES, typed_graph
from torch import nn as torch_nn

from nodeflow import (
    FullSampler,
    Graph,
    NeighborSampler,
    NodeFlow,
    create_full_node_flow,
    nn,
)
from nodeflow.nn import EncodedRows
from nodeflow.propagation import Propagation
from nodeflow.storage import EmbeddingTable, Rows

SEEDS = [12, 3, 0, 8, 9, 14]
WIDTHS = {name: 8 + i for i, name in enumerate(TYPES)}


def batch_of(graph: Graph, seeds: list[int] = SEEDS, flows: int = 2) -> NodeFlow:
    batch = FullSampler(graph, flows)(seeds)
    batch.copy_from_parent(["x"])
    return batch


def encoder(**types: Any) -> nn.TypedLinear:
    return nn.TypedLinear({**WIDTHS, **types}, 6).double()


def convs(kind: str, graph: Graph) -> list[torch_nn.Module]:
    schema = graph.schema
    makers: dict[str, Callable[[], torch_nn.Module]] = {
        "sage": lambda: nn.TypedConv(
            {relation: nn.SAGEConv(6, 6) for relation in schema.relations}
        ),
        "mixed": lambda: nn.TypedConv(
            {"cites": nn.GATConv(6, 6), "rev_writes": nn.SAGEConv(6, 6)}, "mean"
        ),
        "rgcn": lambda: nn.RGCNConv(6, 6, schema, num_blocks=3),
        "hgt": lambda: nn.HGTConv(6, 6, schema, heads=3, edge_time="age"),
    }
    return [makers[kind](), makers[kind]()]


def test_rows_are_those_of_a_linear_map_per_type():
    graph = typed_graph()
    embedding = torch_nn.Embedding(7, 6)
    table = EmbeddingTable(3, 6, lr=0.1, dtype=torch.float64)
    module = encoder(author=embedding, type=table)
    whole = module(graph)
    assert not whole.requires_grad
    wanted = [embedding.weight, table.fetch(range(3))]
    wanted.append(module.maps["<paper%2Ex>"](graph.nodes["paper.x"].data["x"]))
    torch.testing.assert_close(whole, torch.cat(wanted))
    for batch in (batch_of(graph), create_full_node_flow(graph, 2)):
        batch.copy_from_parent(["x"])
        rows = module(batch)
        torch.testing.assert_close(rows, whole[batch.layers[0].parent_nid])
        torch.testing.assert_close(module(batch.layers[0]), rows)
    rows.square().sum().backward()
    table.step()
    assert table.version == 1
    assert embedding.weight.grad is not None
    assert table.fetch([0]).ne(whole[7]).any()


def test_types_without_nodes_have_gradients_of_zero():
    graph = typed_graph(edges=0)
    module = encoder(type=torch_nn.Embedding(3, 6))
    batch = batch_of(graph, [12, 10])
    module(batch).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        assert bool(parameter.grad.any()) == ("paper" in name)
    assert module(batch_of(graph, [])).shape == (0, 6)


def test_rows_for_full_passes_are_a_column():
    graph = typed_graph()
    module = encoder()
    column = EncodedRows(module, graph)
    ids = torch.tensor([12, 0, 12])
    assert isinstance(column, Rows)
    assert (column.shape, column.dtype) == ((19, 6), torch.float64)
    out = torch.zeros(3, 6, dtype=torch.float64)
    with torch.no_grad():
        assert column.fetch(ids, out) is out
    torch.testing.assert_close(out, module(graph)[ids])


def test_sparse_features_and_other_types_of_numbers():
    x = torch.eye(4)[:, :3]
    graph = Graph.typed(
        {"a": {"x": x.to_sparse_csr()}, "b": {"x": x.half()}}, {("a", "r", "b"): ([0, 1], [0, 0])}
    )
    module = nn.TypedLinear({"a": 3, "b": 3}, 2)
    batch = NeighborSampler(graph, [2])([4, 6])
    batch.copy_from_parent(["x"])
    torch.testing.assert_close(module(batch), module(graph)[batch.layers[0].parent_nid])
    torch.testing.assert_close(module(graph)[:4], module.maps["<a>"](x))


@pytest.mark.parametrize("kind", ["sage", "mixed", "rgcn", "hgt"])
@pytest.mark.parametrize(
    "options", [{}, {"norm": "layer", "residual": True, "dropout": 0.5}, {"activation": None}]
)
def test_full_passes_equal_the_forward_pass(kind, options, tmp_path):
    graph = typed_graph()
    graph.edata["age"] = torch.rand(graph.num_edges, dtype=torch.float64)
    embedding = torch_nn.Embedding(7, 6)
    model = (
        nn.TypedModel(encoder(author=embedding), convs(kind, graph), 3, **options).double().eval()
    )
    whole = create_full_node_flow(graph, 2)
    whole.copy_from_parent(["x"], ["age"])
    with torch.no_grad():
        full = model(whole)
        for seeds in (SEEDS, [3], []):
            batch = batch_of(graph, seeds)
            batch.copy_from_parent(edata=["age"])
            torch.testing.assert_close(model(batch), full[seeds])
    assert full.shape == (graph.num_nodes, 3)
    model.train()
    for choice in ({}, {"chunk_size": 4}, {"folder": tmp_path, "chunk_size": 5}):
        torch.testing.assert_close(model.inference(graph, **choice), full)
        torch.testing.assert_close(model.inference(graph, nodes=SEEDS, **choice), full[SEEDS])
    torch.testing.assert_close(model.inference(Propagation(graph)), full)
    torch.testing.assert_close(nn.inference(model, graph, model.encoder(graph)), full)
    assert model.training


def test_a_compiled_model():
    graph = typed_graph()
    graph.edata["age"] = torch.rand(graph.num_edges, dtype=torch.float64)
    model = (
        nn.TypedModel(encoder(author=torch_nn.Embedding(7, 6)), convs("hgt", graph), 3)
        .double()
        .eval()
    )
    batch = batch_of(graph)
    batch.copy_from_parent(edata=["age"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing looks at attributes that warn
        rows = torch.compile(model, backend="eager")(batch)
    torch.testing.assert_close(rows, model(batch))


@pytest.mark.parametrize(
    "options", [{}, {"norm": "layer", "residual": True}, {"activation": None}], ids=str
)
def test_rows_before_the_head_and_by_type(options):
    graph = Graph.typed(
        {"a": 5, "b": 3}, {("a", "to", "b"): ([0, 1, 2, 4], [0, 0, 1, 2])}, reverse=True
    )
    convs = [nn.HGTConv(8, 8, graph.schema, heads=2) for _ in range(2)]
    model = nn.TypedModel(8, convs, 3, dropout=0.5, **options).eval()
    batch = NeighborSampler(graph, [3, 3])([6, 0, 5, 2])  # types are mixed
    h = torch.rand(batch.layer_sizes[0], 8)
    outputs = model(batch, h)
    rows = model.embed(batch, h)
    torch.testing.assert_close(model.head(rows), outputs)
    of_types = batch.back.by_type(outputs)
    assert of_types["a"].equal(outputs[[1, 3]])
    assert of_types["b"].equal(outputs[[0, 2]])
    model.embed(batch, h).sum().backward()
    assert model.head.weight.grad is None
    with pytest.raises(ValueError, match="rows must have one for each of 4 nodes"):
        batch.back.by_type(h)
    with pytest.raises(
        ValueError, match=r"needs batches of 2 flows.* num_layers of a model is batch.num_flows"
    ):
        model.embed(NeighborSampler(graph, [3])([6]), h)
