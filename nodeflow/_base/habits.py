"""Words of other libraries: what an argument, an attribute or a name of a module is called here.

The page on words (docs/words.md) shows the tables of attributes and of names.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from difflib import get_close_matches
from dis import opmap
from functools import partial
from inspect import getattr_static
from itertools import product
from types import ModuleType
from typing import Final, NoReturn, TypeVar

T = TypeVar("T")

SIZES: Final = ("fanouts", "layer_sizes", "num_neighbors")
"""Arguments with a number per flow, whose order is easily mistaken."""

_THREADS = (
    "workers are threads of this process, which start and end with an iteration: nothing is to be "
    "set"
)

ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("in_channels", "in_feats", "in_dim", "in_size"), ("in_features",)),
    **dict.fromkeys(
        ("out_channels", "out_feats", "out_dim", "out_size", "num_classes"), ("out_features",)
    ),
    **dict.fromkeys(("hidden_channels", "hidden_feats", "hidden_dim", "h_feats"), ("hidden",)),
    **dict.fromkeys(("n_hidden", "num_hidden", "hidden_size"), ("hidden",)),
    **dict.fromkeys(
        (*SIZES, "fanout", "fan_out", "sizes", "num_samples", "num_neighbours", "nodes_per_layer"),
        SIZES,
    ),
    **dict.fromkeys(("random_state", "random_seed", "rng", "generator"), ("seed",)),
    **dict.fromkeys(("probs", "weight_attr", "edge_weight"), ("prob",)),
    **dict.fromkeys(
        ("layers", "num_hops", "hops", "num_layers", "num_steps"), ("num_flows", *SIZES)
    ),
    **dict.fromkeys(("time_attr", "times"), ("time",)),
    **dict.fromkeys(("input_time", "seed_time"), ("times",)),
    "temporal_strategy": ("strategy",),
    **dict.fromkeys(
        ("neg_ratio", "num_negs", "num_neg_samples", "num_negative_samples"), ("num_negatives",)
    ),
    **dict.fromkeys(("neg_sampling_ratio", "neg_sampling", "negative_sampler"), ("num_negatives",)),
    **dict.fromkeys(("input_nodes", "nids", "nid", "train_nid", "indices", "node_ids"), ("seeds",)),
    **dict.fromkeys(("dataset", "itemset", "edge_label_index"), ("seeds",)),
    **dict.fromkeys(("data", "g"), ("graph",)),
    "graph_sampler": ("sampler",),
    **dict.fromkeys(("batch", "batchsize", "bs"), ("batch_size",)),
    "prefetch_factor": ("prefetch",),
    "collate_fn": ("transform",),
    **dict.fromkeys(
        ("num_rels", "num_relation_types", "num_edge_types", "num_etypes"), ("num_relations",)
    ),
    **dict.fromkeys(("edge_types", "etypes", "metadata", "node_types"), ("schema",)),
    **dict.fromkeys(("aggregator_type", "aggr", "aggregation", "reduce"), ("aggregator", "reduce")),
    **dict.fromkeys(("num_heads", "n_heads", "attention_heads"), ("heads",)),
    **dict.fromkeys(
        ("edge_dim", "edge_feats", "edge_in_feats", "in_edge_feats"), ("edge_features",)
    ),
    **dict.fromkeys(("edge_attr", "efeat", "etype"), ("edge_column", "edge_type", "edata")),
    **dict.fromkeys(("attn_drop", "dropout"), ("attention_dropout",)),
    "feat_drop": ("dropout",),
    **dict.fromkeys(("act", "act_func"), ("activation",)),
    "jk": ("jumping",),
    **dict.fromkeys(("nn", "apply_func"), ("mlp",)),
    **dict.fromkeys(("add_self_loops", "add_self_loop"), ("self_loops",)),
    "root_weight": ("own",),
    **dict.fromkeys(("learning_rate", "step_size"), ("lr",)),
    **dict.fromkeys(("num_epochs", "n_epochs", "max_epochs"), ("epochs",)),
    "wd": ("weight_decay",),
    "gpu": ("device",),
    "num_workers": ("workers",),
}
"""Words, and the arguments that they may stand for here; the first that there is counts."""

_LACKING: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("persistent_workers", "multiprocessing_context", "worker_init_fn", "timeout"), _THREADS
    ),
    **dict.fromkeys(
        ("use_ddp", "ddp_seed"),
        "processes share every step by themselves, see rank= and world_size=",
    ),
    **dict.fromkeys(
        ("use_uva", "use_prefetch_thread"), "pin_memory= and prefetch= are what there is"
    ),
    **dict.fromkeys(("is_sorted", "filter_per_worker", "custom_cls"), "nothing is to be set here"),
    **dict.fromkeys(
        ("direction", "edge_filter", "weight"),
        "a view of the graph says it, as in "
        'NeighborSampler(graph.view("out", where="train", weight="w"), [10, 10])',
    ),
    "subgraph_type": "flows are directed; nodeflow.sampling.induced(batch, sampler) adds all edges "
    "between the nodes",
    "allow_zero_in_degree": "nodes without edges get 0 from every reduction: nothing is to be set",
    "edge_features": "this layer reads no edge columns; GATConv, GATv2Conv, GINEConv and EdgeConv "
    "do",
}
"""Words for which there is nothing here, and why; of arguments, used where none of ``ARGUMENTS``
fits.
"""


def renamed(name: str, takes: Collection[str]) -> str:
    """Return what a word of another library is called among the arguments ``takes``; empty where
    none is meant.
    """
    return next((word for word in ARGUMENTS.get(name, ()) if word in takes and word != name), "")


def meant(name: str, takes: Collection[str]) -> str:
    """Return the argument that an unknown word stands for, else one that is spelled nearly so;
    empty for none.
    """
    if (word := renamed(name, takes)) or name in _LACKING:
        return word
    return next(iter(get_close_matches(name, takes, 1, cutoff=0.8)), "")


def hint_of(name: str, takes: Collection[str]) -> str:
    """Return what an unknown argument is called here, or why there is none, or what arguments there
    are.
    """
    if not (near := meant(name, takes)):
        return _LACKING.get(name, f"it takes {', '.join(takes)}")
    order = (
        ", one number per flow in flow order (the last is for the seeds)" if near in SIZES else ""
    )
    return f"it is called {near}= here{order}"


_LOADERS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("NeighborLoader", "NodeLoader", "DataLoader", "NodeDataLoader", "ItemSampler"),
        "NodeFlowLoader(NeighborSampler(graph, fanouts), seeds)  # fanouts are in flow order, the "
        "seeds' last",
    ),
    **dict.fromkeys(
        (
            "LinkNeighborLoader",
            "LinkLoader",
            "EdgeDataLoader",
            "as_edge_prediction_sampler",
            "NegativeSampler",
        ),
        "NodeFlowLoader(LinkSampler(NeighborSampler(graph, fanouts)))  # seeds are edges",
    ),
    **dict.fromkeys(
        ("MultiLayerNeighborSampler", "NeighborSubgraphSampler"), "NeighborSampler(graph, fanouts)"
    ),
    "MultiLayerFullNeighborSampler": "FullSampler(graph, num_flows)",
    **dict.fromkeys(("ClusterData", "ClusterLoader"), "ClusterSampler(graph, num_flows, parts)"),
    **dict.fromkeys(("GraphSAINTSampler", "SAINTSampler"), "SaintSampler"),
    "ShaDowKHopSampler": "ShadowSampler",
    "LayerNeighborSampler": "LaborSampler",
    **dict.fromkeys(
        ("HGTLoader", "HGTSampler"), "NeighborSampler(graph, fanouts)  # with numbers by relation"
    ),
}

_ENDS: Final = {"src": "u", "dst": "v", "edge": "e"}
_OPERATIONS: Final = ("add", "sub", "mul", "div", "dot")

NAMES: Final[dict[str, dict[str, str]]] = {
    "nodeflow": {
        **_LOADERS,
        **dict.fromkeys(
            ("Data", "HeteroData"), "convert.from_pyg  # or Graph.from_edges(*edge_index)"
        ),
        **dict.fromkeys(
            ("DGLGraph", "heterograph"),
            "convert.from_dgl  # or compat.dgl.DGLGraph, or Graph.typed",
        ),
        **dict.fromkeys(
            ("manual_seed", "seed_everything"), "NeighborSampler(graph, fanouts, seed=1)"
        ),
    },
    "nodeflow.sampling": _LOADERS,
    "nodeflow.loader": _LOADERS,
    "nodeflow.fn": {
        "copy_src": "copy_u",
        "copy_edge": "copy_e",
        **{
            f"{a}_{op}_{b}": f"{_ENDS[a]}_{op}_{_ENDS[b]}"
            for a, op, b in product(_ENDS, _OPERATIONS, _ENDS)
        },
    },
    "nodeflow.nn": {
        **dict.fromkeys(("HeteroConv", "HeteroGraphConv"), "TypedConv"),
        **dict.fromkeys(("HeteroLinear", "HeteroDictLinear"), "TypedLinear"),
        "to_hetero": "TypedModel",
        "GCNConv": "GraphConv",
        **dict.fromkeys(("RelGraphConv", "FastRGCNConv"), "RGCNConv"),
        "MessagePassing": "FlowConv",
        "JumpingKnowledge": "Jumping",
        "EdgePredictor": "Decoder",
        "BatchNorm": 'GraphSAGE(4, 4, 4, norm="batch")',
    },
    "nodeflow.transform": {
        **dict.fromkeys(
            ("to_undirected", "ToUndirected", "to_bidirected", "add_reverse"), "add_reverse_edges"
        ),
        **dict.fromkeys(
            ("add_self_loop", "AddSelfLoops", "add_remaining_self_loops"), "add_self_loops"
        ),
        **dict.fromkeys(("GCNNorm", "gcn_norm", "EdgeWeightNorm"), "edge_norm"),
        "RandomNodeSplit": "random_split",
        **dict.fromkeys(("node_subgraph", "induced_subgraph"), "subgraph"),
        **dict.fromkeys(("remove_self_loops", "remove_edges", "edge_subgraph"), "filter_edges"),
        "degree": "degrees",
        "is_undirected": "is_symmetric",
        "reorder_graph": "reorder",
    },
    "nodeflow.convert": {
        **dict.fromkeys(("from_torch_geometric", "from_data"), "from_pyg"),
        **dict.fromkeys(("from_pandas", "from_dataframe"), "from_edge_table"),
        "from_scipy_sparse_matrix": "from_scipy",
    },
    "nodeflow.datasets": dict.fromkeys(
        ("PygNodePropPredDataset", "NodePropPredDataset", "DglNodePropPredDataset"), "read_ogb"
    ),
    "nodeflow.metrics": {
        **dict.fromkeys(("auc", "roc_auc", "roc_auc_score"), "auroc"),
        **{name: f'named("{name}")' for name in ("accuracy", "mae", "mse", "r2")},
        "f1_score": 'named("f1_micro")',
    },
}
"""Names that other libraries have, by module, and the code that stands for each here."""

_COLUMN = 'batch.inputs["x"]  # the columns that the loader is told to copy, ndata={0: ["x"]}'
_PARENT = "torch.stack(graph.edges())"

ATTRIBUTES: Final[dict[str, dict[str, str]]] = {
    "NodeFlow": {
        **dict.fromkeys(("x", "node_features"), _COLUMN),
        **dict.fromkeys(
            ("y", "labels"), 'batch.outputs["y"]  # with ndata={-1: ["y"]} of the loader'
        ),
        **dict.fromkeys(("n_id", "input_nodes", "input_node_ids"), "batch.front.parent_nid"),
        **dict.fromkeys(("output_nodes", "seed_nodes"), "batch.seeds"),
        "e_id": "batch.flows[0].parent_eid",
        "input_id": 'batch.seed_data["index"]  # with seed_data={"index": '
        "torch.arange(len(seeds))} of the loader",
        "batch_size": "len(batch.seeds)",
        "edge_index": "torch.stack(batch.flows[0].edges())",
        **dict.fromkeys(
            ("edge_attr", "edata", "edge_features"), 'batch.fdata[0]["w"]  # the frame of a flow'
        ),
        "edge_weight": "batch.flows[0].weight  # estimator weights of a flow",
        **dict.fromkeys(
            ("blocks", "sampled_subgraphs", "adjs"), "batch.flows  # which replace a list of blocks"
        ),
        **dict.fromkeys(
            ("ndata", "srcdata"), "batch.ldata[0]  # the frame of a layer, also batch.inputs"
        ),
        "dstdata": "batch.outputs",
        "num_nodes": "batch.layer_sizes",
        "num_edges": "batch.flow_sizes",
        "num_sampled_nodes": "batch.layer_sizes  # convert.to_pyg(batch).num_sampled_nodes counts "
        "what each hop adds",
        "num_sampled_edges": "batch.flow_sizes  # convert.to_pyg(batch).num_sampled_edges",
        "to_pyg": "convert.to_pyg(batch)",
        "to_dgl": "convert.to_dgl_blocks",
        "to_networkx": "convert.to_networkx(batch)",
        "layer_parent_nid": "batch.layers[0].parent_nid",
        "block_parent_eid": "batch.flows[0].parent_eid",
        "num_blocks": "batch.num_flows",
        **dict.fromkeys(("block_compute", "prop_flow", "update_all"), "batch.flow_compute"),
        "cuda": 'batch.to("cpu")  # or another device',
        "cpu": 'batch.to("cpu")',
    },
    "Flow": {
        "srcdata": "flow.src_layer.data",
        "dstdata": "flow.dst_layer.data",
        **dict.fromkeys(("edata", "edge_attr"), "flow.data"),
        "ndata": "flow.src_layer.data  # or flow.dst_layer.data",
        **dict.fromkeys(("num_src_nodes", "number_of_src_nodes"), "flow.num_src"),
        **dict.fromkeys(("num_dst_nodes", "number_of_dst_nodes"), "flow.num_dst"),
        "number_of_edges": "flow.num_edges",
        "edge_index": "torch.stack(flow.edges())",
        "edge_weight": "flow.weight",
        "e_id": "flow.parent_eid",
        "adj": "flow.to_torch_sparse()",
        **dict.fromkeys(
            ("update_all", "apply_edges"), "batch.flow_compute  # or flow.aggregate(h)"
        ),
    },
    "Layer": {
        **dict.fromkeys(("n_id", "nid", "node_ids"), "layer.parent_nid"),
        **dict.fromkeys(("ndata", "srcdata", "dstdata"), "layer.data"),
        "x": 'layer.data["x"]',
    },
    "Graph": {
        "edge_index": _PARENT,
        **{
            name: f'graph.ndata["{name}"]'
            for name in ("x", "y", "train_mask", "val_mask", "test_mask")
        },
        **{name: f'graph.edata["{name}"]' for name in ("edge_attr", "edge_weight")},
        **dict.fromkeys(("num_features", "num_node_features"), 'graph.ndata["x"].shape[1]'),
        **dict.fromkeys(
            ("node_types", "ntypes", "x_dict"),
            "graph.schema.nodes  # graph.nodes[name].data has columns",
        ),
        **dict.fromkeys(
            ("edge_types", "etypes", "canonical_etypes", "edge_index_dict"),
            "graph.schema.relations",
        ),
        "number_of_nodes": "graph.num_nodes",
        "number_of_edges": "graph.num_edges",
        **dict.fromkeys(("adj_t", "adj"), "convert.to_torch_sparse(graph)"),
        **dict.fromkeys(
            ("to", "cuda"),
            'batch.to("cpu")  # batches move; sampler.in_torch(device) draws on a device',
        ),
        "successors": "graph.out_edges([0])",
        "predecessors": "graph.in_edges([0])",
        "subgraph": "transform.subgraph",
        **dict.fromkeys(("to_undirected", "to_bidirected"), "transform.add_reverse_edges(graph)"),
        "is_undirected": "transform.is_symmetric(graph)",
        "add_edges": "Graph.from_edges(*graph.edges())  # of more edges: a graph never changes",
        "update_all": "batch.flow_compute  # also of create_full_node_flow(graph, 1)",
        "to_pyg": "convert.to_pyg(graph)",
        "to_networkx": "convert.to_networkx(graph)",
    },
    "SamplerBase": {
        **dict.fromkeys(("sample", "sample_blocks", "sample_from_nodes"), "sampler(seeds)"),
        **dict.fromkeys(("num_neighbors", "num_neighbours"), "sampler.fanouts"),
        **dict.fromkeys(("num_layers", "num_hops"), "sampler.num_flows"),
        "to": 'sampler.in_torch("cpu")  # or another device',
    },
    "NodeFlowLoader": {
        **dict.fromkeys(("dataset", "input_nodes"), "loader.seeds"),
        **dict.fromkeys(("graph", "data"), "loader.sampler.graph"),
        "node_sampler": "loader.sampler",
        "collate_fn": "loader.sampler  # transform= is a function of every batch",
    },
}
"""Attributes that objects of other libraries have, by class, and the code that stands for each
here.
"""


class Habit:
    """An attribute of other libraries: asking for it raises AttributeError, which says what to
    write.

    ``__getattr__`` would make every other attribute of an object several times as slow to read.
    """

    __slots__ = ("_hint", "_name")

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint

    def __get__(self, owner: object, kind: type) -> NoReturn:
        # obj=None: Python would add the attribute that is spelled most nearly so
        raise AttributeError(
            f"{kind.__name__!r} object has no attribute {self._name!r}; use {self._hint}",
            name=self._name,
            obj=None,
        )


def taught(kind: type[T]) -> type[T]:
    """Give a class the ``ATTRIBUTES`` that its name has, which ``dir`` of its objects leaves
    out.
    """
    habits = ATTRIBUTES[kind.__name__]
    for name, hint in habits.items():
        setattr(kind, name, Habit(name, hint))

    def listed(self: object) -> list[str]:
        return [
            name
            for name in object.__dir__(self)
            if not isinstance(getattr_static(self, name, None), Habit)
        ]

    kind.__dir__ = listed  # type: ignore[method-assign]
    return kind


def unknown(module: str, name: str, depth: int = 1) -> NoReturn:
    """Raise AttributeError for a name that a module lacks, with the code for it here where another
    library has it.

    ``depth`` is the number of calls between here and the code that asked.
    """
    hint = NAMES.get(module, {}).get(name)
    text = f"module {module!r} has no attribute {name!r}"
    if hint is None:
        raise AttributeError(text, name=name, obj=sys.modules[module])
    # "from nodeflow import NeighborLoader" drops an AttributeError and its words, so it gets the
    # error that it raises
    frame = sys._getframe(depth)  # noqa: SLF001  it has no public name
    imported = frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]
    raise (ImportError if imported else AttributeError)(f"{text}; use {hint}")


class Package(ModuleType):
    """The type of the package: rooms list their public names alone, and explain those of other
    libraries.

    An import ends with setting the room as an attribute of the package, so that no room can be
    forgotten.
    """

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, ModuleType) and hasattr(value, "__all__"):
            names = vars(value)
            names.setdefault("__getattr__", partial(unknown, value.__name__))
            names["__dir__"] = lambda: sorted(value.__all__)
