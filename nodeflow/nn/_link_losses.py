"""Losses of link prediction: scores of true pairs against scores of negatives, or of all nodes."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import as_number, check_one_of, describe
from nodeflow.nn._conv import check_range


def softmax_loss(
    positive: Tensor,
    negative: Tensor,
    *,
    log_proposal: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``-log(exp(p) / (exp(p) + sum_k exp(n_k)))``: the true pair is chosen among itself and
    its negatives.

    With ``log_proposal`` every ``exp(n_k)`` is divided by ``K q_k``, where ``q_k`` is the
    probability with which its node was drawn. Then the sum is an unbiased estimate of the sum over
    all nodes that may be drawn, by importance sampling (Bengio, Senecal 2008, section III), and the
    loss approaches that of a softmax over all of them.

    Args:
        positive: scores ``[...]`` of true pairs.
        negative: scores ``[..., K]`` of their negatives; -inf leaves one out.
        log_proposal: logarithms of the probabilities ``q_k``, broadcast to ``[..., K]``; see
            ``LinkSampler``.
        weight: a number per true pair, ``[...]``; the mean is the weighted one.
        reduction: "mean", "sum" or "none".

    Returns a number, or with "none" ``[...]``, in float32 at least. The mean of no pairs, or of
    weights 0, is 0.

    Raises ValueError for shapes that do not fit, and for another reduction.

    >>> softmax_loss(torch.tensor([0.0]), torch.zeros(1, 3)).exp()  # one of four
    tensor(4.)
    """
    positive, negative = _scores(positive, negative)
    if log_proposal is not None:
        # a negative that is drawn with probability q stands for 1 / (K q) nodes
        negative = negative - (log_proposal + math.log(max(negative.shape[-1], 1)))
    scores = torch.cat([positive.unsqueeze(-1), negative], -1)
    return _reduced(scores.logsumexp(-1) - positive, weight, reduction)


def logistic_loss(
    positive: Tensor, negative: Tensor, *, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return ``-log sigmoid(p) - mean_k log sigmoid(-n_k)``: every pair is classified as true or
    not.

    Negative sampling (Mikolov, Sutskever, Chen, Corrado, Dean 2013, equation 4) with a mean for the
    sum over negatives. Arguments, result and errors as ``softmax_loss``; the mean is over the
    negatives that are not left out.

    >>> logistic_loss(torch.tensor([0.0]), torch.zeros(1, 3)).exp()
    tensor(4.)
    """
    positive, negative = _scores(positive, negative)
    return _reduced(
        _mean(-F.logsigmoid(-negative), negative) - F.logsigmoid(positive), weight, reduction
    )


def margin_loss(
    positive: Tensor,
    negative: Tensor,
    *,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``mean_k max(0, margin - p + n_k)``: a true pair scores above its negatives by a
    margin.

    Bordes, Usunier, Garcia-Duran, Weston, Yakhnenko 2013, equation 1. Arguments, result and errors
    as ``logistic_loss``, and ``margin``: a number not below 0.

    >>> margin_loss(torch.tensor([2.0]), torch.tensor([[0.0, 1.5]]))
    tensor(0.2500)
    """
    as_number(margin, "margin", least=0)
    positive, negative = _scores(positive, negative)
    too_near = F.relu(margin - positive.unsqueeze(-1) + negative)
    return _reduced(_mean(too_near, negative), weight, reduction)


def self_adversarial_loss(
    positive: Tensor,
    negative: Tensor,
    *,
    margin: float = 0.0,
    temperature: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``-log sigmoid(margin + p) - sum_k w_k log sigmoid(-n_k - margin)``: hard negatives
    weigh more.

    ``w_k`` is the softmax of ``temperature * n_k`` over the negatives, without a gradient (Sun,
    Deng, Nie, Tang 2019, equations 5 and 6, where a score is minus a distance and the margin is
    gamma).

    Arguments, result and errors as ``softmax_loss``, and ``margin``: for distances about the
    distance that parts true from false, 6 to 24 in the paper; ``temperature``: alpha, not below 0;
    at 0 all negatives weigh alike.

    >>> self_adversarial_loss(torch.tensor([0.0]), torch.zeros(1, 3)).exp()
    tensor(4.)
    """
    as_number(temperature, "temperature", least=0)
    positive, negative = _scores(positive, negative)
    counted = negative > -torch.inf
    # rows without negatives have a softmax too, of zeros, that meets losses of 0 only
    logits = (temperature * negative.detach()).masked_fill(~counted, -torch.inf)
    shares = logits.masked_fill(~counted.any(-1, keepdim=True), 0.0).softmax(-1)
    losses = -(shares * F.logsigmoid(-negative - margin)).sum(-1) - F.logsigmoid(positive + margin)
    return _reduced(losses, weight, reduction)


@checked
def one_vs_all_loss(
    scores: Tensor,
    answers: Tensor | tuple[Tensor, Tensor],
    *,
    binary: bool = False,
    label_smoothing: float = 0.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the loss of scores of all N candidates against the true answers.

    A softmax over the candidates: ``logsumexp(s) - sum_j y_j s_j``, where the answers share the
    targets y alike (Kadlec, Bajgar, Kleindienst 2017; Lacroix, Usunier, Obozinski 2018, for one
    answer). Or, with ``binary``, the mean over the candidates of a logistic loss each, for any
    number of answers (Dettmers, Minervini, Stenetorp, Riedel 2018, "1-N scoring").

    Args:
        scores: ``[..., N]``, such as ``decoder.score_all(h[src], relation, h)``; -inf leaves a
            candidate out.
        answers: the number of the one true answer, integers ``[...]``; or which candidates are
            true, bool ``[..., N]``, at least one in a row without ``binary``; or, for scores
            ``[n, N]``, a pair of integers ``[a]``, rows and candidates, each answer once, which
            takes no memory for the others.
        binary: a logistic loss.
        label_smoothing: epsilon from 0 to below 1: targets become
            ``(1 - epsilon) y + epsilon / N``.
        weight, reduction: as in ``softmax_loss``, with a weight per row.

    Returns as ``softmax_loss``. Raises ValueError for shapes that do not fit, rows without an
    answer, and settings out of range; IndexError for an answer out of range; TypeError for other
    types.

    >>> one_vs_all_loss(torch.zeros(2, 4), torch.tensor([3, 0])).exp()
    tensor(4.)
    """
    scores = _float(scores, "scores")
    if scores.ndim == 0:
        raise ValueError("scores must have shape [..., N], got a number")
    as_number(label_smoothing, "label_smoothing", least=0, below=1)
    # log_softmax reads a row once, where logsumexp makes several passes over all scores
    targets = scores
    if not binary:
        targets = scores.log_softmax(-1)
    sums, counts = _true(targets, answers)
    if not binary and bool((counts == 0).any()):
        raise ValueError(
            "answers must have a true answer in every row, but one has none; use binary=True"
        )
    size: Tensor | float = 1.0
    if binary or label_smoothing:
        counted = scores > -torch.inf
        size = counted.sum(-1).clamp(min=1)
    target = sums
    if not binary:
        target = sums / counts
    if label_smoothing:
        every = targets.masked_fill(~counted, 0.0).sum(-1) / size
        target = (1 - label_smoothing) * target + label_smoothing * every
    if binary:
        losses = (-F.logsigmoid(-scores).sum(-1) - target) / size
    else:
        losses = -target
    return _reduced(losses, weight, reduction)


def _true(scores: Tensor, answers: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the sum of the scores of the answers of every row, and their number."""
    if isinstance(answers, tuple):
        rows, columns = answers
        sums = scores.new_zeros(len(scores)).index_add(0, rows, scores[rows, columns])
        return sums, torch.bincount(rows, minlength=len(scores))
    if answers.dtype == torch.bool:
        if answers.shape != scores.shape:
            raise ValueError(
                f"answers must have the shape of scores, {tuple(scores.shape)}, or one number per "
                f"row, got bool {tuple(answers.shape)}"
            )
        return scores.masked_fill(~answers, 0.0).sum(-1), answers.sum(-1)
    if answers.is_floating_point():
        raise TypeError(f"answers must be integers or bool, got {describe(answers)}")
    if answers.shape != scores.shape[:-1]:
        raise ValueError(
            f"answers must have shape {tuple(scores.shape[:-1])}, one per row of scores, got "
            f"{tuple(answers.shape)}"
        )
    check_range(answers, scores.shape[-1], "answers", "candidates")
    places = answers.to(torch.int64).unsqueeze(-1)
    return scores.gather(-1, places).squeeze(-1), torch.ones_like(answers)


def _float(scores: Tensor, name: str) -> Tensor:
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        raise TypeError(f"{name} must be a floating-point tensor of scores, got {describe(scores)}")
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def _scores(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Return both scores in float32 at least; negatives have the shape of the true pairs and one
    more dimension.
    """
    positive = _float(positive, "positive")
    negative = _float(negative, "negative")
    if negative.shape[:-1] != positive.shape or negative.ndim != positive.ndim + 1:
        raise ValueError(
            f"negative must have shape [..., K] for positive [...], got {tuple(negative.shape)} "
            f"for {tuple(positive.shape)}"
        )
    return positive, negative


def _mean(losses: Tensor, negative: Tensor) -> Tensor:
    """Return the mean of losses ``[..., K]``, which are 0 where a negative is left out, over the
    others.
    """
    return losses.sum(-1) / (negative > -torch.inf).sum(-1).clamp(min=1)


def _reduced(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    check_one_of(reduction, "reduction", ("mean", "sum", "none"))
    if weight is not None:
        if weight.shape != losses.shape:
            raise ValueError(
                f"weight must have shape {tuple(losses.shape)}, one per true pair, got "
                f"{tuple(weight.shape)}"
            )
        losses = losses * weight
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if weight is None:
        total = losses.new_tensor(losses.numel())
    else:
        total = weight.sum().to(losses.dtype)
    return losses.sum() / total.clamp(min=torch.finfo(losses.dtype).tiny)
