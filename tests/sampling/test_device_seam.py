"""Graphs whose arrays lie elsewhere or are wide, and what happens where memory does not suffice."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _support.sampler_families import FAMILIES, fingerprint, graph_of_all, sampled

from nodeflow import Graph
from nodeflow._core.runtime.mapped import file_of


def test_too_little_memory():
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
