"""Ranks by their definition: one triple and one candidate at a time, in Python's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Score = Callable[[int, int, int], float]
"""The score of a source, a relation and a destination."""


def rank(scores: dict[int, float], answer: int, ties: str) -> float:
    """The rank of an answer among candidates with these scores, which contain it."""
    above = sum(score > scores[answer] for score in scores.values())
    same = sum(score == scores[answer] for v, score in scores.items() if v != answer)
    return {"optimistic": 1 + above, "pessimistic": 1 + above + same, "realistic": 1 + above + same / 2}[ties]


def ranks(
    score: Score,
    triples: list[tuple[int, int, int]],
    known: set[tuple[int, int, int]],
    candidates: dict[str, list[int]],
    ties: str,
) -> np.ndarray:
    """Ranks ``[n, 2]`` for destinations and sources; known triples other than the ranked one are left out."""
    found = []
    for u, r, v in triples:
        dst = {w: score(u, r, w) for w in candidates["destination"] if w == v or (u, r, w) not in known}
        src = {w: score(w, r, v) for w in candidates["source"] if w == u or (w, r, v) not in known}
        found.append((rank(dst, v, ties), rank(src, u, ties)))
    return np.array(found, np.float64).reshape(-1, 2)
