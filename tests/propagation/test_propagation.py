"""Full propagation against dense float64 matrices: every type and layout of rows, filters, both
directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.graphs import sparse_column
from _support.own_rows import OwnRows
from _support.views import viewed
from hypothesis import given, strategies as st

from nodeflow import Graph, nn
from nodeflow.propagation import Propagation, _edge_sums as propagation
from nodeflow.testing import graphs

NARROW = [torch.bfloat16, torch.float16]
NODES = 60
EDGES = 700


def example(
    kind: torch.dtype | None = torch.float32, wide: bool = False, **options: Any
) -> Propagation:
    """A hub of 400 edges, others with few or none, repeated edges, and weights of type ``kind``."""
    random = np.random.default_rng(3)
    src = random.integers(0, NODES, EDGES)
    dst = np.concatenate([np.full(400, 7), random.integers(0, NODES // 2, EDGES - 400)])
    if wide:
        order = np.argsort(dst, kind="stable")
        graph = Graph(
            np.searchsorted(dst[order], np.arange(NODES + 1)),
            src[order].astype(np.int64),
            copy=False,
        )
    else:
        graph = Graph.from_edges(src, dst, num_nodes=NODES)
    if kind is not None:
        graph.edata["w"] = torch.from_numpy(random.standard_normal(EDGES)).to(kind)
    return viewed(Propagation, graph.view(weight=None if kind is None else "w"), **options)


def matrix(of: Propagation) -> torch.Tensor:
    """The map as a dense matrix, float64, made edge by edge."""
    src, dst = (end.tolist() for end in of.graph.edges())
    p = torch.zeros(of.graph.num_nodes, of.graph.num_nodes, dtype=torch.float64)
    for e, (u, v) in enumerate(zip(src, dst, strict=True)):
        if of.view.where is None or of.view.where.mask[e]:
            weight = 1.0 if of.view.weight is None else float(of.graph.edata[of.view.weight][e])
            p[(u, v) if of.view.direction == "out" else (v, u)] += weight
    return p


def rows_of(width: int, kind: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(width).standard_normal((NODES, width))).to(kind)


def check(of: Propagation, h: torch.Tensor, rows: Any = None) -> None:
    got = of(h, rows)
    assert got.dtype == (torch.float64 if h.dtype == torch.float64 else torch.float32)
    exact = matrix(of) @ h.double().reshape(NODES, -1)
    exact = (exact if rows is None else exact[rows]).reshape(got.shape)
    exactly = h.dtype == torch.float64 and (of.weights is None or of.weights.dtype == np.float64)
    close = 1e-12 if exactly else 2e-5
    torch.testing.assert_close(got.double(), exact, rtol=close, atol=close)


@given(
    graphs(),
    st.data(),
    st.sampled_from(["in", "out"]),
    st.booleans(),
    st.sampled_from([1, 3, 2**20]),
)
def test_sums_are_those_of_the_matrix(graph, data, direction, filtered, at_once):
    size = graph.num_nodes
    graph.edata["w"] = torch.linspace(-2, 3, graph.num_edges)
    mask = torch.arange(graph.num_edges) % 3 != 1 if filtered else None
    weight = data.draw(st.sampled_from([None, "w"]))
    rows = data.draw(st.lists(st.integers(0, size - 1), max_size=8)) if size else []
    h = torch.from_numpy(np.random.default_rng(0).standard_normal((size, 3)))
    of = Propagation(graph.view(direction, where=mask, weight=weight))
    expected = matrix(of)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(propagation, "_EDGES", at_once)
        torch.testing.assert_close(of(h), expected @ h)
        torch.testing.assert_close(of(h, rows), (expected @ h)[rows])
        torch.testing.assert_close(of(h[:, 0], rows), (expected @ h)[rows][:, 0])
        torch.testing.assert_close(of(h.float()), (expected @ h).float(), rtol=1e-4, atol=1e-4)
        narrow = h.to(torch.bfloat16)
        torch.testing.assert_close(
            of(narrow, rows), (expected @ narrow.double()).float()[rows], rtol=1e-4, atol=1e-4
        )
    if size:
        import scipy.sparse

        sparse = sparse_column(scipy.sparse.csr_array(np.where(h.numpy() > 0, h.numpy(), 0)))
        torch.testing.assert_close(of(sparse).to_dense(), expected @ sparse.to_dense())
        torch.testing.assert_close(
            of(sparse, rows).to_dense(), (expected @ sparse.to_dense())[rows]
        )
    assert torch.equal(
        of.degrees_of(torch.arange(graph.num_nodes)),
        matrix(Propagation(graph.view(direction, where=mask))).sum(1).long(),
    )


@given(graphs(min_nodes=1), st.sampled_from(["in", "out"]), st.integers(1, 4))
def test_flows_of_ranges_hold_all_edges_once(graph, direction, rows):
    graph.edata["w"] = torch.linspace(-2, 3, graph.num_edges)
    of = Propagation(graph.view(direction, weight="w"))
    h = torch.arange(graph.num_nodes).double().unsqueeze(1)
    found = []
    edges = []
    for start, stop in of.ranges(rows):
        flow = of.flow(start, stop)
        assert flow.dst_layer.parent_nid.tolist() == list(range(start, stop))
        assert torch.equal(flow.take_dst(h), h[start:stop])
        found.append(flow.aggregate(h, "sum", weight=flow.weight.double()))
        assert torch.equal(flow.weight, graph.edata["w"][flow.parent_eid])
        edges += flow.parent_eid.tolist()
    torch.testing.assert_close(torch.cat(found), of(h))
    assert sorted(edges) == list(range(graph.num_edges))


def test_hubs_and_gradients():
    graph = Graph.from_edges(range(1, 70_001), [0] * 70_000)
    h = torch.ones(70_001, 2, requires_grad=True)
    out = Propagation(graph)(h, [0, 5])
    assert out.tolist() == [[70_000.0, 70_000.0], [0.0, 0.0]]
    assert not out.requires_grad


def test_flows_of_a_float64_column_are_exact():
    graph = Graph.from_edges(
        [0, 1, 2], [2, 2, 2], edata={"p": torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)}
    )
    propagation = Propagation(graph.view(weight="p"))
    h = torch.tensor([[1.0], [2.0], [5.0]], dtype=torch.float64)
    for flow in (propagation.flow(0, 3), propagation.flow_into(np.array([2]))):
        assert torch.equal(flow.weight, graph.edata["p"][flow.parent_eid])
        rows = h[flow.src_layer.parent_nid]
        sums = flow.aggregate(rows, "sum", weight=flow.weight)
        assert torch.allclose(sums, propagation(h)[flow.dst_layer.parent_nid], rtol=1e-15, atol=0)


def test_integers_and_rows_of_ones_own_are_added_too():
    graph = Graph.from_edges([0, 1, 2, 0], [2, 2, 0, 1])
    h = torch.tensor([[1, 2], [3, 4], [5, 6]])
    assert Propagation(graph)(h).tolist() == [[5.0, 6.0], [1.0, 2.0], [4.0, 6.0]]
    assert Propagation(graph)(OwnRows(h.float())).tolist() == Propagation(graph)(h.float()).tolist()


def test_inference_through_a_filter_of_edges():
    graph = Graph.from_edges([0, 1, 2, 0], [2, 2, 0, 1])
    keep = torch.tensor([True, False, True, True])
    model = nn.GraphSAGE(2, 3, 2, num_layers=2)
    h = torch.tensor([[1.0, 0], [3, 4], [5, 6]])
    kept = Graph.from_edges([0, 2, 0], [2, 0, 1])
    assert torch.equal(model.inference(graph.view(where=keep), h), model.inference(kept, h))


# ---- the compiled loop


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, *NARROW])
@pytest.mark.parametrize("width", [1, 3, 15, 16, 33, 130])
def test_types_and_widths(kind, width):
    of = example()
    degrees = of.degrees_of(torch.arange(of.graph.num_nodes))
    assert degrees.max() >= 400
    assert degrees.min() == 0
    check(of, rows_of(width, kind))
    check(of, rows_of(width, kind), [59, 7, 0, 7, 58])


@pytest.mark.parametrize("weight", [None, torch.float32, torch.float64, torch.float16, torch.int64])
# the loop compiles again
@pytest.mark.parametrize("wide", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_types_of_weights_and_ids(weight, wide):
    of = example(weight, wide=wide)
    assert of.graph.csc()[1].dtype == (np.int64 if wide else np.int32)
    for kind in (torch.float64, torch.bfloat16):
        check(of, rows_of(5, kind), [7, 8, 9, 7])


@pytest.mark.parametrize("kind", NARROW)
def test_every_narrow_number_is_widened_exactly(kind):
    bits = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(kind)
    h = torch.stack([torch.zeros_like(bits), bits])
    got = Propagation(Graph.from_edges([1], [0]))(h, [0])[0]
    expected = bits.float()
    assert torch.equal(got.isnan(), expected.isnan())
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_layouts(kind):
    of = example()
    wide = rows_of(24, kind)
    for h in (
        wide[:, 3:14],  # columns of a wider matrix
        wide[:, 5],
        wide[:, ::2],
        rows_of(NODES, kind).t(),
        wide.reshape(NODES, 2, 3, 4),
        wide.reshape(NODES, 4, 6).transpose(1, 2),
        wide[:1].expand(NODES, 24),  # the same row, everywhere
        torch._neg_view(wide),
    ):
        check(of, h, [7, 3, 50])
        check(of, h)
    assert of(wide[:, :0], [1, 2]).shape == (2, 0)
    assert of(wide, []).shape == (0, 24)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("start", [0, 2, 3])
def test_mapped_files(tmp_path, kind, start):
    h = rows_of(10, kind)
    file = tmp_path / "rows"
    file.write_bytes(bytes(start) + h.view(torch.uint8).numpy().tobytes())
    mapped = np.memmap(file, np.uint8, "r+")
    found = torch.frombuffer(mapped, dtype=kind, offset=start).view(h.shape)
    assert found.data_ptr() % 64 == start
    assert (
        torch.equal(example()(found, [7, 2]), example()(h.clone(), [7, 2])) or start % kind.itemsize
    )
    check(example(), found, [7, 2, 40])
    check(example(), found)


@pytest.mark.parametrize("all_rows", [False, True])
def test_sums_do_not_depend_on_threads_and_pieces(monkeypatch, all_rows):
    of = example()
    h = rows_of(40, torch.float32)
    rows = None if all_rows else list(range(NODES)) * 2
    before = torch.get_num_threads()
    found = []
    try:
        for threads, edges, rows_at_once in (
            (1, 2**20, 2**14),
            (1, 100, 1),
            (3, 2**20, 1),
            (3, 50, 1),
        ):
            torch.set_num_threads(threads)
            sizes = {"_EDGES": edges, "_AT_ONCE": rows_at_once, "_SHARED": 1}
            for name, size in sizes.items():
                monkeypatch.setattr(propagation, name, size)
            found.append(of(h, rows))
    finally:
        torch.set_num_threads(before)
    check(of, h, rows)
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_a_row_alone_has_the_sum_that_it_has_among_others():
    of = example()
    h = rows_of(17, torch.bfloat16)
    together = of(h)
    assert all(torch.equal(of(h, [v])[0], together[v]) for v in range(NODES))
