"""Whether numbers by relation, or by node type, draw anything for the types that seeds reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from nodeflow._schema.schema import Schema


class Numbers(NamedTuple):
    """How much every flow draws of each kind.

    Attributes:
        of: what the numbers are called.
        names: the kinds, relations or types of the nodes that are drawn, in their order.
        counts: for each flow the number of every kind, 0 for none.
    """

    of: str
    names: Sequence[Any]
    counts: Sequence[NDArray[Any]]


def check_reach(numbers: Numbers, schema: Schema, direction: str, seeds: Iterable[str], again: bool) -> None:
    """Raise ValueError for a flow that draws nothing for any type that seeds of some types reach.

    ``again`` says whether destinations of a flow are among those of the flow before.
    """
    ways = {"in": [(2, 0)], "out": [(0, 2)], "both": [(2, 0), (0, 2)]}[direction]
    reached = dict.fromkeys(seeds)
    for flow in reversed(range(len(numbers.counts))):
        named = [name for name, count in zip(numbers.names, numbers.counts[flow], strict=False) if count]
        steps = [(r, r[end]) for r in schema.relations for start, end in ways if r[start] in reached]
        ends = [end for relation, end in steps if relation in named or end in named]
        # a number for all, and a dict that has all, may be for types that are not reached
        if reached and not ends and 0 < len(named) < len(numbers.names):
            word = {"in": "enter", "out": "leave", "both": "enter or leave"}[direction]
            raise ValueError(
                f"{numbers.of}[{flow}] draws nothing: it has {_listed(named)}, but its nodes are of type "
                f"{', '.join(reached)}; relations that {word} these: {_listed(dict.fromkeys(r for r, _ in steps))}"
            )
        reached = dict.fromkeys([*(reached if again else ()), *ends])


def _listed(kinds: Iterable[Any]) -> str:
    return ", ".join(repr(kind if isinstance(kind, str) else " ".join(kind)) for kind in kinds) or "none"
