"""The reference: Sphinx's autosummary makes a page per room and per public name, with what it asks
here; the pages of types and the first page are written here.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache, cached_property
from itertools import pairwise
from pydoc import locate
from types import ModuleType

import nodeflow
from nodeflow._core.base import types

_FIRST = """Reference
=========

Every public name, by module. Other names may change without notice; ``help(name)`` shows what a page says.

.. autosummary::
   :toctree: reference
   :recursive:

{rooms}

.. toctree::
   :hidden:

   reference/settings
   reference/errors
   reference/types
"""


def rooms() -> list[str]:
    """Return the public modules right below the package, by name."""
    return [name for name in dir(nodeflow) if inspect.ismodule(getattr(nodeflow, name))]


def first_page() -> str:
    """Return the page that lists the rooms, in reStructuredText."""
    return _FIRST.format(rooms="\n".join(f"   nodeflow.{room}" for room in rooms()))


def import_of(module: str, name: str) -> str:
    """Return the line that imports a public name: from the top where it is there too."""
    at_top = name in nodeflow.__all__ and getattr(nodeflow, name) is locate(f"{module}.{name}")
    return f"from {'nodeflow' if at_top else module} import {name}"


def modules() -> list[ModuleType]:
    """Return the public modules: the rooms, then those that rooms list."""
    found = [getattr(nodeflow, room) for room in rooms()]
    for module in found:  # grows on the way
        listed = [getattr(module, name) for name in module.__all__]
        found += [inner for inner in listed if inspect.ismodule(inner) and inner not in found]
    return found


@cache
def public_names() -> dict[str, object]:
    """Return every class, function and constant that a module lists, by its full name.

    One that several list has the first name; a module within a room also lists other spellings,
    which have no docstring.
    """
    found: dict[str, object] = {}
    for module in modules():
        is_inner = module.__name__.count(".") > 1
        for name in module.__all__:
            value = getattr(module, name)
            is_known = any(value is other for other in found.values())
            is_spelling = is_inner and not inspect.getdoc(value)
            if not (inspect.ismodule(value) or is_known or is_spelling):
                found[f"{module.__name__}.{name}"] = value
    return found


@cache
def public_classes() -> dict[type, str]:
    """Return the full name of every public class; of one in two rooms the first."""
    found: dict[type, str] = {}
    for full, value in public_names().items():
        if inspect.isclass(value):
            found.setdefault(value, full)
    return found


def members_of(full: str) -> list[str]:
    """Return the members that the page of a class shows: its own, and those of its private bases.

    Those of a public base are on the page of the base.
    """
    kind = locate(full)
    assert inspect.isclass(kind)
    above = {
        base
        for public in public_classes()
        if public is not kind and public in kind.__mro__
        for base in public.__mro__
    }
    own = [base for base in kind.__mro__ if base.__module__.startswith("nodeflow")]
    return [
        name
        for base in own
        if base not in above
        for name, member in vars(base).items()
        if not name.startswith("_") and _is_described(kind, name, member)
    ]


def _is_described(kind: type, name: str, member: object) -> bool:
    plain = member.__func__ if isinstance(member, staticmethod | classmethod) else member
    if not inspect.isfunction(plain) and not isinstance(plain, property | cached_property):
        return False
    return bool(inspect.getdoc(getattr(kind, name)))


def page_of_types() -> str:
    """Return the page of the names that stand for types in signatures, in reStructuredText."""
    lines = [
        "Types in signatures",
        "===================",
        "",
        "These names stand for types in signatures. They are no part of the package's public names.",
        "",
    ]
    for name, (value, meaning) in type_aliases().items():
        lines += [f".. py:type:: nodeflow.types.{name}", f"   :canonical: {value}", ""]
        lines += [f"   {meaning}", ""]
    return "\n".join(lines)


@cache
def type_aliases() -> dict[str, tuple[str, str]]:
    """Return the aliases of types by name, each with what it stands for and its docstring."""
    found: dict[str, tuple[str, str]] = {}
    for node, after in pairwise(ast.parse(inspect.getsource(types)).body):
        if not isinstance(node, ast.AnnAssign) or not isinstance(after, ast.Expr):
            continue
        # an alias may be written as a string
        is_text = isinstance(node.value, ast.Constant)
        value = node.value.value if is_text else ast.unparse(node.value)
        meaning = " ".join(ast.literal_eval(after.value).split())
        found[node.target.id] = (re.sub(r"\bnp\.", "numpy.", value), meaning)
    return found
