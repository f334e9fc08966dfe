"""Frames: a dict of columns, what they refuse, how they travel, and rows that nobody computes."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from nodeflow import Frame, FullSampler, Graph, NodeFlow, create_full_node_flow, fn, ops, storage
from nodeflow._core.rows.rows import is_read_only, take_rows
from nodeflow._core.runtime.mapped import find_map


@pytest.fixture
def frame() -> Frame:
    return Frame(3, {"h": torch.ones(3, 2), "label": torch.arange(3)})


def test_behaves_like_a_dict_of_columns(frame):
    assert (list(frame), len(frame), frame.num_rows, "h" in frame, "x" in frame) == (
        ["h", "label"],
        2,
        3,
        True,
        False,
    )
    frame["h"] = column = torch.zeros(3)
    assert frame["h"] is column  # the tensor itself, not a copy
    assert frame.pop("label").tolist() == [0, 1, 2]
    frame.setdefault("k", torch.ones(3))
    del frame["h"]
    assert dict(frame).keys() == {"k"}
    assert frame.get("h") is None
    frame.clear()
    assert len(frame) == 0
    frame.update({"a": torch.ones(3)}, b=torch.zeros(3))
    frame.update()
    assert list(frame) == ["a", "b"]


def test_sparse_and_numpy_columns():
    frame = Frame(2)
    array = np.arange(4.0).reshape(2, 2)
    frame["a"] = array
    array[0, 0] = 7
    assert frame["a"][0, 0] == 7  # arrays share memory
    frame["s"] = scipy.sparse.coo_matrix(np.eye(2, 5))
    assert frame["s"].layout == torch.sparse_csr
    assert torch.equal(frame["s"].to_dense(), torch.eye(2, 5, dtype=torch.float64))
    frame["t"] = frame["s"]
    assert frame["t"] is frame["s"]


@pytest.mark.parametrize(
    ("column", "error", "words"),
    [
        (
            torch.ones(4),
            ValueError,
            r"column 'x' must have 3 rows, one per node or edge, got shape \(4,\)",
        ),
        (torch.ones(1, 3), ValueError, "must have 3 rows"),
        (torch.tensor(1.0), ValueError, r"got shape \(\)"),
        (np.ones(2), ValueError, "must have 3 rows"),
        (scipy.sparse.eye(4, format="csr"), ValueError, "must have 3 rows"),
        (
            torch.eye(3).to_sparse_coo(),
            TypeError,
            "dense or sparse CSR, got layout torch.sparse_coo",
        ),
        (
            [1, 2, 3],
            TypeError,
            r"must be a tensor, an array or a sparse matrix, got list \[1, 2, 3\]",
        ),
        (None, TypeError, "got NoneType"),
        (1.0, TypeError, "got float 1.0"),
        (np.array(["a", "b", "c"]), TypeError, "column 'x' must hold numbers"),
        (np.array([None] * 3), TypeError, "column 'x' must hold numbers"),
    ],
)
def test_what_is_no_column_is_refused_and_changes_nothing(frame, column, error, words):
    before = dict(frame)
    with pytest.raises(error, match=words):
        frame["x"] = column
    with pytest.raises(error, match=words):
        frame.update({"h": torch.zeros(3, 2), "x": column})
    with pytest.raises(error, match=words):
        Frame(3, {"x": column})
    assert list(frame) == list(before)
    assert all(frame[name] is before[name] for name in before)


def test_copies_are_independent_but_share_columns(frame):
    moved = frame.to("cpu")
    assert moved is not frame
    assert list(moved) == list(frame)
    other = frame.copy()
    assert other["h"] is frame["h"]
    other["h"] = torch.zeros(3)
    del other["label"]
    assert frame["h"].shape == (3, 2)
    assert "label" in frame


def test_repr_is_one_line(frame):
    assert repr(frame) == "Frame(3 rows: h float32 [3, 2], label int64 [3])"
    assert repr(Frame(0)) == "Frame(0 rows: no columns)"
    sparse = torch.eye(2, 3).to_sparse_csr()
    assert repr(Frame(2, {"x": sparse})) == "Frame(2 rows: x sparse float32 [2, 3])"


def test_a_view_of_a_large_column_travels_alone():
    large = torch.arange(100_000.0)
    frame = Frame(
        10, {"a": large[5:15], "b": large[10:20], "s": Frame(10, {"s": scipy.sparse.eye(10)})["s"]}
    )
    data = pickle.dumps(frame)
    assert len(data) < 2_000
    for same in (pickle.loads(data), copy.deepcopy(frame)):
        assert torch.equal(same["a"], frame["a"])
        assert torch.equal(same["b"], frame["b"])
        assert torch.equal(same["s"].to_dense(), frame["s"].to_dense())
        same["a"][0] = -1  # its memory is its own
        assert frame["a"][0] == 5


@pytest.mark.parametrize(
    "column",
    [
        torch.zeros(4, dtype=torch.bool),
        torch.ones(4, 2, dtype=torch.bfloat16),
        torch.arange(4, dtype=torch.int8).view(4, 1, 1),
        torch.zeros(4, 0),
        torch.ones(2, 4).t(),
        torch.ones(1, 3).expand(4, 3),
        torch.tensor([1 + 2j] * 4).conj(),
        torch.ones(4, 3, requires_grad=True) * 2,
        torch.nn.Parameter(torch.ones(4, 3)),
        torch.full((4,), float("nan")),
    ],
)
def test_every_kind_of_column_survives_pickling(column):
    same = pickle.loads(pickle.dumps(Frame(4, {"x": column})))["x"]
    assert (same.dtype, same.shape, same.requires_grad) == (column.dtype, column.shape, False)
    assert torch.equal(same.nan_to_num(5) if same.is_floating_point() else same,
                       column.detach().nan_to_num(5) if same.is_floating_point() else column)  # fmt: skip


def test_out_of_band_pickles_of_read_only_memory_raise_no_warning():
    buffers: list[Any] = []
    data = pickle.dumps(
        Frame(3, {"h": torch.arange(3.0)}), protocol=5, buffer_callback=buffers.append
    )
    same = pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])
    assert same["h"].tolist() == [0, 1, 2]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_columns_move_to_a_gpu_and_to_pinned_memory(frame):
    assert all(column.device.type == "cuda" for column in frame.to("cuda").values())
    frame["s"] = scipy.sparse.eye(3, format="csr")
    pinned = frame.pin_memory()
    assert pinned["h"].is_pinned()
    assert not pinned["s"].values().is_pinned()


def test_a_frame_equals_itself_only():
    frame = Frame(2, {"h": torch.ones(2, 3)})
    assert frame == frame
    assert frame != frame.copy()
    assert len({frame, frame}) == 1


def test_a_snapshot_restores_columns_that_were_set_replaced_and_deleted():
    kept = torch.ones(3)
    replaced = torch.zeros(3)
    frame = Frame(3, {"kept": kept, "replaced": replaced})
    before = frame.snapshot()
    frame["new"] = torch.ones(3)
    frame["replaced"] = torch.ones(3)
    del frame["kept"]
    assert list(before) == ["kept", "replaced"]
    frame.restore(before)
    assert list(frame) == ["kept", "replaced"]
    assert frame["kept"] is kept
    assert frame["replaced"] is replaced
    frame["new"] = torch.ones(3)
    assert "new" not in before


@pytest.fixture
def feat(tmp_path: Path) -> Any:
    np.save(tmp_path / "feat.npy", np.arange(2**18, dtype=np.float64).reshape(-1, 4))
    return np.load(tmp_path / "feat.npy", mmap_mode="r")


def test_a_column_that_maps_a_file_travels_as_the_name_of_the_file(feat):
    frames = [
        Frame(len(feat), {"x": feat}),
        Frame(len(feat), {"x": torch.ones(len(feat)), "y": feat}).copy(),
        Frame(100, {"x": feat[7:107]}),  # a slice begins later in the file
        # and so does a view of the tensor
        Frame(100, {"x": Frame(len(feat), {"x": feat})["x"][7:107]}),
        Frame(100, {"x": feat[7:107].reshape(100, 2, 2)}),
        Frame(0, {"x": feat[:0]}),
    ]
    for frame in frames:
        data = pickle.dumps(frame)
        assert len(data) < 1500 + sum(c.nbytes for c in frame.values() if c.ndim == 1)
        for same in (
            pickle.loads(data),
            copy.deepcopy(frame),
            pickle.loads(pickle.dumps(pickle.loads(data))),
        ):
            assert all(
                torch.equal(frame[name], same[name]) and frame[name].dtype == same[name].dtype
                for name in frame
            )
    again = pickle.loads(pickle.dumps(frames[0]))
    assert is_read_only(again["x"])  # no write may end the process
    assert len(pickle.dumps(again)) < 1500


def test_the_columns_of_a_pickled_graph_stay_in_their_files(feat):
    graph = Graph.from_edges(
        [0], [1], num_nodes=len(feat), ndata={"x": feat}, edata={"y": feat[3:4]}
    )
    del graph.ndata["x"]  # small without the column
    size = len(pickle.dumps(graph))
    graph.ndata["x"] = feat
    assert len(pickle.dumps(graph)) < size + 500
    assert torch.equal(pickle.loads(pickle.dumps(graph)).edata["y"], graph.edata["y"])


def test_columns_that_can_be_written_travel_by_value(tmp_path, feat):
    for mode in ("r+", "c"):
        column = np.load(tmp_path / "feat.npy", mmap_mode=mode)
        column[0] = 5
        data = pickle.dumps(Frame(len(column), {"x": column}))
        column[0] = 6
        assert pickle.loads(data)["x"][0].tolist() == [5] * 4
    for column in (feat.T.copy().T, np.array(feat), feat[::2], feat.astype(np.float32)):
        frame = Frame(len(column), {"x": column})
        assert torch.equal(pickle.loads(pickle.dumps(frame))["x"], frame["x"])


def test_the_memory_of_a_closed_map_is_forgotten(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(4))
    frame = Frame(4, {"x": np.load(tmp_path / "x.npy", mmap_mode="r")})
    address = frame["x"].data_ptr()
    assert find_map(address) is not None
    del frame
    gc.collect()
    assert find_map(address) is None


def test_a_missing_or_shorter_file_is_named(tmp_path, feat):
    data = pickle.dumps(Frame(len(feat), {"x": feat}))
    path = tmp_path / "feat.npy"
    path.rename(tmp_path / "other.npy")
    with pytest.raises(
        FileNotFoundError, match=r"there is no file .*feat\.npy: the pickle names it"
    ):
        pickle.loads(data)
    np.save(path, np.ones(3))
    with pytest.raises(
        ValueError, match=r"feat\.npy must hold .* as it did when the pickle was made"
    ):
        pickle.loads(data)


def sevens(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.full(shape, 7, dtype=dtype, device=device)


@pytest.fixture
def batch() -> NodeFlow:
    made = create_full_node_flow(Graph.from_edges([0, 1], [1, 2]), 1)
    made.ldata[0]["h"] = torch.tensor([1.0, 2.0, 3.0])
    return made


def test_where_rows_are_initial(batch):
    last = batch.ldata[1]
    last.set_initializer(sevens)
    last.set_initializer(lambda shape, dtype, device: torch.ones(shape, dtype=dtype), "one")
    batch.apply_layers(1, lambda nodes: {"a": torch.zeros(1, 2), "one": torch.zeros(1)}, v=[1])
    assert last["a"].tolist() == [[7.0, 7.0], [0.0, 0.0], [7.0, 7.0]]
    assert last["one"].tolist() == [1.0, 0.0, 1.0]
    batch.flow_compute(0, fn.copy_u("h", "m"), fn.sum("m", "s"), v=[0, 1])
    assert last["s"].tolist() == [0.0, 1.0, 7.0]  # the sum of no messages is 0
    batch.flow_compute(0, fn.copy_u("h", "m"), lambda nodes: {"r": nodes.mailbox["m"].sum(1)})
    # but a function of the user's own is not called without messages
    assert last["r"].tolist() == [7.0, 1.0, 2.0]
    batch.fdata[0].set_initializer(sevens)
    batch.apply_flows(0, fn.copy_u("h", "e"), edges=[1])
    assert batch.fdata[0]["e"].tolist() == [7.0, 2.0]
    last["a"] = torch.zeros(3, 2)
    batch.apply_layers(1, lambda nodes: {"a": torch.ones(1, 2)}, v=[1])
    assert last["a"][:, 0].tolist() == [0.0, 1.0, 0.0]  # rows of a column that is there stay


def test_new_columns_of_the_parent():
    graph = Graph.from_edges([0, 1], [1, 2])
    graph.ndata.set_initializer(sevens)
    batch = FullSampler(graph, 1)([2])
    batch.ldata[-1]["h"] = torch.tensor([3])
    batch.copy_to_parent({-1: ["h"]}, None)
    assert graph.ndata["h"].tolist() == [7, 7, 3]


def test_copies_keep_initializers_and_pickles_do_not(batch):
    frame = Frame(2, {"x": torch.zeros(2)})
    frame.set_initializer(sevens)
    other = torch.zeros(1)
    for copied, kept in (
        (frame.copy(), True),
        (frame.to("cpu"), True),
        (pickle.loads(pickle.dumps(frame)), False),
    ):
        assert copied.has_initializer("y") is kept
        assert copied.initial("y", 1, other).tolist() == [7.0 if kept else 0.0]
    copied = frame.copy()
    copied.set_initializer(None)
    copied.set_initializer(None, "unknown")
    assert (copied.has_initializer("y"), frame.has_initializer("y")) == (False, True)
    assert not copy.deepcopy(frame).has_initializer("y")
    batch.ldata[0].set_initializer(sevens)
    assert batch[:1].ldata[0].has_initializer("y")


def test_wrong_initializers():
    frame = Frame(2)
    with pytest.raises(TypeError, match="function of"):
        frame.set_initializer(3)
    like = torch.zeros(1, 2)
    for wrong in (lambda *_: torch.zeros(2), lambda *_: torch.zeros(2, 2).long(), lambda *_: None):
        frame.set_initializer(wrong)
        with pytest.raises(ValueError, match="initializer of column 'h' must return"):
            frame.initial("h", 2, like)


def wrong_matrices() -> dict[str, Tensor]:
    """Sparse CSR tensors that torch makes without a look at their parts."""
    parts: dict[str, tuple[list[int], list[int], list[float]]] = {
        "column": ([0, 1, 2, 2], [0, 5], [1.0, 1.0]),
        "negative column": ([0, 1, 2, 2], [0, -1], [1.0, 1.0]),
        "falling rows": ([0, 2, 1, 2], [0, 1], [1.0, 1.0]),
        "rows beyond": ([0, 1, 2, 9], [0, 1], [1.0, 1.0]),
    }
    return {
        name: torch.sparse_csr_tensor(
            *(torch.tensor(part) for part in of), size=(3, 2), check_invariants=False
        )
        for name, of in parts.items()
    }


@pytest.mark.parametrize("name", list(wrong_matrices()))
def test_a_sparse_matrix_whose_parts_do_not_fit_is_no_column(name, tmp_path):
    matrix = wrong_matrices()[name]
    graph = Graph.from_edges([0, 1], [1, 2])
    calls: list[Callable[[], object]] = [
        lambda: graph.ndata.update(x=matrix),
        lambda: ops.sparse_linear(matrix, torch.ones(4, 2)),
        lambda: storage.save_sparse(tmp_path / "x", matrix),
        lambda: take_rows(matrix, torch.tensor([1])),
    ]
    for call in calls:
        with pytest.raises((ValueError, IndexError), match="is a damaged sparse CSR matrix"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_scipy_matrix_whose_parts_do_not_fit_is_no_column(tmp_path):
    matrix = scipy.sparse.csr_matrix((3, 2))
    matrix.indptr = np.array([0, 1, 2, 2])
    matrix.indices = np.array([0, 5])
    matrix.data = np.ones(2, np.float32)
    with pytest.raises(IndexError, match=r"indices\[1\] is 5"):
        Graph.from_edges([0, 1], [1, 2], ndata={"x": matrix})
    with pytest.raises(IndexError, match=r"indices\[1\] is 5"):
        storage.save_sparse(tmp_path / "x", matrix)
