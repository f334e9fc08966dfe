"""Every family of samplers, each bound to one graph: what must hold for all of them is tested over
this list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from _support import sampler_reference
from _support.views import viewed
from nodeflow import (
    BernoulliSampler,
    ClusterSampler,
    FastGCNSampler,
    FullSampler,
    Graph,
    LaborSampler,
    LadiesSampler,
    LayerSampler,
    LinkSampler,
    NeighborSampler,
    NodeFlow,
    RandomWalkSampler,
    SaintSampler,
    ShadowSampler,
    TemporalNeighborSampler,
)
from nodeflow.sampling.base import SamplerBase

NODES = 60
EDGES = 500


def graph_of_all() -> Graph:
    """A multigraph with self-loops and isolated nodes, and the edge columns that samplers read."""
    graph = sampler_reference.random_graph(5, NODES, EDGES)
    rng = np.random.default_rng(6)
    graph.edata["w"] = rng.random(EDGES).astype(np.float32)
    graph.edata["p"] = np.where(rng.random(EDGES) < 0.2, 0, rng.exponential(size=EDGES)).astype(
        np.float32
    )
    graph.edata["type"] = rng.integers(3, size=EDGES)
    graph.edata["time"] = rng.integers(20, size=EDGES)
    graph.edata["old"] = rng.random(EDGES) < 0.7
    graph.ndata["x"] = torch.arange(NODES * 2.0).view(NODES, 2)
    return graph


def degrees(candidates: Any, step: Any) -> torch.Tensor:
    """A score for adaptive sampling; at module level, so that it can be pickled."""
    return 1.0 + candidates.nid.double() % 3


Make = Callable[..., SamplerBase]
LAYERED: dict[str, Make] = {
    "full": lambda g, **o: viewed(FullSampler, g, 2, **o),
    "neighbor": lambda g, **o: viewed(NeighborSampler, g, [2, 3], **o),
    "neighbor, replace": lambda g, **o: viewed(NeighborSampler, g, [2, 3], replace=True, **o),
    "neighbor, reuse": lambda g, **o: viewed(NeighborSampler, g, [2, 3], reuse=True, **o),
    "neighbor, disjoint": lambda g, **o: viewed(NeighborSampler, g, [2, 3], disjoint=True, **o),
    "neighbor, prob": lambda g, **o: viewed(NeighborSampler, g, [2, 3], prob="p", **o),
    "neighbor, prob, replace": lambda g, **o: viewed(
        NeighborSampler, g, [2, 3], prob="p", replace=True, **o
    ),
    "neighbor, filter": lambda g, **o: viewed(NeighborSampler, g.view(where="old"), [2, 3], **o),
    "neighbor, types": lambda g, **o: viewed(
        NeighborSampler, g, [1, {0: 2, 1: -1, 2: 1}], edge_type="type", **o
    ),
    "bernoulli": lambda g, **o: viewed(BernoulliSampler, g, [2, 3], **o),
    "bernoulli, rates": lambda g, **o: viewed(BernoulliSampler, g, rates=[0.3, 0.6], **o),
    "labor": lambda g, **o: viewed(LaborSampler, g, [2, 3], **o),
    "labor, sequential": lambda g, **o: viewed(LaborSampler, g, [2, 3], method="sequential", **o),
    "labor, 1": lambda g, **o: viewed(LaborSampler, g, [2, 3], iterations=1, **o),
    "labor, 1, sequential": lambda g, **o: viewed(
        LaborSampler, g, [2, 3], iterations=1, method="sequential", **o
    ),
    "labor, dependent layers": lambda g, **o: viewed(
        LaborSampler, g, [2, 3], layer_dependency=True, **o
    ),
    "layer": lambda g, **o: viewed(LayerSampler, g, [6, 5], draw="systematic", **o),
    "layer, score": lambda g, **o: viewed(LayerSampler, g, [6, 5], score=degrees, **o),
    "fastgcn": lambda g, **o: viewed(FastGCNSampler, g, [20, 15], **o),
    "fastgcn, poisson": lambda g, **o: viewed(FastGCNSampler, g, [20, 15], draw="poisson", **o),
    "ladies": lambda g, **o: viewed(LadiesSampler, g, [6, 5], **o),
    "ladies, poisson": lambda g, **o: viewed(LadiesSampler, g, [6, 5], draw="poisson", **o),
    "ladies, systematic": lambda g, **o: viewed(LadiesSampler, g, [6, 5], draw="systematic", **o),
}
"""Samplers whose weighted sums are unbiased for the sums that ``estimand()`` gives, and that take
``weight``.

One entry per setting that takes another path in the code.
"""

OTHERS: dict[str, Make] = {
    "labor, hajek": lambda g, **o: viewed(LaborSampler, g, [2, 3], estimator="hajek", **o),
    "ladies, normalised": lambda g, **o: viewed(LadiesSampler, g, [6, 5], normalize=True, **o),
    "random walk": lambda g, **o: viewed(RandomWalkSampler, g, 2, 3, **o),
    "temporal": lambda g, **o: viewed(TemporalNeighborSampler, g, [2, 3], **o),
    "temporal, recent": lambda g, **o: viewed(
        TemporalNeighborSampler, g, [2, 3], strategy="recent", **o
    ),
    "saint, node": lambda g, **o: viewed(SaintSampler, g, 2, kind="node", budget=12, **o),
    "saint, edge": lambda g, **o: viewed(
        SaintSampler, g, 2, kind="edge", budget=8, coefficients="presampled", num_presamples=20, **o
    ),
    "saint, walk": lambda g, **o: viewed(
        SaintSampler, g, 2, kind="walk", budget=4, walk_length=2, num_presamples=20, **o
    ),
    "cluster": lambda g, **o: viewed(ClusterSampler, g, 2, np.arange(g.num_nodes) % 7, **o),
    "shadow": lambda g, **o: viewed(ShadowSampler, g, 2, depth=2, fanout=2, **o),
    "link": lambda g, **o: LinkSampler(
        viewed(NeighborSampler, g, [2, 3], **o), num_negatives=2, exclude="reverse"
    ),
}

FAMILIES = {**LAYERED, **OTHERS}

MODES: list[dict[str, Any]] = [
    {},
    {"replace": True},
    {"include_dst": False},
    {"include_dst": False, "replace": True},
    {"reuse": True},
    {"reuse": True, "replace": True},
    {"direction": "out"},
    {"direction": "out", "reuse": True},
    {"direction": "out", "include_dst": False},
]
"""Options that samplers of neighbours share, each together with those that take another path in the
code with it.
"""

CERTAIN = {"full", "temporal, recent", "cluster"}
"""Families that draw nothing at random: all batches of the same seeds are equal."""

CONSTANT = {
    "full", "neighbor", "neighbor, replace", "neighbor, reuse", "neighbor, disjoint", "neighbor, "
                                                                                      "filter",
    "bernoulli", "bernoulli, rates", "labor", "labor, sequential", "labor, dependent "
                                                                   "layers", "labor, hajek",
    "layer", "temporal", "temporal, recent", "shadow", "link",
}  # fmt: skip
"""Families whose weights are the same for all edges of a destination, so that a plain mean needs no
weights.
"""


def call_of(name: str) -> tuple[list[int], dict[str, Any]]:
    """Seeds, and further arguments, for a call of a family."""
    if name.startswith("saint"):
        return [7], {}
    if name == "cluster":
        return [3, 1, 4], {}
    if name.startswith("temporal"):
        return [5, 11, 5, 30], {"times": [10, 10, 4, 19]}
    return [5, 11, 5, 30], {}


def sampled(name: str, sampler: SamplerBase, **which: int) -> NodeFlow:
    seeds, more = call_of(name)
    return sampler(seeds, **more, **which)


def fingerprint(batch: NodeFlow) -> str:
    """SHA-256 of structure, ids, contexts, weights, seed index and all columns."""
    digest = hashlib.sha256(sampler_reference.fingerprint(batch).encode())
    for layer in batch.layers:
        if layer.context is not None:
            digest.update(layer.context.numpy().tobytes())
    for frame in (*batch.ldata, *batch.fdata):
        for column in sorted(frame):
            tensor = frame[column].detach()
            digest.update(
                f"{column}{tensor.dtype}{tuple(tensor.shape)}".encode() + tensor.numpy().tobytes()
            )
    return digest.hexdigest()


def golden(name: str) -> str:
    """The fingerprint of one batch of a family."""
    return fingerprint(sampled(name, FAMILIES[name](graph_of_all()), epoch=3))


def everything() -> dict[str, str]:
    """The fingerprint of one batch of every family."""
    return {name: golden(name) for name in FAMILIES}
