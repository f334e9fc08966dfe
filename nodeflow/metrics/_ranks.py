"""Ranks of true answers, and the means that are reported of them; area under the ROC curve, average
precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nodeflow._core.base.checks import as_array, as_count, check_one_of, describe
from nodeflow._core.base.types import NumbersLike

TIES = {"realistic": 0.5, "optimistic": 0.0, "pessimistic": 1.0}
"""Share of the candidates tied with the answer that rank before it, by the name of the rule."""
HITS = (1, 3, 10)
"""The k of Hits@k that tables show."""
_HEAD = f"{'mean rank':>22}     MRR  Hits@1  Hits@3  Hits@10"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranks:
    """Ranks of true answers among candidates: 1 is best. Made by ``rank_links`` and ``rank_among``.

    Attributes:
        ranks: float64 ``[n, sides]``, in the order of the triples: halves are mean ranks of ties.
        sides: the name of every column: which end of the triples was asked for.
        relation: int64 ``[n]``, the relation of every triple; None without relations.
        ties: how equal scores were ranked: "realistic", "optimistic" or "pessimistic".

    Means are over all ranks, of both sides where there are two; of no ranks at all they raise
    ValueError.

    >>> ranks = Ranks(torch.tensor([[1.0, 4.0], [1.0, 2.5]]).double(), ("destination", "source"), None, "realistic")
    >>> ranks.hits(3)
    0.75
    >>> ranks
    Ranks(2 links, ties realistic)
                 mean rank     MRR  Hits@1  Hits@3  Hits@10
    both               2.1  0.6625  0.5000  0.7500   1.0000
    destination        1.0  1.0000  1.0000  1.0000   1.0000
    source             3.2  0.3250  0.0000  0.5000   1.0000
    """

    ranks: Tensor
    sides: tuple[str, ...]
    relation: Tensor | None
    ties: str

    @property
    def mean_rank(self) -> float:
        """The mean of the ranks; 1 is best."""
        return float(self._some().mean())

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank: the mean of 1 / rank; 1 is best."""
        return float((1 / self._some()).mean())

    def hits(self, k: int) -> float:
        """Return Hits@k: the share of ranks that are at most ``k``; 1 is best. Raises ValueError
        for k below 1.
        """
        is_hit = self._some() <= as_count(k, "k", 1)
        return float(is_hit.double().mean())

    def summary(self) -> dict[str, float]:
        """Return mean rank, MRR and Hits@1, 3 and 10 by name, as tables show them."""
        hits = {f"hits@{k}": self.hits(k) for k in HITS}
        return {"mean_rank": self.mean_rank, "mrr": self.mrr, **hits}

    def by_side(self) -> dict[str, Ranks]:
        """Return the ranks of every side."""
        columns = zip(self.sides, self.ranks.split(1, 1), strict=True)
        return {side: Ranks(ranks, (side,), self.relation, self.ties) for side, ranks in columns}

    def by_relation(self) -> dict[int, Ranks]:
        """Return the ranks of every relation, ascending; raises ValueError where there are no
        relations.
        """
        if self.relation is None:
            raise ValueError(
                "these ranks are of pairs without relations, so they cannot be split by relation"
            )
        ranks = {}
        for kind in self.relation.unique().tolist():
            rows = self.relation == kind
            ranks[kind] = Ranks(self.ranks[rows], self.sides, self.relation[rows], self.ties)
        return ranks

    def __len__(self) -> int:
        return len(self.ranks)

    def __repr__(self) -> str:
        head = f"{len(self):,} links, ties {self.ties}"
        if not self.ranks.numel():
            return f"Ranks({head})"
        parts = self.by_side()
        if len(parts) > 1:
            parts = {"both": self, **parts}
        lines = [f"Ranks({head})", _HEAD]
        for name, part in parts.items():
            mean, *shares, last = part.summary().values()
            numbers = "".join(f"{share:8.4f}" for share in shares)
            lines.append(f"{name:11}{mean:11,.1f}{numbers}{last:9.4f}")
        return "\n".join(lines)

    def _some(self) -> Tensor:
        if not self.ranks.numel():
            raise ValueError("there are no ranks, so they have no mean: nothing was ranked")
        return self.ranks


def rank_among(positive: NumbersLike, negative: NumbersLike, *, ties: str = "realistic") -> Ranks:
    """Rank the score of every positive among those of its negatives, or of the negatives that all
    share.

    The rank is 1 + the number of negatives that score higher; equal ones count by ``ties``. So
    "realistic" ranks among ``[n, k]`` negatives give OGB's MRR (``ogbl-citation2``,
    ``ogbl-wikikg2``), and "pessimistic" ranks among shared ones OGB's Hits@K (``ogbl-ppa``,
    ``ogbl-collab``, ``ogbl-ddi``): a positive is a hit where fewer than K negatives score as high
    as it does.

    Args:
        positive: a score per positive, ``[n]``; higher is more likely.
        negative: scores ``[n, k]`` of each positive's own negatives, or ``[k]`` of negatives that
            all share.
        ties: "realistic" (the mean of best and worst rank), "optimistic" or "pessimistic", as in
            ``rank_links``.

    Returns ranks, float64 ``[n, 1]``. Costs a sort of shared negatives, else a comparison per
    score.

    Raises TypeError or ValueError for scores of another type or shape, and for NaN.

    >>> rank_among([0.9, 0.2], [[0.1, 0.3], [0.2, 0.3]]).ranks.flatten()
    tensor([1.0000, 2.5000], dtype=torch.float64)
    >>> rank_among([0.9, 0.2], [0.1, 0.2, 0.3], ties="pessimistic").hits(2)
    0.5
    """
    check_one_of(ties, "ties", TIES)
    good = _scores(positive, "positive", (1,))
    bad = _scores(negative, "negative", (1, 2))
    if bad.ndim == 1:
        below, upto = _counts(good, bad)
        above = len(bad) - upto
        equal = upto - below
    else:
        if len(bad) != len(good):
            raise ValueError(
                f"negative must have a row per positive ({len(good)}), got shape {tuple(bad.shape)}"
            )
        above = (bad > good[:, None]).sum(1)
        equal = (bad == good[:, None]).sum(1)
    ranks = 1 + above + TIES[ties] * equal.double()
    return Ranks(ranks[:, None], ("negatives",), None, ties)


def auroc(scores: NumbersLike, labels: NumbersLike) -> float:
    """Return the area under the ROC curve: how often a positive scores above a negative, ties count
    half.

    Args:
        scores: ``[n]``, of any range; higher is more likely.
        labels: ``[n]``, 1 for a positive and 0 for a negative; also a tensor or array of bools.

    The order is that of ``named("auroc")``, torchmetrics and OGB; scikit-learn's is the other.
    Scores of positives and of negatives apart are
    ``auroc(torch.cat([positive, negative]), torch.arange(n + k) < n)``.

    Returns a number from 0 to 1; constant scores give 0.5. Raises TypeError or ValueError for
    scores of another type or shape, for NaN, for labels other than 0 and 1, and where there is no
    positive or no negative.

    >>> auroc([0.9, 0.2, 0.1, 0.2], [1, 1, 0, 0])
    0.875
    """
    good, bad = _both(scores, labels)
    below, upto = _counts(good, bad)
    return float((below + upto).double().mean()) / 2 / len(bad)


def average_precision(scores: NumbersLike, labels: NumbersLike) -> float:
    """Return the mean, over the positives, of the precision among everything that scores at least
    as high.

    Args:
        scores: ``[n]``, of any range; higher is more likely.
        labels: ``[n]``, 1 for a positive and 0 for a negative; also a tensor or array of bools.

    Returns a number from 0 to 1; constant scores of n, of which p are positive, give p / n. Raises
    what ``auroc`` raises. Without ties this is the area under the precision-recall curve as a sum
    of rectangles.

    >>> average_precision([0.9, 0.2, 0.1, 0.3], [1, 1, 0, 0])
    0.8333333333333333
    """
    good, bad = _both(scores, labels)
    # ties at a threshold all count, so the order of equal scores does not matter
    hits = len(good) - _counts(good, good)[0]
    misses = len(bad) - _counts(good, bad)[0]
    return float((hits.double() / (hits + misses)).mean())


def _counts(scores: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """For every score the number of others below it, and the number at most as high."""
    # a sort and two binary searches in place of a comparison of every pair
    ordered = others.sort().values
    return torch.searchsorted(ordered, scores), torch.searchsorted(ordered, scores, right=True)


_SHAPES = {(1,): "[n]", (1, 2): "[n] or [n, k]"}
_ORDER = "the order is scores, labels"


def _both(scores: object, labels: object) -> tuple[Tensor, Tensor]:
    """Return the scores of positives and of negatives."""
    values = _scores(scores, "scores", (1,))
    kinds = _as_tensor(labels, "labels").cpu()
    if kinds.shape != values.shape:
        raise ValueError(
            f"labels must have a row per score ({len(values)}), got shape {tuple(kinds.shape)}; "
            f"{_ORDER}"
        )
    if (wrong := ((kinds != 0) & (kinds != 1)).nonzero()).numel():
        row = int(wrong[0])
        raise ValueError(f"labels[{row}] is {kinds[row].item()}, but labels are 0 or 1; {_ORDER}")
    positive = values[kinds == 1]
    negative = values[kinds == 0]
    if not len(positive) or not len(negative):
        missing = int(not len(positive))
        raise ValueError(f"no label is {missing}, and one of each kind is needed")
    return positive, negative


def _as_tensor(value: object, name: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return torch.from_numpy(as_array(value, name).copy())


def _scores(value: object, name: str, dims: tuple[int, ...]) -> Tensor:
    """Return checked scores as float64, which holds every float exactly: any two types compare."""
    value = _as_tensor(value, name)
    if value.dtype == torch.bool or value.is_complex():
        raise TypeError(f"{name} must be scores, real numbers, got {describe(value)}")
    if value.ndim not in dims:
        raise ValueError(f"{name} must have shape {_SHAPES[dims]}, got {tuple(value.shape)}")
    scores = value.detach().double().cpu()
    if (wrong := scores.isnan().nonzero()).numel():
        raise ValueError(f"{name}{wrong[0].tolist()} is NaN, which has no rank")
    return scores.contiguous()
