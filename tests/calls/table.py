"""Wrong calls of the public API: each with the error that it raises and words of the message."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

from calls.prepared import BASE, flags, methods, public


class Row(NamedTuple):
    """A call as text, the error that it raises, words of its message, and what the call is about."""

    call: str
    error: str
    words: str
    about: str


BY_HAND = {
    "Node types and relations": [
        ("Graph.typed({'a': 2}, {('a', 'r', 'b'): ([], [])})", "KeyError", "no node type 'b'; there are 'a'"),
        ("Graph.typed({'a': 2}, {('a', 'r', 'a'): ([2], [0])})", "IndexError", "but a node ids go from 0 to 1"),
        ("Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0], [0, 1])})", "ValueError", "one entry per edge"),
        ("Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0.5], [0])})", "TypeError", "must be integers"),
        ("Graph.typed({'a': 2}, {'r': ([0], [0])})", "TypeError", "a relation must be a triple"),
        ("Graph.typed({'a': 2}, {('a', 'r', 'a'): [0]})", "TypeError", "must be (src, dst) or (src, dst, columns)"),
        ("Graph.typed({'a': {}}, {})", "ValueError", "does not say how many nodes there are"),
        ("Graph.typed({'a': 2**40}, {})", "ValueError", "num_nodes of 1099511627776"),
        ("Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0], [1])}, reverse='yes')", "TypeError", "reverse"),
        ("Graph.typed(graph, {})", "TypeError", "nodes must be a dict"),
        ("Schema({'a': -1}, {})", "ValueError", "nodes['a'] must be at least 0"),
        (
            "Schema({'a': 1}, {('a', 'r', 'a'): 1}).relation('s')",
            "KeyError",
            "no relation 's'; there are",
        ),
        ("Schema({'a': 1}, {('a', 'r', 'a'): 1}).entering('b')", "KeyError", "no node type 'b'"),
        ("graph.nodes['paper']", "KeyError", "no node type 'paper'; there are 'node'"),
        ("graph.relations['writes']", "KeyError", "no relation 'writes'; there are ('node', 'edge', 'node')"),
        ("graph.nodes['node'].to_local([20])", "IndexError", "ids[0] is 20, but node node ids go from 0 to 19"),
        ("graph.nodes['node'].to_graph([-1])", "IndexError", "local[0] is -1"),
        ("batch.layers[0].of('paper')", "KeyError", "no node type 'paper'"),
        ("batch.flows[0].of('writes')", "KeyError", "no relation 'writes'"),
        ("Layer(2).of('node')", "ValueError", "this layer belongs to no graph"),
        ("NeighborSampler(graph, [{'writes': 2}])", "KeyError", "no relation 'writes'"),
        ("NeighborSampler(graph, [{'edge': 0.5}])", "TypeError", "fanouts[0]['edge']"),
        ("NeighborSampler(graph, [{'edge': 2, ('node', 'edge', 'node'): 2}])", "ValueError", "name one relation twice"),
    ],
    "Ids and numbers": [
        ("Graph.from_edges({0, 1}, {1, 2})", "TypeError", "src must be ordered, got a set"),
        ("Graph.from_edges([0.5], [1])", "TypeError", "src must be integers"),
        ("Graph.from_edges([True, False], [0, 1])", "TypeError", "a bool in it"),
        ("Graph.from_edges([0], [1, 2])", "ValueError", "src and dst must have one entry per edge"),
        ("Graph.from_edges([-1], [0])", "IndexError", "src[0] is -1"),
        ("Graph.from_edges(['a'], ['b'])", "TypeError", "Graph.from_named_edges"),
        ("Graph.from_edges(iter(['a']), iter(['b']))", "TypeError", "Graph.from_named_edges"),
        ("Graph.from_edges([[0, 1]], [[1, 2]])", "ValueError", "src must be one-dimensional"),
        ("Graph.from_edges([0], [10**12])", "ValueError", "num_nodes"),
        ("Graph.from_edges([0], [2**63])", "ValueError", "beyond the largest 64-bit id"),
        ("Graph.from_edges([0], [1], num_nodes=2**40)", "ValueError", "num_nodes"),
        ("Graph.from_edges([0], [1], num_nodes=2**63)", "ValueError", "num_nodes"),
        ("Graph.from_edges([0], [1], num_nodes=1.5)", "TypeError", "num_nodes must be an integer"),
        ("Graph.from_edges(torch.empty(2, dtype=torch.int64, device='meta'), [0, 1])", "TypeError", "meta device"),
        ("Graph.from_edges(np.ma.masked_array([0, 1], [0, 1]), [0, 1])", "TypeError", "a masked array"),
        ("Graph([0, 2], [0])", "ValueError", "indptr must go from 0"),
        ("Graph([0, 2, 1, 3], [0, 0, 0])", "ValueError", "indptr must not decrease"),
        ("Graph([0, 1], [1])", "IndexError", "indices[0] is 1"),
        ("Graph([0, 2], [0, 0], edge_ids=[0, 0])", "ValueError", "edge_ids must be a permutation"),
        ("graph.in_edges([20])", "IndexError", "v[0] is 20, but node ids go from 0 to 19"),
        ("graph.in_edges({1})", "TypeError", "v must be ordered, got a set"),
        ("graph.out_edges([-1])", "IndexError", "v[0] is -1"),
        ("graph.in_degrees([1.0])", "TypeError", "v must hold integer node ids"),
        ("graph.has_edges([0], [20])", "IndexError", "v[0] is 20"),
        ("graph.find_edges([40])", "IndexError", "40"),
        ("graph.edge_ids([0], [1])", "ValueError", "there is no edge 0 -> 1"),
        ("sampler([20])", "IndexError", "20, but node ids go from 0 to 19"),
        ("sampler({1, 2})", "TypeError", "a set"),
        ("sampler([0.5])", "TypeError", "integer"),
        ("sampler(None)", "TypeError", "seeds"),
        ("sampler(torch.empty(2, dtype=torch.int64, device='meta'))", "TypeError", "meta device"),
        ("sampler.without_edges([40])", "IndexError", "40"),
        ("sampler.candidates(torch.tensor([20]))", "IndexError", "20"),
        ("transform.subgraph(graph, [20])", "IndexError", "20"),
        ("transform.subgraph(graph, {1, 2})", "TypeError", "a set"),
        ("transform.subgraph(graph, [1, 1])", "ValueError", "1"),
        ("transform.reorder(graph, [0] * 20)", "ValueError", "each of the 20 nodes once"),
        ("transform.filter_edges(graph, np.ones(3, bool))", "ValueError", "40"),
        ("transform.random_split(graph, [0.5, 0.6])", "ValueError", "fractions"),
        ("transform.random_split(graph, counts=[30])", "ValueError", "counts"),
        ("history.pull(batch, names={0: 'h', 5: 'h'})", "(TypeError, IndexError, ValueError)", ""),
        ("metrics.triples_of(graph, edges=[40])", "IndexError", "40"),
        ("metrics.rank_links(decoder, feat, [[0, 20]])", "IndexError", "20"),
        ("metrics.rank_links(decoder, feat, [[0, 1]], candidates=[20])", "IndexError", "20"),
        ("metrics.rank_links(decoder, feat, [[0, 1]], candidates={1})", "TypeError", "a set"),
        ("metrics.top_links(decoder, feat, [20])", "IndexError", "20"),
        ("random.hash_ids({1, 2})", "TypeError", "a set"),
        ("NodeNames({'a', 'b'})", "TypeError", "a set"),
        ("loader.balanced_weights([])", "ValueError", "labels"),
        ("loader.balanced_weights([-1])", "ValueError", "labels"),
    ],
    "Structure of edges": [
        ("ops.Structure(torch.tensor([0, 1]), torch.tensor([1]), 1)", "IndexError", "indices[0] is 1"),
        ("ops.Structure(torch.tensor([0, 1]), torch.tensor([-1]), 1)", "IndexError", "indices[0] is -1"),
        ("ops.Structure(torch.tensor([1, 1]), torch.tensor([0]), 1)", "ValueError", "indptr must go from 0"),
        ("ops.Structure(torch.tensor([0, 2]), torch.tensor([0]), 1)", "ValueError", "indptr must go from 0"),
        ("ops.Structure(torch.tensor([0, 2, 1, 3]), torch.tensor([0] * 3), 1)", "ValueError", "must not decrease"),
        ("ops.Structure(torch.tensor([]), torch.tensor([0]), 1)", "TypeError", "indptr must be an int64 tensor"),
        ("ops.Structure(torch.tensor([0, 1]), torch.tensor([0]), -1)", "ValueError", "num_src must be at least 0"),
        ("ops.Structure(torch.tensor([0, 1]), torch.tensor([[0]]), 1)", "ValueError", "one-dimensional"),
        ("ops.Structure(torch.tensor([0, 1], dtype=torch.int32), torch.tensor([0]), 1)", "TypeError", "int64"),
        ("ops.Structure([0, 1], [0], 1)", "TypeError", "indptr must be an int64 tensor, got list"),
        ("ops.aggregate(structure, torch.ones(4, 2))", "ValueError", "h must have 3 rows, one per source"),
        ("ops.aggregate(flow, rows)", "TypeError", "structure must be a Structure"),
        ("ops.aggregate(structure, rows, 'median')", "ValueError", "reduce must be"),
        ("ops.aggregate(structure, rows, weight=torch.ones(2))", "ValueError", "weight must have 3 rows"),
        ("ops.aggregate_beside_own(structure.transposed()[0], torch.ones(2, 1))", "ValueError", "the first sources"),
        ("ops.segment_softmax(structure, torch.ones(2))", "ValueError", "scores must have 3 rows"),
        ("ops.segment_softmax(structure, torch.ones(3).long())", "TypeError", "floating numbers"),
        ("ops.join_rows(structure, [torch.ones(3, 1)])", "ValueError", "parts must have one row per node"),
        ("ops.gather_src(structure, rows.to('meta'))", "ValueError", "is on meta, but the flow is on cpu"),
        ("ops.sparse_linear(torch.ones(3, 2), weight)", "ValueError", "x has 2 columns"),
        ("ops.sparse_linear(torch.tensor(1.0), weight)", "ValueError", "x must have rows"),
        ("ops.sparse_linear(rows, torch.ones(4))", "ValueError", "weight must be a tensor of shape"),
        ("ops.sparse_linear(rows, weight, torch.ones(3))", "ValueError", "bias must be a tensor of shape [2]"),
        ("ops.sparse_linear([[1.0]], weight)", "TypeError", "x must be a dense or a sparse CSR tensor"),
        ("ops.sparse_linear(damaged, weight)", "IndexError", "x is a damaged sparse CSR matrix: indices[1] is 9"),
        ("ops.linear_sum((damaged, weight))", "IndexError", "x is a damaged sparse CSR matrix"),
        ("Frame(2, {'x': damaged})", "IndexError", "column 'x' is a damaged sparse CSR matrix"),
        ("ops.linear_sum()", "TypeError", "needs a pair"),
        ("ops.linear_sum((rows, weight), dropout=2)", "ValueError", "dropout must be at least 0 and at most 1"),
        ("ops.dropout(rows, 1.5)", "ValueError", "rate must be at least 0 and at most 1"),
        ("flow_from_edges([3], [0], num_src=3, num_dst=1)", "IndexError", "src[0] is 3"),
        ("flow_from_edges([0], [1], num_src=1, num_dst=1)", "IndexError", "dst[0] is 1"),
        ("flow_from_edges([0], [0], num_src=1, num_dst=2**62)", "ValueError", "num_dst"),
        ("flow_from_csr([0, 2], [0], num_src=1)", "ValueError", "indptr must go from 0"),
        ("flow_from_csr([0, 1], [1], num_src=1)", "IndexError", "indices[0] is 1"),
        ("flow.take_dst(torch.ones(2, 1))", "ValueError", "h must have 3 rows"),
        ("Flow(structure, Layer(3), Layer(2), (0, 1), parent_eid=rows[:, 0])", "ValueError", "must be int64"),
        ("conv(flow, damaged)", "(IndexError, ValueError, TypeError)", ""),
        ("flow.aggregate(damaged)", "TypeError", "sparse matrix"),
        ("decoder.compare_own(torch.ones(1, 4), feat, torch.tensor([[99]]))", "IndexError", "chosen holds 99"),
        ("Layer(2, torch.tensor([1]))", "ValueError", "2 nodes but 1 parent ids"),
        ("Layer(2, torch.tensor([1, 1]))", "ValueError", "twice"),
        ("Layer(-1)", "ValueError", "num_nodes must be at least 0"),
        ("Flow(structure, Layer(2), Layer(2), (0, 1))", "ValueError", "wrong number of sources"),
        ("sampling.base.Choice([0, 2], [0])", "ValueError", "indptr must go from 0"),
        ("sampling.base.Choice([0, 1])", "ValueError", "either positions or src"),
        ("sampling.base.Choice(None, [0])", "TypeError", "indptr must say where the edges"),
        ("sampling.base.Choice([0, 1], [0], nodes=[0])", "ValueError", "ndata goes with nodes"),
        ("sampling.base.assemble(graph, edges, [0], 1, choose_for([7]))", "ValueError", "nodes of the Choice must be"),
        ("sampling.base.assemble(graph, edges, [0], 1, choose_for([5]), reuse=True)", "ValueError", "no columns"),
        ("no_drawn(graph, 2)([0])", "TypeError", "draw_rows must return a Drawn, got int 3"),
        ("sampler.candidates([0]).select([0], weight=1.0, prob=0.5)", "ValueError", "weight or prob, not both"),
        ("sampler.candidates([0]).select([0], prob=0.0)", "ValueError", "prob must be positive"),
        ("sampling.base.Edges([0, 1], [5], None)", "IndexError", "5"),
        ("sampling.base.induced_subgraph(edges, np.array([0]), 2**40)", "ValueError", "num_nodes"),
        ("sampling.base.induced_subgraph(edges, np.array([-1]), 20)", "IndexError", "-1"),
        ("sampling.base.assemble(graph, edges, [20], 1, choose)", "IndexError", "20"),
        ("sampling.base.assemble(graph, edges, [0], 1, wrong_choice)", "IndexError", "99"),
        ("wrong_rows(graph, 2)([0])", "IndexError", "99"),
        ("sampling.base.inclusion_probabilities(np.ones(3), np.array([0, 9]), 2)", "ValueError", "indptr"),
    ],
    "Batches": [
        ("batch.with_seeds(seed_index=torch.tensor([99]))", "IndexError", "seed_index[0] is 99"),
        ("batch.with_seeds(seed_index=torch.tensor([0.5]))", "(TypeError, ValueError)", "seed_index"),
        ("batch.with_seeds(seed_index=[0])", "TypeError", "seed_index must be an int64 tensor"),
        ("batch.with_seeds(seed_ids=torch.tensor([0.5]))", "(TypeError, ValueError)", "seed_ids"),
        ("batch.with_parent(None).copy_from_parent()", "ValueError", "no parent graph"),
        ("batch.with_parent(3)", "TypeError", "graph must be a nodeflow.Graph"),
        ("batch.with_parent(Graph.from_edges([0], [1]))", "IndexError", "parent_nid"),
        ("batch.layers[7]", "IndexError", "7"),
        ("batch.flows[0, 7]", "(KeyError, IndexError)", "7"),
        ("batch['x']", "TypeError", "sliced by layers"),
        ("batch[1:1]", "ValueError", "consecutive layers"),
        ("batch.copy_from_parent(['none'])", "KeyError", "no column 'none'"),
        ("batch.copy_from_parent('feat')", "TypeError", "must be ALL, None, a list of column names"),
        ("batch.copy_from_parent([['feat'], []])", "TypeError", "ndata must name columns; for a"),
        ("batch.map_to_parent_nid([10**6])", "IndexError", "nid[0] is 1000000"),
        ("batch.map_to_parent_eid([-1])", "IndexError", "eid[0] is -1"),
        ("batch.map_from_parent_nid(0, [20])", "IndexError", "20"),
        ("batch.map_from_parent_nid(9, [1])", "IndexError", "layer 9"),
        ("batch.to('cuda:99')", "ValueError", "device 'cuda:99' is not there"),
        ("batch.to('nowhere')", "ValueError", "device 'nowhere' is not there"),
        ("batch.to(1.5)", "TypeError", "device must be a device of torch"),
        ("batch.append(3)", "TypeError", "append takes a NodeFlow"),
        ("create_node_flow([])", "ValueError", "neither a flow nor parent ids"),
        ("create_node_flow([flow], [[0, 1], [0, 1]])", "ValueError", "different sizes"),
        ("create_node_flow([flow], [[0, 1, 99], [0, 1]], parent=graph)", "IndexError", "99"),
        ("create_full_node_flow(graph, -1)", "ValueError", "num_layers must be at least 0"),
        ("create_full_node_flow(graph, 1, weight='none')", "KeyError", "none"),
        ("NodeFlow([Layer(2)], seed_index=torch.tensor([2]))", "ValueError", "seed_index"),
        ("NodeFlow([Layer(2), Layer(1)])", "ValueError", "2 layers need 1 flows"),
        ("NodeFlow([Layer(3), Layer(2)], [flow, flow])", "ValueError", "two flows join the same layers"),
    ],
    "Columns": [
        ("Frame(3)['x']", "KeyError", "no column 'x'"),
        ("Frame(-1)", "ValueError", "num_rows must be at least 0"),
        ("Frame(3, {'x': torch.ones(2)})", "ValueError", "must have 3 rows"),
        ("Frame(3, {'x': torch.tensor(1.0)})", "ValueError", "must have 3 rows"),
        ("Frame(3, {'x': [1, 2, 3]})", "TypeError", "a tensor, an array or a sparse matrix"),
        ("Graph([0, 0], [], ndata={'x': torch.ones(1, device='meta')})", "TypeError", "on the meta device"),
        ("Frame(3, {'x': np.ma.masked_array([1, 2, 3], [0, 1, 0])})", "TypeError", "a masked array"),
        ("Frame(3, {'x': np.array(['a', 'b', 'c'])})", "TypeError", "must hold numbers"),
        ("Frame(3, {1: torch.ones(3)})", "TypeError", "a column name must be a str"),
        ("Frame(3, [torch.ones(3)])", "TypeError", "columns must be a dict"),
        ("Frame(3).restore({'x': torch.ones(2)})", "ValueError", "must have 3 rows"),
        ("Frame(3).restore([1])", "TypeError", "snapshot must be"),
        ("Frame(3).set_initializer(3)", "TypeError", "initializer must be a function"),
        ("Frame(3, {'x': torch.eye(3).to_sparse()})", "TypeError", "must be dense or sparse CSR"),
        ("Frame(3, {'x': torch.eye(3).expand(3, 3, 3).to_sparse_csr()})", "ValueError", "'x' must have two dimensions"),
        ("Frame(3, {'x': sparse_vector})", "ValueError", "column 'x' must have two dimensions"),
    ],
    "Samplers": [
        ("NeighborSampler(None, [2])", "TypeError", "graph"),
        ("NeighborSampler(graph, [])", "ValueError", "fanouts"),
        ("NeighborSampler(graph, 2)", "TypeError", "fanouts"),
        ("NeighborSampler(graph, [2.5])", "TypeError", "fanouts"),
        ("NeighborSampler(graph, [-2])", "ValueError", "fanouts"),
        ("NeighborSampler(graph, {2, 3})", "TypeError", "set"),
        ("NeighborSampler(graph, [10**9], replace=True)([0])", "ValueError", "fanouts"),
        ("NeighborSampler(graph, [2], prob='none')", "KeyError", "none"),
        ("NeighborSampler(graph, [2], direction='up')", "ValueError", "direction must be"),
        ("NeighborSampler(graph, [2], seed='x')", "TypeError", "seed must be an integer"),
        ("NeighborSampler(graph, [2], edge_filter=np.ones(3, bool))", "ValueError", "40"),
        ("FullSampler(graph, -1)", "ValueError", "num_flows"),
        ("FastGCNSampler(graph, [10**9], draw='replacement')([0])", "ValueError", "layer_sizes"),
        ("LadiesSampler(graph, [10**9], draw='replacement')([0])", "ValueError", "layer_sizes"),
        ("FastGCNSampler(graph, [3], draw='all')", "ValueError", "draw must be"),
        ("LaborSampler(graph, [2], iterations=-5)", "ValueError", "iterations"),
        ("LaborSampler(graph, [2], method='x')", "ValueError", "method must be"),
        ("LaborSampler(graph, [2], iterations=101)", "ValueError", "iterations must be at most 100"),
        ("RandomWalkSampler(graph, 1, walk_length=10**7, num_walks=10**4)([0])", "ValueError", "walk"),
        ("RandomWalkSampler(graph, 1, restart=2)", "ValueError", "restart"),
        ("RandomWalkSampler(graph, 1, num_walks=0)", "ValueError", "num_walks"),
        ("SaintSampler(graph, 1, kind='node', budget=0)", "ValueError", "budget"),
        ("SaintSampler(graph, 1, kind='node', budget=10**9)", "ValueError", "budget"),
        ("SaintSampler(graph, 1, kind='walk', budget=10**9, walk_length=2)", "ValueError", "budget"),
        ("SaintSampler(graph, 1, kind='edge', budget=10**9)", "ValueError", "budget"),
        ("SaintSampler(graph, 1, kind='x', budget=3)", "ValueError", "kind must be"),
        ("ClusterSampler(graph, 1, [10**12] * 20)", "(IndexError, ValueError)", "parts"),
        ("wrong_nodes(graph, 1)([0])", "IndexError", "99"),
        ("LinkSampler(sampler, pairs=[[0, 99]])", "IndexError", "99"),
        ("LinkSampler(sampler, pairs=[[0, 1]], labels={1})", "TypeError", "a set"),
        ("ClusterSampler(graph, 1, [0])", "ValueError", "parts"),
        ("ClusterSampler(graph, 1, [5000] * 20)", "ValueError", "parts must number the parts 0, 1, 2, ..."),
        ("NeighborSampler(typed, [2], edge_type='type')", "ValueError", "the column 'type' has 99 types"),
        ("NeighborSampler(typed, [2], edge_type='large')", "ValueError", "'large' holds 9223372036854775808"),
        ("LinkSampler(timed, num_negatives=2)([0], times=[float('nan')])", "ValueError", "times[0] is nan"),
        ("LinkSampler(wrong_times(graph, 1), num_negatives=2)", "TypeError", "birth is missing: WrongTimes"),
        ("ShadowSampler(graph, 1, 1, 0)", "ValueError", "fanout"),
        ("TemporalNeighborSampler(graph, [2], time='none')", "KeyError", "none"),
        ("TemporalNeighborSampler(graph, [2], time='t')([0])", "(TypeError, ValueError)", "times"),
        ("LinkSampler(sampler)([40])", "IndexError", "40"),
        ("LinkSampler(sampler, num_negatives=10**12)([0])", "ValueError", "num_negatives"),
        ("LinkSampler(sampler, num_negatives=-1)", "ValueError", "num_negatives"),
        ("LinkSampler(3)", "TypeError", "sampler"),
        ("NodeFlowLoader(sampler, [20])", "IndexError", "20"),
        ("NodeFlowLoader(sampler, {1})", "TypeError", "a set"),
        ("NodeFlowLoader(sampler, [0], batch_size=0)", "ValueError", "batch_size"),
        ("NodeFlowLoader(sampler, [0], device='cuda:99')", "ValueError", "device 'cuda:99' is not there"),
        ("NodeFlowLoader(sampler, [0], weights=[-1.0])", "ValueError", "weights"),
        ("NodeFlowLoader(sampler, [0], num_workers=-1)", "ValueError", "num_workers"),
        ("sampling.partition(graph, 0)", "ValueError", "num_parts"),
        ("LadiesSampler(heavy, [2], weight='w')([0])", "ValueError", "0 or sizes from 1e-30 to 1e+30"),
        ("SaintSampler(heavy, 1, kind='node', budget=3, weight='w')", "ValueError", "0 or sizes from 1e-30 to 1e+30"),
        ("NeighborSampler(heavy, [2], weight='w')([0])", "ValueError", "0 or sizes from 1e-30 to 1e+30"),
    ],
    "Layers and models": [
        ("nn.GCN(0, 4, 2)", "ValueError", "in_features"),
        ("nn.GCN(4, 4, 2, num_layers=0)", "ValueError", "num_layers"),
        ("nn.GCN(4, 4, 2, dropout=2)", "ValueError", "dropout"),
        ("nn.GCN(in_channels=4)", "TypeError", "it is called in_features= here"),
        ("nn.GraphConv(4, 4, norm='x')", "ValueError", "norm must be"),
        ("nn.SAGEConv(4, 4, aggregator='median')", "ValueError", "aggregator must be"),
        ("conv(flow, torch.ones(2, 4))", "ValueError", "3"),
        ("conv(rows, flow)", "TypeError", "conv(flow, h)"),
        ("model(rows, batch)", "TypeError", "the other way round"),
        ("model(batch, rows)", "ValueError", "one per node of the input layer"),
        ("model(rows, rows)", "TypeError", "with a NodeFlow first, got Tensor"),
        ("model.inference(None, feat)", "TypeError", "a Graph or a Propagation first"),
        ("model.inference(graph, feat, nodes=[20])", "IndexError", "20"),
        ("model.inference(graph, feat, chunk_size=0)", "ValueError", "chunk_size"),
        ("nn.NodeDropout(2)", "ValueError", "p must be"),
        ("nn.RGCNConv(4, 4, 0)", "ValueError", "num_relations"),
        ("nn.DotProduct()", "(TypeError, ValueError)", "width"),
        ("decoder(feat, [0], [20])", "(TypeError, IndexError, ValueError)", ""),
        ("nn.margin_loss(scores, torch.ones(2, 3))", "ValueError", "3"),
        ("nn.softmax_loss(scores, [1.0])", "TypeError", "negative"),
        ("nn.EdgeConv(torch.relu)", "TypeError", "mlp must be a torch.nn.Module"),
    ],
    "History and full passes": [
        ("History(None, {1: 4})", "TypeError", "graph must be a nodeflow.Graph"),
        ("History(graph, {})", "ValueError", "widths has no layer"),
        ("History(graph, [4])", "TypeError", "widths must be a dict"),
        ("History(graph, {1: 0})", "ValueError", "widths[1] must be at least 1"),
        ("History(graph, {1: 4}, device='cuda:99')", "ValueError", "device 'cuda:99' is not there"),
        ("History(graph, {1: 4}, folder=folder, device='meta')", "ValueError", "leave out folder or device"),
        ("History(graph, {1: 2**50})", "ValueError", "widths"),
        ("History(graph, {1: 4}, dtype=torch.int64)", "ValueError", "dtype must be a floating type"),
        ("Propagation(None)", "TypeError", "graph must be a nodeflow.Graph"),
        ("Propagation(graph)(damaged)", "ValueError", "h must have 20 rows"),
        ("Propagation(graph)(damaged_features)", "IndexError", "h is a damaged sparse CSR matrix"),
        ("model.inference(graph, damaged_features)", "IndexError", "is a damaged sparse CSR matrix"),
        ("history.age(1, [99])", "IndexError", "99"),
        ("history.age(1, [-1])", "IndexError", "-1"),
        ("nn.LinearConv().aggregate(flow, rows)", "NotImplementedError", "LinearConv must define aggregate(flow, h)"),
        ("Propagation(graph, weight='none')", "KeyError", "none"),
        ("propagation.ExchangePlan(None)", "TypeError", "graph must be a nodeflow.Graph"),
        ("propagation.ExchangePlan(graph).broadcast(feat, changed=feat > 0)", "ValueError", "changed must be bools"),
        ("Updater(vr_model, None, feat)", "TypeError", "history must be a History"),
        ("Updater(vr_model, history, feat, every=0)", "ValueError", "every"),
        ("ControlVariateSampler(graph, [2, 2], None)", "TypeError", "history"),
        ("vr_model.start_history(None, feat)", "TypeError", "graph must be a nodeflow.Graph"),
    ],
    "Training": [
        ("training.Trainer(None)", "TypeError", "dataset must be a Dataset"),
        ("training.Trainer(dataset, 3)", "TypeError", "settings must be a Settings or None"),
        ("training.Trainer(dataset, model=3)", "TypeError", "model must be a torch.nn.Module"),
        ("training.Trainer(dataset, loss=3)", "TypeError", "loss must be a function"),
        ("training.Trainer(dataset, optimizer='adam')", "TypeError", "optimizer must be a function"),
        ("training.Trainer(dataset, optimizer=torch.optim.SGD(mlp.parameters()))", "TypeError", "a function"),
        ("training.Trainer(dataset, optimizer=lambda weights: 3)", "TypeError", "what optimizer returns"),
        ("training.Trainer(dataset, scheduler=3)", "TypeError", "scheduler must be a function"),
        ("training.Trainer(dataset, scheduler=lambda optimizer: 3)", "TypeError", "what scheduler returns"),
        ("training.Trainer(dataset, metrics=['accuracy'])", "TypeError", "metrics[0] must be a Metric"),
        ("training.Trainer(dataset, metrics='accuracy')", "TypeError", "metrics must be a list"),
        ("training.Trainer(dataset, links, metrics=[metric])", "ValueError", "metrics of links are mrr,"),
        ("training.Trainer(tested, links)", "ValueError", "'tested' has no training edges"),
        ("training.Trainer(dataset, checkpoints=3)", "TypeError", "checkpoints must be"),
        ("training.Trainer(dataset, links).task.metric(feat, feat)", "TypeError", "metrics of links are ranks"),
        ("training.Trainer(dataset, rgcn)", "ValueError", "edge column 't' must hold types from 0"),
        (
            "training.Trainer(dataset, saint).outputs(parts, full=False)",
            "ValueError",
            "of sampler 'saint'",
        ),
        ("training.Settings(epochs=-1)", "ValueError", "epochs"),
        (
            "training.Trainer(dataset, training.Settings(device='cuda:99'))",
            "ValueError",
            "device 'cuda:99' is not there",
        ),
        ("training.Settings(nonsense=1)", "ValueError", "there is no setting 'nonsense'"),
        ("training.Inputs(20, 0, 0)", "ValueError", "no features"),
        ("training.Inputs(2**62, 0, 4)", "ValueError", "num_nodes"),
        ("datasets.Dataset('a', None, [0], [1], [2], 2)", "TypeError", "graph must be a nodeflow.Graph"),
        ("datasets.Dataset('a', graph, [20], [1], [2], 2)", "IndexError", "train[0] is 20"),
        ("datasets.Dataset('a', graph, {0}, [1], [2], 2)", "TypeError", "a set"),
        ("datasets.Dataset('a', graph, [0], [0], [2], 2)", "ValueError", "train and val"),
        ("learned.EmbeddingTable(20, 0, lr=0.1)", "ValueError", "width"),
        ("learned.EmbeddingTable(2**40, 2**20, lr=0.1)", "ValueError", "takes 9.22 EB"),
        ("learned.EmbeddingTable(20, 4, lr=0.1).pull([20])", "IndexError", "20"),
        ("learned.Pipeline(loader_, pulls, print, device='cuda:99')", "ValueError", "device 'cuda:99' is not there"),
        ("metrics.named('none')", "ValueError", "name must be"),
        ("metrics.Metric('share', 3)", "TypeError", "function must be a function of outputs and targets, got int 3"),
        ("testing.check_sampler(sampler, [0], graph=graph)", "TypeError", "a sampler has its graph"),
        ("testing.check_sampler(wrong_times(graph, 1), [0])", "TypeError", "WrongTimes takes times: pass times="),
        ("metrics.rank_among(scores, torch.ones(2, 3))", "ValueError", "3"),
    ],
    "Storage": [
        ("storage.Tiered([feat]).fetch(torch.tensor([-1]))", "IndexError", "-1"),
        ("storage.Cached(feat, heat, '100 B').fetch(torch.tensor([99]))", "IndexError", "99"),
        ("storage.open('/nowhere/x.npy')", "FileNotFoundError", "/nowhere/x.npy"),
        ("storage.Tiered([])", "ValueError", "at least one column"),
        ("storage.Tiered([feat], index=[20])", "(IndexError, ValueError)", ""),
        ("storage.Cached(feat, torch.ones(3), '1 MB')", "ValueError", "heat must have one entry per row"),
        ("storage.Cached(feat, heat, 'much')", "ValueError", "memory must be a number and a unit"),
        ("storage.hottest([1.0, float('nan')])", "ValueError", "heat"),
        ("storage.hottest({1.0})", "TypeError", "a set"),
        ("storage.create(file.with_suffix('.npy'), (-1, 2))", "ValueError", "shape"),
        ("storage.reach_heat(graph, [20], [2], 1)", "IndexError", "20"),
        ("partitions.comet_order(0, 1)", "ValueError", "num_parts"),
        ("partitions.write_partitions(graph, folder, 0)", "ValueError", "num_parts"),
        ("distributed.partition_graph(graph, folder, 0)", "ValueError", "num_parts"),
    ],
}
"""Rows written by hand, by what they are about."""


def with_argument(call: str, argument: str) -> str:
    """Return a call with one more argument; a keyword that is there takes its value."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    added = ast.parse(f"f({argument})", mode="eval").body
    assert isinstance(added, ast.Call)
    names = {keyword.arg for keyword in added.keywords}
    tree.keywords = [keyword for keyword in tree.keywords if keyword.arg not in names] + added.keywords
    return ast.unparse(tree)


def with_first(call: str, value: str) -> str | None:
    """Return a call with another first argument; None for a call without one."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    if not tree.args:
        return None
    tree.args[0] = ast.parse(value, mode="eval").body
    return ast.unparse(tree)


LAST = {
    "training.Settings",
    "training.save",
    "training.write_predictions",
    "training.write_top_links",
    "plot.plot_parts",
}
"""Callables whose right call needs what the table has not, so that another argument is refused first."""


def by_walking() -> Iterator[Row]:
    """Yield the rows of every callable: an unknown keyword, flags that are no bools, a first argument of no kind."""
    callables: dict[str, Any] = {**dict(public()), **dict(methods())}
    for name, call in BASE.items():
        value = callables[name]
        for flag in flags(value):
            words = f"{flag} must be " + ("False, True or 'mark'" if flag == "filter_known" else "True or False")
            yield Row(with_argument(call, f"{flag}='no'"), "(TypeError, ValueError)", words, "Flags")
        if name not in LAST:
            yield Row(with_argument(call, "nonsense=1"), "TypeError", "nonsense", "Unknown arguments")
        needed = [p for p in inspect.signature(value).parameters.values() if p.default is p.empty]
        if inspect.isclass(value) and any(p.kind is p.POSITIONAL_OR_KEYWORD for p in needed):
            yield Row(f"{name}()".removeprefix("graph."), "TypeError", needed[0].name, "Missing arguments")
        if (first := with_first(call, "object()")) is not None:
            yield Row(first, "(TypeError, ValueError)", "", "First arguments of no kind")


def rows() -> list[Row]:
    """Return the whole table."""
    by_hand = [Row(*row, about) for about, group in BY_HAND.items() for row in group]
    return [*by_hand, *by_walking()]
