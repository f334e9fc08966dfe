"""Wrong calls of the public API: each with the error that it raises and words of the message."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

from calls.by_hand import BY_HAND
from calls.callables import flags, methods, public
from calls.prepared import BASE


class Row(NamedTuple):
    """A call as text, the error that it raises, words of its message, and what the call is
    about.
    """

    call: str
    error: str
    words: str
    about: str


def with_argument(call: str, argument: str) -> str:
    """Return a call with one more argument; a keyword that is there takes its value."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    added = ast.parse(f"f({argument})", mode="eval").body
    assert isinstance(added, ast.Call)
    names = {keyword.arg for keyword in added.keywords}
    tree.keywords = [
        keyword for keyword in tree.keywords if keyword.arg not in names
    ] + added.keywords
    return ast.unparse(tree)


def with_first(call: str, value: str) -> str | None:
    """Return a call with another first argument; None for a call without one."""
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    if not tree.args:
        return None
    tree.args[0] = ast.parse(value, mode="eval").body
    return ast.unparse(tree)


LAST = {
    "training.Settings",
    "training.save",
    "training.write_predictions",
    "training.write_top_links",
    "plot.plot_parts",
}
"""Callables whose right call needs what the table has not, so that another argument is refused
first.
"""


def by_walking() -> Iterator[Row]:
    """Yield the rows of every callable: an unknown keyword, flags that are no bools, a first
    argument of no kind.
    """
    callables: dict[str, Any] = {**dict(public()), **dict(methods())}
    for name, call in BASE.items():
        value = callables[name]
        for flag in flags(value):
            words = f"{flag} must be " + (
                "False, True or 'mark'" if flag == "filter_known" else "True or False"
            )
            yield Row(
                with_argument(call, f"{flag}='no'"), "(TypeError, ValueError)", words, "Flags"
            )
        if name not in LAST:
            yield Row(
                with_argument(call, "nonsense=1"), "TypeError", "nonsense", "Unknown arguments"
            )
        needed = [p for p in inspect.signature(value).parameters.values() if p.default is p.empty]
        if inspect.isclass(value) and any(p.kind is p.POSITIONAL_OR_KEYWORD for p in needed):
            yield Row(
                f"{name}()".removeprefix("graph."), "TypeError", needed[0].name, "Missing arguments"
            )
        if (first := with_first(call, "object()")) is not None:
            yield Row(first, "(TypeError, ValueError)", "", "First arguments of no kind")


def rows() -> list[Row]:
    """Return the whole table."""
    by_hand = [Row(*row, about) for about, group in BY_HAND.items() for row in group]
    return [*by_hand, *by_walking()]
