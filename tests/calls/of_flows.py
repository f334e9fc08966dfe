"""Calls that users get wrong, of graphs, flows, messages, operations, layers and histories."""

from __future__ import annotations

OF_FLOWS: dict[str, list[tuple[str, str, str]]] = {
    "Flows made by hand": [
        (
            "flow_from_edges([0, 2], [0, 0], num_src=2, num_dst=1)",
            "IndexError",
            "src[1] is 2, but source ids go from 0 to 1",
        ),
        (
            "flow_from_edges([0, 1], [0, -1], num_src=2, num_dst=1)",
            "IndexError",
            "dst[1] is -1, but destination ids go from 0 to 0",
        ),
        (
            "flow_from_edges([0], [0, 0], num_src=2, num_dst=1)",
            "ValueError",
            "one entry per edge, got 1 and 2",
        ),
        (
            "flow_from_edges([0.0, 1.0], [0, 0], num_src=2, num_dst=1)",
            "TypeError",
            "src must hold integer source ids",
        ),
        (
            "flow_from_edges([0, 1], torch.tensor([True, False]), num_src=2, num_dst=1)",
            "TypeError",
            "dst must hold destination ids, got a bool mask",
        ),
        (
            "flow_from_edges([0], [0], num_src=-1, num_dst=1)",
            "ValueError",
            "num_src must be at least 0",
        ),
        (
            "flow_from_edges([0], [0], num_src=1, num_dst=1.0)",
            "TypeError",
            "num_dst must be an integer",
        ),
        (
            "flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1, parent_eid=[1])",
            "ValueError",
            "parent_eid must have one entry per edge (2), got 1",
        ),
        (
            "flow_from_edges([0, 1], [0, 0], num_src=2, num_dst=1, parent_eid=[1, -2])",
            "IndexError",
            "parent_eid[1] is -2, but edge ids go from -1",
        ),
        (
            "flow_from_edges([0], [0], num_src=1, num_dst=1, parent_eid=[1.0])",
            "TypeError",
            "parent_eid must hold integer edge ids",
        ),
        (
            ("flow_from_edges([0], [0], num_src=1, num_dst=1, parent_eid=torch.tensor([True]))"),
            "TypeError",
            "parent_eid must hold edge ids, got a bool mask",
        ),
        (
            "flow_from_edges([0], [0], num_src=1, num_dst=1, parent_eid=3)",
            "TypeError",
            "parent_eid must be a tensor",
        ),
        (
            "flow_from_edges([0], [0], num_src=1, num_dst=1, weight=torch.ones(3))",
            "ValueError",
            "'weight' must have 1 rows",
        ),
        (
            "flow_from_edges([0], [0], num_src=1, num_dst=1, weight=torch.ones(1, 2))",
            "ValueError",
            "weight must have shape (1,), one number per edge, got (1, 2)",
        ),
        (
            "flow_from_edges([0], [0], num_src=1, num_dst=1, weight=[1.0])",
            "TypeError",
            "'weight' must be a tensor",
        ),
        (
            "flow_from_edges([0], [0], num_src=1, num_dst=1, data={'x': torch.ones(2)})",
            "ValueError",
            "column 'x' must have 1 rows",
        ),
        (
            "flow_from_csr([0, 2, 1, 3], [0, 1, 1], num_src=2)",
            "ValueError",
            "indptr must not decrease, but indptr[1] is 2",
        ),
        (
            "flow_from_csr([0, -1, 3], [0, 1, 1], num_src=2)",
            "ValueError",
            "must not decrease, but indptr[0] is 0",
        ),
        (
            "flow_from_csr([0, 2], [0, 1, 1], num_src=2)",
            "ValueError",
            "from 0 to the number of edges 3, got 0 to 2",
        ),
        (
            "flow_from_csr([0, 4], [0, 1, 1], num_src=2)",
            "ValueError",
            "from 0 to the number of edges 3, got 0 to 4",
        ),
        ("flow_from_csr([1, 3], [0, 1, 1], num_src=2)", "ValueError", "got 1 to 3"),
        (
            "flow_from_csr([], [], num_src=2)",
            "ValueError",
            "from 0 to the number of edges 0, got nothing",
        ),
        (
            "flow_from_csr([0, 1], [2], num_src=2)",
            "IndexError",
            "indices[0] is 2, but source ids go from 0 to 1",
        ),
        ("flow_from_csr([0.0, 1.0], [1], num_src=2)", "TypeError", "indptr must hold integer"),
        ("NodeFlow(layers=[1])", "TypeError", "layers[0] must be a Layer, got int 1"),
        ("NodeFlow(flows=[1])", "TypeError", "flows[0] must be a Flow, got int 1"),
        (
            "NodeFlow()",
            "ValueError",
            "at least one layer; samplers make NodeFlows, as in NeighborSampler(",
        ),
        ("NodeFlow([Layer(2), Layer(1)], [])", "ValueError", "2 layers need 1 flows, got 0"),
        (
            "create_node_flow([flow, flow])",
            "ValueError",
            "layer 1 has different sizes in its flows and parent ids: [2, 3]",
        ),
        (
            "create_node_flow([flow], [[1, 2], [1, 2]])",
            "ValueError",
            "layer 0 has different sizes in its flows and parent ids: [2, 3]",
        ),
        (
            "create_node_flow([flow], [[1, 1, 2], [1, 2]])",
            "ValueError",
            "layer 0 holds parent node 1 twice",
        ),
        (
            "create_node_flow([flow], [[1, 2, 20], [1, 2]], parent=graph)",
            "IndexError",
            "layers[0][2] is 20, but node ids go from 0 to 19",
        ),
        ("create_node_flow([flow], [[1, 2, -1], [1, 2]])", "IndexError", "layers[0][2] is -1"),
        (
            "create_node_flow([flow], [[1.0, 2.0, 3.0], [1, 2]])",
            "TypeError",
            "layers[0] must hold integer node ids",
        ),
        (
            "create_node_flow([flow], [[True, False, True], [1, 2]])",
            "TypeError",
            "layers[0] must be integers",
        ),
        ("create_node_flow([flow], [[1, 2, 3]])", "ValueError", "beyond the last layer [(0, 1)]"),
        ("create_node_flow([flow], [[1, 2, 3], [1, 2], [1]])", "ValueError", "missing [(1, 2)]"),
        ("create_node_flow({(0, 2): flow})", "ValueError", "missing [(0, 1), (1, 2)]"),
        (
            "create_node_flow({(1, 0): flow})",
            "ValueError",
            "to a later layer j, got the pair (1, 0)",
        ),
        ("create_node_flow({(0, 0): flow})", "ValueError", "to a later layer j"),
        ("create_node_flow({(-1, 0): flow})", "ValueError", "to a later layer j"),
        ("create_node_flow({0: flow})", "ValueError", "got the pair 0"),
        ("create_node_flow({('a', 'b'): flow})", "ValueError", "got the pair"),
        ("create_node_flow({(0.5, 1): flow})", "ValueError", "got the pair"),
        (
            "create_node_flow([3])",
            "TypeError",
            "flows[(0, 1)] must be a Flow (see flow_from_edges), got int 3",
        ),
        (
            "create_node_flow(flow)",
            "TypeError",
            "flows must be a list of flows or a dict, got Flow",
        ),
        ("create_node_flow([], [])", "ValueError", "0 layers"),
        ("create_node_flow([], [None])", "ValueError", "layer 0 has neither a flow nor parent ids"),
        (
            "create_node_flow([flow], parent=3)",
            "TypeError",
            "parent must be a nodeflow.Graph or None, got int 3",
        ),
        (
            (
                "create_node_flow([flow_from_edges([0], [0], num_src=1, num_dst=1, "
                "parent_eid=[40])], [[0], [1]], parent=graph)"
            ),
            "ValueError",
            "a parent edge id is out of range",
        ),
        (
            (
                "create_node_flow([flow_from_edges([0], [0], num_src=1, num_dst=1, "
                "parent_eid=[1])], [[0], [0]], parent=Graph.from_edges([0, 0], [1, 2]))"
            ),
            "ValueError",
            "an edge and its parent edge join different nodes",
        ),
        (
            "create_full_node_flow('graph', 1)",
            "TypeError",
            "graph must be a nodeflow.Graph, got str",
        ),
        ("create_full_node_flow(graph, 1.5)", "TypeError", "num_layers must be an integer"),
        ("create_full_node_flow(graph, True)", "TypeError", "num_layers must be an integer"),
        (
            "create_full_node_flow(graph, 1, weight='w', add_self_loop=True)",
            "ValueError",
            "weight='w' has no numbers for self-loops",
        ),
        (
            (
                "create_full_node_flow(Graph.from_edges([0], [1], edata={'bad': "
                "torch.tensor([torch.inf])}), 1, weight='bad')"
            ),
            "ValueError",
            "weight: the edge column 'bad' must be finite",
        ),
        ("Layer(3, torch.tensor([7]))", "ValueError", "this layer: 3 nodes but 1 parent ids"),
        ("Layer(2, [7, 3])", "TypeError", "parent_nid must be a tensor or None, got list"),
        (
            "Layer(2, torch.tensor([7.0, 3.0]))",
            "ValueError",
            "this layer: parent ids must be int64",
        ),
        (
            "Layer(2, torch.tensor([7, 7]))",
            "ValueError",
            "this layer holds parent node 7 twice, without contexts",
        ),
        (
            "Layer(2, torch.tensor([7, -3]))",
            "ValueError",
            "this layer: a parent id is out of range",
        ),
        ("Layer(2, data=Frame(3))", "ValueError", "this layer: wrong number of rows in its frame"),
        ("Layer(2, data={})", "TypeError", "data must be a Frame or None, got dict"),
        (
            "Layer(2, torch.tensor([7, 3]), context=torch.zeros(1))",
            "ValueError",
            "2 nodes but 1 contexts",
        ),
        (
            "Flow(structure, Layer(4), Layer(2), (0, 1))",
            "ValueError",
            "this flow: wrong number of sources",
        ),
        (
            "Flow(structure, Layer(3), Layer(3), (0, 1))",
            "ValueError",
            "this flow: indptr must have one entry more",
        ),
        (
            "Flow([0, 1], Layer(2), Layer(1), (0, 1))",
            "TypeError",
            "structure must be a Structure, got list",
        ),
        (
            "Flow(structure, Layer(3), Layer(2), (0, 1), weight=[1])",
            "TypeError",
            "weight must be a tensor or None, got list",
        ),
        (
            "Flow(structure, Layer(3), Layer(2), (0, 1), weight=torch.ones(2))",
            "ValueError",
            "this flow: wrong number of estimator",
        ),
    ],
    "Views and ids of a NodeFlow": [
        ("batch.copy_from_parent(None, ['nope'])", "KeyError", "no column 'nope'"),
        ("batch.copy_to_parent({0: ['feat'], 1: ['nope']})", "KeyError", "no column 'nope'"),
        ("batch.copy_from_parent({3: ['feat']})", "IndexError", "layer 3 is out of range"),
        ("batch.copy_from_parent({0.0: ['feat']})", "TypeError", "layer must be an integer"),
        (
            "batch.copy_from_parent({0: ['feat'], -3: ['feat']})",
            "ValueError",
            "ndata names one layer or flow twice",
        ),
        ("batch.copy_from_parent(['feat'], {2: ['w']})", "IndexError", "flow 2 is out of range"),
        (
            "batch.copy_from_parent(['feat'], {(0, 2): ['w']})",
            "IndexError",
            "there is no flow from layer 0 to layer 2",
        ),
        ("batch.copy_to_parent('feat')", "TypeError", "got str 'feat'"),
        (
            "batch.copy_from_parent(['feat'], {0: 'w'})",
            "TypeError",
            "edata must be ALL, None, a list",
        ),
        ("batch.copy_from_parent(3)", "TypeError", "ndata must be ALL"),
        (
            "batch.flows[2]",
            "IndexError",
            "flow 2 is out of range: there are 2, so it goes from -2 to 1",
        ),
        ("batch.flows[-3]", "IndexError", "flow -3 is out of range"),
        ("batch.fdata[2]", "IndexError", "flow 2 is out of range"),
        ("batch.flows[0, 3]", "IndexError", "layer 3 is out of range: there are 3"),
        ("batch.flows[-4, 0]", "IndexError", "layer -4 is out of range"),
        (
            "batch.flows[1, 0]",
            "IndexError",
            "there is no flow from layer 1 to layer 0; there are [(0, 1), (1, 2)]",
        ),
        ("batch.flows[2, 2]", "IndexError", "there is no flow from layer 2 to layer 2"),
        ("batch.flows[0, 1, 2]", "TypeError", "flows[i, j] takes two layer numbers, got 3"),
        ("batch.flows[()]", "TypeError", "takes two layer numbers, got 0"),
        ("batch.flows[1.0]", "TypeError", "flow must be an integer, got float 1.0"),
        ("batch.flows[True]", "TypeError", "flow must be an integer, got bool True"),
        ("batch.flows['0']", "TypeError", "flow must be an integer"),
        ("batch.flows[0, 1.0]", "TypeError", "layer must be an integer"),
        ("batch.flows[None]", "TypeError", "flow must be an integer"),
        ("batch.flows(2, 1)", "IndexError", "no flow from layer 2 to layer 1"),
        ("batch.layers[3]", "IndexError", "layer 3 is out of range"),
        ("batch.layers[-4]", "IndexError", "layer -4 is out of range"),
        ("batch.layers[1.0]", "TypeError", "layer must be an integer"),
        ("batch.layers[True]", "TypeError", "layer must be an integer"),
        ("batch.layers[0, 1]", "TypeError", "layer must be an integer"),
        ("batch.layers(3)", "IndexError", "layer 3 is out of range"),
        ("batch.ldata[3]", "IndexError", "layer 3 is out of range"),
        ("batch.ldata['0']", "TypeError", "layer must be an integer"),
        ("batch.in_degrees(3)", "IndexError", "layer 3 is out of range"),
        ("batch.out_degrees(None)", "TypeError", "layer must be an integer"),
        ("batch[0]", "TypeError", "for one layer use batch.layers[0]"),
        ("batch['a']", "TypeError", "a NodeFlow is sliced by layers"),
        ("list(batch)", "TypeError", "for one layer use batch.layers[0]"),
        ("batch[::2]", "ValueError", "a slice must take consecutive layers"),
        ("batch[::-1]", "ValueError", "a slice must take consecutive layers"),
        ("batch[2:1]", "ValueError", "a slice must take consecutive layers"),
        ("batch.map_to_parent_nid([99])", "IndexError", "nid[0] is 99, but node ids go from 0"),
        ("batch.map_to_parent_nid([-1])", "IndexError", "nid[0] is -1"),
        ("batch.map_to_parent_nid([0.5])", "TypeError", "nid must hold integer node ids"),
        ("batch.map_to_parent_eid([0, 99])", "IndexError", "eid[1] is 99, but edge ids go from 0"),
        (
            "batch.map_to_parent_eid(torch.tensor([True]))",
            "TypeError",
            "eid must hold edge ids, got a bool mask",
        ),
        (
            "batch.map_from_parent_nid(0, [20], allow_missing=True)",
            "IndexError",
            "parent_nid[0] is 20, but node ids go from 0 to 19",
        ),
        ("batch.map_from_parent_nid(3, [0])", "IndexError", "layer 3 is out of range"),
        ("batch.map_from_parent_nid(0, [True, 2])", "TypeError", "parent_nid must be integers"),
        (
            "create_node_flow([flow]).copy_from_parent()",
            "ValueError",
            "no parent graph; attach one with batch.with_parent(graph)",
        ),
        (
            "create_node_flow([flow]).copy_to_parent()",
            "ValueError",
            "no parent graph; attach one with batch.with_parent(graph)",
        ),
        (
            "batch.copy_from_parent(['y'])",
            "KeyError",
            "no column 'y' in the parent graph's ndata, which has 'feat', 'label'",
        ),
        (
            ("FullSampler(graph, 1)([1, 2]).append(create_node_flow([], [[1]], parent=graph))"),
            "ValueError",
            "append needs the same nodes in Layer(2 nodes)",
        ),
        (
            ("FullSampler(graph, 1)([1, 2]).append(create_node_flow([], [[1, 3]], parent=graph))"),
            "ValueError",
            "parent node 2 is only in the first",
        ),
        ("batch.append([batch])", "TypeError", "append takes a NodeFlow, got list"),
        (
            (
                "FullSampler(graph, 1)([1, 2]).append(create_node_flow([], [[1, 2]], "
                "parent=Graph.from_edges([0], [0], num_nodes=6)))"
            ),
            "ValueError",
            "append needs NodeFlows of one parent graph",
        ),
        (
            "Layer(2, torch.tensor([0, 1])).of('paper')",
            "ValueError",
            "this layer belongs to no graph",
        ),
        ("setattr(flow.structure, 'indptr', 0)", "AttributeError", "Structure is immutable"),
        (
            "setattr(flow.structure.transposed()[0], 'other', 0)",
            "AttributeError",
            "Structure is immutable",
        ),
    ],
    "Message passing": [
        (
            "batch.register_layer_computation(0, fn.copy_u('feat', 'm'), fn.sum('m', 'x'))",
            "ValueError",
            "layer 0 has no flow into it",
        ),
        (
            "batch.register_layer_computation(1, fn.copy_u('feat', 'm'))",
            "ValueError",
            "layer 1 needs a message and a reduce function, or an update function alone",
        ),
        (
            "batch.register_layer_computation(1, None, fn.sum('m', 'x'))",
            "ValueError",
            "layer 1 needs a message and a reduce function",
        ),
        (
            "batch.register_layer_computation(1)",
            "ValueError",
            "layer 1 needs a message and a reduce function",
        ),
        (
            "batch.flow_compute(0, fn.copy_u('feat', 'm'), fn.sum('x', 'h'))",
            "ValueError",
            "takes message 'x', but the messages made are 'm'",
        ),
        (
            "batch.flow_compute(0, lambda e: {'m': e.src['feat']}, fn.sum('x', 'h'))",
            "ValueError",
            "takes message 'x', but the messages made are 'm'",
        ),
        (
            "batch.flow_compute(0, fn.copy_u('x', 'm'), fn.sum('m', 'h'))",
            "KeyError",
            "no column 'x' in layer 0, which has 'feat'",
        ),
        (
            "batch.flow_compute(0, fn.copy_e('x', 'm'), fn.sum('m', 'h'))",
            "KeyError",
            "no column 'x' in flow 0->1",
        ),
        (
            "batch.flow_compute(0, fn.v_add_u('x', 'feat', 'm'), fn.sum('m', 'h'))",
            "KeyError",
            "no column 'x' in layer 1",
        ),
        (
            "batch.flow_compute(0, lambda e: {'m': e.dst['x']}, fn.sum('m', 'h'))",
            "KeyError",
            "no column 'x' in layer 1",
        ),
        (
            "batch.flow_compute(0, fn.copy_u('feat', 'm'), lambda n: {'h': n.mailbox['x']})",
            "KeyError",
            "no column 'x' in the mailbox, which has 'm'",
        ),
        (
            "batch.flow_compute(0, lambda e: e.src['feat'], fn.sum('m', 'h'))",
            "TypeError",
            "must return a dict of columns, got Tensor",
        ),
        (
            "batch.flow_compute(0, lambda e: {'m': 3}, fn.sum('m', 'h'))",
            "TypeError",
            "must return tensors and name them by str, but column 'm' is int 3",
        ),
        (
            "batch.flow_compute(0, lambda e: {3: e.src['feat']}, fn.sum('m', 'h'))",
            "TypeError",
            "must return tensors and name them by str, but column 3 is Tensor",
        ),
        (
            ("batch.flow_compute(0, lambda e: {'m': torch.ones(len(e) + 1)}, fn.sum('m', 'h'))"),
            "ValueError",
            "must return one row per edge, here",
        ),
        (
            (
                "batch.flow_compute(0, fn.copy_u('feat', 'm'), lambda n: {'m': "
                "torch.ones(len(n) + 1)})"
            ),
            "ValueError",
            "must return one row per node, here",
        ),
        (
            "batch.flow_compute(0, fn.sum('m', 'h'), fn.sum('m', 'h'))",
            "TypeError",
            "message must be a built-in message function",
        ),
        (
            "batch.flow_compute(0, fn.copy_u('feat', 'm'), fn.copy_u('feat', 'm'))",
            "TypeError",
            "reduce must be a built-in reduce function",
        ),
        ("batch.flow_compute(0, None, fn.sum('m', 'h'))", "TypeError", "got NoneType None"),
        ("batch.flow_compute(0, [], fn.sum('m', 'h'))", "ValueError", "message is an empty list"),
        (
            "batch.flow_compute(0, [fn.copy_u('feat', 'm')] * 2, fn.sum('m', 'h'))",
            "ValueError",
            "two message functions make message 'm'",
        ),
        (
            (
                "message_passing(flow, fn.u_mul_e('h', 'bad', 'm'), fn.sum('m', 'h'), "
                "src={'h': rows}, edge={'bad': torch.ones(3, 2)})"
            ),
            "ValueError",
            "do not broadcast",
        ),
        (
            (
                "message_passing(flow, fn.u_mul_e('h', 'bad', 'm'), lambda n: {'h': "
                "n.mailbox['m'].sum(1)}, src={'h': rows}, edge={'bad': torch.ones(3, 2)})"
            ),
            "ValueError",
            "column 'h' of layer 0",
        ),
        (
            (
                "message_passing(flow, fn.copy_u('h', 'm'), lambda n: {'h': "
                "n.mailbox['m'].sum(1)[:, : n.mailbox['m'].shape[1]]}, src={'h': rows})"
            ),
            "ValueError",
            "must return the same columns for every degree",
        ),
        (
            "message_passing(flow, fn.copy_u('h', 'm'), fn.sum('m', 'out'), src={})",
            "KeyError",
            "no column 'h'",
        ),
        (
            (
                "message_passing(flow, fn.copy_u('h', 'm'), fn.sum('m', 'h'), lambda n: "
                "None, src={'h': rows})"
            ),
            "TypeError",
            "must return a dict of columns, got NoneType None",
        ),
        (
            (
                "message_passing(flow, fn.copy_u('h', 'm'), fn.sum('m', 'h'), lambda n: "
                "{'x': torch.ones(9)}, src={'h': rows})"
            ),
            "ValueError",
            "one row per node, here 2",
        ),
        (
            (
                "message_passing(flow, fn.copy_u('h', 'm'), fn.sum('m', 'out'), lambda n: "
                "{'x': n.data['nope']}, src={'h': rows})"
            ),
            "KeyError",
            "no column 'nope' in layer 1, which has 'out'",
        ),
        ("batch.apply_layers(0, 3)", "TypeError", "func must be a function or module"),
        ("batch.apply_layers(0, lambda n: n.data.__setitem__('x', 1))", "TypeError", "return {'x'"),
        (
            "batch.flow_compute(0, fn.copy_u('feat', 'm'), fn.sum('m', 'h'), v=[1, 0, 1])",
            "ValueError",
            "v[2] names node 1 again",
        ),
        (
            "batch.flow_compute(0, fn.copy_u('feat', 'm'), fn.sum('m', 'h'), v=[99])",
            "IndexError",
            "v[0] is 99",
        ),
        (
            "batch.flow_send_and_recv(0, [1, 1], fn.copy_u('feat', 'm'), fn.sum('m', 'h'))",
            "ValueError",
            "edges[1] names edge 1 again",
        ),
        (
            "batch.apply_flows(0, fn.copy_u('feat', 'm'), edges=[99])",
            "IndexError",
            "edges[0] is 99",
        ),
        ("batch.apply_layers(0, lambda n: {}, v=[0, 0])", "ValueError", "v[1] names node 0 again"),
        (
            "batch.flow_compute(2, fn.copy_u('feat', 'm'), fn.sum('m', 'h'))",
            "IndexError",
            "flow 2 is out of range",
        ),
        (
            "batch.flow_compute(ALL, fn.copy_u('feat', 'm'), fn.sum('m', 'h'))",
            "TypeError",
            "one flow is computed at a time",
        ),
        ("batch.apply_layers(3, lambda n: {})", "IndexError", "layer 3 is out of range"),
        (
            "fn.u_mul_e('h', 3, 'm')",
            "TypeError",
            "rhs must be the name of a column, a str, got int 3",
        ),
        ("fn.copy_u(None, 'm')", "TypeError", "lhs must be the name of a column"),
        ("fn.sum(fn.copy_u('h', 'm'), 'h')", "TypeError", "message must be the name of a column"),
    ],
    "Graphs and frames": [
        (
            "Graph([0, 2, 1, 3], [0, 1, 2])",
            "ValueError",
            "indptr must not decrease, but indptr[1] is 2 and indptr[2] 1",
        ),
        (
            "Graph([0, 1, 2], [0, 1, 1])",
            "ValueError",
            "from 0 to the number of edges 3, got 0 to 2",
        ),
        (
            "Graph([0, 1, 4], [0, 1, 1])",
            "ValueError",
            "from 0 to the number of edges 3, got 0 to 4",
        ),
        (
            "Graph([1, 2, 3], [0, 1, 1])",
            "ValueError",
            "from 0 to the number of edges 3, got 1 to 3",
        ),
        ("Graph([], [])", "ValueError", "from 0 to the number of edges 0, got nothing"),
        ("Graph([0, 1], [-1])", "IndexError", "indices[0] is -1"),
        ("Graph([0], [0])", "ValueError", "number of edges 1"),
        (
            "Graph([0, 1], [0.0])",
            "TypeError",
            "indices must be integers, got ndarray of dtype float64",
        ),
        ("Graph([0.0, 1.0], [0])", "TypeError", "indptr must be integers"),
        ("Graph([0, 1], [False])", "TypeError", "indices must be integers"),
        ("Graph([0, True], [0])", "TypeError", "indptr must be integers, got a list with a bool"),
        ("Graph([[0, 1]], [0])", "ValueError", "indptr must be one-dimensional"),
        (
            "Graph([0, 1], np.array([2**64 - 1], np.uint64))",
            "ValueError",
            "beyond the largest 64-bit id",
        ),
        ("Graph([0, 2], [0, 0], edge_ids=[0])", "ValueError", "one entry per edge (2), got 1"),
        (
            "Graph([0, 2], [0, 0], edge_ids=[1, 1])",
            "ValueError",
            "permutation, but no edge has id 0",
        ),
        (
            "Graph([0, 2], [0, 0], edge_ids=[0, 2])",
            "IndexError",
            "edge_ids[1] is 2, but edge ids go from 0 to 1",
        ),
        (
            "Graph([0, 2], [0, 0], ndata={'x': torch.ones(2)})",
            "ValueError",
            "column 'x' must have 1 rows",
        ),
        (
            "Graph([0, 2], [0, 0], edata={'x': torch.ones(1)})",
            "ValueError",
            "column 'x' must have 2 rows",
        ),
        ("Graph.from_edges([0, 1], [1])", "ValueError", "one entry per edge, got 2 and 1"),
        (
            "Graph.from_edges([0, 3], [1, 1], num_nodes=3)",
            "IndexError",
            "src[1] is 3, but node ids go from 0 to 2",
        ),
        ("Graph.from_edges([0, 2], [1, -1], num_nodes=3)", "IndexError", "dst[1] is -1"),
        ("Graph.from_edges([0, -1], [1, 1])", "IndexError", "src[1] is -1"),
        (
            "Graph.from_edges([0], [0], num_nodes=0)",
            "IndexError",
            "src[0] is 0, but there is no node at all",
        ),
        ("Graph.from_edges([0], [0], num_nodes=-1)", "ValueError", "num_nodes must be at least 0"),
        ("Graph.from_edges(torch.tensor([0.5]), [0])", "TypeError", "src must be integers"),
        ("Graph.from_edges('ab', 'cd')", "TypeError", "src must be integers"),
        (
            "Graph.from_edges([0], [1], edata=torch.ones(1))",
            "TypeError",
            "columns must be a dict from names to columns, or a data frame, got Tensor",
        ),
        ("graph.in_edges([-1])", "IndexError", "v[0] is -1"),
        ("graph.in_edges([0.5])", "TypeError", "v must hold integer node ids"),
        (
            "graph.out_edges(torch.ones(20).bool())",
            "TypeError",
            "v must hold node ids, got a bool mask",
        ),
        ("graph.in_degrees(2)", "TypeError", "v must be a tensor, an array or a list"),
        ("graph.out_degrees([20])", "IndexError", "v[0] is 20"),
        (
            "graph.out_degrees(torch.ones(20).bool())",
            "TypeError",
            "v must hold node ids, got a bool mask",
        ),
        (
            "Graph.from_named_edges(['a'], ['b'], names=['a'])",
            "KeyError",
            "no node has the name 'b'; there are 1 names",
        ),
        (
            "Graph.from_named_edges(['a'], ['b'], names=['a', 'b', 'a'])",
            "ValueError",
            "every name once, but 'a' occurs more than once",
        ),
        (
            "Graph.from_named_edges(['a', None], ['b', 'c'])",
            "ValueError",
            "src[1] is None: a name is missing",
        ),
        (
            "Graph.from_named_edges(['a'], [float('nan')])",
            "ValueError",
            "dst[0] is nan: a name is missing",
        ),
        (
            "Graph.from_named_edges(['a', 'b'], ['a'])",
            "ValueError",
            "one entry per edge, got 2 and 1",
        ),
        (
            "Graph.from_named_edges('ab', ['a'])",
            "TypeError",
            "src must be a list of names, got str 'ab'",
        ),
        ("Graph.from_named_edges([['a']], ['a'])", "TypeError", "src[0] must be hashable"),
        (
            "Graph.from_named_edges([True], [1])",
            "ValueError",
            "all be True or False, or none, but True is one, and 1 is",
        ),
        (
            "Graph.from_named_edges([0], [1], names=[0, 1, np.False_])",
            "ValueError",
            "np.False_ is one, and 0 is not",
        ),
        ("graph.ndata['x']", "KeyError", "no column 'x'; the frame has 'feat', 'label'"),
        ("graph.ndata.pop('x')", "KeyError", "no column 'x'; the frame has 'feat', 'label'"),
        ("Frame(3).__delitem__('x')", "KeyError", "no column 'x'; the frame has no columns"),
        (
            "Frame(3).__setitem__(3, torch.ones(3))",
            "TypeError",
            "a column name must be a str, got int 3",
        ),
        ("Frame(1.0)", "TypeError", "num_rows must be an integer"),
        ("Frame(True)", "TypeError", "num_rows must be an integer"),
        ("Frame(None)", "TypeError", "num_rows must be an integer"),
        ("Frame(2).set_initializer(3)", "TypeError", "function of"),
        (
            "Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0], [-1])})",
            "IndexError",
            "dst of edges[('a', 'r', 'a')][0] is -1",
        ),
        (
            "Graph.typed({'a': 2}, {('a', '', 'a'): ([0], [0])})",
            "ValueError",
            "the name of a relation must not be empty",
        ),
        (
            "Graph.typed({'a': 2}, {('a', 'r', 'a'): ([0], [0], {'w': torch.ones(2)})})",
            "ValueError",
            "column 'w'",
        ),
        ("Graph.typed({'a': 2}, [])", "TypeError", "edges must be a dict from triples"),
        ("Graph.typed([], {})", "TypeError", "nodes must be a dict from names"),
        ("Graph.typed({}, {})", "ValueError", "nodes must have a type at least"),
        ("Graph.typed({'a': -1}, {})", "ValueError", "nodes['a'] must be at least 0"),
        (
            "Graph.typed({'a': {'x': torch.ones(2), 'y': torch.ones(3)}}, {})",
            "ValueError",
            "column 'y' must have 2 rows",
        ),
        ("Graph.typed({1: 2}, {})", "TypeError", "a node type must be a string"),
        (
            "Graph.typed({'a': {'num_nodes': 3}}, {})",
            "TypeError",
            "or a dict of columns, but 'num_nodes' is no column",
        ),
        (
            (
                "Graph.typed({'a': 1}, {('a', 'r', 'a'): ([], []), ('a', 'rev_r', 'a'): "
                "([], [])}, reverse=True)"
            ),
            "ValueError",
            "which edges has already",
        ),
        (
            (
                "Graph.typed({'a': 2, 'b': 2}, {('a', 'r', 'a'): ([0], [1]), ('a', 'r', "
                "'b'): ([0], [1])}).relations['r']"
            ),
            "ValueError",
            "2 relations have the name 'r': name it by a triple, ('a', 'r', 'a')",
        ),
        (
            "graph.relations['b', 'r', 'a']",
            "KeyError",
            "no relation ('b', 'r', 'a'); there are ('node', 'edge', 'node')",
        ),
        (
            "Graph.typed({'a': 2, 'b': 2}, {}).nodes['b'].to_local([1])",
            "IndexError",
            "ids[0] is 1, but b node ids go from 2 to 3",
        ),
        ("Graph.open(folder / 'gone')", "FileNotFoundError", "does not exist"),
    ],
    "Operations on one flow": [
        (
            "ops.gather_src(structure, torch.ones(2))",
            "ValueError",
            "h must have 3 rows, one per source",
        ),
        (
            "ops.gather_dst(structure, torch.ones(3))",
            "ValueError",
            "h must have 2 rows, one per destination",
        ),
        (
            "ops.segment_reduce(structure, torch.ones(2))",
            "ValueError",
            "values must have 3 rows, one per edge",
        ),
        (
            "ops.aggregate(structure, torch.ones(2, 2), 'sum', torch.ones(3))",
            "ValueError",
            "h must have 3 rows, one per source, got shape (2, 2)",
        ),
        (
            "ops.aggregate(structure, rows, 'sum', torch.ones(8))",
            "ValueError",
            "weight must have 3 rows, one per edge, got shape (8,)",
        ),
        (
            "ops.aggregate(structure, rows, 'sum', torch.ones(3, 3))",
            "ValueError",
            "feature shapes of h, (4,), and of weight, (3,), do not broadcast",
        ),
        (
            "ops.aggregate(structure, torch.tensor(1.0))",
            "ValueError",
            "h must have 3 rows, one per source, got shape ()",
        ),
        (
            "ops.aggregate(structure, rows, [])",
            "ValueError",
            "reduce must name one reduction at least",
        ),
        (
            "ops.aggregate(structure, rows, ['mean', 'median'])",
            "ValueError",
            "reduce must be 'sum'",
        ),
        ("ops.aggregate(structure, rows, 3)", "TypeError", "reduce must be a name or a list"),
        (
            "ops.aggregate(structure, rows, ['mean', 'std'], torch.ones(3))",
            "ValueError",
            "'std' takes no weight",
        ),
        ("ops.aggregate(structure, rows.long(), 'var')", "TypeError", "'var' needs floating"),
        (
            "ops.aggregate_beside_own(structure, rows, ['mean'])",
            "TypeError",
            "name of one reduction",
        ),
        ("ops.message(structure, 'pow', 'u', rows, 'u', rows)", "ValueError", "op must be 'copy'"),
        (
            "ops.message(structure, 'copy', 'src', rows)",
            "ValueError",
            "kind must be 'u', 'v' or 'e', got 'src'",
        ),
        ("ops.aggregate(structure, sparse)", "TypeError", "multiply it by a weight matrix first"),
        (
            "ops.aggregate(structure, [[1.0]] * 3)",
            "TypeError",
            "h must be a tensor with one row per source, got list",
        ),
        ("ops.aggregate(structure, rows.to(torch.complex64))", "TypeError", "real numbers"),
        (
            "ops.aggregate(structure, rows.to('meta'))",
            "ValueError",
            "h is on meta, but the flow is on cpu",
        ),
        (
            (
                "ops.linear_sum((torch.ones(3, 2), torch.ones(4, 2)), (torch.ones(2, 2), "
                "torch.ones(4, 2)))"
            ),
            "ValueError",
            "same number of rows, got [3, 2]",
        ),
        ("ops.linear_sum((torch.ones(3, 2), torch.ones(4, 3)))", "ValueError", "x has 2 columns"),
        (
            (
                "ops.linear_sum((torch.ones(3, 2), torch.ones(1, 2)), (torch.ones(3, 2), "
                "torch.ones(4, 2)))"
            ),
            "ValueError",
            "same number of outputs, got [1, 4]",
        ),
        ("ops.linear_sum((torch.ones(3, 2), None))", "ValueError", "weight must be a tensor"),
        (
            "ops.sparse_linear(sparse, torch.ones(3, 40))",
            "ValueError",
            "x has 3 columns (shape (3, 3)), but weight (3, 40) takes 40",
        ),
        (
            "ops.sparse_linear(torch.eye(13).to_sparse_coo(), weight)",
            "TypeError",
            "x must be a dense or a sparse CSR tensor, got layout torch.sparse_coo",
        ),
        (
            ("ops.sparse_linear(torch.eye(3).to_sparse_csr().requires_grad_(), torch.ones(2, 3))"),
            "TypeError",
            "requires a gradient",
        ),
        (
            "ops.sparse_linear(sparse, torch.ones(3))",
            "ValueError",
            "weight must be a tensor of shape",
        ),
        (
            "ops.join_rows(structure, [torch.ones(1)] * 3)",
            "ValueError",
            "one row per node of the buckets [1, 1], got [1, 1, 1]",
        ),
        (
            "ops.join_rows(structure, [torch.ones(1)])",
            "ValueError",
            "one row per node of the buckets [1, 1], got [1]",
        ),
        (
            "ops.join_rows(structure, [torch.ones(1), torch.ones(2)])",
            "ValueError",
            "one row per node of the buckets [1, 1], got [1, 2]",
        ),
    ],
    "Convolutions and models": [
        (
            "nn.GraphConv(2, 2, norm='left')",
            "ValueError",
            "norm must be 'right', 'both' or 'none', got 'left'",
        ),
        (
            "nn.GraphConv(2, 2, degrees='whole')",
            "ValueError",
            "degrees must be 'sampled' or 'parent'",
        ),
        (
            "nn.SAGEConv(2, 2, aggregator='lstm')",
            "ValueError",
            "aggregator must be 'mean', 'gcn' or 'pool'",
        ),
        (
            "nn.SAGEConv(2, 2, aggregator='pool', order='transform')",
            "ValueError",
            "a maximum is not linear",
        ),
        (
            "nn.SAGEConv(2, 2, order='first')",
            "ValueError",
            "order must be 'auto', 'aggregate' or 'transform'",
        ),
        (
            "nn.SAGEConv(2, 2, aggregator='pool', weighted=True)",
            "ValueError",
            "weighted=True needs aggregator='mean', got 'pool'",
        ),
        (
            "nn.SAGEConv(4, 4, aggregator='pool').flops(flow)",
            "ValueError",
            "one order; count operations with nn.flop_counter",
        ),
        (
            "nn.GINConv(mlp, aggregator='min')",
            "ValueError",
            "aggregator must be 'sum', 'mean' or 'max'",
        ),
        (
            "nn.GINConv(mlp, aggregator='mean', weighted=True)",
            "ValueError",
            "weighted=True needs aggregator='sum', got 'mean'",
        ),
        ("nn.GATConv(2, 3, 0)", "ValueError", "heads must be at least 1, got 0"),
        ("nn.GATv2Conv(2, 0)", "ValueError", "out_features must be at least 1, got 0"),
        ("nn.RGCNConv(2, 3, 0)", "ValueError", "num_relations must be at least 1, got 0"),
        ("nn.RGCNConv(2, 3, 2, num_bases=0)", "ValueError", "num_bases must be at least 1, got 0"),
        (
            "nn.RGCNConv(8, 6, 2, num_blocks=3)",
            "ValueError",
            "num_blocks needs widths that are multiples",
        ),
        ("nn.RGCNConv(8, 6, 2, num_blocks=2, num_bases=2)", "ValueError", "and no num_bases"),
        ("nn.SAGEConv(0, 3)", "ValueError", "in_features must be at least 1, got 0"),
        ("nn.GATConv(0, 3)", "ValueError", "in_features must be at least 1, got 0"),
        ("nn.PropagationConv(0, 3)", "ValueError", "in_features must be at least 1, got 0"),
        ("nn.GCN(5, 4, 3, 0)", "ValueError", "num_layers must be at least 1, got 0"),
        ("nn.GraphSAGE(0, 4, 3)", "ValueError", "in_features must be at least 1, got 0"),
        (
            "nn.GCN(2, 3, 4, norm='group')",
            "ValueError",
            "norm must be 'batch', 'layer' or None, got 'group'",
        ),
        (
            "nn.GCN(2, 3, 4, jumping='sum')",
            "ValueError",
            "jumping must be 'cat' or 'max', got 'sum'",
        ),
        (
            "nn.GAT(2, 5, 4, heads=2)",
            "ValueError",
            "hidden must be a multiple of heads, got hidden=5, heads=2",
        ),
        (
            "nn.GCN(2, 3, 2, activation='relu')",
            "TypeError",
            "activation must be a function, such as torch.relu",
        ),
        (
            "nn.FlowModel([conv], residual=True)",
            "ValueError",
            "need widths: 2 numbers for 1 convolutions",
        ),
        ("nn.FlowModel([conv], norm='layer', widths=[2])", "ValueError", "outputs; got 1"),
        (
            "nn.FlowModel([conv], jumping='cat', widths=[4, 4])",
            "ValueError",
            "jumping needs out_features",
        ),
        ("nn.FlowModel([])", "ValueError", "at least one convolution"),
        ("nn.GINConv(torch.relu)", "TypeError", "mlp must be a torch.nn.Module, got"),
        ("nn.GINEConv(torch.relu, 2)", "TypeError", "mlp must be a torch.nn.Module, got"),
        ("nn.SAGEConv('a', 3)", "TypeError", "in_features must be an integer, got str 'a'"),
        ("nn.RGCN(4, 8, 3)", "TypeError", "RGCNConv: missing a required argument: 'num_relations'"),
        (
            "nn.RGCN(4, 8, 3, num_relations=2, type='kind')",
            "TypeError",
            "RGCNConv got an unexpected keyword argument 'type'",
        ),
        (
            "nn.inference(torch.nn.Linear(2, 2), graph, feat)",
            "ValueError",
            "must hold one FlowModel, got 0 in Linear",
        ),
        (
            "nn.inference(lambda batch, h: h, graph, feat)",
            "TypeError",
            "model must be a torch.nn.Module, got function",
        ),
        (
            "model(graph, feat)",
            "TypeError",
            ("whole graph use model.inference(graph, x), for one flow model.convs[i](flow, h)"),
        ),
        ("model(batch.flows[0], feat)", "TypeError", "got Flow(0->1: "),
        (
            "model.inference(feat, graph)",
            "TypeError",
            "a Graph, a view of one or a Propagation first",
        ),
        ("model.inference(batch, feat)", "TypeError", "for a batch call model(batch, h)"),
        (
            "model.inference(graph, feat, nodes=[0, 20])",
            "IndexError",
            "nodes[1] is 20, but node ids go from 0 to 19",
        ),
        ("model.inference(graph, feat, nodes=torch.ones(20).bool())", "TypeError", "bool mask"),
        (
            "model.inference(graph, feat[1:])",
            "ValueError",
            "h must have 20 rows, one per node of the graph, got shape",
        ),
        (
            "model.inference(graph, np.ones((20, 4)))",
            "TypeError",
            "h must be a tensor with a row per node",
        ),
        ("model(batch, 'x')", "TypeError", "h must be a tensor with a row per node"),
        (
            "model.inference(graph, torch.eye(20, 4).to_sparse())",
            "TypeError",
            "sparse CSR, got layout torch.sparse_coo",
        ),
        ("model(batch, torch.ones(21, 4))", "ValueError", "take x[batch.layers[0].parent_nid]"),
        (
            "nn.SAGEConv(2, 2)(feat, None)",
            "TypeError",
            "call SAGEConv as conv(flow, h) or conv(batch, i, h)",
        ),
        ("conv(batch, feat)", "TypeError", "conv(batch, (i, j), h)"),
        (
            "conv(flow, torch.ones(3, 5))",
            "ValueError",
            "GraphConv takes rows of width 4 (in_features), got shape (3, 5)",
        ),
        (
            "nn.GATConv(4, 3)(flow, rows, torch.ones(3, 2))",
            "TypeError",
            "make it with edge_features=",
        ),
        (
            "nn.GINConv(mlp)(batch, 0, torch.ones(batch.layer_sizes[0], 4).to_sparse_csr())",
            "TypeError",
            "h is a sparse matrix",
        ),
        (
            (
                "nn.TypedConv({'edge': nn.SAGEConv(4, 4)})(batch, 0, "
                "torch.ones(batch.layer_sizes[0], 3))"
            ),
            "ValueError",
            "columns",
        ),
        (
            "nn.RGCNConv(4, 3, 3)(flow, rows, torch.ones(3))",
            "TypeError",
            "must hold one integer per edge",
        ),
        (
            "nn.RGCNConv(4, 3, 3)(flow, rows, torch.tensor([0, 1, 3]))",
            "ValueError",
            "'type' must be 0 to 2, but edge 2 has 3",
        ),
        (
            "nn.RGCNConv(4, 3, 3)(flow, rows, torch.tensor([0, -1, 2]))",
            "ValueError",
            "'type' must be 0 to 2, but edge 1 has -1",
        ),
        ("nn.RGCNConv(4, 3, graph.schema)(flow, rows)", "ValueError", "belongs to no graph"),
        (
            (
                "nn.RGCNConv(4, 3, Schema({'a': 2}, {('a', 'r', 'a'): 3}))(batch, 0, "
                "torch.ones(batch.layer_sizes[0], 4))"
            ),
            "ValueError",
            "is for the relations",
        ),
        ("nn.TypedConv({'edge': 3})", "TypeError", "convs['edge'] must be a convolution"),
        (
            "nn.TypedConv({'edge': nn.SAGEConv(2, 2, weighted=True)})",
            "ValueError",
            "count the edges of all relations",
        ),
        (
            "nn.TypedConv({'edge': nn.GraphConv(2, 2, norm='both')})",
            "ValueError",
            "count the edges of all relations",
        ),
        (
            "nn.TypedConv({'wrote': conv})(batch, 0, torch.ones(batch.layer_sizes[0], 4))",
            "KeyError",
            "no relation 'wrote'",
        ),
        (
            (
                "nn.TypedConv({'edge': conv, ('node', 'edge', 'node'): conv})(batch, 0, "
                "torch.ones(batch.layer_sizes[0], 4))"
            ),
            "ValueError",
            "name every relation once",
        ),
        (
            "nn.TypedConv({'edge': nn.SAGEConv(4, 4)})(flow, rows)",
            "ValueError",
            "belongs to no graph",
        ),
        ("nn.HGTConv(8, 6, graph.schema, heads=4)", "ValueError", "a multiple of heads=4"),
        ("nn.HGTConv(8, 6, Schema({'a': 2}, {}))", "ValueError", "schema have a relation"),
        ("nn.HGTConv(8, 6, 3)", "TypeError", "schema must be a Schema"),
        (
            "nn.HGTConv(8, 6, graph.schema)(batch, 0, torch.ones(batch.layer_sizes[0], 7))",
            "ValueError",
            "takes rows of width 8",
        ),
        ("nn.HGTConv(8, 6, graph.schema)(batch, 0, torch.ones(1, 8))", "ValueError", "h must have"),
        (
            (
                "nn.HGTConv(8, 6, graph.schema)(batch, 0, torch.ones(batch.layer_sizes[0], "
                "8).to_sparse_csr())"
            ),
            "ValueError",
            "h must be dense",
        ),
        (
            (
                "nn.HGTConv(8, 6, Schema({'a': 2, 'node': 1}, {('node', 'edge', 'node'): "
                "1}))(batch, 0, torch.ones(batch.layer_sizes[0], 8))"
            ),
            "ValueError",
            "another schema",
        ),
        (
            (
                "nn.HGTConv(8, 6, graph.schema, edge_time='age')(batch, 0, "
                "torch.ones(batch.layer_sizes[0], 8))"
            ),
            "KeyError",
            "no column 'age'",
        ),
        (
            (
                "nn.HGTConv(8, 6, graph.schema, edge_time='age')(batch, 0, "
                "torch.ones(batch.layer_sizes[0], 8), torch.ones(99))"
            ),
            "ValueError",
            "'age' must have",
        ),
        (
            (
                "nn.HGTConv(8, 6, graph.schema)(batch, 0, torch.ones(batch.layer_sizes[0], "
                "8), torch.ones(3))"
            ),
            "TypeError",
            "edge_time",
        ),
        ("nn.TypedLinear([3], 6)", "TypeError", "widths must be a dict"),
        ("nn.TypedLinear({'a': 0}, 6)", "ValueError", "widths['a'] must be at least 1"),
        ("nn.TypedLinear({'a': 'table'}, 6)", "TypeError", "widths['a']"),
        ("nn.TypedLinear({'a': 3}, 6, column=3)", "TypeError", "column must be"),
        ("nn.TypedLinear({'a': 3}, 6)(batch)", "ValueError", "widths has no node type 'node'"),
        (
            "nn.TypedLinear({'node': 5}, 6, column='feat')(batch)",
            "ValueError",
            "'node' takes rows of width 5",
        ),
        (
            "nn.TypedLinear({'node': torch.nn.Embedding(20, 5)}, 6)(batch)",
            "ValueError",
            "rows of 'node' must be 6 wide",
        ),
        ("nn.TypedLinear({'node': 4}, 6)(batch)", "KeyError", "no column 'x'"),
        (
            "nn.TypedLinear({'node': 4}, 6)(torch.ones(2))",
            "TypeError",
            "the argument of TypedLinear must be",
        ),
        ("nn.TypedModel([conv], [], 3)", "TypeError", "encoder must be a TypedLinear"),
        ("nn.TypedModel(4, [], 3)", "ValueError", "convs must hold at least one"),
        ("nn.TypedModel(4, [conv], 0)", "ValueError", "out_features must be at least 1"),
        (
            "nn.TypedModel(4, [conv], 2)(graph, feat)",
            "TypeError",
            "call TypedModel as model(batch, h)",
        ),
        (
            "nn.TypedModel(4, [conv], 2)(batch, torch.ones(batch.layer_sizes[0], 4))",
            "ValueError",
            "needs batches of 1 flows",
        ),
        ("nn.NodeDropout(1.0)", "ValueError", "p must be"),
        ("nn.NodeDropout(-0.1)", "ValueError", "p must be"),
        ("nn.NodeDropout('half')", "TypeError", "p must be a number"),
        ("nn.NodeDropout(0.5, 1.5)", "TypeError", "seed must be an integer"),
        (
            "nn.NodeDropout()(rows, range(3), layer=0, step=-1)",
            "ValueError",
            "step must be at least 0, got -1",
        ),
        (
            "nn.NodeDropout()(rows, range(3), layer=0.5, step=0)",
            "TypeError",
            "layer must be an integer",
        ),
        (
            "nn.NodeDropout()(rows, [1], layer=0, step=0)",
            "ValueError",
            "h must have 1 rows, one per entry",
        ),
        ("nn.NodeDropout()(rows, [0, 1, -1], layer=0, step=0)", "IndexError", "nodes[2] is -1"),
        ("nn.NodeDropout()(rows, [0.5, 1, 2], layer=0, step=0)", "TypeError", "nodes must"),
        ("nn.NodeDropout()(sparse, range(3), layer=0, step=0)", "ValueError", "h must be dense"),
        (
            "nn.NodeDropout()(rows, flow.src_layer, layer=0, step=0)",
            "ValueError",
            "no parent nodes",
        ),
        ("Propagation(graph.view(weight='no'))", "KeyError", "no"),
        ("Propagation(graph.view('up'))", "ValueError", "direction must be 'in', 'out' or 'both'"),
        ("Propagation(graph)(feat[:2])", "ValueError", "rows, one per node of the graph"),
        ("Propagation(graph)(feat, [29])", "IndexError", "nodes[0] is 29"),
        ("Propagation(graph).ranges(0)", "ValueError", "chunk_size must be at least 1"),
    ],
    "Decoders and losses of links": [
        (
            "nn.ComplEx(4, 3)(torch.ones(2, 5), torch.ones(2, 4), 0)",
            "ValueError",
            "src must have rows of width 4, got shape (2, 5)",
        ),
        (
            "nn.ComplEx(4, 3).n3(torch.ones(2, 4), 0, torch.ones(2, 5))",
            "ValueError",
            "dst must have rows of width 4",
        ),
        (
            "nn.ComplEx(4, 3).score_all(torch.ones(2, 4), 0, torch.ones(3))",
            "ValueError",
            "table must have rows of width 4, got shape (3,)",
        ),
        (
            "nn.ComplEx(4, 3).score_all(torch.ones(4), 0, torch.ones(2, 4))",
            "ValueError",
            "give one row x as x.unsqueeze(0)",
        ),
        (
            "nn.ComplEx(4, 3)(torch.ones(2, 4), torch.ones(2, 4).long(), 0)",
            "TypeError",
            "dst must be a floating-point tensor",
        ),
        (
            "nn.ComplEx(4, 3)(torch.ones(2, 4), torch.ones(2, 4))",
            "ValueError",
            "relation is missing: ComplEx has 3 relations",
        ),
        (
            "nn.ComplEx(4, 3)(torch.ones(2, 4), torch.ones(2, 4), torch.tensor([0, 3]))",
            "IndexError",
            "relation holds 3, but the relations of ComplEx",
        ),
        (
            "nn.TransE(4, inverse=True)(torch.ones(2, 4), torch.ones(2, 4), -1)",
            "IndexError",
            "relation holds -1",
        ),
        (
            "nn.ComplEx(4, 3)(torch.ones(2, 4), torch.ones(2, 4), torch.tensor([0.0, 1.0]))",
            "TypeError",
            "relation must hold integer ids",
        ),
        (
            "nn.ComplEx(4, 3).score_all(torch.ones(2, 4), 0, torch.ones(2, 4), side='head')",
            "ValueError",
            "side must be 'destination' or 'source'",
        ),
        ("nn.DistMult(4, 0)", "ValueError", "num_relations must be at least 1, got 0"),
        ("nn.MLPDecoder(4, num_layers=1)", "ValueError", "num_layers must be at least 2"),
        ("nn.ComplEx(5)", "ValueError", "width must be even"),
        ("nn.RotatE(5)", "ValueError", "width must be even"),
        ("nn.TransE(4, norm=3)", "ValueError", "norm must be 1 or 2, got 3"),
        ("nn.RotatE(4, norm=3)", "ValueError", "norm must be 1 or 2, got 3"),
        (
            "nn.softmax_loss(scores, torch.ones(2, 3))",
            "ValueError",
            "negative must have shape [..., K] for positive [...], got (2, 3)",
        ),
        (
            "nn.logistic_loss(scores, torch.ones(2, 3))",
            "ValueError",
            "negative must have shape [..., K]",
        ),
        (
            "nn.softmax_loss(scores, torch.ones(3, 2), reduction='avg')",
            "ValueError",
            "reduction must be 'mean', 'sum' or 'none', got 'avg'",
        ),
        (
            "nn.margin_loss(scores, torch.ones(3, 2), weight=torch.ones(2))",
            "ValueError",
            "weight must have shape (3,)",
        ),
        (
            "nn.self_adversarial_loss(scores.long(), torch.ones(3, 2))",
            "TypeError",
            "positive must be a floating-point tensor",
        ),
        ("nn.margin_loss(scores, torch.ones(3, 2), margin=-1)", "ValueError", "at least 0"),
        (
            "nn.self_adversarial_loss(scores, torch.ones(3, 2), temperature=float('nan'))",
            "ValueError",
            "at least 0",
        ),
        (
            "nn.one_vs_all_loss(torch.ones(2, 3), torch.tensor([0, 3]))",
            "IndexError",
            "answers holds 3, but candidates are 0 to 2",
        ),
        (
            "nn.one_vs_all_loss(torch.ones(2, 3), torch.tensor([0]))",
            "ValueError",
            "answers must have shape (2,), one per row",
        ),
        (
            "nn.one_vs_all_loss(torch.ones(2, 3), torch.ones(1, 3).bool())",
            "ValueError",
            "answers must have the shape of scores",
        ),
        (
            "nn.one_vs_all_loss(torch.ones(2, 3), torch.zeros(2, 3).bool())",
            "ValueError",
            "but one has none; use binary=True",
        ),
        (
            "nn.one_vs_all_loss(torch.ones(2, 3), torch.ones(2, 3))",
            "TypeError",
            "answers must be integers or bool",
        ),
        (
            "nn.one_vs_all_loss(torch.ones(2, 3), torch.tensor([0, 1]), label_smoothing=1)",
            "ValueError",
            "below 1, got 1",
        ),
        ("nn.one_vs_all_loss(torch.tensor(1.0), torch.tensor([0]))", "ValueError", "got a number"),
    ],
    "History and control variates": [
        (
            "History(graph, {1: 4}, inputs=np.ones((20, 4)))",
            "TypeError",
            "inputs must be a dense or sparse CSR tensor, got",
        ),
        (
            "History(graph, {1: 4}, inputs=feat.to_sparse_coo())",
            "TypeError",
            "inputs must be a dense or sparse CSR tensor, got",
        ),
        (
            "History(graph, {1: 4}, inputs=feat[:, 0])",
            "ValueError",
            "inputs must have a row per node, floats [20, width], got torch.float32 (20,)",
        ),
        (
            "History(graph, {1: 4}, inputs=feat.long())",
            "ValueError",
            "inputs must have a row per node",
        ),
        (
            "History(graph, {1: 4}, inputs=feat.clone().requires_grad_())",
            "ValueError",
            "inputs that are learned change",
        ),
        ("History(graph, {1: 4}, inputs=feat / 0)", "ValueError", "inputs must be finite"),
        ("history.write(1, [2, 2], torch.ones(2, 4))", "ValueError", "holds a node twice"),
        (
            "history.write(1, [2], torch.ones(1, 3))",
            "ValueError",
            "must have shape (1, 4), got (1, 3)",
        ),
        (
            "history.write(1, [2], torch.full((1, 4), torch.nan))",
            "ValueError",
            "must be finite in torch.float32, but row 0 is not",
        ),
        (
            "history.write(2, [2], torch.ones(1, 4))",
            "ValueError",
            "layer 2 is no layer of this history, which has [1]",
        ),
        ("history.write(1, [20], torch.ones(1, 4))", "IndexError", "nodes[0] is 20"),
        ("history.pull(batch.with_parent(None))", "ValueError", "another graph"),
        ("history.push(batch)", "ValueError", "no column 'h' in any history layer"),
        (
            "History(graph, nn.VRGCN(3, 4, 2, num_layers=1).history_widths)",
            "ValueError",
            "widths has no layer; a model of one layer",
        ),
        (
            "history.write(1, [0], [[1.0]])",
            "TypeError",
            "rows of layer 1 must be a tensor, got list",
        ),
        (
            "history.write(1, [0, 1], torch.tensor([[0.0] * 4, [torch.inf] * 4]))",
            "ValueError",
            "row 1 is not",
        ),
        (
            "history.push(FullSampler(Graph.from_edges([0], [1]), 2)([1]))",
            "ValueError",
            "another graph than the history",
        ),
        (
            "History(graph, {1: 1}, folder=folder, device='meta')",
            "ValueError",
            "a history in files lies on the CPU",
        ),
        ("History(graph, {1: 2**40})", "ValueError", "TB, and this machine has"),
        (
            "History(graph, {1: 9}, inputs=feat[:3])",
            "ValueError",
            "inputs must have a row per node",
        ),
        ("History(graph, {0: 4}, inputs=feat)", "ValueError", "layer 0 has a history of its own"),
        (
            "ControlVariateSampler('history', [1])",
            "TypeError",
            "history must be a History, got str",
        ),
        ("ControlVariateSampler(graph, [1])", "TypeError", "history must be a History, got Graph"),
        (
            "ControlVariateSampler(history, [1], missing='none')",
            "ValueError",
            "missing must be 'zero', 'mask' or 'refuse', got 'none'",
        ),
        (
            "nn.VRGCN(5, 4, 3, estimator='best')",
            "ValueError",
            "estimator must be 'cv', 'cvd' or 'ns', got 'best'",
        ),
        (
            "nn.VRGCN(4, 4, 2)(FullSampler(graph, 2)(range(20)), feat)",
            "ValueError",
            "make the history with inputs=x",
        ),
        (
            "control_variates.control_variate(batch.flows[0], rows)",
            "ValueError",
            "the batch has no column 'h_0'; sample with a ControlVariateSampler",
        ),
        (
            "control_variates.control_variate_dropout(batch.flows[0], rows, rows)",
            "ValueError",
            "no column 'scale'",
        ),
        (
            "vr_model(batch)",
            "TypeError",
            "h is missing: this model reads the rows of the input layer",
        ),
        (
            "vr_model.convs[0].combine(rows, flow, None)",
            "TypeError",
            "h is missing: this convolution reads a node's own row",
        ),
        (
            "Updater(vr_model, history, feat).load_state_dict({})",
            "ValueError",
            "state must be what state_dict returned",
        ),
        (
            "Updater(vr_model, history, feat).load_state_dict({'calls': -1})",
            "ValueError",
            "state['calls'] must be at least 0",
        ),
        (
            "Updater(vr_model, history, feat).load_state_dict(3)",
            "ValueError",
            "state must be what state_dict returned",
        ),
    ],
    "Random numbers": [
        ("random.Random(1).uniform([0.5])", "TypeError", "ids must hold integer"),
        ("random.Random(1).uniform([True])", "TypeError", "a bool in it"),
        ("random.Random(1).uniform([1, -2])", "IndexError", "ids[1] is -2"),
        ("random.Random(1).uniform(3)", "TypeError", "ids must be"),
        ("random.Random(1).uniform([3], draw=-1)", "ValueError", "draw must be at least 0"),
        ("random.Random(1).uniform([3], draw=0.5)", "TypeError", "draw must be an integer"),
        ("random.Random(1).integers([3], 0)", "ValueError", "bounds must be at least 1"),
        ("random.Random(1).integers([3, 4], [5, -1])", "ValueError", "bounds must be at least 1"),
        ("random.Random(1).integers([3], 2.5)", "TypeError", "bounds must be integers"),
        ("random.Random(1).integers([3], True)", "TypeError", "bounds must be integers"),
        (
            "random.Random(1).integers([3], 2**63)",
            "ValueError",
            "bounds must be at least 1 and below",
        ),
        ("random.Random(1).integers([3], 2**64)", "TypeError", "bounds must be integers"),
        ("random.Random(1).integers([3, 4], [5, 5, 5])", "ValueError", "one per id"),
        ("random.Random(1).integers([3], 2, draw=1.5)", "TypeError", "draw must be an integer"),
        ("random.Random(1).permutation(-1)", "ValueError", "size must be at least 0"),
        ("random.Random(1).permutation(2.5)", "TypeError", "size must be an integer"),
        ("random.Random(1.5)", "TypeError", "key must be an integer"),
    ],
}
