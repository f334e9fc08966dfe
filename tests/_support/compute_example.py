"""A small NodeFlow that the tests of message passing share."""

import torch

from nodeflow import create_node_flow, flow_from_edges

SRC = [0, 1, 1, 2, 3, 0, 3]
DST = [0, 0, 0, 2, 2, 2, 3]
"""Destination 1 has no edge; there are two edges from 1 to 0; degrees are 3, 0, 3, 1."""


def make_batch(dtype=torch.float64):
    """Layers of 4, 4 and 2 nodes; a flow skips from 0 to 2."""
    low = flow_from_edges(SRC, DST, num_src=4, num_dst=4)
    high = flow_from_edges([0, 1, 2, 3, 3], [0, 0, 1, 1, 0], num_src=4, num_dst=2)
    skip = flow_from_edges([3, 2, 1], [0, 1, 1], num_src=4, num_dst=2)
    batch = create_node_flow({(0, 1): low, (1, 2): high, (0, 2): skip})
    generator = torch.Generator().manual_seed(1)
    batch.layers[0].data["h"] = torch.randn(4, 3, generator=generator, dtype=dtype)
    batch.layers[1].data["old"] = torch.randn(4, 3, generator=generator, dtype=dtype)
    batch.flows[0].data["w"] = torch.rand(7, generator=generator, dtype=dtype)
    return batch


def columns(batch):
    frames = [layer.data for layer in batch.layers] + [
        batch.flows[pair].data for pair in batch.flows.pairs()
    ]
    return [dict(frame) for frame in frames]


def same(before, after):
    return all(
        one.keys() == two.keys() and all(one[k] is two[k] for k in one)
        for one, two in zip(before, after, strict=True)
    )
