"""Graphs whose arrays lie elsewhere: a sampler in torch runs on a device, and stored arrays are
read as they are.
"""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from _support.sampler_families import FAMILIES, fingerprint, graph_of_all, sampled
from _support.sampler_reference import random_graph

from nodeflow import FullSampler, Graph, NodeFlow, NodeFlowLoader
from nodeflow._core.runtime.mapped import file_of
from nodeflow.flow import Flow, Layer
from nodeflow.ops import Structure
from nodeflow.sampling.base import SamplerBase


class TorchFull(SamplerBase):
    """One flow of full neighbourhoods, found and numbered by operations of torch on ``device``."""

    def __init__(self, graph, device):
        super().__init__(graph, 1)
        self.device = device
        arrays = (graph.csc()[0], graph.csc()[1])
        self._indptr, self._indices = (
            torch.tensor(array, device=device, dtype=torch.int64) for array in arrays
        )

    def _sample(self, seeds, keys):
        asked = torch.from_numpy(seeds).to(self.device)
        distinct, group = asked.unique(return_inverse=True)
        first = torch.full_like(distinct, len(asked)).scatter_reduce_(
            0, group, torch.arange(len(asked), device=self.device), "amin"
        )
        nodes = distinct[first.argsort()]
        index = (nodes == asked[:, None]).long().argmax(1)
        degrees = self._indptr[nodes + 1] - self._indptr[nodes]
        indptr = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
        row = torch.repeat_interleave(degrees)
        positions = (
            torch.arange(len(row), device=self.device) - indptr[row] + self._indptr[nodes[row]]
        )
        src = self._indices[positions]
        new = src[~torch.isin(src, nodes)].unique()
        lookup = torch.empty(self.graph.num_nodes, dtype=torch.int64, device=self.device)
        both = torch.cat([nodes, new])
        lookup[both] = torch.arange(len(both), device=self.device)
        layers = [Layer(len(both), both), Layer(len(nodes), nodes)]
        flow = Flow(Structure(indptr, lookup[src], len(both)), *layers, (0, 1))
        return NodeFlow(layers, [flow], parent=self.graph, seed_index=index)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_sampler_on_a_device(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU that torch can use")
    graph = random_graph(3, 40, 200)
    graph.ndata["x"] = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
    ours = TorchFull(graph, device)
    wanted = FullSampler(graph, 1)
    for batch, whole in zip(
        *(NodeFlowLoader(s, [7, 3, 7, 9, 1], batch_size=3) for s in (ours, wanted)), strict=True
    ):
        assert batch.back.parent_nid.device.type == batch.flows[0].indices.device.type == device
        assert batch.seeds[batch.seed_index].tolist() == whole.seeds[whole.seed_index].tolist()
        x, own = (
            graph.ndata["x"][b.front.parent_nid.cpu()].to(d)
            for b, d in ((batch, device), (whole, "cpu"))
        )
        found = batch.flows[0].aggregate(x, "mean")
        mean = whole.flows[0].aggregate(own, "mean")
        assert found.device.type == device
        torch.testing.assert_close(found[batch.seed_index].cpu(), mean[whole.seed_index])


def test_too_little_memory() -> None:
    """The message has the bytes that were asked for, and nothing half-made stays: a smaller batch
    is drawn as ever.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("the size of a process is read from /proc")
    program = """
import resource, torch
from nodeflow import Graph, NeighborSampler
ring = Graph.from_edges(range(64), [*range(1, 64), 0])
sampler = NeighborSampler(ring, [2**20], replace=True).in_torch()
before = sampler([3]).flows[0].parent_eid.sum()
held = 1024 * int(open("/proc/self/status").read().split("VmSize:")[1].split()[0])
resource.setrlimit(resource.RLIMIT_AS, (held + 2**28, held + 2**28))
try:
    sampler(range(64))
except RuntimeError as error:
    print(str(error).splitlines()[0])
assert sampler([3]).flows[0].parent_eid.sum() == before
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"allocate.* [0-9]+ bytes", done.stdout)


HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "golden.json").read_text())


def columns(graph):
    return {"ndata": dict(graph.ndata), "edata": dict(graph.edata)}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """The graph of all families with 64-bit ids, and with 32-bit ids in files."""
    graph = graph_of_all()
    folder = tmp_path_factory.mktemp("graph")
    indptr, indices, edge_ids = graph.csc()
    assert indices.dtype == edge_ids.dtype == np.int32
    ids = edge_ids.astype(np.int64)
    wide = Graph(indptr, indices.astype(np.int64), edge_ids=ids, copy=False, **columns(graph))
    arrays = {"indptr": indptr, "indices": indices, "edge_ids": edge_ids}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    opened = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays}
    mapped = Graph(**opened, **columns(graph))
    return {"64-bit": wide, "mapped": mapped}


def test_arrays_are_stored_as_given(graphs):
    assert [array.dtype for array in graphs["64-bit"].csc()] == [np.int64] * 3
    assert [array.dtype for array in graphs["mapped"].csc()] == [np.int64, np.int32, np.int32]
    assert all(file_of(array) is not None for array in graphs["mapped"].csc())


# every loop compiles once more for 64-bit ids; other tests have the most common loops
SLOW = pytest.mark.slow


@pytest.mark.parametrize("storage", [pytest.param("64-bit", marks=SLOW), "mapped"])
@pytest.mark.parametrize("name", FAMILIES)
def test_same_draws(name, storage, graphs):
    assert fingerprint(sampled(name, FAMILIES[name](graphs[storage]), epoch=3)) == GOLDEN[name]


def test_the_script_of_golden_values_keeps_present_ones():
    first = next(iter(FAMILIES))
    wanted = GOLDEN | {first: "kept"}
    del wanted["link"]
    script = runpy.run_path(str(HERE.parents[1] / "scripts" / "make_golden.py"))
    assert script["updated"](wanted | {"a family that is gone": "0"}) == GOLDEN | {first: "kept"}
