"""The same draws from every storage of a graph: 32-bit and 64-bit ids in memory, and arrays mapped from files.

The hashes in golden.json are those of 32-bit ids in memory, see test_everywhere.py.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from _support.sampler_families import FAMILIES, fingerprint, graph_of_all, sampled

from nodeflow import Graph
from nodeflow._runtime.mapped import file_of

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


SLOW = pytest.mark.slow  # every loop compiles once more for 64-bit ids; other tests have the most common loops


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
