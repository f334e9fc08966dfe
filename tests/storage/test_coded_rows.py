"""Coded rows: sums of codes against float64, plain tensors to whatever else reads them, and where
they stay coded.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor

from nodeflow import Graph, NeighborSampler, create_node_flow, flow_from_edges, nn, ops
from nodeflow._core.rows import coded
from nodeflow.flow import Flow
from nodeflow.ops import _compiled as native
from nodeflow.storage import CodedRows, NarrowRows, narrow

WIDTHS = (16, 17, 31, 64, 79, 80, 100, 128)


@pytest.fixture(autouse=True)
def least(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of few bytes stay coded too, of none or of the parameter."""
    monkeypatch.setattr(coded, "_LEAST", getattr(request, "param", 0))


def column(rows: int, width: int, seed: int = 0) -> CodedRows:
    """Rows of columns with zero points of all kinds: within the codes, far off, and of
    constants.
    """
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))
    x[:, 1::5] = (x[:, 1::5] * 20).round() + 1990
    x[:, 2::5] = 0.25
    return CodedRows(narrow(x, limit=10))


def reference(flow: Flow, h: Tensor, weight: Tensor | None, reduce: str) -> tuple[Tensor, Tensor]:
    """The sums or means in float64, edge by edge, and the sums of sizes, which bound the
    rounding.
    """
    out, sizes = (torch.zeros(flow.num_dst, h.shape[1], dtype=torch.float64) for _ in range(2))
    for e, (u, v) in enumerate(zip(*(ids.tolist() for ids in flow.edges()), strict=True)):
        row = h[u].double() * (1.0 if weight is None else weight[e].double())
        out[v] += row
        sizes[v] += row.abs()
    count = flow.in_degrees.clamp(min=1).unsqueeze(1) if reduce == "mean" else 1
    return out / count, sizes / count


@st.composite
def cases(draw: st.DrawFn) -> tuple[Flow, CodedRows, Tensor]:
    """A flow whose destinations are the first sources, a column, and the rows of it that the
    sources are.
    """
    num_src = draw(st.integers(1, 12))
    width = draw(st.sampled_from(WIDTHS))
    rows = draw(st.integers(1, 20))
    num_dst = draw(st.integers(0, num_src))
    most = 3 * num_src if num_dst else 0
    edges = draw(
        st.lists(
            st.tuples(st.integers(0, num_src - 1), st.integers(0, max(num_dst - 1, 0))),
            max_size=most,
        )
    )
    src, dst = zip(*edges, strict=True) if edges else ((), ())
    flow = flow_from_edges(list(src), list(dst), num_src=num_src, num_dst=num_dst)
    ids = draw(st.lists(st.integers(0, rows - 1), min_size=num_src, max_size=num_src))
    return flow, column(rows, width, draw(st.integers(0, 3))), torch.tensor(ids)


@given(cases(), st.sampled_from(["sum", "mean"]), st.booleans(), st.booleans())
def test_sums_of_codes(case, reduce, weighted, own):
    flow, rows, ids = case
    h = rows.fetch(ids)
    plain = NarrowRows(rows.stored, rows.coding).fetch(ids)
    weight = torch.linspace(-1, 2, flow.num_edges) if weighted else None
    out = native.weighted_sum(flow.structure, "v", h, weight, reduce == "mean", own)
    assert coded.is_coded(h) or not flow.num_edges
    width = h.shape[1]
    if own:
        assert out[:, :width].equal(plain[: flow.num_dst])
        out = out[:, width:]
    exact, sizes = reference(flow, plain, weight, reduce)
    assert out.shape == exact.shape
    assert ((out.double() - exact).abs() <= 1e-5 * sizes).all()


def plain_of(rows: CodedRows) -> NarrowRows:
    return NarrowRows(rows.stored, rows.coding)


@pytest.mark.parametrize("degree", [31, 32, 33, 65, 1000])
@pytest.mark.parametrize("width", WIDTHS)
def test_destinations_with_many_edges(degree, width):
    rows = column(40, width)
    draw = torch.Generator().manual_seed(degree)
    src = torch.cat([torch.randint(0, 500, (degree,), generator=draw), torch.tensor([3, 3])])
    dst = torch.cat([torch.zeros(degree, dtype=torch.int64), torch.tensor([1, 3])])
    flow = flow_from_edges(src, dst, num_src=500, num_dst=5)
    ids = torch.randint(0, 40, (500,), generator=draw)
    for reduce in ("sum", "mean"):
        h = rows.fetch(ids)
        out = flow.aggregate(h, reduce)
        exact, sizes = reference(flow, plain_of(rows).fetch(ids), None, reduce)
        assert coded.is_coded(h)
        assert ((out.double() - exact).abs() <= 1e-5 * sizes).all()


def test_sums_of_whole_numbers_are_exact():
    x = torch.randint(0, 250, (300, 24), generator=torch.Generator().manual_seed(0)).float()
    x[0] = 0
    x[1] = 249
    h = CodedRows(narrow(x)).fetch(torch.arange(300))
    flow = flow_from_edges(
        torch.arange(300), torch.zeros(300, dtype=torch.int64), num_src=300, num_dst=1
    )
    assert flow.aggregate(h, "sum").equal(x.double().sum(0, keepdim=True).float())
    assert coded.is_coded(h)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch):
    monkeypatch.setattr(native, "THREAD_ELEMENTS", 64)
    rows = column(200, 37)
    draw = torch.Generator().manual_seed(0)
    src = torch.randint(0, 150, (400,), generator=draw)
    dst = torch.randint(0, 60, (400,), generator=draw)
    flow = flow_from_edges(src, dst, num_src=150, num_dst=60)
    ids = torch.randint(0, 200, (150,), generator=draw)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            h = rows.fetch(ids)
            weight = torch.linspace(-1, 1, 400)
            results.append(native.weighted_sum(flow.structure, "v", h, weight, mean=True, own=True))
            assert coded.is_coded(h)
    finally:
        torch.set_num_threads(before)
    assert all(result.equal(results[0]) for result in results)


def test_rows_that_many_edges_read_are_unpacked_once():
    rows = column(4, 16)
    ends = torch.arange(4).repeat_interleave(4), torch.arange(4).repeat(4)
    flow = flow_from_edges(*ends, num_src=4, num_dst=4)
    h = rows.fetch([0, 1, 2, 3])
    assert flow.aggregate(h, "sum").equal(flow.aggregate(plain_of(rows).fetch([0, 1, 2, 3]), "sum"))
    assert not coded.is_coded(h)


# -------------------------------------------------------------------------------------------------
# other operations


IDS = torch.tensor([3, 0, 3, 9, 5])


@pytest.mark.parametrize(
    "operation",
    [
        "h + 1",
        "1 - h",
        "torch.cat([h, h], 1)",
        "h.t() @ h",
        "h[1:3]",
        "h[[0, 2]]",
        "h[:, 2]",
        "h[-2:]",
        "h.index_select(0, torch.tensor([4, 0]))",
        "h.index_select(1, torch.tensor([4, 0]))",
        "h[1:].index_select(0, torch.tensor([1]))",
        "h.to(torch.float64)",
        "h.to('cpu').clone()",
        "h.detach()",
        "torch.from_numpy(h.numpy())",
        "torch.from_numpy(h.__array__())",
        "torch.tensor(h.tolist())",
        "torch.nn.functional.linear(h, torch.ones(2, 16))",
        "pickle.loads(pickle.dumps(h))",
        "h.__deepcopy__({})",
        "torch.empty_like(h).copy_(h)",
        "h.max(0).values",
        "torch.vmap(lambda row: row * 2)(h)",
        "torch.zeros(5, 16).add_(h)",
        "torch.stack(list(h))",
        "torch.stack(h.split(5))",
        "h.unflatten(1, (2, 8))",
        "torch.nn.Dropout(0.0)(h)",
        "h.new_zeros(3)",
        "torch.zeros(5, 16).index_add_(0, torch.arange(5), h)",
    ],
)
def test_operations_see_plain_rows(operation):
    rows = column(10, 16)
    out = eval(operation, {**globals(), "h": rows.fetch(IDS)})
    assert out.equal(eval(operation, {**globals(), "h": plain_of(rows).fetch(IDS)}))
    assert type(out + 0) is Tensor


def test_what_needs_no_row():
    h = column(10, 16).fetch(IDS)
    assert (h.shape, h.dtype, h.device, h.layout) == (
        (5, 16),
        torch.float32,
        torch.device("cpu"),
        torch.strided,
    )
    assert (len(h), h.ndim, h.dim(), h.size(1), h.numel(), h.requires_grad) == (
        5,
        2,
        2,
        16,
        80,
        False,
    )
    assert h.to("cpu") is h
    assert h.to(torch.float32) is h
    assert coded.is_coded(h[:2])
    assert coded.is_coded(h.index_select(0, torch.tensor([1, 1])))
    assert coded.is_coded(h)


def test_changes_in_place_are_seen():
    rows = column(10, 16)
    h = rows.fetch(IDS)
    h.mul_(2)
    h[0] = 7
    expected = plain_of(rows).fetch(IDS) * 2
    expected[0] = 7
    flow = flow_from_edges([0, 1], [0, 0], num_src=5, num_dst=1)
    assert h[:3].equal(expected[:3])
    assert flow.aggregate(h, "sum").equal(flow.aggregate(expected, "sum"))


def test_a_selection_of_no_row_raises():
    h = column(10, 16).fetch(IDS)
    with pytest.raises(IndexError):
        h.index_select(0, torch.tensor([5]))
    with pytest.raises(IndexError):
        column(10, 16).fetch([10])


def test_gradients_of_weights_read_the_rows():
    rows = column(10, 16)
    flow = flow_from_edges([0, 1, 1, 4], [0, 0, 2, 2], num_src=5, num_dst=3)
    gradients = []
    for h in (rows.fetch(IDS), plain_of(rows).fetch(IDS)):
        weight = torch.ones(4, requires_grad=True)
        flow.aggregate(h, "mean", weight=weight).square().sum().backward()
        gradients.append(weight.grad)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    "operation",
    [
        lambda flow, h: flow.aggregate(h, "sum"),
        lambda flow, h: flow.aggregate_beside_own(h, "mean"),
        lambda flow, h: flow.aggregate(h, ["max", "sum"])[0],
        lambda flow, h: flow.share_dst(h)[0],
        lambda flow, h: ops.linear_sum((h, torch.ones(2, 16))),
        lambda flow, h: h * 2,
    ],
)
def test_rows_that_are_given_a_gradient_in_place(
    operation,
):
    rows = column(10, 16)
    gradients = []
    flow = create_node_flow(
        [flow_from_edges([0, 1, 1], [0, 0, 2], num_src=5, num_dst=3)], [range(5), range(3)]
    ).flows[0]
    for h in (rows.fetch(IDS), plain_of(rows).fetch(IDS)):
        h.requires_grad_()
        assert h.requires_grad
        operation(flow, h).square().sum().backward()
        assert h.grad is not None
        gradients.append(h.grad)
    assert gradients[0].equal(gradients[1])


# -------------------------------------------------------------------------------------------------
# models and memory


def batches(width: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The same batch twice: with coded rows, and with plain ones."""
    draw = torch.Generator().manual_seed(4)
    ends = torch.randint(0, 60, (2, 240), generator=draw)
    rows = column(60, width)
    found = []
    for x in (rows, plain_of(rows)):
        graph = Graph.from_edges(*ends, num_nodes=60, ndata={"feat": x})
        batch = NeighborSampler(graph, [3, 3])([4, 7, 1])
        batch.copy_from_parent({0: ["feat"]})
        found.append(batch)
    return found


@pytest.mark.parametrize(
    ("make", "stays"),
    [
        ("nn.GraphSAGE(20, 4, 3)", True),
        ("nn.GraphSAGE(20, 4, 3, aggregator='gcn')", True),
        ("nn.GraphSAGE(20, 4, 3, aggregator='pool')", False),
        ("nn.GCN(20, 4, 3)", True),
        ("nn.GIN(20, 4, 3)", True),
        ("nn.GAT(20, 4, 3)", False),
    ],
)
@pytest.mark.parametrize("order", ["aggregate", "transform"])
def test_models(make, stays, order, monkeypatch):
    torch.manual_seed(0)
    model: Any = eval(make)
    results = []
    linear = isinstance(model.convs[0], nn.LinearConv)
    if order == "transform" and (not linear or not stays):
        pytest.skip("it has one order")
    if linear:
        model.convs[0].order = order
    for batch in batches(20, monkeypatch):
        model.zero_grad()
        out = model(batch, batch.inputs["feat"])
        out.square().sum().backward()
        results.append([out, *(p.grad for p in model.parameters())])
        if type(batch.inputs["feat"]) is not Tensor:
            assert coded.is_coded(batch.inputs["feat"]) == (stays and order == "aggregate")
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [nn.GraphSAGE, nn.GCN, nn.GIN])
def test_only_own_rows_are_unpacked(make, monkeypatch):
    sizes = []
    coding = type(narrow(torch.ones(1, 1)).coding)
    unpack = coding.unpack
    monkeypatch.setattr(
        coding,
        "unpack",
        lambda self, codes, ids: sizes.append(len(ids)) or unpack(self, codes, ids),
    )
    batch, _ = batches(20, monkeypatch)
    sizes.clear()  # of the plain batch
    make(20, 64, 3)(batch, batch.inputs["feat"]).sum().backward()
    assert set(sizes) <= {batch.layer_sizes[1]}
    assert batch.layer_sizes[1] < batch.layer_sizes[0]


def test_the_frame_of_a_batch_pickles_plain_rows(monkeypatch):
    batch, plain = batches(20, monkeypatch)
    again = pickle.loads(pickle.dumps(batch))
    assert type(again.inputs["feat"]) is Tensor
    assert again.inputs["feat"].equal(plain.inputs["feat"])


def test_a_column_keeps_its_kind_where_it_goes():
    rows = column(10, 16)
    again = pickle.loads(pickle.dumps(rows))
    assert isinstance(again, CodedRows)
    assert isinstance(rows.like(rows.stored), CodedRows)
    assert again.fetch(IDS).equal(rows.fetch(IDS))
    assert repr(rows) == "CodedRows(float32 as int8 [10, 16])"


@pytest.mark.parametrize(
    "rows",
    [
        narrow(torch.randn(9, 15)),
        narrow(torch.randn(9, 16), "bfloat16"),
        narrow(torch.randn(9, 16, 2)),
    ],
    ids=["narrower than a vector", "bfloat16", "three dimensions"],
)
def test_other_rows_are_plain(rows):
    assert type(CodedRows(rows).fetch([1, 2])) is Tensor
    assert CodedRows(rows).fetch([1, 2]).equal(rows.fetch([1, 2]))


@pytest.mark.parametrize("least", [4 * 16 * 5], indirect=True)
def test_small_batches_and_given_tensors_are_plain():
    rows = column(10, 16)
    out = torch.empty(5, 16)
    assert coded.is_coded(rows.fetch(IDS))
    assert type(rows.fetch(IDS[:4])) is Tensor
    assert rows.fetch(IDS, out) is out
    assert out.equal(plain_of(rows).fetch(IDS))
