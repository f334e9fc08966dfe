"""Decoders: formulas against loops over numbers in float64, shapes, gradients, and what is
refused.
"""

from __future__ import annotations

import cmath
import math
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from _support.effort import examples
from hypothesis import given, strategies as st

from nodeflow import nn

WIDTH = 6
RELATIONS = 3
OPTIONS = {
    "transe": [{"norm": 1}, {"norm": 2}],
    "rotate": [{"norm": 1}, {"norm": 2}],
    "mlp": [{"hidden": 4, "num_layers": 3}],
}
KINDS = {
    name + str(options.get("norm", "")): partial(decoder, WIDTH, **options)
    for name, decoder in nn.DECODERS.items()
    for options in OPTIONS.get(name, [{}])
}
SMOOTH = ["dot", "bilinear", "distmult", "complex", "transe2", "rotate2"]


def make(kind: str, **options) -> nn.Decoder:
    torch.manual_seed(1)
    decoder = KINDS[kind](**{"num_relations": RELATIONS, **options}).double()
    for name, parameter in decoder.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)  # at 0, the kinks of ReLU are hit exactly
    return decoder


def rows(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(
        *shape, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


def complex_numbers(row) -> list[complex]:
    half = len(row) // 2
    return [complex(row[i], row[half + i]) for i in range(half)]


def reference(kind: str, decoder: nn.Decoder, s, r: int, d) -> float:
    """The score of one triple, by loops over Python numbers."""
    weights = {name: value.detach().numpy() for name, value in decoder.named_parameters()}
    s = [float(x) for x in s]
    d = [float(x) for x in d]
    if kind == "dot":
        return math.fsum(a * b for a, b in zip(s, d, strict=True))
    if kind == "bilinear":
        w = weights["weight"][r]
        return math.fsum(s[i] * w[i, j] * d[j] for i in range(WIDTH) for j in range(WIDTH))
    if kind == "mlp":
        hidden = [
            weights["source.bias"][k]
            + math.fsum(weights["source.weight"][k, i] * s[i] for i in range(WIDTH))
            + math.fsum(
                weights["middle.weight"][k, i] * weights["relation"][r, i] for i in range(WIDTH)
            )
            + math.fsum(weights["destination.weight"][k, i] * d[i] for i in range(WIDTH))
            for k in range(4)
        ]
        for layer in ("rest.2", "rest.5"):
            w = weights[f"{layer}.weight"]
            b = weights[f"{layer}.bias"]
            hidden = [
                b[k] + math.fsum(w[k, i] * max(x, 0) for i, x in enumerate(hidden))
                for k in range(len(b))
            ]
        return hidden[0]
    if kind.startswith("rotate"):
        turned = zip(complex_numbers(s), weights["angle"][r], complex_numbers(d), strict=True)
        apart = [abs(a * cmath.exp(1j * angle) - b) for a, angle, b in turned]
        return (
            -math.fsum(apart) if kind == "rotate1" else -math.sqrt(math.fsum(x * x for x in apart))
        )
    w = [float(x) for x in weights["relation"][r]]
    if kind == "distmult":
        return math.fsum(a * b * c for a, b, c in zip(s, w, d, strict=True))
    if kind == "complex":
        triples = zip(complex_numbers(s), complex_numbers(w), complex_numbers(d), strict=True)
        return math.fsum((a * b * c.conjugate()).real for a, b, c in triples)
    apart = [a + b - c for a, b, c in zip(s, w, d, strict=True)]
    return (
        -math.fsum(map(abs, apart))
        if kind == "transe1"
        else -math.sqrt(math.fsum(x * x for x in apart))
    )


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_formulas(kind, inverse):
    decoder = make(kind, inverse=inverse)
    given_ = rows(5)
    table = rows(7, seed=1)
    rel = torch.tensor([2, 0, 1, 2, 0])
    for side in ("destination", "source"):
        found = decoder.score_all(given_, rel, table, side=side).detach()
        wanted = np.empty((5, 7))
        for i, j in np.ndindex(5, 7):
            r = int(rel[i])
            if side == "destination":
                wanted[i, j] = reference(kind, decoder, given_[i], r, table[j])
            elif inverse:
                wanted[i, j] = reference(kind, decoder, given_[i], r + RELATIONS, table[j])
            else:
                wanted[i, j] = reference(kind, decoder, table[j], r, given_[i])
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
        ends = (given_[:, None], table) if side == "destination" else (table, given_[:, None])
        pairs = decoder(ends[0], ends[1], rel[:, None], side=side).detach()
        np.testing.assert_allclose(pairs, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@examples(12)
def test_shapes_broadcast(kind, data):
    """A table per chunk, one for all, one relation for all: as each query alone; sizes of 0 too."""
    decoder = make(kind)
    c, n, k = (data.draw(st.integers(0, 3)) for _ in range(3))
    side = data.draw(st.sampled_from(["destination", "source"]))
    given_ = rows(c, n)
    shared = data.draw(st.booleans())
    table = rows(k, seed=1) if shared else rows(c, k, seed=1)
    rel = data.draw(
        st.sampled_from(
            [torch.randint(RELATIONS, (c, n)), torch.randint(RELATIONS, (n,)), torch.tensor(1)]
        )
    )
    found = decoder.score_all(given_, rel, table, side=side)
    assert found.shape == (c, n, k)
    for i in range(c):
        for j in range(n):
            own = table if shared else table[i]
            r = rel.expand(c, n)[i, j]
            ends = (given_[i, j], own) if side == "destination" else (own, given_[i, j])
            torch.testing.assert_close(found[i, j], decoder(*ends, r), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["dot", "bilinear", "distmult", "complex"])
def test_own_candidates_of_a_table_that_fits_no_cache(kind, monkeypatch):
    """The pairs are then done row by row of the table: scores and both gradients are those of
    copied rows.
    """
    decoder = make(kind)
    chosen = torch.randint(40, (5, 9))
    query = rows(5).requires_grad_()
    table = rows(40, seed=1).requires_grad_()
    wanted_scores = decoder.compare(query[:, None], table[chosen])
    wanted = torch.autograd.grad(wanted_scores.pow(2).sum(), (query, table))
    for cached in (10**6, query.nbytes, 0):
        monkeypatch.setattr("nodeflow.nn._decoders.CACHED", cached)
        scores = decoder.compare_own(query, table, chosen)
        torch.testing.assert_close(scores, wanted_scores, rtol=1e-12, atol=1e-12)
        found = torch.autograd.grad(scores.pow(2).sum(), (query, table))
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
        assert decoder.compare_own(query[:0], table, chosen[:0]).shape == (0, 9)


class _Call(torch.nn.Module):
    """Pairs, or a table on both sides, as one function of rows and parameters."""

    def __init__(self, decoder: nn.Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, given_, rel, rows_, every):
        if not every:
            return self.decoder(given_, rows_, rel)
        return torch.cat(
            [self.decoder.score_all(given_, rel, rows_, side=s) for s in ("destination", "source")]
        )


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    decoder = make(kind)
    names = [f"decoder.{name}" for name, _ in decoder.named_parameters()]
    rel = torch.tensor([[2, 0], [1, 2]])

    def call(every, given_, table, *weights):
        bound = dict(zip(names, weights, strict=True))
        relation = rel if every else rel.unsqueeze(-1)
        return torch.func.functional_call(_Call(decoder), bound, (given_, relation, table, every))

    inputs = [rows(2, 2), rows(2, 3, seed=1), *(p.detach().clone() for p in decoder.parameters())]
    inputs = [x.requires_grad_() for x in inputs]
    pairs = [
        inputs[0].detach().unsqueeze(2).requires_grad_(),
        inputs[1].detach().unsqueeze(1).requires_grad_(),
    ]
    assert torch.autograd.gradcheck(partial(call, False), (*pairs, *inputs[2:]))
    assert torch.autograd.gradcheck(
        partial(call, True), tuple(inputs), fast_mode=kind == "bilinear"
    )
    if kind in SMOOTH:
        assert torch.autograd.gradgradcheck(partial(call, True), tuple(inputs), fast_mode=True)


@pytest.mark.parametrize("kind", KINDS)
def test_slices_of_a_table_change_nothing(kind, monkeypatch):
    decoder = make(kind)
    given_ = rows(2, 4)
    rel = torch.randint(RELATIONS, (2, 4))
    table = rows(2, 9, seed=1).requires_grad_()
    whole = decoder.score_all(given_, rel, table)
    gradient = torch.autograd.grad(whole.square().sum(), table)[0]
    monkeypatch.setattr("nodeflow.nn._decoder_base._SLICE", 100)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(decoder.score_all(given_, rel, table), whole)
    again = torch.autograd.grad(decoder.score_all(given_, rel, table).square().sum(), table)[0]
    torch.testing.assert_close(again, gradient)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_as_its_own_answer_has_finite_gradients(kind):
    decoder = make(kind)
    x = rows(3).requires_grad_()
    with torch.no_grad():
        for p in decoder.parameters():
            p.zero_()
    (decoder(x, x, 0).sum() + decoder.score_all(x, 0, x).sum()).backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("kind", KINDS)
def test_without_relations(kind):
    plain = make(kind, num_relations=None)
    one = make(kind, num_relations=1)
    s = rows(4)
    d = rows(4, seed=1)
    assert torch.equal(plain(s, d), plain(s, d, 0))
    assert torch.equal(plain(s, d), one(s, d, torch.zeros(4, dtype=torch.int32)))
    both = make(kind, num_relations=None, inverse=True)
    assert both.score_all(s, None, d, side="source").shape == (4, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_types_and_pickles(kind):
    decoder = make(kind).float()
    again = pickle.loads(pickle.dumps(decoder))
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        if dtype != torch.float32 and kind == "mlp":
            continue  # a torch.nn.Linear takes rows of its own type
        if dtype == torch.bfloat16 and kind in ("transe1", "transe2", "rotate2"):
            continue  # torch.cdist has no bfloat16
        s = rows(4).to(dtype)
        d = rows(5, seed=1).to(dtype)
        found = decoder.score_all(s, 1, d)
        assert found.dtype == dtype
        assert torch.equal(found, again.score_all(s, 1, d))
    assert type(decoder).__name__ in repr(decoder)
    assert "num_relations=3" in repr(decoder)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "shapes", [((11,), (13,)), ((2, 9), (2, 5)), ((3, 8), (5,)), ((2, 3), (2, 4)), ((0, 9), (0, 5))]
)
def test_compiled_distances_are_those_of_torch(shapes, dtype):
    """Values and gradients, also where rows are equal, for a table per chunk and a shared one."""
    decoder = make("rotate1").to(dtype)
    query, table = (rows(*shape, seed=i).to(dtype) for i, shape in enumerate(shapes))
    if table.numel():
        table[..., 0, :] = query[..., 0, :] if query.ndim == table.ndim else query[0, 0]
    query = query.requires_grad_()
    table = table.requires_grad_()
    found = decoder.compare_all(query, table)
    wanted = nn.Decoder.compare_all(decoder, query, table)
    torch.testing.assert_close(found, wanted)
    weights = torch.linspace(-5, 5, found.numel(), dtype=dtype).reshape(found.shape)
    first = torch.autograd.grad(found, (query, table), weights)
    for a, b in zip(first, torch.autograd.grad(wanted, (query, table), weights), strict=True):
        torch.testing.assert_close(a, b)
    assert torch.isfinite(first[0]).all()


def test_compiled_distances_differentiate_twice():
    decoder = make("rotate1")
    query = rows(9).requires_grad_()
    table = rows(4, seed=1).requires_grad_()
    assert torch.autograd.gradgradcheck(decoder.compare_all, (query, table), fast_mode=True)
    assert torch.autograd.gradcheck(
        lambda t: decoder.compare_all(query.detach(), t), table, fast_mode=True
    )


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("kind", ["distmult", "complex"])
def test_cubed_norms_are_those_of_the_formula(kind, inverse):
    decoder = make(kind, inverse=inverse)
    src = rows(2, 4)
    dst = rows(4, seed=1)
    rel = torch.tensor([2, 0, 1, 2])
    for side in ("destination", "source"):
        found = decoder.n3(src, rel, dst, side=side)
        assert found.shape == (2, 4)
        for i, j in np.ndindex(2, 4):
            r = int(rel[j]) + (RELATIONS if inverse and side == "source" else 0)
            read = complex_numbers if kind == "complex" else list
            numbers = [
                x for row in (src[i, j], decoder.relation[r], dst[j]) for x in read(row.tolist())
            ]
            assert found[i, j].item() == pytest.approx(
                math.fsum(abs(x) ** 3 for x in numbers), rel=1e-12
            )
    inputs = (src.requires_grad_(), dst.requires_grad_(), decoder.relation)
    assert torch.autograd.gradcheck(lambda s, d, _: decoder.n3(s, rel, d), inputs)
    zero = torch.zeros(1, WIDTH, dtype=torch.float64, requires_grad=True)
    decoder.n3(zero, 0, zero).sum().backward()
    assert zero.grad.abs().max() == 0


def test_initial_parameters():
    """From many numbers: standard deviations within 2 %, lengths and bounds as documented."""
    torch.manual_seed(0)
    for decoder in (nn.DistMult(400, 100), nn.ComplEx(400, 100)):
        assert abs(float(decoder.relation.detach().std()) * 20 - 1) < 0.02
    torch.testing.assert_close(nn.TransE(50, 10).relation.norm(dim=1), torch.ones(10))
    angle = nn.RotatE(400, 100).angle.detach()
    assert angle.abs().max() <= math.pi
    assert abs(float(angle.std()) * math.sqrt(3) / math.pi - 1) < 0.02
    assert nn.Bilinear(100, 2).weight.abs().max() <= math.sqrt(6 / 200)
    assert nn.DistMult(4, 3, inverse=True).relation.shape == (6, 4)
    assert list(nn.DotProduct(4, 3).parameters()) == []
