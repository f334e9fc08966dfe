"""Names of DGL 0.4 that have no stand-in, and where their users go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn

_PAGE: Final = 'see the page "Coming from DGL\'s NodeFlow" of the documentation'

_BATCHES: Final = (
    "batches of small graphs, and one row per graph of them, are outside of this layer; for one graph use torch on a "
    "column, as in g.ndata[name].mean(dim=0)"
)
_BATCHED: Final = "batches of small graphs are outside of this layer: a DGLGraph is one graph"
_CONVERT: Final = "use nodeflow.convert"
_DISTRIBUTED: Final = "use nodeflow.distributed, whose graphs and samplers work under torchrun"
_HETERO: Final = (
    "graphs of several types are outside of this layer; nodeflow has edge types (edge_type=, nodeflow.nn.RGCNConv)"
)
_INSIDE: Final = "it is an internal name of DGL, and PyTorch is the only backend here"
_LAYERS: Final = "use the layers of nodeflow.nn"
_PARENT_IDS: Final = (
    "the ids that a NodeFlow has in its parent are nf.layer_parent_nid(i) and nf.block_parent_eid(i); "
    "nodeflow.transform.subgraph keeps them in the columns 'parent_nid' and 'parent_eid'"
)
_PARTS: Final = "use nodeflow.transform.subgraph on g.graph"
_REVERSE: Final = "use nodeflow.transform.reverse(g.graph)"
_SAMPLE: Final = "use nodeflow.RandomWalkSampler or nodeflow.NeighborSampler"
_SEND: Final = "messages are not kept between calls: use update_all, pull or apply_edges"
_SOME: Final = "edges are added only: use DGLGraph(nodeflow.transform.filter_edges(g.graph, mask))"
_SOME_EDGES: Final = (
    "messages go along all in-edges of the nodes that are computed: use pull or update_all, where only some edges send "
    "on DGLGraph(nodeflow.transform.filter_edges(g.graph, mask))"
)
_TO_NETWORKX: Final = "use nodeflow.convert.to_networkx(g.graph)"
_TRANSFORM: Final = "use nodeflow.transform on g.graph, and DGLGraph(...) of the result"
_TRAVERSAL: Final = (
    "traversals, and messages in their order, are outside of this layer: networkx has them, for "
    "nodeflow.convert.to_networkx(g.graph)"
)
_UNTYPED: Final = "this layer is for graphs with one type of nodes and of edges, and every DGLGraph is one"
_WALKS: Final = "use nodeflow.RandomWalkSampler"


def _by_name(hints: Mapping[str, str]) -> dict[str, str]:
    """Return the hint of every name, from the names of every hint, with spaces between."""
    return {name: hint for hint, names in hints.items() for name in names.split()}


PACKAGE: Final = _by_name(
    {
        _BATCHED: "BatchedDGLGraph batch unbatch",
        _BATCHES: """broadcast_edges broadcast_nodes max_edges max_nodes mean_edges mean_nodes readout softmax_edges
            softmax_nodes sum_edges sum_nodes topk_edges topk_nodes""",
        _CONVERT: "convert",
        _HETERO: """BatchedDGLHeteroGraph DGLHeteroGraph as_heterograph batch_hetero batched_heterograph bipartite
            compact_graphs graph hetero_from_relations heterograph heterograph_index metapath_reachable_graph
            to_hetero to_homo unbatch_hetero""",
        _INSIDE: """TypeCode backend backend_name base container extract_ext_funcs frame get_global_func graph_index
            kernel list_global_func_names load_backend ndarray register_func runtime udf utils view""",
        _LAYERS: "model_zoo nn",
        _DISTRIBUTED: "network",
        _PARENT_IDS: "EID NID",
        _PARTS: "subgraph",
        _REVERSE: "reverse",
        _SAMPLE: "sampling",
        _SOME: "in_subgraph out_subgraph remove_edges",
        _TO_NETWORKX: "to_networkx",
        _TRANSFORM: "transform",
        _TRAVERSAL: """bfs_edges_generator bfs_nodes_generator dfs_edges_generator dfs_labeled_edges_generator
            prop_edges prop_edges_dfs prop_nodes prop_nodes_bfs prop_nodes_topo propagate
            topological_nodes_generator traversal""",
        _UNTYPED: "ETYPE NTYPE",
        "a DGLGraph is read-only after g.readonly()": "as_immutable_graph",
        "errors are Python's own: ValueError, TypeError, IndexError and KeyError": "DGLError",
        "eigenvalues are scipy's: scipy.sparse.linalg.eigsh of g.adjacency_matrix_scipy()": "laplacian_lambda_max",
        "line graphs are outside of this layer: networkx has them": "line_graph",
        "make the edges yourself, and DGLGraph((src, dst)) of them": "generators rand_graph",
        "use g.adjacency_matrix_scipy() and its powers, and DGLGraph(...) of a matrix": "khop_adj khop_graph",
        "use nodeflow.NeighborSampler, whose NodeFlows have such blocks as flows": "to_block",
        "use nodeflow.datasets, or tensors of your own": "data load_graphs save_graphs",
        "use nodeflow.transform.add_reverse_edges(g.graph)": "to_bidirected",
        "use nodeflow.transform.add_self_loops(g.graph), or add_self_loop=True of the sampler": "add_self_loop",
        "use nodeflow.transform.filter_edges(g.graph, src != dst) with src, dst = g.graph.edges()": "remove_self_loop",
        "use scipy.spatial.cKDTree or sklearn.neighbors, and DGLGraph((src, dst)) of what they find":
            "knn_graph segmented_knn_graph",
        "use torch.unique(torch.stack(g.all_edges()), dim=1), whose rows are src and dst of the new graph":
            "to_simple to_simple_graph",
    }
)  # fmt: skip
"""Of the package ``dgl``."""

SAMPLING: Final = _by_name(
    {
        "use nodeflow.LinkSampler, which draws negative edges too": "EdgeSampler EdgeSubgraph",
        _DISTRIBUTED: "SamplerPool SamplerReceiver SamplerSender dis_sampler",
        _WALKS: """bipartite_single_sided_random_walk_with_restart metapath_random_walk random_walk
            random_walk_with_restart randomwalk""",
    }
)
"""Of ``dgl.contrib.sampling``."""

CONTRIB: Final = _by_name(
    {
        _DISTRIBUTED: "DistGraphStore KVClient KVServer dis_kvstore graph_store read_ip_config",
        "use nodeflow.datasets, or tensors of your own": "data",
    }
)
"""Of ``dgl.contrib``."""

GRAPH: Final = _by_name(
    {
        _BATCHED: "batch_num_edges batch_num_nodes batch_size flatten",
        _DISTRIBUTED: "init_edata init_ndata",
        _PARTS: """copy_from_parent copy_to_parent detach_parent map_to_subgraph_nid parent parent_eid parent_nid
            remove_nodes subgraph subgraphs""",
        _REVERSE: "reverse",
        _SEND: "recv send",
        _SOME_EDGES: "push send_and_recv",
        _SOME: "edge_subgraph remove_edges",
        _TO_NETWORKX: "to_networkx",
        _TRAVERSAL: "prop_edges prop_nodes",
        _UNTYPED: "is_homograph",
        "DGLGraph(g, g.ndata, g.edata) shares structure and columns, and has frames of its own": "local_var",
        "compute a mask from g.edata": "filter_edges",
        "compute a mask from g.ndata": "filter_nodes",
        "line graphs are outside of this layer: networkx has them": "line_graph",
        "use DGLGraph(g, g.ndata, g.edata) inside, which has frames of its own": "local_scope",
        "use g.ndata, which sources and destinations share": "dstdata srcdata",
        "a new DGLGraph() is empty": "clear",
        "a softmax over the edges of each node is nodeflow.ops.segment_softmax; for sums and the like use update_all":
            "group_apply_edges",
        "no matrices are kept, so leave the call out": "clear_cache",
    }
)  # fmt: skip
"""Methods and properties of ``DGLGraph``."""


def refuse_import(module: str, name: str) -> NoReturn:
    """Raise ImportError for a name of a module of DGL that has no stand-in."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"nodeflow.compat.dgl has no {module}.{name}: {PACKAGE[module]} ({_PAGE})")


def refuse(names: Mapping[str, str], owner: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that ``owner`` does not have; it says where to go, where that is known."""
    if name in names:
        raise AttributeError(f"{owner} has no {name!r} in nodeflow.compat.dgl: {names[name]} ({_PAGE})", name=name)
    raise AttributeError(f"{owner} has no attribute {name!r}", name=name)
