"""Golden values of NeighborSampler: drawn NodeFlows by their hash, for options that no family has.

The hashes fix the stream of random numbers: a change of one is a changelog entry, because users' seeds then mean
other batches.
"""

from __future__ import annotations

import pytest
import torch
from _support.sampler_reference import fingerprint, random_graph

from nodeflow import Graph, NeighborSampler

HASHES = {
    "resample": ({}, "8a4858aa07627c86f2fa1358d73e2efc2c905af75100e6ed2616938fd92828fa"),
    "replace": ({"replace": True}, "268a1d8341e7fbf54331ea95fbd1b239d56e7a59863828651c72ca9db8077bbd"),
    "neighbours only": ({"include_dst": False}, "b8b6e5c1e808c9a1313ae5d0446754b3459dbdb495433d71fe64b8599be66310"),
    "out": ({"direction": "out"}, "516ef360ca32536af0b636f147a0427b7bd8541e37fd318cd30687f239348a4f"),
    "reuse": ({"reuse": True}, "515e3d3405cf0585cc9bd6ff85fae98adb61da89232efe276284f6132f28916a"),
    "seed": ({"seed": 7}, "d03944261946a40bc679c623303e066d6d38f84e8e28c0a314f31d8c20ec244c"),
}


@pytest.mark.parametrize("name", HASHES)
def test_drawn_node_flows(name):
    options, expected = HASHES[name]
    batch = NeighborSampler(random_graph(1), [2, 3], **options)([5, 11, 5, 30])
    assert fingerprint(batch) == expected


def test_epoch_and_batch_number():
    sampler = NeighborSampler(random_graph(1), [2, 3])
    assert (
        fingerprint(sampler([5, 11, 30], epoch=2)) == "3f40b057e34d52b5a23e938f265c0835c7de9f8e4ae785c71f56e338b079de88"
    )
    assert (
        fingerprint(sampler([5, 11, 30], epoch=2, batch_number=9))
        == "09519ba600fe5164cbe5d66a26eb36f5e70230dd79c3c01ff532617fab2d0952"
    )


def test_hub():
    # a fanout beyond 32 goes through the hashed branch of the kernel
    graph = Graph.from_edges(torch.arange(1000), torch.zeros(1000, dtype=torch.int64))
    assert (
        fingerprint(NeighborSampler(graph, [100], seed=3)([0]))
        == "fee538b7463413c458b5e14ea2d2d5df751d234791b0617ac873549ec21fe852"
    )
