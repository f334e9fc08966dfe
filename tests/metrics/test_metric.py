"""Metrics of node tasks against their definitions: ties, absent classes, large offsets, nothing to
evaluate.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from _support.effort import examples
from hypothesis import given, strategies as st

from nodeflow import metrics


def f1(predicted: np.ndarray, wanted: np.ndarray) -> float:
    """Of bools; NaN where there is nothing to find and nothing found."""
    hits = (predicted & wanted).sum()
    return 2 * hits / (predicted.sum() + wanted.sum()) if (predicted | wanted).any() else math.nan


@examples(30)
@given(st.integers(2, 6), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_metrics_of_classes(classes, rows, seed):
    rng = np.random.default_rng(seed)
    # ties, and classes that are nowhere
    scores = rng.integers(0, 3, (rows, classes)).astype(np.float32)
    targets = rng.integers(0, classes, rows)
    first = np.array([row.tolist().index(row.max()) for row in scores])
    one_hot = np.eye(classes, dtype=bool)
    each = [f1(one_hot[first][:, c], one_hot[targets][:, c]) for c in range(classes)]
    found = {name: metrics.named(name, task="classification")(torch.tensor(scores), torch.tensor(targets))
             for name in ("accuracy", "f1_micro", "f1_macro")}  # fmt: skip
    wanted = {
        "accuracy": np.mean(first == targets),
        "f1_micro": np.mean(first == targets),
        "f1_macro": np.nanmean(each),
    }
    assert found == pytest.approx(wanted, rel=1e-12)


def test_the_only_class_is_always_right():
    scores = torch.tensor([[-1.0], [2.0], [0.0]])
    classes = torch.zeros(3, dtype=torch.int64)
    for name in ("accuracy", "f1_micro", "f1_macro"):
        metric = metrics.named(name, task="classification")
        assert metric(scores, classes) == 1
        with pytest.raises(
            ValueError, match=r"targets\[0\] is 1, but there are scores of classes 0 to 0"
        ):
            metric(scores, classes + 1)


@examples(30)
@given(
    st.integers(1, 12),
    st.booleans(),
    st.booleans(),
    st.sampled_from([torch.bool, torch.int64, torch.float32]),
    st.data(),
)
def test_metrics_of_one_label(rows, wide, wide_targets, kind, data):
    """Scores and labels of shape [n] or [n, 1], in any combination and type."""
    scores = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=rows, max_size=rows))) / 2
    targets = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)))
    outputs = torch.tensor(scores).view((rows, 1) if wide else (rows,))
    wanted = torch.tensor(targets).to(kind).view((rows, 1) if wide_targets else (rows,))
    predicted = scores > 0
    assert metrics.named("accuracy")(outputs, wanted) == pytest.approx(
        np.mean(predicted == targets)
    )
    if (predicted | targets).any():
        for name in ("f1_micro", "f1_macro"):
            assert metrics.named(name)(outputs, wanted) == pytest.approx(f1(predicted, targets))
    if 0 < targets.sum() < rows:
        for name, value in (
            ("average_precision", metrics.average_precision),
            ("auroc", metrics.auroc),
        ):
            assert metrics.named(name)(outputs, wanted) == pytest.approx(value(scores, targets))


@examples(30)
@given(st.integers(1, 5), st.integers(1, 12), st.booleans(), st.integers(0, 2**32 - 1))
def test_metrics_of_labels(labels, rows, positive, seed):
    """Also where all scores lie between 0 and 1 and are no probabilities."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0 if positive else -3, 3, (rows, labels)) / 2
    targets = rng.random((rows, labels)) < 0.4
    predicted = scores > 0
    each = [f1(predicted[:, i], targets[:, i]) for i in range(labels)]
    named = {name: metrics.named(name, task="multilabel") for name in ("f1_micro", "f1_macro")}
    outputs = torch.tensor(scores)
    wanted = torch.tensor(targets).float()
    if (predicted | targets).any():
        assert named["f1_micro"](outputs, wanted) == pytest.approx(
            f1(predicted, targets), rel=1e-12
        )
        assert named["f1_macro"](outputs, wanted) == pytest.approx(np.nanmean(each), rel=1e-12)
    both = [i for i in range(labels) if 0 < targets[:, i].sum() < rows]
    for name, value in (("average_precision", metrics.average_precision), ("auroc", metrics.auroc)):
        if both:
            area = [value(scores[:, i], targets[:, i]) for i in both]
            assert metrics.named(name)(outputs, wanted) == pytest.approx(np.mean(area))
        else:
            with pytest.raises(ValueError, match="no label has both ones and zeros"):
                metrics.named(name)(outputs, wanted)


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_metrics_of_numbers(columns, offset):
    rng = np.random.default_rng(0)
    shape = (50,) if columns is None else (50, columns)
    targets = (rng.normal(size=shape) + offset).astype(np.float32)
    outputs = (targets + rng.normal(size=shape)).astype(np.float32)
    wrong = outputs.astype(np.float64) - targets
    spread = ((targets - targets.astype(np.float64).mean(0)) ** 2).sum(0)
    wanted = {
        "mae": np.abs(wrong).mean(), "mse": (wrong**2).mean(), "rmse": (wrong**2).mean() ** 0.5,
        "r2": np.mean(1 - (wrong**2).sum(0) / spread),
    }  # fmt: skip
    for name, value in wanted.items():
        found = metrics.named(name, task="regression")(
            torch.tensor(outputs).reshape(50, -1), torch.tensor(targets)
        )
        assert found == pytest.approx(value, rel=1e-9), name


@examples(60)
@given(
    st.integers(1, 6),
    st.integers(1, 8),
    st.integers(1, 7),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_metrics_of_candidates(rows, candidates, k, one_each, seed):
    """One row and one candidate at a time."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, (rows, candidates)) * 1000.0
    right = rng.random((rows, candidates)) < 0.4
    targets = torch.tensor(right).long()
    if one_each:
        targets = torch.from_numpy(rng.integers(0, candidates, rows))
        right = np.eye(candidates, dtype=bool)[targets.numpy()]
    reciprocal = []
    precision = []
    for row, which in zip(scores.tolist(), right.tolist(), strict=True):
        if not any(which):
            continue
        best = max(score for score, is_right in zip(row, which, strict=True) if is_right)
        above = sum(score > best for score in row)
        ties = sum(score == best for score in row) - 1
        reciprocal.append(1 / (1 + above + ties / 2))
        order = sorted(range(candidates), key=lambda i: (-row[i], i))[:k]
        hits = [which[i] for i in order]
        total = sum(sum(hits[: i + 1]) / (i + 1) for i in range(len(hits)) if hits[i])
        precision.append(total / min(k, sum(which)))
    for name, values in (("mrr", reciprocal), (f"map@{k}", precision)):
        if values:
            assert metrics.named(name)(torch.tensor(scores), targets) == pytest.approx(
                np.mean(values), rel=1e-12
            )
        else:
            with pytest.raises(ValueError, match="no row has a right candidate"):
                metrics.named(name)(torch.tensor(scores), targets)


def test_which_values_are_better():
    names = ("accuracy", "f1_micro", "auroc", "r2", "mae", "mse", "rmse", "mrr", "map@5")
    assert {name for name in names if not metrics.named(name).larger_is_better} == {
        "mae",
        "mse",
        "rmse",
    }
    assert metrics.named("mae").is_better(1.0, 2.0)
    assert not metrics.named("r2").is_better(0.5, 0.5)


def test_a_metric_of_ones_own():
    metric = metrics.Metric(
        "largest", lambda outputs, targets: (outputs - targets).abs().max(), larger_is_better=False
    )
    assert metric(torch.tensor([1.0, 4.0], requires_grad=True), torch.tensor([1.0, 1.0])) == 3.0
    assert metric.is_better(1.0, 3.0)
