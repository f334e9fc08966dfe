"""Names of nodes: strings or other keys in place of ids, both ways."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nodeflow._core.base.checks import as_ids, as_index, describe, short
from nodeflow._core.base.types import IdsLike


class NodeNames(Sequence[Hashable]):
    """The name of every node id, and the id of every name.

    A sequence of names in the order of the ids. Made by ``Graph.from_named_edges``; pickles keep it
    with the graph.

    Args:
        names: hashable keys, each once: strings, integers, tuples.

    Raises ValueError for a name that occurs twice or is missing (None or NaN).

    >>> names = NodeNames(["ann", "bob", "cid"])
    >>> names.ids(["cid", "ann"]), names.at([2, 0]), names[1], "dan" in names
    (tensor([2, 0]), ['cid', 'ann'], 'bob', False)
    """

    __slots__ = ("_ids", "_names")

    def __init__(self, names: Iterable[Hashable]) -> None:
        self._names = tuple(listed(names, "names"))
        # a dict finds an id in constant time; it keeps the last of equal names
        self._ids = {name: i for i, name in enumerate(self._names)}
        if len(self._ids) < len(self._names):
            # of equal names the last has the entry
            repeated = [name for i, name in enumerate(self._names) if self._ids[name] != i]
            raise ValueError(
                f"names must hold every name once, but {short(repeated[0])} occurs more than once"
            )

    def ids(self, names: Iterable[Hashable]) -> Tensor:
        """Return the id of every name, int64 ``[len(names)]``; raises KeyError for a name that no
        node has.
        """
        return torch.tensor(
            [self.index(name) for name in listed(names, "names")], dtype=torch.int64, device="cpu"
        )

    def at(self, ids: IdsLike) -> list[Any]:
        """Return the names of ids; raises IndexError for an id that is no node."""
        return [self._names[i] for i in as_ids(ids, "ids", len(self)).tolist()]

    def index(self, value: object, *_: int) -> int:
        """Return the id of one name; raises KeyError for a name that no node has."""
        try:
            return self._ids[value]
        except (KeyError, TypeError):
            raise KeyError(
                f"no node has the name {short(value)}; there are {len(self)} names"
            ) from None

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._names[index]
        return self._names[as_index(index, "id", len(self))]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, Hashable) and name in self._ids

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        shown = ", ".join(map(short, self._names[:3]))
        more = ""
        if len(self) > 3:
            more = ", ..."
        return f"NodeNames({len(self)}: {shown}{more})"


def listed(names: object, argument: str) -> list[Hashable]:
    """Return names as a list of plain Python objects; raises TypeError or ValueError for what
    cannot be one.
    """
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f"{argument} must be a list of names, got {describe(names)}")
    if isinstance(names, (set, frozenset)):
        raise TypeError(f"{argument} must be ordered, got a set; pass sorted({argument})")
    keys = names.tolist() if hasattr(names, "tolist") else list(names)
    for index, name in enumerate(keys):
        # data frames mark missing entries with NaN, or with NA, which has no truth
        if name is None or type(name).__name__ == "NAType" or name != name:
            raise ValueError(f"{argument}[{index}] is {name!r}: a name is missing")
        if not isinstance(name, Hashable):
            raise TypeError(
                f"{argument}[{index}] must be hashable, such as a str, got {describe(name)}"
            )
    return keys


def check_all_or_none(names: Iterable[Hashable], kind: Any, words: str) -> None:
    """Raise ValueError where some names are of a kind, such as strings, and others are not."""
    examples: dict[bool, Hashable] = {}
    for name in names:
        examples.setdefault(isinstance(name, kind), name)
    if len(examples) == 2:
        raise ValueError(
            f"names must all be {words}, or none, but {examples[True]!r} is one, and "
            f"{examples[False]!r} is not; convert a column"
        )
