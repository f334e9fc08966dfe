"""Narrow rows: errors within their bounds, the same bits from every place where the codes lie, and
what is refused.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from _support.file_formats import changed_manifest
from _support.own_rows import OwnRows
from _support.ranks import ThreadTransport, group, run_ranks
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor

from nodeflow import (
    Graph,
    NeighborSampler,
    NodeFlowLoader,
    distributed,
    nn,
    storage,
)
from nodeflow._core.rows.narrowing import _measured, _sample, _seen
from nodeflow.datasets import build_graph
from nodeflow.distributed import DistributedGraph
from nodeflow.storage import NarrowRows, narrow

NODES = 60
WIDTH = 19
DRAW = np.random.default_rng(0)
COLUMN = torch.from_numpy(DRAW.normal(size=(NODES, WIDTH)).astype(np.float32))
COLUMN[:, 3] = torch.arange(NODES) % 2
OUTLIER = COLUMN.clone()
OUTLIER[5, 7] = 1e6
ENDS = torch.from_numpy(DRAW.integers(0, NODES, (2, 300)))
IDS = torch.from_numpy(DRAW.integers(0, NODES, 200))
BOTH = pytest.mark.parametrize(
    "column", [narrow(COLUMN), narrow(OUTLIER, "auto")], ids=["int8", "auto"]
)


def whole(rows: Any) -> Tensor:
    return rows.fetch(torch.arange(rows.shape[0]))


def graph_of(column: Any) -> Graph:
    return Graph.from_edges(*ENDS, num_nodes=NODES, ndata={"x": column})


# ------------------------------------------------------------------------------------------------------------
# numbers

floats = st.floats(-(2.0**99), 2.0**99, width=32) | st.sampled_from(
    [0.0, -0.0, 1e-45, -3e-39, 3.4028234663852886e38, 0.1]
)
columns_of_floats = arrays.arrays(
    np.float32, st.tuples(st.integers(0, 12), st.integers(0, 35)), elements=floats
)


@given(columns_of_floats)
def test_an_error_is_at_most_half_a_scale(values):
    column = torch.from_numpy(values)
    coding = _measured("int8", column.shape[1:], _seen(column, "x"), _sample(column))
    scale = coding.table[1].double()
    read = whole(NarrowRows(coding.pack(column), coding)).double()
    exact = column.double()
    rounding = exact.abs() * 2.0**-23 + 2.0**-149  # of the scale, and of the product
    assert ((read - exact).abs() <= scale / 2 * (1 + 1e-6) + rounding).all()
    if len(values):
        assert coding.table[3].equal((read - exact).abs().float().amax(0))
        size = exact.amax(0) - exact.amin(0)
        largest = exact.abs().amax(0)
        assert (
            scale <= torch.maximum(size / 250, largest).clamp(min=2.0**-149) + (largest == 0)
        ).all()


@given(
    st.integers(-(2**22), 2**22),
    st.lists(st.integers(0, 255), min_size=1, max_size=30),
    st.integers(-20, 20),
)
def test_whole_numbers_of_a_step_keep_their_values(begin, steps, power):
    column = (begin + torch.tensor(steps).float()).unsqueeze(1) * 2.0**power
    rows = narrow(column)
    assert whole(rows).equal(column)
    assert rows.error.mean.item() == 0


@pytest.mark.parametrize(
    "values",
    [
        [0, 1],
        [1990.0, 2245.0, 2000.0],
        [0, 0.37],
        [-7.25],
        [0.0],
        [0.1, 25.5],
        [1e6, 1e6 + 1],
        [1e-45, 3e-45],
        [3.4028234663852886e38],
    ],
)
def test_columns_that_lose_nothing(values):
    column = torch.tensor(values).float().repeat(50).unsqueeze(1)
    assert whole(narrow(column)).equal(column)
    assert whole(narrow(column.squeeze(1))).equal(column.squeeze(1))
    assert whole(narrow(column.expand(-1, 3))).equal(column.expand(-1, 3))  # has gaps


@pytest.mark.parametrize("width", ["float16", "bfloat16"])
@pytest.mark.parametrize("columns", [1, 15, 16, 17, 33])
def test_halves_are_rounded_as_torch_does(width, columns):
    column = torch.randn(40, columns, generator=torch.Generator().manual_seed(1))
    rows = narrow(column, width)
    assert rows.width == width
    assert rows.stored.dtype == getattr(torch, width)
    assert whole(rows).equal(column.to(rows.stored.dtype).float())


@pytest.mark.parametrize("columns", [1, 2, 15, 16, 17, 31, 48])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_ids_in_any_order(columns, dtype):
    column = torch.randn(
        90, columns, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    ).to(dtype)
    rows = narrow(column)
    zero, scale = rows.coding.table[:2]
    by_hand = (torch.as_tensor(rows.stored).float() - zero) * scale
    ids = torch.randint(0, 90, (500,))
    for some in (ids, ids[:0], torch.arange(90)):
        out = torch.full((len(some), columns), torch.nan)
        assert rows.fetch(some).equal(by_hand[some])
        assert rows.fetch(some, out) is out
        assert out.equal(by_hand[some])
    assert narrow(column.reshape(30, 3, columns)).fetch([1]).shape == (1, 3, columns)


@pytest.mark.parametrize("shape", [(0, 4), (5, 0), (0, 0), (0,)])
def test_nothing(shape):
    for width in ("int8", "bfloat16"):
        rows = narrow(torch.zeros(shape), width)
        assert whole(rows).shape == shape
        assert rows.error.mean.sum() == 0


def test_auto_keeps_columns_of_large_errors():
    rows = narrow(OUTLIER, "auto")
    assert rows.wide.tolist() == [7]
    assert whole(rows)[:, 7].equal(OUTLIER[:, 7])
    assert torch.as_tensor(rows.stored).nbytes == NODES * 24  # 19 codes, padded, and a float32
    assert narrow(COLUMN, "auto").wide.tolist() == []
    heavy = torch.exp(4 * torch.randn(500, 8, generator=torch.Generator().manual_seed(3)))
    assert narrow(heavy, "auto").width == "float16"
    assert rows.error.mean.max() < 0.05


def test_errors_are_those_of_most_rows():
    """Rare numbers of a column that is mostly 0, like those of words, do not count as outliers."""
    words = torch.zeros(2000, 1)
    words[::200] = torch.rand(10, 1)
    assert narrow(words).error.mean.item() < 0.01
    assert narrow(COLUMN).error.mean.max() < 0.02
    assert 1.1 > narrow(OUTLIER, limit=2).error.mean[7] > 0.9


# -------------------------------------------------------------------------------------------------------------
# places


@BOTH
def test_a_graph_folder_keeps_the_codes(tmp_path, column):
    graph_of(column).save(tmp_path / "g")
    read: Any = Graph.open(tmp_path / "g").ndata["x"]
    assert repr(read) == repr(column)
    assert whole(read).equal(whole(column))
    assert read.error.mean.equal(column.error.mean)
    (file,) = (tmp_path / "g").glob("ndata0-*.npy")
    assert file.stat().st_size == 4096 + torch.as_tensor(column.stored).nbytes
    for rows in (read, column, graph_of(read)):
        again = pickle.loads(pickle.dumps(rows))
        again = again.ndata["x"] if isinstance(again, Graph) else again
        assert whole(again).equal(whole(column))
    assert len(pickle.dumps(read)) < 1200  # the name of the file


@BOTH
def test_caches_files_and_plans_give_the_same_bits(tmp_path, column):
    expected = whole(column)
    row = torch.as_tensor(column.stored)[0].nbytes
    graph_of(column).save(tmp_path / "g")
    file: Any = storage.open(Graph.open(tmp_path / "g").ndata["x"])
    cached = storage.Cached(file, range(NODES), 20 * row)
    assert len(cached.ids) == 20
    others = (
        storage.Cached(column, range(NODES), 20 * row),
        storage.Cached(file, range(NODES), "1 MB"),
    )
    for rows in (file, storage.Tiered([column]), cached, *others):
        out = torch.empty(len(IDS), WIDTH)
        assert rows.fetch(IDS).equal(expected[IDS])
        assert rows.fetch(IDS, out).equal(expected[IDS])
        assert rows.fetch([]).shape == (0, WIDTH)
    options: Any = {"batch_size": 7, "ndata": {0: ["x"]}}
    plain = NodeFlowLoader(NeighborSampler(graph_of(expected), [2, 2]), range(NODES), **options)
    planned = NodeFlowLoader(NeighborSampler(graph_of(file), [2, 2]), range(NODES), **options)
    batches = storage.Lookahead(planned, memory=15 * row)
    for one, other in zip(plain, batches, strict=True):
        assert one.inputs["x"].equal(other.inputs["x"])
    assert batches.reads.bytes == batches.reads.read * row


@BOTH
def test_partitions_carry_the_codes(tmp_path, column):
    expected = whole(column)
    parts = distributed.write_partitions(graph_of(column), tmp_path / "p", 4, progress=False)
    assert whole(parts.column("x")).equal(expected)
    buffer = distributed.PartitionBuffer(tmp_path / "p", 2, order="beta")
    for state in buffer:
        rows: Any = state.graph.ndata["x"]
        inside = torch.flatten((state.nodes >= 0).nonzero())
        assert isinstance(rows, NarrowRows)
        assert rows.fetch(inside).equal(expected[state.nodes[inside]])
    with pytest.raises(TypeError, match="column 'x', whose rows are narrow"):
        next(iter(distributed.PartitionBuffer(tmp_path / "p", 2, order="beta", writable=["x"])))


@BOTH
def test_processes_send_the_codes(tmp_path, column):
    expected = whole(column)
    sent = []
    for name, x in (("narrow", column), ("plain", expected)):
        parts = distributed.partition_graph(
            graph_of(x), tmp_path / name, 2, method="random", progress=False
        )

        def fetched(transport: ThreadTransport, parts: Any = parts) -> int:
            peers = group(transport, parts)
            graph = DistributedGraph(parts, parts.part(transport.rank), peers)
            cached = storage.Cached(graph.ndata["x"], range(NODES), "200 B")
            ids = IDS[transport.rank :: 2]
            before = peers.counters.bytes_sent
            assert graph.ndata["x"].fetch(ids).equal(expected[ids])
            after = peers.counters.bytes_sent
            assert cached.fetch(ids).equal(expected[ids])
            with pytest.raises(IndexError, match="ids"):
                graph.ndata["x"].fetch([NODES])
            return after - before

        sent.append(sum(run_ranks(2, fetched)))
    assert sent[0] < 0.5 * sent[1]


def test_models_and_full_passes_see_floats():
    narrowed = graph_of(narrow(COLUMN))
    plain = graph_of(whole(narrow(COLUMN)))
    model = nn.GraphSAGE(WIDTH, 8, 3)
    outs = [model.inference(graph, graph.ndata["x"]) for graph in (narrowed, plain)]
    torch.testing.assert_close(*outs)
    grads = []
    for graph in (narrowed, plain):
        model.zero_grad()
        batch = NeighborSampler(graph, [3, 3])(range(9))
        batch.copy_from_parent({0: ["x"]})
        model(batch, batch.inputs["x"]).sum().backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for one, other in zip(*grads, strict=True):
        assert one.equal(other)


def test_columns_of_types(tmp_path):
    nodes: Any = {"a": {"x": narrow(COLUMN)}, "b": {"x": narrow(OUTLIER[:9], "auto")}}
    graph = Graph.typed(nodes, {("a", "to", "b"): ([0, 59], [1, 8])})
    graph.save(tmp_path / "g")
    distributed.write_partitions(graph, tmp_path / "p", 2, progress=False)
    for name in ("a", "b"):
        expected = whole(graph.nodes[name].data["x"])
        assert whole(Graph.open(tmp_path / "g").nodes[name].data["x"]).equal(expected)
        assert whole(distributed.Partitions.open(tmp_path / "p").column("x", name)).equal(expected)
    batch = NeighborSampler(graph, [2])(graph.nodes["b"].to_graph([1, 8]))
    batch.copy_from_parent(["x"])
    part = batch.layers[0].of("a")
    assert part.data["x"].equal(whole(nodes["a"]["x"])[part.parent_nid])


def test_a_column_that_is_read_in_pieces(monkeypatch):
    expected = whole(narrow(COLUMN))
    monkeypatch.setattr("nodeflow._core.rows.narrowing._PIECE", 4 * WIDTH)
    rows = OwnRows(COLUMN)
    assert whole(narrow(rows)).equal(expected)
    assert rows.most == NODES  # all rows are the sample here


# ------------------------------------------------------------------------------------------------------------
# building


def test_a_folder_is_built_narrow(tmp_path):
    np.save(tmp_path / "edges.npy", np.ascontiguousarray(ENDS.T.numpy()))
    np.save(tmp_path / "feat.npy", COLUMN.numpy())
    ndata = {"feat": tmp_path / "feat.npy", "label": np.zeros((NODES, 2)), "year": np.arange(NODES)}
    options: Any = {"ndata": ndata, "store": "int8", "progress": False}
    graph = build_graph(tmp_path / "edges.npy", tmp_path / "g", **options)
    assert whole(graph.ndata["feat"]).equal(whole(narrow(COLUMN)))
    assert (graph.ndata["label"].dtype, graph.ndata["year"].dtype) == (torch.float64, torch.int64)
    np.save(tmp_path / "feat.npy", OUTLIER.numpy())
    with pytest.raises(ValueError, match="column 'feat' cannot be int8: column 7, with "):
        build_graph(tmp_path / "edges.npy", tmp_path / "other", **options)
    for width, words in (
        ("int8", "store='int8' needs a node column of rows"),
        ("int4", "store must be"),
    ):
        with pytest.raises(ValueError, match=words):
            build_graph(tmp_path / "edges.npy", tmp_path / "other", store=width, progress=False)
    assert not (tmp_path / "other").exists()


# --------------------------------------------------------------------------------------------------
# damage and mistakes


@pytest.mark.parametrize("verify", [None, False])
def test_damaged_files_are_named(tmp_path, verify):
    graph_of(narrow(OUTLIER, "auto")).save(tmp_path / "g")
    table, codes = (next((tmp_path / "g").glob(f"ndata0{part}-*.npy")) for part in (".columns", ""))
    # a scale that becomes infinite, or a code
    for file, at in ((table, 4096 + 4 * WIDTH + 3), (codes, 5000)):
        data = bytearray(file.read_bytes())
        file.write_bytes(data[:at] + bytes([data[at] | 0x7F]) + data[at + 1 :])
        if file is table:
            file.write_bytes(data[: at - 1] + bytes([0x80, 0x7F]) + data[at + 1 :])
        if verify is None or file is table:
            with pytest.raises(ValueError, match=file.name):
                Graph.open(tmp_path / "g", verify=verify)
        file.write_bytes(data)
    table.unlink()
    with pytest.raises(ValueError, match=f"{table.name} is missing"):
        Graph.open(tmp_path / "g")


def test_readers_of_before_name_the_version(tmp_path):
    """The entry of the codes is as they know it, so that they come to the version."""
    graph_of(narrow(COLUMN)).save(tmp_path / "g")
    with changed_manifest(tmp_path / "g") as words:
        assert words["version"] == "1 with narrow rows"
        assert set(words["arrays"]["ndata0"]) == {"file", "dtype", "shape", "checksum"}
        words["version"] = "1 with wide rows"
    with pytest.raises(ValueError, match="version 1 with wide rows of the layout of 'graph', this"):
        Graph.open(tmp_path / "g")
