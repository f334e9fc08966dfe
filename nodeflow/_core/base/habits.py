"""Words of other libraries: what an argument, an attribute or a name of a module is called here.

The page on words (docs/words.md) shows the tables of attributes and of names.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass
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


def _table(text: str) -> dict[str, str]:
    """Return the meaning of each word: a line has words, a colon, and what each of them stands for.

    In the meaning, NAME is the word itself.
    """
    meanings = {}
    for line in text.strip().splitlines():
        words, _, meaning = line.partition(": ")
        for word in words.split():
            meanings[word] = meaning.replace("NAME", word)
    return meanings


def _tables(text: str) -> dict[str, dict[str, str]]:
    """Return several tables by name; each begins with a line [name]."""
    tables = {}
    for section in text.strip().removeprefix("[").split("\n["):
        name, _, lines = section.partition("]")
        tables[name] = _table(lines)
    return tables


# one text per table: data that is read as it is written, a line for all words of one meaning
ARGUMENTS: Final[dict[str, list[str]]] = {
    word: meaning.split()
    for word, meaning in _table("""
in_channels in_feats in_dim in_size: in_features
out_channels out_feats out_dim out_size num_classes: out_features
hidden_channels hidden_feats hidden_dim h_feats n_hidden num_hidden hidden_size: hidden
fanouts layer_sizes num_neighbors fanout fan_out sizes num_samples num_neighbours \
nodes_per_layer: fanouts layer_sizes num_neighbors
random_state random_seed rng generator: seed
probs weight_attr edge_weight: prob
layers num_hops hops num_layers num_steps: num_flows fanouts layer_sizes num_neighbors
time_attr times: time
input_time seed_time: times
temporal_strategy: strategy
neg_ratio num_negs num_neg_samples num_negative_samples neg_sampling_ratio neg_sampling \
negative_sampler: num_negatives
input_nodes nids nid train_nid indices node_ids dataset itemset edge_label_index: seeds
data g: graph
graph_sampler: sampler
batch batchsize bs: batch_size
prefetch_factor: prefetch
collate_fn: transform
num_rels num_relation_types num_edge_types num_etypes: num_relations
edge_types etypes metadata node_types: schema
aggregator_type aggr aggregation reduce: aggregator reduce
num_heads n_heads attention_heads: heads
edge_dim edge_feats edge_in_feats in_edge_feats: edge_features
edge_attr efeat etype: edge_column edge_type edata
attn_drop dropout: attention_dropout
feat_drop: dropout
act act_func: activation
jk: jumping
nn apply_func: mlp
add_self_loops add_self_loop: self_loops
root_weight: own
learning_rate step_size: lr
num_epochs n_epochs max_epochs: epochs
wd: weight_decay
gpu: device
num_workers: workers
""").items()
}
"""Words, and the arguments that they may stand for here; the first that there is counts."""

_LACKING: Final = _table("""
persistent_workers multiprocessing_context worker_init_fn timeout: workers are threads of this\
 process, which start and end with an iteration: nothing is to be set
use_ddp ddp_seed: processes share every step by themselves, see rank= and world_size=
use_uva use_prefetch_thread: pin_memory= and prefetch= are what there is
is_sorted filter_per_worker custom_cls: nothing is to be set here
direction edge_filter weight: a view of the graph says it, as in \
NeighborSampler(graph.view("out", where="train", weight="w"), [10, 10])
subgraph_type: flows are directed; nodeflow.sampling.induced(batch, sampler) adds all edges \
between the nodes
allow_zero_in_degree: nodes without edges get 0 from every reduction: nothing is to be set
edge_features: this layer reads no edge columns; GATConv, GATv2Conv, GINEConv and EdgeConv do
""")
"""Words for which there is nothing here, and why; read where none of ``ARGUMENTS`` fits."""

_LOADERS: Final = _table("""
NeighborLoader NodeLoader DataLoader NodeDataLoader ItemSampler: \
NodeFlowLoader(NeighborSampler(graph, fanouts), seeds)  # fanouts are in flow order, the \
seeds' last
LinkNeighborLoader LinkLoader EdgeDataLoader as_edge_prediction_sampler NegativeSampler: \
NodeFlowLoader(LinkSampler(NeighborSampler(graph, fanouts)))  # seeds are edges
MultiLayerNeighborSampler NeighborSubgraphSampler: NeighborSampler(graph, fanouts)
MultiLayerFullNeighborSampler: FullSampler(graph, num_flows)
ClusterData ClusterLoader: ClusterSampler(graph, num_flows, parts)
GraphSAINTSampler SAINTSampler: SaintSampler
ShaDowKHopSampler: ShadowSampler
LayerNeighborSampler: LaborSampler
HGTLoader HGTSampler: NeighborSampler(graph, fanouts)  # with numbers by relation
""")

NAMES: Final = _tables("""
[nodeflow]
Data HeteroData: convert.from_pyg  # or Graph.from_edges(*edge_index)
DGLGraph heterograph: convert.from_dgl  # or compat.dgl.DGLGraph, or Graph.typed
manual_seed seed_everything: NeighborSampler(graph, fanouts, seed=1)

[nodeflow.sampling]

[nodeflow.loader]

[nodeflow.fn]
copy_src: copy_u
copy_edge: copy_e

[nodeflow.nn]
HeteroConv HeteroGraphConv: TypedConv
HeteroLinear HeteroDictLinear: TypedLinear
to_hetero: TypedModel
GCNConv: GraphConv
RelGraphConv FastRGCNConv: RGCNConv
MessagePassing: FlowConv
JumpingKnowledge: Jumping
EdgePredictor: Decoder
BatchNorm: GraphSAGE(4, 4, 4, norm="batch")

[nodeflow.transform]
to_undirected ToUndirected to_bidirected add_reverse: add_reverse_edges
add_self_loop AddSelfLoops add_remaining_self_loops: add_self_loops
GCNNorm gcn_norm EdgeWeightNorm: edge_norm
RandomNodeSplit: random_split
node_subgraph induced_subgraph: subgraph
remove_self_loops remove_edges edge_subgraph: filter_edges
degree: degrees
is_undirected: is_symmetric
reorder_graph: reorder

[nodeflow.convert]
from_torch_geometric from_data: from_pyg
from_pandas from_dataframe: from_edge_table
from_scipy_sparse_matrix: from_scipy

[nodeflow.datasets]
PygNodePropPredDataset NodePropPredDataset DglNodePropPredDataset: read_ogb

[nodeflow.metrics]
auc roc_auc roc_auc_score: auroc
accuracy mae mse r2: named("NAME")
f1_score: named("f1_micro")
""")
"""Names that other libraries have, by module, and the code that stands for each here."""

for _room in ("nodeflow", "nodeflow.sampling", "nodeflow.loader"):
    NAMES[_room] = _LOADERS | NAMES.get(_room, {})
_ENDS: Final = {"src": "u", "dst": "v", "edge": "e"}
for _left, _operation, _right in product(_ENDS, ("add", "sub", "mul", "div", "dot"), _ENDS):
    _new_name = f"{_ENDS[_left]}_{_operation}_{_ENDS[_right]}"
    NAMES["nodeflow.fn"][f"{_left}_{_operation}_{_right}"] = _new_name

ATTRIBUTES: Final = _tables("""
[NodeFlow]
x node_features: batch.inputs["x"]  # the columns that the loader is told to copy, ndata={0: \
["x"]}
y labels: batch.outputs["y"]  # with ndata={-1: ["y"]} of the loader
n_id input_nodes input_node_ids: batch.front.parent_nid
output_nodes seed_nodes: batch.seeds
e_id: batch.flows[0].parent_eid
input_id: batch.seed_data["index"]  # with seed_data={"index": torch.arange(len(seeds))} of \
the loader
batch_size: len(batch.seeds)
edge_index: torch.stack(batch.flows[0].edges())
edge_attr edata edge_features: batch.fdata[0]["w"]  # the frame of a flow
edge_weight: batch.flows[0].weight  # estimator weights of a flow
blocks sampled_subgraphs adjs: batch.flows  # which replace a list of blocks
ndata srcdata: batch.ldata[0]  # the frame of a layer, also batch.inputs
dstdata: batch.outputs
num_nodes: batch.layer_sizes
num_edges: batch.flow_sizes
num_sampled_nodes: batch.layer_sizes  # convert.to_pyg(batch).num_sampled_nodes counts what \
each hop adds
num_sampled_edges: batch.flow_sizes  # convert.to_pyg(batch).num_sampled_edges
to_pyg: convert.to_pyg(batch)
to_dgl: convert.to_dgl_blocks
to_networkx: convert.to_networkx(batch)
layer_parent_nid: batch.layers[0].parent_nid
block_parent_eid: batch.flows[0].parent_eid
num_blocks: batch.num_flows
block_compute prop_flow update_all: batch.flow_compute
cuda: batch.to("cpu")  # or another device
cpu: batch.to("cpu")

[Flow]
srcdata: flow.src_layer.data
dstdata: flow.dst_layer.data
edata edge_attr: flow.data
ndata: flow.src_layer.data  # or flow.dst_layer.data
num_src_nodes number_of_src_nodes: flow.num_src
num_dst_nodes number_of_dst_nodes: flow.num_dst
number_of_edges: flow.num_edges
edge_index: torch.stack(flow.edges())
edge_weight: flow.weight
e_id: flow.parent_eid
adj: flow.to_torch_sparse()
update_all apply_edges: batch.flow_compute  # or flow.aggregate(h)

[Layer]
n_id nid node_ids: layer.parent_nid
ndata srcdata dstdata: layer.data
x: layer.data["x"]

[Graph]
edge_index: torch.stack(graph.edges())
x y train_mask val_mask test_mask: graph.ndata["NAME"]
edge_attr edge_weight: graph.edata["NAME"]
num_features num_node_features: graph.ndata["x"].shape[1]
node_types ntypes x_dict: graph.schema.nodes  # graph.nodes[name].data has columns
edge_types etypes canonical_etypes edge_index_dict: graph.schema.relations
number_of_nodes: graph.num_nodes
number_of_edges: graph.num_edges
adj_t adj: convert.to_torch_sparse(graph)
to cuda: batch.to("cpu")  # batches move; sampler.in_torch(device) draws on a device
successors: graph.out_edges([0])
predecessors: graph.in_edges([0])
subgraph: transform.subgraph
to_undirected to_bidirected: transform.add_reverse_edges(graph)
is_undirected: transform.is_symmetric(graph)
add_edges: Graph.from_edges(*graph.edges())  # of more edges: a graph never changes
update_all: batch.flow_compute  # also of create_full_node_flow(graph, 1)
to_pyg: convert.to_pyg(graph)
to_networkx: convert.to_networkx(graph)

[SamplerBase]
sample sample_blocks sample_from_nodes: sampler(seeds)
num_neighbors num_neighbours: sampler.fanouts
num_layers num_hops: sampler.num_flows
to: sampler.in_torch("cpu")  # or another device

[NodeFlowLoader]
dataset input_nodes: loader.seeds
graph data: loader.sampler.graph
node_sampler: loader.sampler
collate_fn: loader.sampler  # transform= is a function of every batch
""")
"""Attributes of objects of other libraries, by class, and the code that stands for each here."""


def renamed(name: str, takes: Collection[str]) -> str:
    """Return what a word of another library is called among the arguments ``takes``; empty where
    none is meant.
    """
    for word in ARGUMENTS.get(name, ()):
        if word in takes and word != name:
            return word
    return ""


def meant(name: str, takes: Collection[str]) -> str:
    """Return the argument that an unknown word stands for, else one that is spelled nearly so;
    empty for none.
    """
    if (word := renamed(name, takes)) or name in _LACKING:
        return word
    return "".join(get_close_matches(name, takes, 1, cutoff=0.8))


def hint_of(name: str, takes: Collection[str]) -> str:
    """Return what an unknown argument is called here, or why there is none, or what arguments there
    are.
    """
    if not (near := meant(name, takes)):
        return _LACKING.get(name, f"it takes {', '.join(takes)}")
    if near not in SIZES:
        return f"it is called {near}= here"
    return (
        f"it is called {near}= here, one number per flow in flow order (the last is for the seeds)"
    )


@dataclass(slots=True, eq=False)
class Habit:
    """An attribute of other libraries: asking for it raises AttributeError, which says what to
    write.

    ``__getattr__`` would make every other attribute of an object several times as slow to read.
    """

    name: str
    hint: str

    def __get__(self, owner: object, kind: type) -> NoReturn:
        # obj=None: Python would add the attribute that is spelled most nearly so
        raise AttributeError(
            f"{kind.__name__!r} object has no attribute {self.name!r}; use {self.hint}",
            name=self.name,
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
