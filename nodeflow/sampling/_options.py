"""The options that samplers share, each written once, and the resolved parameters of a sampler's ``__init__``.

``Sampler`` says what the options mean. A sampler names its own arguments, and ends with
``**options: Unpack[SamplerOptions]``. From there come its signature (for ``help`` and the documentation), its settings,
and the error for an unknown name.
"""

from __future__ import annotations

import inspect
from functools import cache
from types import SimpleNamespace
from typing import Any, TypedDict, get_args, get_type_hints

from nodeflow._base.frozen import Frozen
from nodeflow._base.habits import hint_of
from nodeflow._base.types import EdgeFilter


class SubgraphOptions(TypedDict, total=False):
    """The options of samplers of subgraphs: without those of layers."""

    direction: str
    edge_filter: EdgeFilter | None
    weight: str | None
    seed: int


class LayerOptions(SubgraphOptions, total=False):
    """The options of samplers that draw a layer as a whole: without ``reuse``."""

    include_dst: bool


class SamplerOptions(LayerOptions, total=False):
    """The options of samplers that choose edges layer by layer; see ``Sampler``."""

    reuse: bool


class RowOptions(SamplerOptions, total=False):
    """The options of samplers in which every row draws on its own; see ``RowSampler``."""

    edge_type: str | None


class FullOptions(TypedDict, total=False):
    """The options of samplers that draw nothing: without ``seed``."""

    direction: str
    include_dst: bool
    reuse: bool
    edge_filter: EdgeFilter | None
    weight: str | None


class WalkOptions(TypedDict, total=False):
    """The options of samplers whose flows have no edges of the graph: without ``weight``."""

    direction: str
    include_dst: bool
    reuse: bool
    edge_filter: EdgeFilter | None
    seed: int


_ORDER = ("edge_type", "direction", "include_dst", "reuse", "edge_filter", "weight", "seed")


def is_plain(value: object) -> bool:
    """Whether a value prints as itself, in any process."""
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(part) for key, part in value.items())
    if isinstance(value, (tuple, list)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, Frozen))


@cache
def _taken(kind: type) -> tuple[dict[str, inspect.Parameter], bool]:
    """The parameters of a sampler's ``__init__`` beside the graph, and whether untyped ``**options`` take any other.

    Names that an ``__init__`` passes on are parameters of the next class: all of them, or where a TypedDict is
    unpacked, those of its fields. Shared options come last.
    """
    parameters: dict[str, inspect.Parameter] = {}
    limits: list[frozenset[str]] = []
    others = False
    inits = [vars(base)["__init__"] for base in kind.__mro__[:-1] if "__init__" in vars(base)]
    for i, init in enumerate(inits):
        named = inspect.signature(init).parameters.values()
        for p in named:
            passed_on = p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name in ("self", "graph")
            if not passed_on and all(p.name in limit for limit in limits):
                parameters.setdefault(p.name, p if i == 0 else p.replace(kind=p.KEYWORD_ONLY))
        rest = [p.name for p in named if p.kind is p.VAR_KEYWORD]
        if not rest:
            break
        fields = _unpacked(init, rest[0])
        others = others or not fields
        limits += fields
    shared = {name: parameters.pop(name) for name in _ORDER if name in parameters}
    return parameters | shared, others


def arguments(kind: type) -> dict[str, inspect.Parameter]:
    """Return the parameters of a sampler's ``__init__`` beside the graph, by name, also those that it passes on."""
    return _taken(kind)[0]


def _unpacked(init: Any, name: str) -> list[frozenset[str]]:
    """The names of the TypedDict that ``**name`` unpacks, in a list; no entry where it is annotated otherwise."""
    one = SimpleNamespace(__annotations__={name: init.__annotations__.get(name)})
    try:
        hints = get_type_hints(one, init.__globals__)
    except NameError:  # an annotation for type checkers alone
        return []
    fields = [getattr(kind, "__annotations__", None) for kind in get_args(hints[name])]
    return [frozenset(names) for names in fields if names is not None]


@cache
def names_of(kind: type) -> frozenset[str]:
    """The names of all arguments of a sampler and of its base classes, and ``graph``."""
    return frozenset(("graph", *(name for base in kind.__mro__ for name in arguments(base))))


@cache
def positional(kind: type) -> tuple[str, ...]:
    """The names of the parameters of a sampler's own ``__init__`` that take arguments by position, without ``self``."""
    init: Any = kind.__init__  # type: ignore[misc]
    named = list(inspect.signature(init).parameters.values())[1:]
    return tuple(p.name for p in named if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD))


class Signature:
    """The ``__signature__`` of a class of samplers, for ``help``: its own arguments and the options that it shares."""

    def __get__(self, sampler: object, kind: type) -> inspect.Signature:
        if sampler is not None:  # the signature of a sampler is that of its __call__
            raise AttributeError("__signature__")
        init = next(vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base))
        own = [p for name, p in inspect.signature(init).parameters.items() if name != "self"]
        own = [p for p in own if p.kind is not p.VAR_KEYWORD]
        names = {p.name for p in own}
        # what a base class requires, this one passes to it
        passed = [p for p in arguments(kind).values() if p.name not in names and p.default is not p.empty]
        return inspect.Signature(sorted((*own, *passed), key=lambda p: p.kind))


def check_names(kind: type, named: dict[str, Any]) -> None:
    """Raise TypeError for the first keyword argument that a sampler of class ``kind`` is sure not to take."""
    takes, others = _taken(kind)
    if named.keys() <= takes.keys() or others:
        return
    for name in named.keys() - takes.keys() - {"graph"}:
        raise TypeError(f"{kind.__name__} got an unexpected keyword argument {name!r}; {hint_of(name, takes)}")
