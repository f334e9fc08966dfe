"""Full passes that write outputs and inner layers into files give what they give in memory."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.graphs import random_graph, sparse_column
from _support.own_rows import OwnRows

from nodeflow import Graph, History, Updater, nn, transform
from nodeflow.nn import FlowModel
from nodeflow.storage import create

NODES = 60


def weighted_graph() -> Graph:
    graph = random_graph(2, NODES, 150)
    graph.edata["w"] = torch.rand(150)
    return graph


MODELS: dict[str, Callable[[], FlowModel]] = {
    "sage": lambda: nn.GraphSAGE(5, 8, 3, num_layers=3),
    "gcn": lambda: nn.GCN(5, 8, 3, num_layers=2, norm="layer", residual=True),
    "gat": lambda: nn.GAT(5, 8, 3, num_layers=2, heads=2),
    "batch norm, cat": lambda: nn.GraphSAGE(5, 8, 3, num_layers=2, norm="batch", jumping="cat"),
    "max": lambda: nn.GraphSAGE(5, 8, 3, num_layers=3, jumping="max"),
    "one layer": lambda: nn.GraphSAGE(5, 8, 3, num_layers=1),
}


@pytest.mark.parametrize(
    "name", ["sage", "gcn", *(pytest.param(name, marks=pytest.mark.slow) for name in [*MODELS][2:])]
)
@pytest.mark.parametrize("nodes", [pytest.param(None, marks=pytest.mark.slow), [4, 59, 4, 0, 17]])
def test_outputs_are_those_in_memory(tmp_path, name, nodes):
    torch.manual_seed(3)
    model = MODELS[name]()
    graph = weighted_graph()
    x = torch.rand(NODES, 5)
    options: dict[str, Any] = {"nodes": nodes}
    edges = graph.view(weight=None if name == "gat" else "w")
    model.train()
    wanted = model.inference(edges, x, **options)
    size = NODES if nodes is None else len(nodes)
    for at, chunk_size in enumerate((1, 7, None)):
        for folder in (None, tmp_path / "layers"):
            out = create(tmp_path / f"{at}{folder is None}.npy", (size, 3))
            same = model.inference(
                edges, x, **options, chunk_size=chunk_size, folder=folder, out=out
            )
            assert same is out
            torch.testing.assert_close(out, wanted)
            torch.testing.assert_close(
                torch.from_numpy(np.load(tmp_path / f"{at}{folder is None}.npy")), wanted
            )
            same = model.inference(graph, x, **options, chunk_size=chunk_size, folder=folder)
            assert torch.equal(same, out)
    assert list(tmp_path.glob("layers/*")) == []
    assert model.training


def test_chunks_without_files_and_with_them_are_the_same_bits(tmp_path):
    """Where in memory too the rows of neighbours are gathered."""
    model = nn.GraphSAGE(5, 8, 3, num_layers=3)
    graph = weighted_graph()
    x = torch.rand(NODES, 5)
    wanted = model.inference(graph, x, chunk_size=7)
    assert torch.equal(model.inference(graph, x, chunk_size=7, folder=tmp_path), wanted)
    fetched = OwnRows(x)
    assert torch.equal(model.inference(graph, fetched, chunk_size=7, folder=tmp_path), wanted)
    assert fetched.most < NODES  # never all rows at a time


def test_sparse_features_and_a_mapped_graph(tmp_path):
    import scipy.sparse

    graph = weighted_graph()
    graph.ndata["feat"] = sparse_column(
        scipy.sparse.random(NODES, 5, 0.3, format="csr", random_state=0, dtype=np.float32)
    )
    graph.save(tmp_path / "g")
    opened = Graph.open(tmp_path / "g")
    model = nn.GraphSAGE(5, 8, 3)
    wanted = model.inference(graph, graph.ndata["feat"])
    found = model.inference(opened, opened.ndata["feat"], chunk_size=9, folder=tmp_path / "layers")
    torch.testing.assert_close(found, wanted)


def test_bfloat16_outputs(tmp_path):
    model = nn.GraphSAGE(5, 8, 3).bfloat16()
    graph = weighted_graph()
    x = torch.rand(NODES, 5).bfloat16()
    out = create(tmp_path / "out.npy", (NODES, 3), torch.bfloat16)
    model.inference(graph, x, chunk_size=7, folder=tmp_path, out=out)
    assert torch.equal(out, model.inference(graph, x, chunk_size=7))


def test_read_only_files_and_the_inputs_are_refused(tmp_path):
    graph = weighted_graph()
    graph.ndata["x"] = torch.rand(NODES, 3)
    graph.save(tmp_path / "g")
    column = Graph.open(tmp_path / "g").ndata["x"]
    model = nn.GraphSAGE(3, 8, 3)
    with pytest.raises(ValueError, match="opened for reading only"):
        model.inference(graph, column, out=column)


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    model = nn.GraphSAGE(5, 8, 3).train()
    with pytest.raises(OSError, match="No space left"):
        model.inference(weighted_graph(), torch.rand(NODES, 5), folder=tmp_path)
    with pytest.raises(OSError, match="No space left"):
        create(tmp_path / "out.npy", (NODES, 3))
    assert list(tmp_path.iterdir()) == []
    assert model.training


@pytest.mark.parametrize("stored", [False, True])
def test_an_updater_fills_the_same_history(tmp_path, stored):
    graph = transform.add_self_loops(weighted_graph())
    graph.edata["p"] = transform.edge_norm(graph)
    model = nn.VRGCN(5, 8, 3, num_layers=3)
    x = torch.rand(NODES, 5)
    histories = []
    for folder in (None, tmp_path / "layers"):
        place = None if folder is None else tmp_path / "history"
        history = History(
            graph.view(weight="p"),
            model.history_widths,
            folder=place,
            aggregated="stored" if stored else "on demand",
        )
        Updater(
            model, history, x if folder is None else OwnRows(x), chunk_size=7, folder=folder
        ).run()
        histories.append(history)
    nodes = torch.arange(NODES)
    for i in histories[0].widths:
        torch.testing.assert_close(*(history.rows(i, nodes) for history in histories))
        torch.testing.assert_close(*(history.aggregated_rows(i, nodes) for history in histories))
    assert list((tmp_path / "layers").iterdir()) == []


MEASURE = """
import sys, threading
import torch
from nodeflow import Graph, nn
from nodeflow.storage import create

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))

def peak(**options):
    before, most, done = anonymous(), [0], threading.Event()

    def watch():
        while not done.wait(0.002):
            most[0] = max(most[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    model.inference(graph, graph.ndata["feat"], chunk_size=1024, **options)
    done.set()
    watcher.join()
    return most[0] - before

place = sys.argv[1]
torch.set_num_threads(1)
graph = Graph.open(place + "/g")
model = nn.GraphSAGE(32, 128, 64, num_layers=3)
model.inference(graph, graph.ndata["feat"], nodes=[0], chunk_size=100)
out = create(place + "/out.npy", (graph.num_nodes, 64))
print(peak(folder=place, out=out), peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads the memory of a process from /proc"
)
def test_memory_is_bounded(tmp_path):
    """Pages of files are left out: the system takes them back when it needs room."""
    size = 200_000  # beside 100 MB of rows, 20 to 30 MB for any number of nodes are little
    graph = random_graph(0, size, 2 * size)
    graph.ndata["feat"] = torch.rand(size, 32)
    graph.save(tmp_path / "g")
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    in_files, in_memory = map(int, told.split())
    rows = size * 128 * 4  # of one layer
    assert in_memory > 1.5 * rows
    assert in_files < 0.5 * rows
