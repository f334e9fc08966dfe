"""Sparse columns in ``nodeflow.compat.dgl``: copied and multiplied; refused where rows are combined
or written.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl import DGLGraph, EdgeBatch, NodeBatch

DENSE = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0], [5.0, 0.0, 0.0]])


def graph() -> DGLGraph:
    return DGLGraph([(0, 1), (2, 1), (1, 0), (3, 2)], node_frame={"x": DENSE.to_sparse_csr()})


def node_flow(g: DGLGraph) -> dgl.NodeFlow:
    (nf,) = dgl.contrib.sampling.NeighborSampler(g, 2, 5, num_hops=2, seed_nodes=[1, 0])
    return nf


def same(column: Tensor, rows: Tensor) -> bool:
    return column.layout == torch.sparse_csr and torch.equal(column.to_dense(), rows)


def test_rows_are_copied_and_multiplied():
    g = graph()
    nf = node_flow(g)
    nf.copy_from_parent()
    for i in range(3):
        assert same(nf.layers[i].data["x"], DENSE[nf.layer_parent_nid(i)])
    linear = torch.nn.Linear(3, 2)
    nf.apply_layer(0, lambda nodes: {"h": linear(nodes.data["x"])})
    rows = DENSE[nf.layer_parent_nid(0)]
    torch.testing.assert_close(nf.layers[0].data["h"], linear(rows))
    nf.layers[0].data["h"].sum().backward()
    torch.testing.assert_close(linear.weight.grad, rows.sum(0).expand(2, 3))


def test_rows_that_functions_see():
    g = graph()
    g.update_all(lambda edges: {"m": edges.src["x"].to_dense()}, fn.sum("m", "s"))
    assert torch.equal(
        g.ndata["s"], torch.stack([DENSE[1], DENSE[0] + DENSE[2], DENSE[3], torch.zeros(3)])
    )
    assert same(g.nodes[[2, 0]].data["x"], DENSE[[2, 0]])


def combine(message: object, reduce: object) -> Callable[[DGLGraph], None]:
    return lambda g: g.update_all(message, reduce)


def own_message(edges: EdgeBatch) -> dict[str, Tensor]:
    return {"m": edges.src["x"]}


def own_reduce(nodes: NodeBatch) -> dict[str, Tensor]:
    assert nodes.mailbox is not None
    return {"y": nodes.mailbox["m"].sum(1)}


REFUSED: dict[str, tuple[Callable[[DGLGraph], object], str]] = {
    "sum": (
        combine(fn.copy_src("x", "m"), fn.sum("m", "y")),
        "column 'x' of layer 0 is a sparse matrix",
    ),
    "own sum": (
        combine(fn.copy_src("x", "m"), own_reduce),
        "column 'x' of layer 0 is a sparse matrix",
    ),
    "own message": (
        combine(own_message, fn.sum("m", "y")),
        r"message 'm' is a sparse matrix.*\.to_dense\(\)",
    ),
    "both own": (
        combine(own_message, own_reduce),
        r"message 'm' is a sparse matrix.*\.to_dense\(\)",
    ),
    "pull": (
        lambda g: g.pull([1], fn.copy_src("x", "m"), fn.sum("m", "y")),
        "column 'x' of layer 0",
    ),
    "some rows": (
        lambda g: g.nodes[[0, 1]].data.update({"x": DENSE[:2]}),
        "'x' of the graph's nodes is sparse: set the",
    ),
    "sparse rows": (
        lambda g: g.nodes[[0, 1]].data.update({"z": DENSE[:2].to_sparse_csr()}),
        r"'z' .* call \.to_dense\(\)",
    ),
    "more nodes": (
        lambda g: g.add_nodes(1),
        "column 'x' is sparse and takes no rows: set it after the last node",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_the_graph_as_it_was(case):
    call, words = REFUSED[case]
    g = graph()
    with pytest.raises(TypeError, match=words):
        call(g)
    assert (list(g.ndata), g.number_of_nodes(), g.number_of_edges()) == (["x"], 4, 4)
    assert same(g.ndata["x"], DENSE)


def test_sparse_columns_and_a_graph_that_grows():
    g = graph()
    g.add_edges([0], [3])  # the nodes stay as many
    assert same(g.ndata["x"], DENSE)
    assert g.number_of_edges() == 5
    del g.ndata["x"]
    g.add_nodes(1)
    g.ndata["x"] = DENSE[[0, 1, 2, 3, 0]].to_sparse_csr()
    g.edata["w"] = DENSE[[0, 1, 2, 3, 0]].to_sparse_csr()
    with pytest.raises(TypeError, match="column 'w' is sparse and takes no rows"):
        g.add_edges([0], [4])
    assert g.number_of_edges() == 5


def test_writing_to_the_parent():
    g = graph()
    nf = node_flow(g)
    nf.copy_from_parent()
    nf.layers[0].data["h"] = torch.ones(nf.layer_size(0), 1)
    with pytest.raises(ValueError, match=r"column 'x' is sparse.*name the others"):
        nf.copy_to_parent()
    assert "h" not in g.ndata
    nf.copy_to_parent([["h"], [], []])
    assert g.ndata["h"].tolist() == [[1.0], [1.0], [1.0], [1.0]]
