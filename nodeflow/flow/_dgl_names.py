"""Names of DGL 0.4's NodeFlow that are others here; docs/coming-from-dgl.md has them all."""

HERE = {
    "apply_block": "apply_flows",
    "apply_layer": "apply_layers",
    "block_adjacency_matrix": "flows[i].to_torch_sparse() or flows[i].to_scipy()",
    "block_compute": "flow_compute",
    "block_edges": "flows[i].edges()",
    "block_eid": "flows(i)",
    "block_incidence_matrix": "flows[i].incidence(end)",
    "block_parent_eid": "flows[i].parent_eid",
    "block_size": "flow_sizes[i]",
    "blocks": "flows",
    "layer_in_degree": "in_degrees(i)",
    "layer_nid": "layers(i)",
    "layer_out_degree": "out_degrees(i)",
    "layer_parent_nid": "layers[i].parent_nid",
    "layer_size": "layer_sizes[i]",
    "num_blocks": "num_flows",
    "prop_flow": "forward",
    "register_apply_node_func": "register_layer_computation(i, update=...)",
    "register_message_func": "register_layer_computation(i + 1, message, reduce, update)",
    "register_reduce_func": "register_layer_computation(i + 1, message, reduce, update)",
}
