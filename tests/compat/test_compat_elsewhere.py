"""Names of DGL 0.4 that ``nodeflow.compat.dgl`` does not have: errors name the page that says where
to go.
"""

from __future__ import annotations

import pytest
import torch
from _support.pages import ROOT

import nodeflow
import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl import DGLGraph

PAGE = "Coming from DGL's NodeFlow"

PACKAGE = "ALL DGLGraph EdgeBatch NodeBatch NodeFlow contrib function init nodeflow random utils"
GRAPH = """
    add_edge add_edges add_nodes all_edges apply_edges apply_nodes edata edge_ids edges
    find_edges has_edges_between in_degrees in_edges is_readonly ndata nodes number_of_edges number_of_nodes
    out_degrees out_edges pull readonly register_apply_edge_func register_apply_node_func register_message_func
    register_reduce_func set_e_initializer set_n_initializer to update_all
"""


@pytest.mark.parametrize(
    ("owner", "present", "missing"),
    [
        (
            dgl,
            PACKAGE,
            "NID EID graph batch sampling transform nn data add_self_loop heterograph "
            "bfs_nodes_generator",
        ),
        (
            DGLGraph([(0, 1)]),
            GRAPH,
            "send recv push subgraph local_var parent_nid prop_nodes init_ndata successors",
        ),
        (dgl.contrib, "sampling", "KVClient graph_store data dis_kvstore"),
        (
            dgl.contrib.sampling,
            "LayerSampler NeighborSampler sampler",
            "EdgeSampler SamplerPool random_walk",
        ),
        (
            dgl.contrib.sampling.sampler,
            "LayerSampler NeighborSampler create_full_nodeflow",
            "EdgeSampler",
        ),
    ],
    ids=["dgl", "DGLGraph", "contrib", "sampling", "sampler"],
)
def test_every_old_name_is_there_or_names_the_page(owner, present, missing):
    assert set(present.split()) <= set(dir(owner))
    for name in [*missing.split(), "nonsense"]:
        with pytest.raises(AttributeError, match=f"has no '{name}': .*{PAGE}"):
            getattr(owner, name)


def test_errors_name_a_page_that_there_is():
    text = (ROOT / "docs" / "coming-from-dgl.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {PAGE}\n")
    with pytest.raises(AttributeError, match=r"use g.ndata.pop\(key\); the page"):
        DGLGraph().pop_n_repr("x")


def test_the_ways_of_the_page():
    """Those that are more than a name."""
    g = DGLGraph([(0, 1), (1, 1), (2, 1), (0, 1)], node_frame={"h": torch.tensor([1.0, 2.0, 4.0])})
    local = DGLGraph(g, g.ndata, g.edata)  # local_var
    local.update_all(fn.copy_src("h", "m"), fn.sum("m", "h"))
    assert (local.ndata["h"].tolist(), g.ndata["h"].tolist()) == ([0.0, 8.0, 0.0], [1.0, 2.0, 4.0])
    src, dst = g.graph.edges()
    # remove_self_loop, push, send_and_recv
    some = DGLGraph(nodeflow.transform.filter_edges(g.graph, src != dst))
    some.pull([1], fn.copy_src("h", "m"), fn.sum("m", "h"))
    assert some.ndata["h"].tolist() == [1.0, 6.0, 4.0]
    simple = DGLGraph(tuple(torch.unique(torch.stack(g.all_edges()), dim=1)))  # to_simple
    assert simple.all_edges()[0].tolist() == [0, 1, 2]
    matrix = nodeflow.convert.to_scipy(g.graph)
    assert DGLGraph(matrix @ matrix).number_of_edges() > 0  # khop_graph
