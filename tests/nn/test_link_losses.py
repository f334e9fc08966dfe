"""Losses of link prediction: formulas in Python floats, large scores, what is left out, weights,
mistakes.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from nodeflow import nn

GENERATOR = torch.Generator().manual_seed(0)
POSITIVE = torch.randn(4, 3, dtype=torch.float64, generator=GENERATOR) * 3
NEGATIVE = torch.randn(4, 3, 5, dtype=torch.float64, generator=GENERATOR) * 3
LOSSES = {
    "softmax": nn.softmax_loss,
    "logistic": nn.logistic_loss,
    "margin": nn.margin_loss,
    "self-adversarial": nn.self_adversarial_loss,
}


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def reference(kind: str, p: float, row: list[float], **o: float) -> float:
    """The loss of one true pair, by the formula of the docstring."""
    k = len(row)
    if kind == "softmax":
        return -math.log(math.exp(p) / (math.exp(p) + math.fsum(map(math.exp, row))))
    if kind == "logistic":
        return -log_sigmoid(p) - math.fsum(log_sigmoid(-n) for n in row) / k
    if kind == "margin":
        return math.fsum(max(0.0, o.get("margin", 1.0) - p + n) for n in row) / k
    margin = o.get("margin", 0.0)
    alpha = o.get("temperature", 1.0)
    powers = [math.exp(alpha * n) for n in row]
    hard = math.fsum(
        x / math.fsum(powers) * log_sigmoid(-n - margin) for x, n in zip(powers, row, strict=True)
    )
    return -log_sigmoid(margin + p) - hard


CASES = [
    ("softmax", {}),
    ("logistic", {}),
    ("margin", {}),
    ("margin", {"margin": 0.3}),
    ("self-adversarial", {}),
    ("self-adversarial", {"margin": 2.0, "temperature": 0.5}),
    ("self-adversarial", {"temperature": 0.0}),
]


@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_losses_are_those_of_the_formulas(kind, options):
    loss = LOSSES[kind]
    each = loss(POSITIVE, NEGATIVE, reduction="none", **options)
    wanted = np.array([[reference(kind, float(POSITIVE[i, j]), NEGATIVE[i, j].tolist(), **options) for j in range(3)]
                       for i in range(4)])  # fmt: skip
    np.testing.assert_allclose(each, wanted, rtol=1e-12)
    weight = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(loss(POSITIVE, NEGATIVE, **options), each.mean())
    torch.testing.assert_close(loss(POSITIVE, NEGATIVE, reduction="sum", **options), each.sum())
    weighted = loss(POSITIVE, NEGATIVE, weight=weight, **options)
    torch.testing.assert_close(weighted, (each * weight).sum() / weight.sum())
    torch.testing.assert_close(
        loss(POSITIVE, NEGATIVE, weight=weight, reduction="sum", **options), (each * weight).sum()
    )


@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_gradients(kind, options):
    def call(positive, negative):
        return LOSSES[kind](positive, negative, **options)

    if kind == "self-adversarial" and options.get("temperature", 1.0):
        negative = NEGATIVE.clone().requires_grad_()
        call(POSITIVE, negative).backward()
        a = options.get("temperature", 1.0)
        margin = options.get("margin", 0.0)
        # the weights have no gradient
        wanted = (a * NEGATIVE).softmax(-1) * torch.sigmoid(NEGATIVE + margin) / 12
        torch.testing.assert_close(negative.grad, wanted)
        return
    inputs = (POSITIVE.clone().requires_grad_(), NEGATIVE.clone().requires_grad_())
    assert torch.autograd.gradcheck(call, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, inputs, fast_mode=True)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_what_has_no_score_counts_for_nothing(kind, options):
    loss = LOSSES[kind]
    there = torch.rand(4, 3, 5, generator=torch.Generator().manual_seed(2)) < 0.6
    there[0, 0] = False
    negative = NEGATIVE.masked_fill(~there, -torch.inf).requires_grad_()
    each = loss(POSITIVE, negative, reduction="none", **options)
    for i, j in itertools.product(range(4), range(3)):
        alone = loss(POSITIVE[i, j], NEGATIVE[i, j][there[i, j]], **options)
        torch.testing.assert_close(each[i, j], alone)
    each.sum().backward()
    assert (negative.grad[~there] == 0).all()
    assert torch.isfinite(negative.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", LOSSES)
def test_large_scores(kind, dtype):
    """Scores of thousands give finite losses and gradients, which equal those in float64."""
    positive = torch.tensor([6000.0, -6000, 0, 6000, -6000], dtype=dtype).requires_grad_()
    negative = torch.tensor(
        [[6000.0, 1], [6000, 6000], [-6000, -1], [-6000, -6000], [0, -6000]], dtype=dtype
    )
    negative.requires_grad_()
    loss = LOSSES[kind](positive, negative)
    loss.backward()
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), LOSSES[kind](positive.double(), negative.double()))
    for scores in (positive, negative):
        assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("kind", LOSSES)
def test_nothing(kind):
    loss = LOSSES[kind]
    assert loss(torch.zeros(0), torch.zeros(0, 5)) == 0
    assert loss(torch.zeros(0), torch.zeros(0, 5), reduction="none").shape == (0,)
    assert loss(torch.zeros(3), torch.zeros(3, 2), weight=torch.zeros(3)) == 0
    no_negatives = loss(torch.zeros(3), torch.zeros(3, 0))
    assert torch.isclose(
        no_negatives, torch.tensor({"softmax": 0.0, "margin": 0.0}.get(kind, math.log(2)))
    )


def test_log_proposal_makes_the_sum_unbiased():
    """All draws of two negatives from three nodes, by their probabilities: the mean sum is that
    over the nodes.
    """
    q = [0.5, 0.3, 0.2]
    *scores, p = torch.tensor([[0.4], [-1.0], [2.0], [0.7]], dtype=torch.float64)
    scores = torch.cat(scores)
    mean = 0.0
    for drawn in itertools.product(range(3), repeat=2):
        log_q = torch.tensor([math.log(q[n]) for n in drawn], dtype=torch.float64)
        loss = nn.softmax_loss(p, scores[list(drawn)][None], log_proposal=log_q)
        mean += q[drawn[0]] * q[drawn[1]] * math.exp(float(loss + p[0]))
    assert math.isclose(mean, math.exp(0.7) + float(scores.exp().sum()), rel_tol=1e-12)
    even = torch.full((1, 3), -math.log(3), dtype=torch.float64)
    whole = nn.softmax_loss(p, scores[None], log_proposal=even)
    torch.testing.assert_close(whole, nn.softmax_loss(p, scores[None]))


# ---- one against all

SCORES = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
ONE = torch.tensor([5, 0, 2, 2])
SEVERAL = torch.tensor(
    [[1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 0]]
).bool()


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_one_against_all(several, binary, epsilon):
    answers = SEVERAL if several else ONE
    found = nn.one_vs_all_loss(
        SCORES, answers, binary=binary, label_smoothing=epsilon, reduction="none"
    )
    for i, row in enumerate(SCORES.tolist()):
        true = [float(SEVERAL[i, j]) if several else float(j == ONE[i]) for j in range(6)]
        share = 1 if binary else sum(true)
        target = [(1 - epsilon) * y / share + epsilon / 6 for y in true]
        if binary:
            terms = [
                -y * log_sigmoid(s) - (1 - y) * log_sigmoid(-s)
                for s, y in zip(row, target, strict=True)
            ]
            wanted = math.fsum(terms) / 6
        else:
            total = math.log(math.fsum(map(math.exp, row)))
            wanted = -math.fsum(y * (s - total) for s, y in zip(row, target, strict=True))
        assert math.isclose(float(found[i]), wanted, rel_tol=1e-12)
    options = {"binary": binary, "label_smoothing": epsilon}
    weight = torch.tensor([1.0, 0.0, 2.0, 1.0], dtype=torch.float64)
    weighted = nn.one_vs_all_loss(SCORES, answers, weight=weight, **options)
    torch.testing.assert_close(weighted, (found * weight).sum() / 4)
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: nn.one_vs_all_loss(s, answers, **options), scores)
    # a candidate left out is as one that is not there
    less = torch.cat([SCORES, torch.full((4, 1), -torch.inf)], 1)
    true = torch.cat([SEVERAL, torch.zeros(4, 1, dtype=torch.bool)], 1) if several else ONE
    torch.testing.assert_close(nn.one_vs_all_loss(less, true, reduction="none", **options), found)


def test_one_against_all_with_large_scores_and_without_rows():
    for binary in (False, True):
        scores = (SCORES.float() * 1e4).requires_grad_()
        nn.one_vs_all_loss(scores, ONE, binary=binary).backward()
        assert torch.isfinite(scores.grad).all()
        assert (
            nn.one_vs_all_loss(torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64), binary=binary)
            == 0
        )
