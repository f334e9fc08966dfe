"""The compiled loops against loops in Python and torch's own way, bit by bit between threads, and
where they end.
"""

import math

import numpy as np
import pytest
import torch
from _support.effort import examples
from _support.ops_reference import (
    SAMPLES,
    Edges,
    for_threads,
    same_bits,
    set_sizes,
    some_edges,
    sum_with_torch,
    values,
)
from hypothesis import given, strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.utils.flop_counter import FlopCounterMode

from nodeflow import ops
from nodeflow.ops import Structure, _autograd as spmm, _compiled as native, opaque

WIDTHS = st.sampled_from([1, 3, 8, 15, 16, 17, 31, 32, 40, 63, 64, 65, 100, 136])
TYPES = st.sampled_from([torch.float32, torch.float64])


def near(dtype):
    return (
        {"rtol": 1e-12, "atol": 1e-12} if dtype == torch.float64 else {"rtol": 2e-5, "atol": 2e-5}
    )


def numbers(rows, shape, seed, dtype):
    """Rounded to one decimal: extremes tie often."""
    return values(rows, shape, seed).mul(2).round().div(2).to(dtype)


def random_structure(num_src=300, num_dst=200, num_edges=4000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(num_src, (num_edges,), generator=generator)
    # the last ten have no edges
    dst = torch.randint(num_dst - 10, (num_edges,), generator=generator).sort().values
    dst[: num_edges // 2] = 7
    indptr = torch.cat(
        [torch.zeros(1, dtype=torch.int64), torch.bincount(dst, minlength=num_dst).cumsum(0)]
    )
    return Structure(indptr, src, num_src)


@pytest.fixture
def torch_only(monkeypatch):
    """A switch that turns the compiled loops off."""
    return lambda: sum_with_torch(monkeypatch)


@examples(80)
@given(
    some_edges(),
    WIDTHS,
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from(["u", "v"]),
    st.booleans(),
    TYPES,
)
def test_weighted_sums_and_dots_against_matrices(edges, width, groups, end, sorted_before, dtype):
    structure = Structure(*_parts(edges))
    count = len(edges.edges)
    size = width * (groups or 1)
    if sorted_before:
        structure.transposed()
    x = values(edges.num_src if end == "v" else edges.num_dst, (size,), 1)
    w = values(count, () if groups is None else (groups,), 2)
    expected = np.zeros((edges.num_dst if end == "v" else edges.num_src, size))
    wide = np.repeat(w.numpy().reshape(count, groups or 1), width, 1)
    for e, (src, dst) in enumerate(edges.edges):
        row, other = (dst, src) if end == "v" else (src, dst)
        expected[row] += wide[e] * x[other].numpy()
    got = spmm.Spmm.apply(structure, x.to(dtype), w.to(dtype), end)
    np.testing.assert_allclose(got.numpy(), expected, **near(dtype))
    a = values(edges.num_dst, (size,), 3)
    b = values(edges.num_src, (size,), 4)
    dots = spmm.EdgeDot.apply(structure, a.to(dtype), b.to(dtype), groups).view(count, groups or 1)
    for e, (src, dst) in enumerate(edges.edges):
        products = (a[dst] * b[src]).view(groups or 1, width).sum(1)
        np.testing.assert_allclose(dots[e].numpy(), products.numpy(), **near(dtype))


def _parts(edges):
    return edges.structure.indptr, edges.structure.indices, edges.num_src


@examples(80)
@given(some_edges(), WIDTHS, st.sampled_from(["u", "e"]), st.sampled_from(["max", "min"]), TYPES)
def test_extremes_and_ties_against_the_generic_way(edges, width, kind, reduce, dtype):
    rows = edges.rows(kind)
    results = []
    g = values(edges.num_dst, (width,), 5, dtype)
    for compiled in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not compiled:
                sum_with_torch(patch)
            x = numbers(rows, (width,), 6, dtype).requires_grad_()
            out = ops.message_reduce(edges.structure, "copy", kind, x, None, None, reduce)
            out.backward(g)
            results.append((out.detach(), x.grad))
    assert torch.equal(results[0][0], results[1][0])
    torch.testing.assert_close(results[0][1], results[1][1], **near(dtype))


@examples(60)
@given(
    some_edges(),
    st.sampled_from([(), (1,), (7,), (16,), (4, 5)]),
    st.sampled_from([0.0, 50.0, -1e4]),
    TYPES,
)
def test_softmax_and_its_gradient_against_torch(edges, shape, shift, dtype):
    count = len(edges.edges)
    scores = (5 * values(count, shape, 1, dtype) + shift).requires_grad_()
    same = scores.detach().clone().requires_grad_()
    g = values(count, shape, 2, dtype)
    out = ops.segment_softmax(edges.structure, scores)
    parts = [torch.softmax(same[edges.into(v)], 0) for v in range(edges.num_dst)]
    expected = torch.cat([*parts, same[:0]])
    torch.testing.assert_close(
        out, expected, rtol=4e-6 if dtype == torch.float32 else 1e-13, atol=1e-30
    )
    out.backward(g)
    (expected * g).sum().backward()
    torch.testing.assert_close(
        scores.grad, same.grad, rtol=1e-4, atol=1e-6 if dtype == torch.float32 else 1e-12
    )


def test_nan_and_infinity_go_where_they_belong():
    structure = Edges(4, 2, [(0, 0), (1, 0), (2, 1), (3, 1)]).structure
    h = torch.tensor(
        [[1.0, math.nan], [math.nan, -math.inf], [-math.inf, 2.0], [-math.inf, math.inf]]
    )
    largest = ops.aggregate(structure, h, "max")
    assert largest[0].isnan().all()
    assert largest[1].tolist() == [-math.inf, math.inf]
    scores = torch.tensor([1.0, math.nan, 2.0, -math.inf])
    out = ops.segment_softmax(structure, scores)
    assert out[:2].isnan().all()
    assert out[2:].tolist() == [1, 0]
    assert ops.segment_softmax(structure, torch.tensor([0.0, math.inf, 0.0, 0.0])).isnan().tolist()[
        :2
    ] == [True, True]


def passes(structure, dtype=torch.float32):
    """Every result and gradient that the compiled loops make."""
    h = values(structure.num_src, (4, 33), 1, dtype).requires_grad_()
    scores = values(structure.num_edges, (4, 1), 2, dtype).requires_grad_()
    alpha = ops.segment_softmax(structure, scores)
    outs = [
        ops.aggregate(structure, h, "sum", alpha),
        ops.aggregate(structure, h[:, 0, :9], "mean"),
    ]
    outs += [ops.aggregate(structure, h, reduce) for reduce in ("sum", "mean", "max", "min")]
    outs += ops.aggregate(structure, h, ["mean", "max", "std"])
    outs.append(ops.segment_reduce(structure, alpha))
    torch.cat([(out * out).reshape(-1) for out in outs]).sum().backward()
    return [out.detach() for out in outs] + [h.grad, scores.grad]


def test_threads_change_no_bit(monkeypatch):
    set_sizes(monkeypatch, THREAD_ELEMENTS=100)
    counts = []
    run_all = native.run_all
    monkeypatch.setattr(
        native, "run_all", lambda run, count: counts.append(count) or run_all(run, count)
    )
    alone = for_threads([1], lambda: passes(random_structure()))
    assert not counts
    assert same_bits(alone + for_threads((2, 3, 7), lambda: passes(random_structure())))
    assert max(counts) == 7
    assert sum(count > 1 for count in counts) > 40


@pytest.mark.parametrize("width", [16, 64, 80, 132])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_written_past_the_caches_have_the_same_bits(width, dtype, monkeypatch):
    # buffers of ours begin with a line of the caches
    set_sizes(monkeypatch, THREAD_ELEMENTS=100, LARGE=1)
    structure = random_structure()
    h = values(structure.num_src, (width,), 1, dtype)
    edges = values(structure.num_edges, (width,), 2, dtype)
    g = values(structure.num_dst, (width,), 3, dtype)
    weight = values(structure.num_edges, (), 4, dtype)
    choices = []
    results = []
    streams = native._is_streamed
    monkeypatch.setattr(
        native, "_is_streamed", lambda out: choices.append(streams(out)) or choices[-1]
    )
    structure.transposed()

    def run():
        sums = [
            native.weighted_sum(structure, end, x, weight, False) for end, x in (("v", h), ("u", g))
        ]
        sums += [native.weighted_sum(structure, "v", h, None, True)]
        return [*sums, *(native.edge_sum(structure, end, edges) for end in ("v", "u"))]

    for threads, least in ((1, 2**60), (1, 1), (3, 1)):
        set_sizes(monkeypatch, STREAMED=least)
        results += for_threads([threads], run)
    assert sum(choices) == (0 if width % 16 else 10)
    assert same_bits(results)


def test_rows_added_and_rows_sorted_first_give_the_same_bits(monkeypatch):
    results = []
    for narrow in (0, 10**6):
        set_sizes(monkeypatch, NARROW=narrow)
        structure = random_structure()
        results += for_threads([1], lambda structure=structure: passes(structure))
        assert structure.is_transposed == (narrow == 0)
    assert same_bits(results)


@pytest.mark.parametrize("cached", [0, 20 * 40 * 8, 10**6])
def test_sources_that_stay_in_the_cache_are_added_to_with_the_same_bits(cached, monkeypatch):
    """20 sources of 320 bytes and 200 destinations: added to only where the former fit and the
    latter do not.
    """
    set_sizes(monkeypatch, CACHED=cached)
    g = values(200, (40,), 1)
    w = values(4000, (), 2)
    first = random_structure(num_src=20)
    again = random_structure(num_src=20)
    again.transposed()
    sums = native.weighted_sum(first, "u", g, w, False)
    assert first.is_transposed == (cached != 20 * 40 * 8)
    assert torch.equal(sums, native.weighted_sum(again, "u", g, w, False))


def test_first_and_second_gradients(torch_only):
    structure = Edges(3, 3, [(0, 0), (1, 0), (1, 0), (2, 2), (0, 2), (1, 2), (2, 2)]).structure
    h = values(3, (2, 5), 1).requires_grad_()
    alpha = values(7, (2, 1), 2).requires_grad_()
    w = values(7, (), 3).requires_grad_()
    functions = [
        (lambda h, w: ops.aggregate(structure, h, "mean", w), (h, w)),
        (
            lambda h, a: ops.aggregate(structure, h, "sum", ops.segment_softmax(structure, a)),
            (h, alpha),
        ),
        (lambda h, a: ops.aggregate(structure, h, "mean", a), (h, alpha)),
        (lambda h: ops.aggregate(structure, h, "max"), (h,)),
        (lambda a: ops.segment_reduce(structure, a, "min"), (alpha,)),
    ]
    for _ in range(2):
        for function, arguments in functions:
            assert gradcheck(function, arguments)
            assert gradgradcheck(function, arguments)
        torch_only()


def test_a_hub_of_many_edges():
    count = 100_000
    generator = torch.Generator().manual_seed(0)
    structure = Structure(
        torch.tensor([0, 0, count]), torch.randint(50, (count,), generator=generator), 50
    )
    h = torch.randn(50, 20, generator=generator, dtype=torch.float64).requires_grad_()
    scores = torch.randn(count, 2, 1, generator=generator, dtype=torch.float64)
    alpha = ops.segment_softmax(structure, scores)
    torch.testing.assert_close(alpha, torch.softmax(scores, 0))
    out = ops.aggregate(structure, h.view(50, 2, 10), "sum", alpha)
    messages = h.view(50, 2, 10)[structure.indices] * alpha
    torch.testing.assert_close(out[1], messages.sum(0))
    best = ops.aggregate(structure, h, "max")
    (grad,) = torch.autograd.grad(best.sum(), h)
    assert torch.equal(best[1], h.max(0).values)
    # equal shares of all its edges add up to one
    torch.testing.assert_close(grad, (h == h.max(0).values).double())


@pytest.mark.slow
def test_places_beyond_32_bits():
    last = 2**27 + 3
    # pages that nobody touches take no memory
    x = torch.from_numpy(np.zeros((last + 1, 16), np.float32))
    assert x.numel() > 2**31
    x[last] = torch.arange(16.0)
    x.requires_grad_()
    structure = Structure(torch.tensor([0, 2]), torch.tensor([last, 1]), last + 1)
    w = torch.tensor([2.0, 1.0], requires_grad=True)
    assert ops.aggregate(structure, x.detach(), "max")[0].tolist() == list(range(16))
    out = ops.aggregate(structure, x, "sum", w)
    assert out[0].tolist() == list(range(0, 32, 2))
    out.sum().backward()
    assert w.grad.tolist() == [120, 0]
    assert x.grad[last].tolist() == [2] * 16
    assert x.grad[1].tolist() == [1] * 16


def test_views_broadcasts_and_empty_rows_of_features():
    edges = SAMPLES["mixed"]
    wide = values(4, (2, 12), 5, torch.float32)
    alpha = values(9, (4,), 6, torch.float32)[:, ::2].unsqueeze(2)
    got = ops.aggregate(edges.structure, wide[:, :, ::2], "sum", alpha)
    assert torch.equal(
        got, ops.aggregate(edges.structure, wide[:, :, ::2].clone(), "sum", alpha.clone())
    )
    out = ops.aggregate(edges.structure, wide.requires_grad_(), "max")
    out.sum().backward()  # the gradient is one number, expanded
    assert wide.grad.sum() == 4 * 24
    for reduce in ("sum", "mean", "max"):
        none = torch.zeros(4, 0, requires_grad=True)
        ops.aggregate(edges.structure, none, reduce).sum().backward()
        assert none.grad.shape == (4, 0)


@pytest.mark.parametrize("name", list(SAMPLES))
def test_sums_that_are_counted_are_torchs_own(name):
    structure = SAMPLES[name].structure
    edges = SAMPLES[name].edges
    h = values(SAMPLES[name].num_src, (2, 4), 1)
    w = values(len(edges), (2,), 2)
    for weight in (None, w[:, 0], w):
        expected = spmm.Spmm.apply(structure, h, weight)
        with FlopCounterMode(display=False):
            found = spmm.Spmm.apply(structure, h, weight)
        torch.testing.assert_close(found, expected)


def test_other_tensors_go_the_way_of_torch():
    plain = torch.ones(2, 3)
    assert native.is_native(plain, None, torch.nn.Parameter(plain))
    for other in (
        plain.half(),
        plain.long(),
        plain.to("meta"),
        torch.nn.Buffer(plain).to(torch.bfloat16),
    ):
        assert not native.is_native(plain, other)
    seen = []
    torch.vmap(lambda row: seen.append(native.is_native(row)) or row)(plain)
    assert seen == [False]
    structure = SAMPLES["mixed"].structure
    scores = torch.zeros(9)
    with torch.inference_mode():
        assert ops.aggregate(structure, torch.ones(4, 2)).sum() == 18
        assert ops.segment_softmax(structure, scores).sum() == 4
    with torch.no_grad():
        assert not ops.aggregate(
            structure, torch.ones(4, 2, requires_grad=True), "max"
        ).requires_grad


def test_a_compiled_model_calls_operations_as_they_are(monkeypatch):
    """From the first time on that it is compiled, also where the compiler has given up on the
    caller.
    """
    disabled = []

    def double(x: int) -> int:
        return 2 * x

    call = opaque(double)
    other = opaque(double)
    monkeypatch.setattr(
        torch.compiler, "disable", lambda function: disabled.append(function) or function
    )
    assert (call(1), disabled) == (2, [])
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert (call(2), call(3), disabled) == (4, 6, [double])
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: False)
    assert (call(4), other(5), disabled) == (8, 10, [double])
    assert call.__code__ is not other.__code__  # the compiler counts its looks by them
    assert call.__code__.co_name == "double"
