"""What writes files, under Windows's rules as ``obey_windows`` has them. Nothing was run on Windows
itself.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import status, train, two_communities
from _support.windows import obey_windows

import nodeflow
from nodeflow import Graph, datasets, nn, storage
from nodeflow._core.runtime.memory import outside
from nodeflow._files.disk import arrays, checked, folders
from nodeflow.control_variates import History
from nodeflow.distributed import PartitionBuffer, Partitions, partition_graph, write_partitions
from nodeflow.storage import EmbeddingTable


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        obey_windows(patch)
        yield


@pytest.fixture
def graph() -> Graph:
    columns = {
        "x": torch.arange(12.0).reshape(6, 2),
        "X": torch.ones(6, 1),
        "s": torch.eye(6).to_sparse_csr(),
    }
    return Graph.from_edges(
        [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0], ndata=columns, edata={"w": torch.ones(6)}
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_simulation_refuses_what_windows_refuses(tmp_path, windows):
    file = tmp_path / "x" / "a.npy"
    file.parent.mkdir()
    np.save(file, np.arange(3))
    array = np.load(file, mmap_mode="r")
    for call in (
        file.unlink,
        lambda: file.parent.replace(tmp_path / "y"),
        lambda: os.open(tmp_path, os.O_RDONLY),
    ):
        with pytest.raises(PermissionError):
            call()
    del array
    file.parent.replace(tmp_path / "y")


def test_a_graph_folder_is_replaced_once_nobody_maps_it(graph, tmp_path, windows):
    graph.save(tmp_path / "g")
    opened = Graph.open(tmp_path / "g")
    assert opened.ndata["x"].equal(graph.ndata["x"])
    with pytest.raises(PermissionError):
        graph.save(tmp_path / "g", overwrite=True)
    assert names(tmp_path) == ["g"]
    assert opened.ndata["s"].to_dense().equal(torch.eye(6))
    del opened
    graph.save(tmp_path / "g", overwrite=True)
    assert names(tmp_path) == ["g"]
    assert ".lock" not in names(tmp_path / "g")
    Graph.open(tmp_path / "g", verify=True)


def test_a_folder_that_fails_leaves_nothing(tmp_path, windows):
    with pytest.raises(FileNotFoundError), folders.new_folder(tmp_path / "g") as draft:
        (draft / "missing").read_bytes()
    assert names(tmp_path) == []


def test_drafts_of_killed_processes_go(tmp_path, windows):
    (tmp_path / ".unfinished-old").mkdir()
    (tmp_path / ".unfinished-old" / ".lock").touch()
    with folders.new_folder(tmp_path / "g"):
        pass
    assert names(tmp_path) == ["g"]


def test_a_graph_is_built(tmp_path, windows):
    (tmp_path / "e.csv").write_text("0,1\n1,2\n2,0\n")
    assert datasets.build_graph([tmp_path / "e.csv"], tmp_path / "g", progress=False).num_edges == 3


def test_parts_are_written(graph, tmp_path, windows):
    partition_graph(graph, tmp_path / "p", 2, method="ranges", progress=False)
    partition_graph(graph, tmp_path / "p", 2, method="ranges", progress=False, overwrite=True)


def test_partitions_are_written_again_and_again(graph, tmp_path, windows):
    options: dict[str, Any] = {"ndata": ["x", "X", "s"], "train": [0, 3], "progress": False}
    for _ in range(2):
        write_partitions(graph, tmp_path / "p", 3, overwrite=True, **options)
    with PartitionBuffer(tmp_path / "p", 2, writable=["x", "X"]) as buffer:
        for _ in range(2):
            for state in buffer:
                state.graph.ndata["x"][state.seeds] += 1
    parts = Partitions.open(tmp_path / "p", verify=True)
    learned = graph.ndata["x"].clone()
    learned[[0, 3]] += 2
    assert parts.column("x").fetch(torch.arange(6)).equal(learned)
    # "x" and "X" are two files, also where the system does not tell their names apart
    files = names(tmp_path / "p" / "nodes")
    assert len({name.lower() for name in files}) == len(files) == 3 * (1 + 1 + 3)


def test_a_table_outlives_its_process(tmp_path, windows):
    for _ in range(2):
        table = EmbeddingTable(6, 2, folder=tmp_path / "t", optimizer="sgd", lr=0.1)
        table.pull([0, 1, 2]).sum().backward()
        table.step()
        other = EmbeddingTable(6, 2, folder=tmp_path / "t", optimizer="sgd", lr=0.1)
        table.flush()
        other.close()
        table.write(torch.arange(6), torch.ones(6, 2))  # more rows: a larger journal
        table.close()
    assert "journal" not in names(tmp_path / "t")


def test_a_history_and_full_passes_through_files(graph, tmp_path, windows):
    history = History(graph, {1: 4}, folder=tmp_path / "h")
    history.write(1, [0, 1], torch.ones(2, 4))
    history.commit()
    model = nn.GraphSAGE(2, 4, 3, num_layers=2)
    rows = model.inference(graph, graph.ndata["x"], folder=tmp_path / "scratch")
    assert rows.allclose(model.inference(graph, graph.ndata["x"]))


def test_rows_of_files_without_pread(tmp_path, windows):
    out = storage.create(tmp_path / "x.npy", (60, 2))
    out[:] = torch.arange(120.0).reshape(60, 2)
    ids = torch.randint(0, 60, (200,), generator=torch.Generator().manual_seed(0))
    assert storage.open(tmp_path / "x.npy").fetch(ids).equal(out[ids])
    with pytest.raises(OSError, match="cannot be read past"):
        storage.open(tmp_path / "x.npy", direct=True)


def test_a_run_is_saved_resumed_and_replaced(tmp_path, windows):
    data = two_communities(tmp_path / "data")
    run = tmp_path / "run"
    assert train(data, run, "--checkpoint-every", "1", "--no-plot") == 0
    assert status(["train", "--resume", str(run), "--epochs", "4"]) == 0
    assert train(data, run, "--checkpoint-every", "1", "--no-plot", "--overwrite") == 0
    assert status(["evaluate", str(run)]) == 0


def test_scratch_files_have_no_name(tmp_path, windows):
    rows = arrays.scratch_array(tmp_path, torch.bfloat16, (3, 2))
    rows[1] = 2
    assert rows.sum() == 4
    assert arrays.scratch_array(tmp_path, torch.float32, (0, 2)).shape == (0, 2)
    assert names(tmp_path) == []


def test_memory_outside_the_heap_can_be_written_without_fork(windows):
    zeros = outside(3, np.int64)
    zeros += 1
    assert zeros.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "file", ["C:x.npy", "C:\\x.npy", "\\x.npy", "/x.npy", "..\\x.npy", "a/../x.npy"]
)
def test_no_drive_and_no_backslash_leads_out_of_a_folder(file):
    with pytest.raises(ValueError, match="outside of the folder"):
        arrays.ArrayFile.of({"file": file, "dtype": "int64", "shape": [1], "checksum": 0})


def test_a_clock_of_two_seconds_hides_no_change(graph, tmp_path, monkeypatch):
    """A file system such as FAT rounds times: what changes within a tick after a check is still
    checked again.
    """
    graph.save(tmp_path / "g")
    file = next((tmp_path / "g").glob("ndata0*.npy"))
    tick = 2_000_000_000
    written = 10 * tick + tick // 3
    now = [0]
    changed = {}

    def state(path: Path) -> list[int]:
        return [1, path.stat().st_size, *[changed.get(path, written) // tick * tick] * 2]

    monkeypatch.setattr(checked, "_state", state)
    monkeypatch.setattr(checked, "time", SimpleNamespace(time_ns=lambda: now[0]))
    whole = file.read_bytes()
    for moment in range(0, 3 * tick, tick // 8):
        (tmp_path / "g" / checked.STAMP).unlink(missing_ok=True)
        now[0] = written + moment
        Graph.open(tmp_path / "g")
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        changed[file] = now[0]
        with pytest.raises(ValueError, match="checksum"):
            Graph.open(tmp_path / "g")
        file.write_bytes(whole)
        del changed[file]
    # the last ones were remembered before they changed
    assert file.name in (tmp_path / "g" / checked.STAMP).read_text()


def test_every_text_file_names_its_encoding():
    """Else it is that of the system, and a run folder could not be read on another one."""
    root = Path(nodeflow.__file__).parent
    wrong = []
    for path in root.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            name = (
                call.func.attr
                if isinstance(call.func, ast.Attribute)
                else getattr(call.func, "id", "")
            )
            words = [
                a.value
                for a in call.args
                if isinstance(a, ast.Constant) and isinstance(a.value, str)
            ]
            modes = [word for word in words if len(word) <= 3 and word.strip("rwabtx+") == ""]
            text = name in ("read_text", "write_text") or (
                name == "open" and modes and "b" not in modes[0]
            )
            text = text or (
                name == "open" and not call.args and any(k.arg == "newline" for k in call.keywords)
            )
            if text and "encoding" not in {keyword.arg for keyword in call.keywords}:
                wrong.append(f"{path.relative_to(root)}:{call.lineno}")
    assert wrong == []
