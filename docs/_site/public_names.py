"""The public names of the package: which page documents a name, and what a word in a guide refers
to.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import nodeflow

INSTANCES = {
    "batch": "NodeFlow",
    "nf": "NodeFlow",
    "flow": "Flow",
    "layer": "Layer",
    "graph": "Graph",
    "loader": "NodeFlowLoader",
    "history": "History",
    "frame": "Frame",
}
"""The guides call an object by the lower-case word, so that ``batch.seeds`` is
``NodeFlow.seeds``.
"""


def first_line(thing: object) -> str:
    """Return the first sentence or sentences of a docstring, as one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


@dataclass(frozen=True)
class PublicName:
    """A name that users import: ``room`` is "nn" for ``nodeflow.nn.SAGEConv``, and "" for what is
    in no room.

    A room within a room has a dotted name: "compat.dgl".
    """

    room: str
    name: str

    @property
    def full(self) -> str:
        """The dotted path by which the site documents the name."""
        return ".".join(filter(None, ["nodeflow", self.room, self.name]))

    @property
    def page(self) -> str:
        """The page of the site, without its ending."""
        return f"reference/{self.full}"

    @cached_property
    def value(self) -> Any:
        """The class, function or constant itself."""
        return getattr(import_module(".".join(filter(None, ["nodeflow", self.room]))), self.name)

    @property
    def kind(self) -> str:
        """The directive of autodoc that documents it, without "auto"."""
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if callable(self.value) else "data"

    @property
    def purpose(self) -> str:
        """The first sentence or sentences of the docstring, as one line."""
        return first_line(self.value)

    @property
    def is_nested(self) -> bool:
        """Whether it is in a room within a room; names of these stand back where another room has
        the same.
        """
        return "." in self.room


def module_of(room: str) -> ModuleType:
    """Return the module of a room."""
    return import_module(f"nodeflow.{room}")


@cache
def _names_by_room() -> dict[str, tuple[PublicName, ...]]:
    """The names that have their pages in each room.

    A module that a room lists is a room too if it has names of its own, or rooms. It may list names
    of other rooms, and other spellings, which have no docstring.
    """
    top = [name for name in dir(nodeflow) if inspect.ismodule(getattr(nodeflow, name))]
    found = {room: tuple(PublicName(room, name) for name in _listed(room)) for room in top}
    known = [getattr(nodeflow, name) for name in nodeflow.__all__]
    known += [public.value for names in found.values() for public in names]

    def enter(room: str) -> None:
        for inner in (f"{room}.{name}" for name in _listed(room, modules=True)):
            own = [PublicName(inner, name) for name in _listed(inner)]
            own = [
                public
                for public in own
                if public.purpose and not any(public.value is value for value in known)
            ]
            known.extend(public.value for public in own)
            found[inner] = tuple(own)
            enter(inner)
            if not own and not any(other.startswith(f"{inner}.") for other in found):
                del found[inner]

    for room in top:
        enter(room)
    return {
        room: found[room] for first in top for room in found if f"{room}.".startswith(f"{first}.")
    }


def _listed(room: str, *, modules: bool = False) -> list[str]:
    """The names that a room lists: its modules, or all others."""
    module = module_of(room)
    return [name for name in module.__all__ if inspect.ismodule(getattr(module, name)) is modules]


@cache
def rooms() -> tuple[str, ...]:
    """The public rooms, in the order of their names, each before the rooms within it."""
    return tuple(_names_by_room())


@cache
def public_names() -> tuple[PublicName, ...]:
    """Every public name once: those of the rooms, and names at the top that are in no room."""
    inside = [public for names in _names_by_room().values() for public in names]
    known = {*rooms(), *(public.name for public in inside if not public.is_nested)}
    return (*(PublicName("", name) for name in nodeflow.__all__ if name not in known), *inside)


def public_name_of(value: object) -> PublicName:
    """Return the public name of a class, function or constant; a room may list one of another
    room.
    """
    return next(public for public in public_names() if public.value is value)


@cache
def members(public: PublicName) -> tuple[str, ...]:
    """The documented members that the page of a class shows: its own and those of its private
    bases.

    Members of a public base are on the page of the base.
    """
    if not inspect.isclass(public.value):
        return ()
    found: dict[str, None] = {}
    for base in own_bases(public):
        for name, member in vars(base).items():
            unwrapped = (
                member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
            )
            described = inspect.isfunction(unwrapped) or isinstance(
                unwrapped, (property, cached_property)
            )
            if (
                not name.startswith("_")
                and described
                and inspect.getdoc(getattr(public.value, name))
            ):
                found[name] = None
    return tuple(found)


def own_bases(public: PublicName) -> list[type]:
    """The class, and those of its bases in the package that are neither public nor above a public
    base.
    """
    documented = [p.value for p in public_names() if inspect.isclass(p.value) and p != public]
    mro = public.value.__mro__
    above = {base for value in documented if value in mro for base in value.__mro__}
    return [
        base for base in mro if base not in above and base.__module__.split(".")[0] == "nodeflow"
    ]


@cache
def public_bases(public: PublicName) -> tuple[PublicName, ...]:
    """The nearest public classes that a public class inherits from."""
    if not inspect.isclass(public.value):
        return ()
    above = [
        p
        for p in public_names()
        if inspect.isclass(p.value) and p.value in public.value.__mro__[1:]
    ]
    return tuple(p for p in above if not any(q != p and p.value in q.value.__mro__ for q in above))


@cache
def targets() -> dict[str, str]:
    """What a literal of a guide refers to: the full path by each form in which a name is written.

    A bare name stands for itself if it is public in one room only and cannot be read as an ordinary
    word: it has a capital or an underscore. Other names need their room: ``fn.sum``. Names of rooms
    within rooms stand back: such a one stands for itself if no other room has it.
    """
    found: dict[str, str] = {f"nodeflow.{room}": f"nodeflow.{room}" for room in rooms()}
    by_name: dict[str, set[str]] = defaultdict(set)
    by_method: dict[str, set[str]] = defaultdict(set)
    nested: dict[str, set[str]] = defaultdict(set)
    # those that stand back come last
    for public in sorted(public_names(), key=lambda public: public.is_nested):
        (nested if public.is_nested else by_name)[public.name].add(public.full)
        dotted = f"{public.room}.{public.name}".lstrip(".")
        found |= {dotted: public.full, f"nodeflow.{dotted}": public.full}
        found.setdefault(f"nodeflow.{public.name}", public.full)
        for member in members(public):
            full = f"{public.full}.{member}"
            found |= {f"{dotted}.{member}": full, f"nodeflow.{dotted}.{member}": full}
            found.setdefault(f"{public.name}.{member}", full)
            if "_" in member and not public.is_nested:
                by_method[member].add(full)
        for base in public_bases(public):
            for member in members(base):
                found.setdefault(f"{public.name}.{member}", f"{base.full}.{member}")
    for name, fulls in {**nested, **by_method, **by_name}.items():
        if len(fulls) == 1 and re.search(r"[A-Z_]", name):
            found[name] = next(iter(fulls))
    for word, owner in INSTANCES.items():
        for form in [form for form in found if form.startswith(f"{owner}.")]:
            found.setdefault(f"{word}.{form.removeprefix(f'{owner}.')}", found[form])
    return found


def lookup(text: str, room: str = "") -> str | None:
    """Return the full path of the public name that a literal is, or begins with as a call; None: it
    is no such name.

    ``room`` is the room that the text is about: its names need no prefix there.
    """
    call = re.fullmatch(r"([A-Za-z_][\w.]*)(\(.*\))?", text, re.DOTALL)
    if call is None:
        return None
    return (targets().get(f"{room}.{call[1]}") if room else None) or targets().get(call[1])


@cache
def private_words() -> frozenset[str]:
    """Names that the package's files use in signatures and that are not public: aliases of types,
    helper classes.
    """
    files = [
        module for name, module in list(sys.modules.items()) if name.split(".")[0] == "nodeflow"
    ]
    return frozenset(name for module in files for name in vars(module)) - {
        p.name for p in public_names()
    }


@cache
def private_paths() -> dict[str, str]:
    """The full path of every public class by the path of the file that defines it, and by its bare
    name.
    """
    found: dict[str, str] = {}
    for public in public_names():
        if inspect.isclass(public.value):
            found[f"{public.value.__module__}.{public.value.__qualname__}"] = public.full
            # a bare word may be a class of the library that the room stands in for
            if not public.is_nested:
                found[public.name] = public.full
    return found
