"""Calls that users get wrong, of node types and relations, seed tables and tables of a database."""

from __future__ import annotations

OF_TYPES: dict[str, list[tuple[str, str, str]]] = {
    "Node types and relations": [
        (
            "Graph.typed({'a': 2}, {('a', 'r', 'b'): ([], [])})",
            "KeyError",
            "no node type 'b'; there are 'a'",
        ),
        (
            "Graph.typed({'a': 2}, {('a', 'r', 'a'): ([2], [0])})",
            "IndexError",
            "but a node ids go from 0 to 1",
        ),
        (
            "Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0], [0, 1])})",
            "ValueError",
            "one entry per edge",
        ),
        ("Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0.5], [0])})", "TypeError", "must be integers"),
        ("Graph.typed({'a': 2}, {'r': ([0], [0])})", "TypeError", "a relation must be a triple"),
        (
            "Graph.typed({'a': 2}, {('a', 'r', 'a'): [0]})",
            "TypeError",
            "must be (src, dst) or (src, dst, columns)",
        ),
        ("Graph.typed({'a': {}}, {})", "ValueError", "does not say how many nodes there are"),
        ("Graph.typed({'a': 2**40}, {})", "ValueError", "num_nodes of 1099511627776"),
        (
            "Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0], [1])}, reverse='yes')",
            "TypeError",
            "reverse",
        ),
        ("Graph.typed(graph, {})", "TypeError", "nodes must be a dict"),
        ("Schema({'a': -1}, {})", "ValueError", "nodes['a'] must be at least 0"),
        (
            "Schema({'a': 1}, {('a', 'r', 'a'): 1}).relation('s')",
            "KeyError",
            "no relation 's'; there are",
        ),
        ("Schema({'a': 1}, {('a', 'r', 'a'): 1}).entering('b')", "KeyError", "no node type 'b'"),
        ("graph.nodes['paper']", "KeyError", "no node type 'paper'; there are 'node'"),
        (
            "graph.relations['writes']",
            "KeyError",
            "no relation 'writes'; there are ('node', 'edge', 'node')",
        ),
        (
            "graph.nodes['node'].to_local([20])",
            "IndexError",
            "ids[0] is 20, but node node ids go from 0 to 19",
        ),
        ("graph.nodes['node'].to_graph([-1])", "IndexError", "local[0] is -1"),
        ("batch.layers[0].of('paper')", "KeyError", "no node type 'paper'"),
        ("batch.flows[0].of('writes')", "KeyError", "no relation 'writes'"),
        ("sampler({'paper': [0]})", "KeyError", "no node type 'paper'; there are 'node'"),
        (
            "sampler(('node', [0]))",
            "TypeError",
            "seeds of one type are a dict, as in {'paper': ids}",
        ),
        (
            "graph.nodes['node'].to_graph(torch.ones(3).bool())",
            "ValueError",
            "(20), got shape (3,)",
        ),
        (
            "batch.copy_from_parent({'paper': ['x']})",
            "TypeError",
            "not by type: ndata=['x'] copies",
        ),
        (
            "testing.check_layer(conv, 4, schema=graph)",
            "TypeError",
            "schema must be a Schema, graph.schema",
        ),
        ("storage.reach_heat(graph, [0], [{'writes': 2}], 1)", "KeyError", "no relation 'writes'"),
        ("Layer(2).of('node')", "ValueError", "this layer belongs to no graph"),
        ("NeighborSampler(graph, [{'writes': 2}])", "KeyError", "no relation 'writes'"),
        ("NeighborSampler(graph, [{'edge': 0.5}])", "TypeError", "fanouts[0]['edge']"),
        (
            "NeighborSampler(graph, [{'edge': 2, ('node', 'edge', 'node'): 2}])",
            "ValueError",
            "name one relation twice",
        ),
        ("LaborSampler(graph, [{'paper': 2}])", "KeyError", "no relation 'paper'"),
        (
            "BernoulliSampler(graph, rates=[{'edge': 2}])",
            "ValueError",
            "rates[0]['edge'] must be at least 0",
        ),
        (
            "LadiesSampler(graph, [{'paper': 2}])",
            "KeyError",
            "no node type 'paper'; there are 'node'",
        ),
        (
            "ShadowSampler(graph, 1, 1, {'edge': 0.5})",
            "TypeError",
            "fanout['edge'] must be an integer",
        ),
        (
            "RandomWalkSampler(graph, 1, metapath='edge')",
            "TypeError",
            "metapath must be a list of relations",
        ),
        ("RandomWalkSampler(graph, 1, metapath=['cites'])", "KeyError", "no relation 'cites'"),
        (
            "TemporalNeighborSampler(graph, [1], time='when')",
            "KeyError",
            "neither edges nor nodes have a column 'when'",
        ),
        ("nn.TypedLinear(4, 4)", "TypeError", "widths must be a dict from node types"),
        ("nn.TypedLinear({'node': 4.5}, 4)", "TypeError", "widths['node'] must be an integer"),
        (
            "nn.TypedLinear({'paper': 4}, 4, column='feat')(batch)",
            "ValueError",
            "widths has no node type 'node'",
        ),
        (
            "nn.TypedLinear({'node': 3}, 4, column='feat')(batch)",
            "ValueError",
            "'node' takes rows of width 3",
        ),
        (
            "nn.TypedLinear({'node': torch.nn.Embedding(20, 3)}, 4)(batch)",
            "ValueError",
            "must be 4 wide",
        ),
        ("nn.TypedLinear({'node': 4}, 4, column='y')(batch)", "KeyError", "no column 'y'"),
        (
            "nn.TypedLinear({'node': 4}, 4)(batch.flows[0])",
            "TypeError",
            "must be a NodeFlow, a layer or a graph",
        ),
        ("nn.TypedConv({})", "ValueError", "convs must have a relation at least"),
        ("nn.TypedConv([conv])", "TypeError", "convs must be a dict from relations"),
        (
            "nn.TypedConv({'edge': conv}, 'min')",
            "ValueError",
            "reduce must be 'sum', 'mean' or 'max'",
        ),
        ("nn.TypedConv({'writes': conv})(batch, 0, feat)", "KeyError", "no relation 'writes'"),
        (
            "nn.TypedConv({'edge': conv})(flow, rows)",
            "ValueError",
            "this layer belongs to no graph",
        ),
        ("nn.HGTConv(4, 4, graph)", "TypeError", "schema must be a Schema, graph.schema"),
        ("nn.HGTConv(4, 4, graph.schema, heads=3)", "ValueError", "must be a multiple of heads=3"),
        (
            "nn.HGTConv(4, 4, graph.schema)(flow, rows)",
            "ValueError",
            "this layer belongs to no graph",
        ),
        (
            "nn.RGCNConv(4, 4, graph.schema)(flow, rows)",
            "ValueError",
            "this layer belongs to no graph",
        ),
        (
            "nn.RGCNConv(4, 4, 2, num_blocks=3)",
            "ValueError",
            "num_blocks needs widths that are multiples of it",
        ),
        ("nn.RelativeTime(0)", "ValueError", "must be at least 1"),
        ("nn.TypedModel(conv, [conv], 2)", "TypeError", "encoder must be a TypedLinear"),
        ("nn.TypedModel(4, [conv], 2)(batch)", "TypeError", "h must be the rows"),
    ],
    "Seed tables": [
        ("SeedTable(graph, 'paper', [0])", "KeyError", "no node type 'paper'; there are 'node'"),
        (
            "SeedTable(graph, 'node', [20])",
            "IndexError",
            "nodes[0] is 20, but node node ids go from 0 to 19",
        ),
        (
            "SeedTable(graph, 'node', 'id')",
            "KeyError",
            "nodes: no column 'id' in data; there are none",
        ),
        (
            "SeedTable(graph, 'node', [0], time=[1, 2])",
            "ValueError",
            "time must have one entry per seed (1)",
        ),
        ("SeedTable(graph, 'node', [0], time=['now'])", "TypeError", "time must be numbers"),
        (
            "SeedTable(graph, 'node', [0], split=['train', 'val'])",
            "ValueError",
            "one name per row (1), got shape (2,)",
        ),
        (
            "SeedTable(graph, 'node', [0], data={'y': torch.ones(2)})",
            "ValueError",
            "data['y'] must have a row per seed (1)",
        ),
        ("SeedTable(graph, 'node', [0], targets=[1])", "TypeError", "targets"),
        (
            "SeedTable(graph, 'node', [0], split=['train'])['test']",
            "KeyError",
            "no part 'test' in the split; there are train",
        ),
        (
            "NodeFlowLoader(sampler, SeedTable(graph, None, [0], time=[1]))",
            "TypeError",
            "because NeighborSampler takes none",
        ),
        (
            "NodeFlowLoader(LinkSampler(sampler), SeedTable(graph, None, [0]))",
            "TypeError",
            "a seed of LinkSampler is an edge",
        ),
        (
            "LinkSampler(sampler, pairs={'writes': [[0, 1]]})",
            "KeyError",
            "no relation 'writes'; there are",
        ),
        (
            "LinkSampler(sampler, pairs={'edge': [[0, 20]]})",
            "IndexError",
            "pairs['edge'][:, 1][0] is 20",
        ),
    ],
    "Tables of a database": [
        (
            "convert.from_tables([frame])",
            "TypeError",
            "tables must be a dict by the names of tables",
        ),
        (
            "convert.from_tables({'a': {'id': [1]}})",
            "TypeError",
            "tables['a'] must be a data frame of pandas",
        ),
        (
            "convert.from_tables({'a': frame}, keys={'b': 'id'})",
            "KeyError",
            "keys: no table 'b'; there are 'a'",
        ),
        (
            "convert.from_tables({'a': frame}, keys={'a': 'x'})",
            "KeyError",
            "no column 'x'; there are 'id', 'to'",
        ),
        (
            "convert.from_tables({'a': frame}, keys={'a': ['id', 'to']})",
            "TypeError",
            "the name of one column",
        ),
        (
            "convert.from_tables({'a': frame}, links={'a': {'to': 'a'}})",
            "KeyError",
            "a table without a key, 'a'",
        ),
        (
            "convert.from_tables({'a': frame}, links={'a': ['to']})",
            "TypeError",
            "links['a'] must be a dict",
        ),
        (
            "convert.from_tables({'a': frame}, keys={'a': 'id'}, links={'a': {'to': 'a'}})",
            "ValueError",
            "has 1 foreign keys that no row of table 'a' has, the first 9",
        ),
        ("convert.from_tables({'a': frame}, drop={'a': 'to'})", "TypeError", "write ['to']"),
        (
            "convert.from_tables({'a': frame}, cut='soon')",
            "ValueError",
            "cut must hold dates or seconds",
        ),
        (
            "convert.from_tables({'a': frame}, dangling='keep')",
            "ValueError",
            "dangling must be 'error' or 'drop'",
        ),
    ],
}
"""Rows by what they are about, as in ``by_hand``."""
