"""Ranks of true answers, and the means that are reported of them."""

from __future__ import annotations

from torch import Tensor

from nodeflow._base.checks import as_count
from nodeflow._base.frozen import Frozen

TIES = {"realistic": 0.5, "optimistic": 0.0, "pessimistic": 1.0}
"""Share of the candidates tied with the answer that rank before it, by the name of the rule."""
HITS = (1, 3, 10)
"""The k of Hits@k that tables show."""


class Ranks(Frozen):
    """Ranks of true answers among candidates: 1 is best. Made by ``rank_links`` and ``rank_among``.

    Attributes:
        ranks: float64 ``[n, sides]``, in the order of the triples: halves are mean ranks of ties.
        sides: the name of every column: which end of the triples was asked for.
        relation: int64 ``[n]``, the relation of every triple; None without relations.
        ties: how equal scores were ranked: "realistic", "optimistic" or "pessimistic".

    Means are over all ranks, of both sides where there are two; of no ranks at all they raise ValueError.

    >>> import torch
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

    __slots__ = ("ranks", "relation", "sides", "ties")

    ranks: Tensor
    sides: tuple[str, ...]
    relation: Tensor | None
    ties: str

    def __init__(self, ranks: Tensor, sides: tuple[str, ...], relation: Tensor | None, ties: str) -> None:
        self._set(ranks=ranks, sides=sides, relation=relation, ties=ties)

    @property
    def mean_rank(self) -> float:
        """The mean of the ranks; 1 is best."""
        return float(self._some().mean())

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank: the mean of 1 / rank; 1 is best."""
        return float((1 / self._some()).mean())

    def hits(self, k: int) -> float:
        """Return Hits@k: the share of ranks that are at most ``k``; 1 is best. Raises ValueError for k below 1."""
        return float((self._some() <= as_count(k, "k", 1)).double().mean())

    def summary(self) -> dict[str, float]:
        """Return mean rank, MRR and Hits@1, 3 and 10 by name, as tables show them."""
        return {"mean_rank": self.mean_rank, "mrr": self.mrr, **{f"hits@{k}": self.hits(k) for k in HITS}}

    def by_side(self) -> dict[str, Ranks]:
        """Return the ranks of every side."""
        sides = enumerate(self.sides)
        return {side: Ranks(self.ranks[:, i : i + 1], (side,), self.relation, self.ties) for i, side in sides}

    def by_relation(self) -> dict[int, Ranks]:
        """Return the ranks of every relation, ascending; raises ValueError where there are no relations."""
        if self.relation is None:
            raise ValueError("these ranks are of pairs without relations, so they cannot be split by relation")
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
        parts = {"both": self, **self.by_side()} if len(self.sides) > 1 else {self.sides[0]: self}
        rows = [["", "mean rank", "MRR", *(f"Hits@{k}" for k in HITS)]]
        for name, part in parts.items():
            mean, *rest = part.summary().values()
            rows.append([name, f"{mean:,.1f}", *(f"{value:.4f}" for value in rest)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            row[0].ljust(widths[0]) + "".join(f"  {c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))
            for row in rows
        ]
        return "\n".join([f"Ranks({head})", *lines])

    def _some(self) -> Tensor:
        if not self.ranks.numel():
            raise ValueError("there are no ranks, so they have no mean: nothing was ranked")
        return self.ranks
