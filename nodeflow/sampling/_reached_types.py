"""Whether numbers by relation, or by node type, draw anything for the types that seeds reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeflow._core.schema import Schema


class DrawnByKind(NamedTuple):
    """How much every flow draws of each kind.

    Attributes:
        of: what the numbers are called.
        names: the kinds, ``relations`` of the schema, or its ``nodes`` for types of the nodes that
            are drawn.
        counts: for each flow the number of every kind, 0 for none.
    """

    of: str
    names: Mapping[Any, range]
    counts: Sequence[NDArray[Any]]


def check_reach(
    numbers: DrawnByKind, schema: Schema, direction: str, seeds: Iterable[str], again: bool
) -> None:
    """Raise ValueError for a flow that draws nothing for any type that seeds of some types reach.

    ``again`` says whether destinations of a flow are among those of the flow before.
    """
    starts = {"in": (2,), "out": (0,), "both": (2, 0)}[direction]
    reached = dict.fromkeys(seeds)
    # from the seeds down, flow by flow, types instead of nodes
    for flow in reversed(range(len(numbers.counts))):
        counts = numbers.counts[flow]
        # of the types that are reached alone, since other seeds may come with every batch
        touching = schema.touching(reached, *starts)
        steps = [(r, r[2 - start]) for r in touching for start in starts if r[start] in reached]
        ends = []
        for step in steps:
            # the relation, or the type at its other end, has a number
            (kind,) = (kind for kind in step if kind in numbers.names)
            if counts[schema.number(kind)]:
                ends.append(step[1])
        # a number for all, and a dict that has all, may be for types that are not reached
        if reached and not ends and 0 < np.count_nonzero(counts) < len(numbers.names):
            named = [name for name, count in zip(numbers.names, counts, strict=False) if count]
            raise ValueError(
                f"{numbers.of}[{flow}] draws nothing: it has {_listed(named)}, but its nodes are "
                f"of type {', '.join(reached)}; relations that direction={direction!r} follows "
                f"from these: {_listed(dict.fromkeys(r for r, _ in steps))}"
            )
        if not again:
            reached = {}
        reached |= dict.fromkeys(ends)


def _listed(kinds: Iterable[Any]) -> str:
    names = [kind if isinstance(kind, str) else " ".join(kind) for kind in kinds]
    return ", ".join(map(repr, names)) or "none"
