"""Rows that are packed for coming batches: the same batches, fewer bytes of the disk, nothing left
behind.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from _support.own_rows import OwnRows
from hypothesis import given, strategies as st
from test_lookahead import epochs_of, loader_of, ring_and_hubs, same
from test_lookahead_types import batches as typed_batches, papers
from torch import Tensor

from nodeflow import Graph, storage
from nodeflow.storage import Lookahead, _packed


def in_file(folder: Path, values: Tensor, name: str = "x", **options: Any) -> Any:
    np.save(folder / f"{name}.npy", values.numpy())
    return storage.open(folder / f"{name}.npy", **options)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    # rows of several pieces, and of several batches
    monkeypatch.setattr(_packed, "_PIECE", 37 * 20)


# one batch at a time, to all
@pytest.mark.parametrize("space", ["3400 B", "6 KB", "14 KB", "1 MB"])
@pytest.mark.parametrize(
    ("memory", "window", "prefetch"), [(0, None, 2), (1200, None, 1), (1200, 1, 5)]
)
def test_batches_are_those_of_the_loader(
    space: str, memory: int, window: int | None, prefetch: int, tmp_path: Path
) -> None:
    graph = ring_and_hubs()
    expected = epochs_of(loader_of(graph), 3)
    graph.ndata["x"] = rows = OwnRows(graph.ndata["x"])
    plain = Lookahead(loader_of(graph), memory, window=window)
    assert same(epochs_of(plain, 3), expected)
    demanded = rows.fetched
    rows.fetched = 0
    rows.most = 0
    packed = Lookahead(
        loader_of(graph),
        memory,
        window=window,
        prefetch=prefetch,
        epochs=3,
        pack=tmp_path,
        space=space,
    )
    assert same(epochs_of(packed, 3), expected)
    assert packed.reads.packed == packed.reads.read == plain.reads.read == demanded
    assert rows.most <= 37
    assert rows.fetched <= demanded
    if space == "1 MB":
        assert rows.fetched <= 3 * 400  # each row once in an epoch
    assert not list(tmp_path.iterdir())


def test_an_iteration_that_was_left_and_one_that_goes_on(tmp_path: Path) -> None:
    graph = ring_and_hubs()
    expected = epochs_of(loader_of(graph), 2)
    graph.ndata["x"] = in_file(tmp_path, graph.ndata["x"])
    lookahead = Lookahead(loader_of(graph), 1200, pack=tmp_path)
    count = len(lookahead)
    for number, batch in enumerate(lookahead):
        assert same([batch], [expected[number]])
        if number == 2:
            break
    state = lookahead.state_dict()
    lookahead.set_epoch(0)
    assert same(epochs_of(lookahead, 2), expected)
    lookahead.load_state_dict(state)
    assert same(list(lookahead), expected[3:count])
    again = Lookahead(loader_of(graph), 1200, pack=tmp_path)
    again.load_state_dict(state)
    assert same(list(again), expected[3:count])


def test_several_columns_layers_and_types(tmp_path: Path) -> None:
    graph = ring_and_hubs()
    graph.ndata["z"] = torch.arange(800, dtype=torch.float64).view(400, 2)
    graph.ndata["b"] = torch.randn(400, 3).bfloat16()
    chosen = {0: ["x", "z", "b"], 1: ["z", "y"], -1: ["y"]}
    expected = list(loader_of(graph, ndata=chosen))
    for name in "xzb":
        graph.ndata[name] = OwnRows(graph.ndata[name])
    lookahead = Lookahead(loader_of(graph, ndata=chosen), "2 KB", pack=tmp_path, space="60 KB")
    assert same(list(lookahead), expected)
    assert lookahead.reads.packed == lookahead.reads.read
    typed = papers()
    wanted = typed_batches(typed)
    for name in ("author", "paper", "venue"):
        typed.nodes[name].data["x"] = OwnRows(typed.nodes[name].data["x"])
    found = typed_batches(typed, "1 KB", pack=tmp_path, space="20 KB")
    for one, other in zip(found, wanted, strict=True):
        for name in ("author", "paper", "venue"):
            assert torch.equal(one.layers[0].of(name).data["x"], other.layers[0].of(name).data["x"])


def test_sparse_columns_are_read_on_demand(tmp_path: Path) -> None:
    graph = ring_and_hubs()
    graph.ndata["x"] = ((graph.ndata["x"] > 0.8) * graph.ndata["x"]).to_sparse_csr()
    expected = list(loader_of(graph))
    storage.save_sparse(tmp_path / "x", graph.ndata["x"])
    graph.ndata["x"] = storage.open(tmp_path / "x")
    lookahead = Lookahead(loader_of(graph), "1 KB", pack=tmp_path)
    for one, other in zip(lookahead, expected, strict=True):
        assert torch.equal(one.inputs["x"].to_dense(), other.inputs["x"].to_dense())
    assert lookahead.reads.packed == 0


def wide(num_nodes: int, width: int) -> Graph:
    random = np.random.default_rng(1)
    graph = Graph.from_edges(
        *random.integers(0, num_nodes, (2, 8 * num_nodes)), num_nodes=num_nodes
    )
    graph.ndata["x"] = torch.randn(num_nodes, width)
    graph.ndata["y"] = torch.arange(num_nodes)
    return graph


@pytest.mark.parametrize(("width", "pays"), [(64, True), (900, False), (1024, False)])
def test_rows_are_packed_where_that_takes_fewer_blocks(
    width: int, pays: bool, tmp_path: Path
) -> None:
    """Rows of 256 bytes waste most of their blocks, those of 4,096 nothing, and others less than
    the copies take.
    """
    graph = wide(4_000, width)
    expected = list(loader_of(graph, batch_size=4))
    graph.ndata["x"] = in_file(tmp_path, graph.ndata["x"])
    lookahead = Lookahead(loader_of(graph, batch_size=4), 0, pack=tmp_path, epochs=1)
    assert same(list(lookahead), expected)
    assert (lookahead.reads.packed > 0) == pays
    assert lookahead.reads.packed in (0, lookahead.reads.read)


@given(st.sets(st.integers(0, 60)), st.integers(0, 1500), st.integers(0, 40))
def test_blocks_of_the_disk(chosen: set[int], width: int, start: int) -> None:
    rows = SimpleNamespace(_start=start, _row=width, direct=False, _block=1)
    blocks = {
        byte // 4096 for i in chosen for byte in range(start + i * width, start + (i + 1) * width)
    }
    ids = np.array(sorted(chosen), np.int64)
    assert storage._files.FileRows.blocks(rows, ids) == 4096 * len(blocks)  # type: ignore[arg-type]


def test_the_disk_gives_fewer_bytes(tmp_path: Path) -> None:
    """On demand a batch reads several times its rows of 64 bytes, from blocks of 512 or 4,096."""
    graph = wide(4_000, 16)
    try:
        rows = in_file(tmp_path, graph.ndata["x"], direct=True)
    except OSError as error:
        pytest.skip(str(error))
    graph.ndata["x"] = rows
    plain = Lookahead(loader_of(graph, batch_size=4), 0, epochs=1)
    assert len(list(plain)) == 50
    demanded = rows.bytes_read
    rows.bytes_read = 0
    packed = Lookahead(loader_of(graph, batch_size=4), 0, epochs=1, pack=tmp_path)
    assert len(list(packed)) == 50
    assert demanded > 5 * plain.reads.bytes
    assert rows.bytes_read < 1.5 * 4_000 * 64  # small pieces read some blocks twice
    assert packed.reads.packed == packed.reads.read
    assert rows.bytes_read + 2 * packed.reads.bytes < 0.6 * demanded


# what cannot be


def test_too_little_space_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ring_and_hubs()
    graph.ndata["x"] = OwnRows(graph.ndata["x"])
    with pytest.raises(
        ValueError, match=r"space is '1 KB', but the rows of the first batch take \d,\d{3} bytes"
    ):
        Lookahead(loader_of(graph), 0, pack=tmp_path, space="1 KB")
    with pytest.raises(FileNotFoundError, match="gone"):
        Lookahead(loader_of(graph), 0, pack=tmp_path / "gone")
    with pytest.raises(TypeError, match="pack must be the path of a folder, got int 3"):
        Lookahead(loader_of(graph), 0, pack=3)  # type: ignore[arg-type]
    usage = SimpleNamespace(free=5_000_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(
        OSError, match=r"packed rows take 10,000,000,000 bytes, but 5,000,000,000 are free: .*"
    ):
        Lookahead(loader_of(graph), 0, pack=tmp_path)
    lookahead = Lookahead(loader_of(graph), 0, pack=tmp_path, space="1 MB")
    usage.free = 1000  # others have filled it since
    with pytest.raises(OSError, match=r"packed rows take [\d,]+ bytes, but 1,000 are free"):
        list(lookahead)


def test_it_goes_on_after_a_full_disk_and_a_failed_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = ring_and_hubs()
    expected = list(loader_of(graph))
    values = graph.ndata["x"]
    graph.ndata["x"] = OwnRows(values, fail_at=3)
    lookahead = Lookahead(loader_of(graph), 1200, pack=tmp_path, space="6 KB")
    with pytest.raises(ConnectionError, match="the store is gone"):
        list(lookahead)
    lookahead.set_epoch(0)
    assert same(list(lookahead), expected)
    written = [0]

    class Full:
        def __init__(self, **options: Any) -> None:
            self.file: Any = TemporaryFile(**options)  # noqa: SIM115 - closed through the attribute

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, data: Any) -> int:
            written[0] += 1
            if written[0] == 4:
                raise OSError(28, "No space left on device")
            # as a signal may cut it short
            return int(self.file.write(data[: max(len(data) // 2, 1)]))

    monkeypatch.setattr(_packed, "TemporaryFile", Full)
    lookahead.set_epoch(0)
    with pytest.raises(OSError, match="No space left on device"):
        list(lookahead)
    lookahead.set_epoch(0)
    assert same(list(lookahead), expected)
    assert not list(tmp_path.iterdir())


def test_narrow_rows_are_packed_as_they_lie(tmp_path: Path) -> None:
    graph = wide(4_000, 100)
    narrow = storage.narrow(graph.ndata["x"], "int8")
    graph.ndata["x"] = narrow
    graph.save(tmp_path / "graph")
    expected = list(loader_of(graph, batch_size=4))
    opened = Graph.open(tmp_path / "graph")
    opened.ndata["x"] = storage.open(opened.ndata["x"])
    lookahead = Lookahead(loader_of(opened, batch_size=4), "10 KB", pack=tmp_path, epochs=1)
    assert same(list(lookahead), expected)
    assert lookahead.reads.packed == lookahead.reads.read
    assert lookahead.reads.bytes == 100 * lookahead.reads.read
