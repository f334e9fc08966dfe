"""What the calls of the table are made with, and one right call of each public callable."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import importlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import scipy.sparse
import torch
from _support.graphs import typed_graph, typed_papers
from _support.tables import linked, one, times_of
from calls.callables import DOORS
from calls.readers import readers
from calls.wrong_parts import (
    Chosen,
    NoDrawn,
    WrongNodes,
    WrongRows,
    WrongTimes,
    damaged_rows,
    heavy_graph,
)

import nodeflow
from nodeflow import fn
from nodeflow.sampling.base import Choice

BASE = {
    "BernoulliSampler": "BernoulliSampler(graph, [2])",
    "ClusterSampler": "ClusterSampler(graph, 1, parts)",
    "ControlVariateSampler": "ControlVariateSampler(history, [2, 2])",
    "FastGCNSampler": "FastGCNSampler(graph, [3])",
    "Flow": "Flow(structure, flow.src_layer, flow.dst_layer, (0, 1))",
    "Frame": "Frame(3)",
    "Frame.to": "Frame(3).to('cpu')",
    "FullSampler": "FullSampler(graph, 2)",
    "Graph": "Graph([0, 1, 2], [1, 0])",
    "Graph.edge_ids": "graph.edge_ids([0], [1])",
    "Graph.open": "Graph.open(folder)",
    "Graph.save": "graph.save(folder)",
    "Graph.typed": "Graph.typed({'a': 2, 'b': 2}, {('a', 'r', 'b'): ([0], [1])})",
    "graph.Schema": "Schema({'a': 2}, {('a', 'r', 'a'): 3})",
    "History": "History(graph, {1: 4})",
    "LaborSampler": "LaborSampler(graph, [2])",
    "LadiesSampler": "LadiesSampler(graph, [3])",
    "Layer": "Layer(2)",
    "LinkSampler": "LinkSampler(sampler)",
    "NeighborSampler": "NeighborSampler(graph, [2])",
    "NodeFlow": "NodeFlow([Layer(2)])",
    "NodeFlow.to": "batch.to('cpu')",
    "NodeFlow.map_from_parent_nid": "batch.map_from_parent_nid(0, [1])",
    "NodeFlowLoader": "NodeFlowLoader(sampler, [0, 1])",
    "RandomWalkSampler": "RandomWalkSampler(graph, 1)",
    "SaintSampler": "SaintSampler(graph, 1, 'node', 3)",
    "SeedTable": "SeedTable(graph, None, [0, 1])",
    "ShadowSampler": "ShadowSampler(graph, 1, 1, 2)",
    "TemporalNeighborSampler": "TemporalNeighborSampler(graph, [2], time='t')",
    "Updater": "Updater(vr_model, history, feat)",
    "create_full_node_flow": "create_full_node_flow(graph, 1)",
    "create_node_flow": "create_node_flow([flow])",
    "flow_from_csr": "flow_from_csr([0, 1], [0], num_src=1)",
    "flow_from_edges": "flow_from_edges([0], [0], num_src=1, num_dst=1)",
    "message_passing": "message_passing(flow, fn.copy_u('h', 'm'), fn.sum('m', 'h'), src={'h': "
    "rows})",
    "nn.GAT": "nn.GAT(4, 4, 2)",
    "nn.GATv2": "nn.GATv2(4, 4, 2)",
    "nn.GCN": "nn.GCN(4, 4, 2)",
    "nn.GIN": "nn.GIN(4, 4, 2)",
    "nn.GraphSAGE": "nn.GraphSAGE(4, 4, 2)",
    "nn.RGCN": "nn.RGCN(4, 4, 2, num_relations=2)",
    "nn.VRGCN": "nn.VRGCN(4, 4, 2)",
    "nn.VRGraphSAGE": "nn.VRGraphSAGE(4, 4, 2)",
    "nn.Bilinear": "nn.Bilinear(4)",
    "nn.ComplEx": "nn.ComplEx(4)",
    "nn.DistMult": "nn.DistMult(4)",
    "nn.DotProduct": "nn.DotProduct(4)",
    "nn.MLPDecoder": "nn.MLPDecoder(4)",
    "nn.RotatE": "nn.RotatE(4)",
    "nn.TransE": "nn.TransE(4)",
    "nn.EdgeConv": "nn.EdgeConv(mlp)",
    "nn.FlowModel": "nn.FlowModel([conv], widths=[4, 4])",
    "nn.FlowModel.inference": "model.inference(graph, feat)",
    "nn.FlowModel.layers": "model.layers(Propagation(graph), feat)",
    "nn.VRModel.start_history": "vr_model.start_history(graph, feat)",
    "nn.GATConv": "nn.GATConv(4, 4)",
    "nn.GATv2Conv": "nn.GATv2Conv(4, 4)",
    "nn.GINConv": "nn.GINConv(mlp)",
    "nn.GINEConv": "nn.GINEConv(mlp, 4)",
    "nn.GraphConv": "nn.GraphConv(4, 4)",
    "nn.LinearConv.flops": "conv.flops(flow)",
    "nn.SAGEConv.flops": "nn.SAGEConv(4, 4).flops(flow)",
    "nn.HGTConv": "nn.HGTConv(4, 4, graph.schema)",
    "nn.RelativeTime": "nn.RelativeTime(4)",
    "nn.TypedConv": "nn.TypedConv({'edge': conv})",
    "nn.TypedLinear": "nn.TypedLinear({'node': 4}, 4)",
    "nn.TypedModel": "nn.TypedModel(nn.TypedLinear({'node': 4}, 4), [conv], 2)",
    "nn.TypedModel.inference": "nn.TypedModel(nn.TypedLinear({'node': 4}, 4), [conv], "
    "2).inference(graph)",
    "nn.Jumping": "nn.Jumping('cat', 4, 2, 4)",
    "nn.NodeDropout": "nn.NodeDropout(0.5)",
    "nn.PropagationConv": "nn.PropagationConv(4, 4)",
    "nn.RGCNConv": "nn.RGCNConv(4, 4, 2)",
    "nn.SAGEConv": "nn.SAGEConv(4, 4)",
    "nn.VRModel": "nn.VRModel([vr_conv], 0.0)",
    "nn.flop_counter": "nn.flop_counter()",
    "nn.inference": "nn.inference(model, graph, feat)",
    "nn.logistic_loss": "nn.logistic_loss(scores, scores)",
    "nn.margin_loss": "nn.margin_loss(scores, scores)",
    "nn.one_vs_all_loss": "nn.one_vs_all_loss(torch.ones(2, 3), torch.tensor([0, 1]))",
    "nn.self_adversarial_loss": "nn.self_adversarial_loss(scores, torch.ones(3, 2))",
    "nn.softmax_loss": "nn.softmax_loss(scores, torch.ones(3, 2))",
    "ops.Structure": "ops.Structure(torch.tensor([0, 1]), torch.tensor([0]), 1)",
    "ops.Structure.to": "structure.to('cpu')",
    "ops.aggregate": "ops.aggregate(structure, rows)",
    "ops.aggregate_beside_own": "ops.aggregate_beside_own(structure, rows)",
    "ops.dropout": "ops.dropout(rows, 0.5)",
    "ops.gather_dst": "ops.gather_dst(structure, torch.ones(2, 4))",
    "ops.gather_src": "ops.gather_src(structure, rows)",
    "ops.join_rows": "ops.join_rows(structure, ops.split_rows(structure, torch.ones(2, 4)))",
    "ops.linear_sum": "ops.linear_sum((rows, weight), bias=torch.ones(2))",
    "ops.product_type": "ops.product_type()",
    "ops.message": "ops.message(structure, 'copy', 'u', rows)",
    "ops.message_reduce": "ops.message_reduce(structure, 'copy', 'u', rows, None, None, 'sum')",
    "ops.segment_reduce": "ops.segment_reduce(structure, torch.ones(3, 4))",
    "ops.segment_softmax": "ops.segment_softmax(structure, torch.ones(3))",
    "ops.sparse_linear": "ops.sparse_linear(rows, weight)",
    "ops.split_messages": "ops.split_messages(structure, torch.ones(3, 4))",
    "ops.split_rows": "ops.split_rows(structure, torch.ones(2, 4))",
    "ops.split_sources": "ops.split_sources(structure, rows)",
    "fn.MessageFunction": "fn.MessageFunction('copy', 'u', 'h', None, None, 'm')",
    "fn.ReduceFunction": "fn.ReduceFunction('sum', 'm', 'h')",
    "loader.LocalShuffle": "loader.LocalShuffle([0, 1, 1])",
    "loader.balanced_weights": "loader.balanced_weights([0, 1, 1])",
    "sampling.induced": "sampling.induced(batch, sampler)",
    "sampling.partition": "sampling.partition(graph, 2)",
    "sampling.base.Choice": "sampling.base.Choice([0, 1], [0])",
    "sampling.base.Edges": "sampling.base.Edges([0, 1], [0], None)",
    "sampling.base.edges_along": "sampling.base.edges_along(graph, 'in')",
    "sampling.base.inclusion_probabilities": "sampling.base.inclusion_probabilities(np.ones(3), "
    "np.array([0, 3]), 2)",
    "sampling.base.induced_subgraph": "sampling.base.induced_subgraph(edges, np.array([0, 1]), 20)",
    "storage.Cached": "storage.Cached(feat, heat, '1 MB')",
    "storage.FileRows": "storage.FileRows(file, extent)",
    "storage.Lookahead": "storage.Lookahead(loader_, '1 MB')",
    "storage.Tiered": "storage.Tiered([feat])",
    "storage.CodedRows": "storage.CodedRows(storage.narrow(feat))",
    "storage.create": "storage.create(file, (2, 3))",
    "storage.degree_heat": "storage.degree_heat(graph)",
    "storage.hottest": "storage.hottest(heat)",
    "storage.narrow": "storage.narrow(feat)",
    "storage.open": "storage.open(file)",
    "storage.presample": "storage.presample(loader_)",
    "storage.reach_heat": "storage.reach_heat(graph, [0], [2], 1)",
    "storage.save_sparse": "storage.save_sparse(folder, sparse)",
    "storage.EmbeddingTable": "storage.EmbeddingTable(20, 4, lr=0.1)",
    "storage.Pipeline": "storage.Pipeline(loader_, {}, print)",
    "training.Checkpoints": "training.Checkpoints(folder)",
    "training.Inputs": "training.Inputs(20, 4, 0)",
    "training.TypedInputs": "training.TypedInputs({'node': 20}, {'node': 4}, 3, 5)",
    "training.LinkNetwork": "training.LinkNetwork(inputs, model, decoder, 0.0)",
    "training.Network": "training.Network(inputs, model)",
    "training.Settings": "training.Settings()",
    "training.Settings.by_name": "training.Settings().by_name()",
    "training.Trainer.outputs": "made.outputs(torch.tensor([0]))",
    "training.Trainer.top_links": "training.Trainer(dataset, links).top_links([0])",
    "training.Trainer": "training.Trainer(dataset)",
    "training.load_model": "training.load_model(file)",
    "training.open_finished": "training.open_finished(folder)",
    "training.open_trainer": "training.open_trainer(folder)",
    "training.save": "training.save(result, folder)",
    "training.write_predictions": "training.write_predictions(file, trainer)",
    "training.write_top_links": "training.write_top_links(file, made)",
    "metrics.Metric": "metrics.Metric('a', torch.dot)",
    "metrics.auroc": "metrics.auroc(torch.rand(3), torch.tensor([0, 1, 1]))",
    "metrics.average_precision": "metrics.average_precision(torch.rand(3), torch.tensor([0, 1, "
    "1]))",
    "metrics.named": "metrics.named('mrr')",
    "metrics.rank_among": "metrics.rank_among(scores, torch.ones(3, 2))",
    "metrics.rank_links": "metrics.rank_links(decoder, feat, [[0, 1]])",
    "metrics.top_links": "metrics.top_links(decoder, feat, [0])",
    "metrics.triples_of": "metrics.triples_of(graph)",
    "transform.add_reverse_edges": "transform.add_reverse_edges(graph)",
    "transform.add_self_loops": "transform.add_self_loops(graph)",
    "transform.degrees": "transform.degrees(graph)",
    "transform.edge_norm": "transform.edge_norm(graph)",
    "transform.filter_edges": "transform.filter_edges(graph, np.ones(40, bool))",
    "transform.is_symmetric": "transform.is_symmetric(graph)",
    "transform.random_split": "transform.random_split(graph, [0.5, 0.5])",
    "transform.reorder": "transform.reorder(graph, range(20))",
    "transform.reverse": "transform.reverse(graph)",
    "transform.subgraph": "transform.subgraph(graph, [0, 1])",
    "random.Random": "random.Random(3)",
    "random.hash_ids": "random.hash_ids(np.array([1, 2]))",
    "graph.NodeNames": "NodeNames(['a', 'b'])",
    "convert.from_dgl": "convert.from_dgl(None)",
    "convert.from_dgl_blocks": "convert.from_dgl_blocks([])",
    "convert.from_edge_table": "convert.from_edge_table({'src': [0], 'dst': [1]})",
    "convert.from_igraph": "convert.from_igraph(None)",
    "convert.from_networkx": "convert.from_networkx(nx)",
    "convert.from_pyg": "convert.from_pyg(None)",
    "convert.from_pyg_batch": "convert.from_pyg_batch(None)",
    "convert.from_scipy": "convert.from_scipy(matrix)",
    "convert.from_tables": "convert.from_tables({'a': frame})",
    "convert.from_torch_sparse": "convert.from_torch_sparse(sparse)",
    "convert.pyg_loader": "convert.pyg_loader(loader_)",
    "convert.to_dgl": "convert.to_dgl(graph)",
    "convert.to_dgl_blocks": "convert.to_dgl_blocks(batch)",
    "convert.to_edge_table": "convert.to_edge_table(graph)",
    "convert.to_igraph": "convert.to_igraph(graph)",
    "convert.to_networkx": "convert.to_networkx(graph)",
    "convert.to_node_table": "convert.to_node_table(graph)",
    "convert.to_pyg": "convert.to_pyg(graph)",
    "convert.to_scipy": "convert.to_scipy(graph)",
    "convert.to_torch_sparse": "convert.to_torch_sparse(graph)",
    "plot.plot_curves": "plot.plot_curves([])",
    "plot.plot_degrees": "plot.plot_degrees({'a': graph})",
    "plot.plot_history_ages": "plot.plot_history_ages(history)",
    "plot.plot_inclusion": "plot.plot_inclusion(sampler, [0])",
    "plot.plot_layer_growth": "plot.plot_layer_growth(graph, [0], fanouts=[2])",
    "plot.plot_node_flow": "plot.plot_node_flow(batch)",
    "plot.plot_parts": "plot.plot_parts(None)",
    "plot.plot_samplers": "plot.plot_samplers({'a': sampler}, [0])",
    "datasets.Dataset": "datasets.Dataset('a', graph, [0], [1], [2], 2)",
    "datasets.Dataset.save": "dataset.save(folder)",
    "datasets.Dataset.of_type": "dataset.of_type('node')",
    "datasets.debian": "datasets.debian()",
    "datasets.read_edge_list": "datasets.read_edge_list(file)",
    "datasets.read_folder": "datasets.read_folder(folder)",
    "datasets.read_ogb": "datasets.read_ogb(folder)",
    "distributed.DistributedGraph.open": "distributed.DistributedGraph.open(folder)",
    "distributed.GraphParts": "distributed.GraphParts(folder)",
    "distributed.partition_graph": "distributed.partition_graph(graph, folder, 2)",
    "distributed.PartitionBuffer": "distributed.PartitionBuffer(folder, 2)",
    "distributed.Partitions": "distributed.Partitions(folder)",
    "distributed.beta_order": "distributed.beta_order(4, 2)",
    "distributed.comet_order": "distributed.comet_order(4, 2)",
    "distributed.dispersed_order": "distributed.dispersed_order(4, 2)",
    "distributed.sequential_order": "distributed.sequential_order(4, 2, 1)",
    "distributed.write_partitions": "distributed.write_partitions(graph, folder, 2)",
    "propagation.ExchangePlan": "propagation.ExchangePlan(graph)",
    "propagation.Propagation": "Propagation(graph)",
    "control_variates.control_variate": "control_variates.control_variate(flow, rows)",
    "control_variates.control_variate_dropout": "control_variates.control_variate_dropout(flow, "
    "rows, rows)",
    "control_variates.exact_sums": "control_variates.exact_sums(flow)",
    "control_variates.neighbor_sampling": "control_variates.neighbor_sampling(flow, rows)",
    "testing.assert_reproducible": "testing.assert_reproducible(sampler, [0])",
    "testing.assert_same_node_flow": "testing.assert_same_node_flow(batch, batch)",
    "testing.assert_unbiased": "testing.assert_unbiased(sampler, [0])",
    "testing.assert_valid": "testing.assert_valid(batch)",
    "testing.graphs": "testing.graphs()",
    "testing.node_flows": "testing.node_flows()",
    "testing.seeds": "testing.seeds(graph)",
    "testing.check_layer": "testing.check_layer(nn.SAGEConv(4, 3), 4)",
    "testing.check_sampler": "testing.check_sampler(sampler, [0])",
    "testing.parametrize_with_checks": "testing.parametrize_with_checks({'a': sampler})",
    "testing.fanouts": "testing.fanouts(2)",
    "testing.flows": "testing.flows()",
    "testing.frames": "testing.frames(3)",
    "testing.temporal_graphs": "testing.temporal_graphs()",
    "testing.typed_graphs": "testing.typed_graphs()",
    "testing.triples": "testing.triples()",
    "datasets.build_graph": "datasets.build_graph(file, folder)",
    "datasets.node_names": "datasets.node_names(folder)",
}
BASE |= {f"fn.{name}": f"fn.{name}('h', 'w', 'm')" for name in fn.__all__ if name[1] == "_"}
BASE |= {
    f"fn.{name}": f"fn.{name}('h', 'm')"
    for name in ("copy_u", "copy_e", "sum", "mean", "max", "min", "prod")
}
"""A right call of each public callable, by name; of one that needs a file or another library, a
call of that form.
"""

EXCUSES = {
    **dict.fromkeys(
        (
            "Sampler",
            "LayerSampler",
            "nn.FlowConv",
            "nn.AttentionConv",
            "nn.LinearConv",
            "nn.Decoder",
        ),
        "base",
    ),
    **dict.fromkeys(
        ("sampling.base.BoundSampler", "sampling.base.RowSampler", "sampling.base.SamplerBase"),
        "base",
    ),
    **dict.fromkeys(("sampling.base.SubgraphSampler",), "base"),
    **dict.fromkeys(
        ("sampling.base.Candidates", "sampling.base.DrawingRows", "sampling.base.Drawn"),
        "of samplers",
    ),
    **dict.fromkeys(
        ("sampling.base.LayerCandidates", "sampling.base.Step", "sampling.LinkChunk"), "of samplers"
    ),
    **dict.fromkeys(
        ("sampling.base.Subgraph", "graph.OfType", "graph.EdgeView", "flow.LayerPart"), "result"
    ),
    **dict.fromkeys(
        ("sampling.Estimate", "loader.Timings", "storage.Reads", "storage.SparseFileRows"), "result"
    ),
    **dict.fromkeys(("storage.NarrowRows", "storage.ColumnErrors"), "result of narrow"),
    **dict.fromkeys(
        ("training.EpochRecord", "training.Result", "metrics.Ranks", "metrics.TopLinks"), "result"
    ),
    **dict.fromkeys(
        ("distributed.PartsReport", "distributed.BufferCounters", "distributed.BufferState"),
        "result",
    ),
    **dict.fromkeys(("distributed.Order", "flow.EdgeBatch", "flow.NodeBatch"), "result"),
    **dict.fromkeys(("distributed.DistributedGraph", "distributed.GraphPart"), "result of open"),
    **dict.fromkeys(("storage.Rows", "metrics.LinkScorer"), "protocol"),
    "nn.IgnoredWeightWarning": "types",
    **dict.fromkeys(
        ("training.Stopped", "distributed.PeerError", "testing.CheckError"), "exceptions"
    ),
    **dict.fromkeys(("testing.Outcome", "testing.Report"), "result"),
    "random.derive_key": "takes words of any number",
}
"""Public callables without rows in the table, and why: classes that are derived from, or that users
do not call.
"""


def namespace(place: Path) -> dict[str, Any]:
    """Return the names that calls of the table may use; files lie in ``place``, where nothing
    is.
    """
    generator = torch.Generator().manual_seed(0)
    src, dst = (torch.randint(20, (40,), generator=generator) for _ in range(2))
    times = torch.arange(40.0)
    graph = nodeflow.Graph.from_edges(
        src, dst, num_nodes=20, edata={"t": times, "w": torch.ones(40)}
    )
    graph.ndata["feat"] = torch.ones(20, 4)
    rooms = {
        name: importlib.import_module(f"nodeflow.{name}")
        for name in DOORS
        if "." not in name and name != "graph"
    }
    sampler = nodeflow.NeighborSampler(graph, [2, 2])
    flow = nodeflow.flow_from_edges([0, 2, 1], [1, 0, 1], num_src=3, num_dst=2)
    conv = rooms["nn"].GraphConv(4, 4)
    batch = sampler([0, 1])
    batch.copy_from_parent({0: ["feat"]})
    dataset = rooms["datasets"].Dataset("a", graph, [0, 1], [2], [3], 2)
    graph.ndata["label"] = torch.arange(20) % 2
    vr_model = rooms["nn"].VRGraphSAGE(4, 4, 2)
    libraries = {"dgl": "nodeflow.compat.dgl", "pyg": "torch_geometric.data"}
    modules: dict[str, Any] = {}
    for name in ("dgl", "pyg", "networkx", "igraph"):
        with contextlib.suppress(ImportError):  # rows of libraries that are not there are left out
            modules[name] = importlib.import_module(libraries.get(name, name))
    old = modules["dgl"].DGLGraph([(0, 1), (2, 1)], node_frame={"x": torch.ones(3)})
    return {
        **modules,
        "old": old,
        "old_flow": modules["dgl"].contrib.sampling.sampler.create_full_nodeflow(old, 1),
        "nested": nodeflow.NeighborSampler(graph, [2, 2], reuse=True)([0, 1]),
        "pandas": pandas,
        "scipy": scipy,
        "datetime": datetime,
        "decimal": decimal,
        "math": math,
        "graph_of_edges": graph_of_edges,
        "linked": linked,
        "one": one,
        "times_of": times_of,
        "Schema": nodeflow.graph.Schema,
        **{name: getattr(nodeflow, name) for name in nodeflow.__all__ if name != "random"},
        **rooms,
        **readers(place / "files"),
        "np": np,
        "torch": torch,
        "graph": graph,
        "sampler": sampler,
        "flow": flow,
        "structure": flow.structure,
        "batch": batch,
        "conv": conv,
        "frame": pandas.DataFrame({"id": [1, 2], "to": [2, 9]}),
        "model": rooms["nn"].GCN(4, 4, 2),
        "mlp": torch.nn.Linear(4, 4),
        "rows": torch.ones(3, 4),
        "weight": torch.ones(2, 4),
        "scores": torch.ones(3),
        "feat": graph.ndata["feat"],
        "heat": torch.ones(20),
        "loader_": nodeflow.NodeFlowLoader(sampler, [0, 1]),
        "parts": [0] * 10 + [1] * 10,
        "history": nodeflow.History(graph, {1: 4}),
        "vr_model": vr_model,
        "vr_conv": vr_model.convs[0],
        "decoder": rooms["nn"].DotProduct(4),
        "dataset": dataset,
        "folder": place / "none",
        "partitions": rooms["distributed"].write_partitions(
            graph, place / "partitions", 4, progress=False
        ),
        "file": place / "none",
        "inputs": rooms["training"].Inputs(20, 4, 0),
        "edges": rooms["sampling"].base.edges_along(graph, "in"),
        "sparse": torch.eye(3).to_sparse_csr(),
        "NodeNames": rooms_graph().NodeNames,
        "random": rooms["random"],
        "Propagation": rooms["propagation"].Propagation,
        "chosen": Chosen,
        "extent": None,
        "damaged": damaged_rows(3),
        "damaged_features": damaged_rows(20),
        "wrong_nodes": WrongNodes,
        "heavy": heavy_graph(),
        "wrong_rows": WrongRows,
        "no_drawn": NoDrawn,
        "wrong_times": WrongTimes,
        "timed": nodeflow.TemporalNeighborSampler(graph, [2], time="t"),
        "graph_of": graph_of_edges,
        "five": nodeflow.FullSampler(
            nodeflow.Graph.from_edges([0, 2, 0, 1, 3], [1, 1, 2, 2, 0]), 1
        ),
        "two_types": graph_of_edges([0, 1], [1, 0], t=torch.tensor([0, 1])),
        "clusters": nodeflow.ClusterSampler(graph, 2, [0, 1] * 10),
        "related": nodeflow.NeighborSampler(
            graph_of_edges(
                [0, 1],
                [1, 0],
                kind=torch.tensor([0, 1]),
                real=torch.rand(2),
                minus=torch.tensor([0, -1]),
            ),
            [1],
        ),
        "zeros": graph_of_edges(
            [0], [1], zero=torch.zeros(1), huge=torch.full((1,), 1e200, dtype=torch.float64)
        ),
        "happened": graph_of_edges([1] * 7, [0] * 7, time=torch.arange(7), w=torch.arange(7.0)),
        "paper_sampler": nodeflow.NeighborSampler(typed_papers(), [3, 3]),
        "several": typed_graph(0),
        "typed": graph_of_edges(range(99), range(99), type=torch.arange(99)),
        "tested": replace(
            dataset, name="tested", graph=graph_of_edges([0], [1], split=torch.tensor([2]))
        ),
        "links": rooms["training"].Settings(task="link"),
        "rgcn": rooms["training"].Settings(model="rgcn", edge_type="t"),
        "on_partitions": rooms["training"].Settings(storage="partitions", partitions="p", slots=2),
        "saint": rooms["training"].Settings(sampler="saint", fanouts=(2,)),
        "metric": rooms["metrics"].named("accuracy"),
        "sparse_vector": scipy.sparse.coo_array([1.0, 2.0, 3.0]),
        "choose_for": lambda nodes: (
            lambda dst, step: Choice([0, 1], src=[5], nodes=nodes, ndata={"x": torch.ones(1)})
        ),
        "wrong_choice": lambda dst, step: Choice(
            np.arange(len(dst) + 1), src=np.full(len(dst), 99)
        ),
        "made": rooms["training"].Trainer(
            dataset, rooms["training"].Settings(epochs=1, fanouts=(2,), hidden=4)
        ),
        "pulls": {
            "table": (rooms["storage"].EmbeddingTable(20, 4, lr=0.1), lambda batch: batch.seeds)
        },
        "result": None,
        "trainer": None,
        "matrix": None,
        "nx": None,
    }


def graph_of_edges(src: Any, dst: Any, **columns: Any) -> nodeflow.Graph:
    return nodeflow.Graph.from_edges(src, dst, num_nodes=max(20, len(src)), edata=columns)


def rooms_graph() -> Any:
    return importlib.import_module("nodeflow.graph")
