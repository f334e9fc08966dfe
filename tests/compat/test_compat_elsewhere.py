"""Names of DGL 0.4 that ``nodeflow.compat.dgl`` does not have: errors name the page that says where to go."""

from __future__ import annotations

import pytest
import torch
from _support.pages import ROOT

import nodeflow
import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl import DGLGraph

PAGE = "Coming from DGL's NodeFlow"

PACKAGE = """
    ALL BatchedDGLGraph BatchedDGLHeteroGraph DGLError DGLGraph DGLHeteroGraph EID ETYPE EdgeBatch NID NTYPE
    NodeBatch NodeFlow TypeCode add_self_loop as_heterograph as_immutable_graph backend backend_name base
    batch batch_hetero batched_heterograph bfs_edges_generator bfs_nodes_generator bipartite broadcast_edges
    broadcast_nodes compact_graphs container contrib convert data dfs_edges_generator
    dfs_labeled_edges_generator extract_ext_funcs frame function generators get_global_func graph graph_index
    hetero_from_relations heterograph heterograph_index in_subgraph init kernel khop_adj khop_graph knn_graph
    laplacian_lambda_max line_graph list_global_func_names load_backend max_edges max_nodes mean_edges
    mean_nodes metapath_reachable_graph model_zoo ndarray network nn nodeflow out_subgraph prop_edges
    prop_edges_dfs prop_nodes prop_nodes_bfs prop_nodes_topo propagate rand_graph random readout register_func
    remove_edges remove_self_loop reverse runtime sampling segmented_knn_graph softmax_edges softmax_nodes
    sum_edges sum_nodes to_bidirected to_block to_hetero to_homo to_networkx to_simple to_simple_graph
    topk_edges topk_nodes topological_nodes_generator transform traversal udf unbatch unbatch_hetero utils
    view
"""
"""The public names of the package ``dgl`` in version 0.4.3: those that its ``__init__`` imports, and its modules."""

GRAPH = """
    add_edge add_edges add_nodes adjacency_matrix adjacency_matrix_scipy all_edges apply_edges apply_nodes
    batch_num_edges batch_num_nodes batch_size clear clear_cache copy_from_parent copy_to_parent detach_parent
    dstdata edata edge_attr_schemes edge_id edge_ids edge_subgraph edges filter_edges filter_nodes find_edges
    flatten from_networkx from_scipy_sparse_matrix get_e_repr get_n_repr group_apply_edges has_edge_between
    has_edges_between has_node has_nodes in_degree in_degrees in_edges incidence_matrix init_edata init_ndata
    is_homograph is_multigraph is_readonly line_graph local_scope local_var map_to_subgraph_nid ndata
    node_attr_schemes nodes number_of_dst_nodes number_of_edges number_of_nodes number_of_src_nodes out_degree
    out_degrees out_edges parent parent_eid parent_nid pop_e_repr pop_n_repr predecessors prop_edges
    prop_nodes pull push readonly recv register_apply_edge_func register_apply_node_func register_message_func
    register_reduce_func remove_edges remove_nodes reverse send send_and_recv set_e_initializer set_e_repr
    set_n_initializer set_n_repr srcdata subgraph subgraphs successors to to_networkx update_all
"""
"""The public methods and properties of ``DGLGraph`` in version 0.4.3."""

SAMPLING = """
    EdgeSampler LayerSampler NeighborSampler SamplerPool SamplerReceiver SamplerSender
    bipartite_single_sided_random_walk_with_restart dis_sampler metapath_random_walk random_walk
    random_walk_with_restart randomwalk sampler
"""
"""The public names of ``dgl.contrib.sampling`` in version 0.4.3."""

CONTRIB = """
    KVClient KVServer data dis_kvstore graph_store read_ip_config sampling
"""
"""The public names of ``dgl.contrib`` in version 0.4.3."""


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (dgl, PACKAGE),
        (DGLGraph([(0, 1)]), GRAPH),
        (dgl.contrib, CONTRIB),
        (dgl.contrib.sampling, SAMPLING),
        (dgl.contrib.sampling.sampler, "EdgeSampler LayerSampler NeighborSampler"),
    ],
    ids=["dgl", "DGLGraph", "contrib", "sampling", "sampler"],
)
def test_every_old_name_is_there_or_names_the_page(owner: object, names: str) -> None:
    present = [name for name in names.split() if name in dir(owner)]
    assert present
    for name in {*names.split(), "nonsense"} - set(present):
        with pytest.raises(AttributeError, match=f"has no '{name}': .*{PAGE}"):
            getattr(owner, name)


def test_errors_name_a_page_that_there_is() -> None:
    text = (ROOT / "docs" / "coming-from-dgl.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {PAGE}\n")


def test_the_ways_of_the_page() -> None:
    """Those that are more than a name."""
    g = DGLGraph([(0, 1), (1, 1), (2, 1), (0, 1)], node_frame={"h": torch.tensor([1.0, 2.0, 4.0])})
    local = DGLGraph(g, g.ndata, g.edata)  # local_var
    local.update_all(fn.copy_src("h", "m"), fn.sum("m", "h"))
    assert (local.ndata["h"].tolist(), g.ndata["h"].tolist()) == ([0.0, 8.0, 0.0], [1.0, 2.0, 4.0])
    src, dst = g.graph.edges()
    some = DGLGraph(nodeflow.transform.filter_edges(g.graph, src != dst))  # remove_self_loop, push, send_and_recv
    some.pull([1], fn.copy_src("h", "m"), fn.sum("m", "h"))
    assert some.ndata["h"].tolist() == [1.0, 6.0, 4.0]
    simple = DGLGraph(tuple(torch.unique(torch.stack(g.all_edges()), dim=1)))  # to_simple
    assert simple.all_edges()[0].tolist() == [0, 1, 2]
    matrix = g.adjacency_matrix_scipy()
    assert DGLGraph(matrix @ matrix).number_of_edges() > 0  # khop_graph
