"""The bundled data set: what the documentation promises of it."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest
import torch

from nodeflow.datasets import Dataset, debian


@pytest.fixture(scope="module")
def data() -> Dataset:
    return debian()


def test_sizes(data):
    assert repr(data) == (
        "Dataset(debian: 63666 nodes, 300546 edges, 2000 features, 58 classes, train/val/test "
        "31833/15916/15917)"
    )
    assert len(set(data.class_names)) == 58
    assert list(data.class_names) == sorted(data.class_names)
    assert list(data.node_names) == sorted(set(data.node_names))


def test_known_dependency(data):
    bash, libc6, base_files = (
        data.node_names.index(name) for name in ("bash", "libc6", "base-files")
    )
    src, dst = data.graph.edges()
    out = {
        (int(v), int(k))
        for v, k in zip(dst[src == bash], data.graph.edata["kind"][src == bash], strict=True)
    }
    assert (base_files, 0) in out  # Depends
    assert (libc6, 1) in out  # Pre-Depends
    assert data.class_names[int(data.graph.ndata["label"][bash])] == "shells"


def test_edges_are_distinct_sorted_and_no_loops(data):
    src, dst = (ends.numpy() for ends in data.graph.edges())
    kind = data.graph.edata["kind"]
    assert kind.dtype == torch.int8
    assert torch.bincount(kind.long()).tolist() == [247362, 1001, 28929, 23254]
    assert (src != dst).all()
    order = np.lexsort((dst, kind.numpy(), src))
    assert np.array_equal(order, np.arange(len(src)))
    triples = np.unique(np.stack([src, kind.numpy(), dst]), axis=1)
    assert triples.shape[1] == len(src)


def test_features_are_sparse_rows_of_norm_one(data):
    features = data.graph.ndata["feat"]
    assert features.layout == torch.sparse_csr
    assert features.dtype == torch.float32
    row = torch.repeat_interleave(torch.arange(len(features)), features.crow_indices().diff())
    norms = (
        torch.zeros(len(features), dtype=torch.float64)
        .index_add_(0, row, features.values().double() ** 2)
        .sqrt()
    )
    empty = features.crow_indices().diff() == 0
    assert int(empty.sum()) == 208
    torch.testing.assert_close(norms[~empty], torch.ones_like(norms[~empty]), rtol=0, atol=1e-6)
    assert (norms[empty] == 0).all()


def test_labels_and_split_cover_all_nodes(data):
    label = data.graph.ndata["label"]
    assert label.dtype == torch.int64
    counts = torch.bincount(label, minlength=58)
    assert (int(counts.min()), int(counts.max())) == (15, 6711)
    assert torch.equal(torch.cat(list(data.splits.values())).sort().values, torch.arange(63666))
    order = torch.from_numpy(np.random.default_rng(0).permutation(63666))
    assert torch.equal(data.train, order[:31833].sort().values)


def test_the_docstring_says_what_is_in_the_data(data):
    graph = data.graph
    counts = torch.bincount(data.graph.ndata["label"])
    feat = graph.ndata["feat"]
    words = " ".join((debian.__doc__ or "").split())
    assert (
        f"{graph.num_nodes:,} packages, {graph.num_edges:,} edges, {feat.shape[1]:,} features "
        f"({len(feat.values()) / len(feat):.2f} non-zeros a row), {data.num_classes} classes"
        in words
    )
    assert f"({int(counts.min())} to {int(counts.max()):,})" in words


def test_file_is_small_plain_and_holds_few_numbers():
    path = resources.files("nodeflow.datasets").joinpath("debian.npz")
    with path.open("rb") as file:
        assert len(file.read()) < 2_000_000
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind == "u" for name in stored.files)
        # all that a call reads and sorts
        assert sum(stored[name].nbytes for name in stored.files) < 10_000_000
