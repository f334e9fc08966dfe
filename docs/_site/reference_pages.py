"""The pages of the reference: a list of all, one per room, one per public name, and one of the
types in signatures.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from itertools import pairwise

import nodeflow
from _site.errors_page import errors_page
from _site.public_names import (
    PublicName,
    first_line,
    members,
    module_of,
    public_bases,
    public_name_of,
    public_names,
    rooms,
)
from _site.settings_page import settings_page
from nodeflow._base import types


def reference_pages() -> dict[str, bytes]:
    """Return the pages in reStructuredText by their places on the site."""
    found = {f"{public.page}.rst": page_of_name(public) for public in public_names()}
    found |= {f"reference/nodeflow.{room}.rst": page_of_room(room) for room in rooms()}
    found |= {"reference.rst": page_of_all(), "reference/types.rst": page_of_types()}
    found |= {"reference/settings.md": settings_page(), "reference/errors.md": errors_page()}
    return {place: text.encode() for place, text in found.items()}


def title(text: str) -> list[str]:
    """Return a title of the first level."""
    return [text, "=" * len(text), ""]


def page_of_name(public: PublicName) -> str:
    """Return the page of one public name."""
    lines = [":orphan:", "", *title(public.name)]
    if public.room:
        lines += [f"From the module :py:mod:`nodeflow.{public.room}`:", ""]
    top = public.name in nodeflow.__all__ and getattr(nodeflow, public.name) is public.value
    code = f"from nodeflow{'' if top else f'.{public.room}'} import {public.name}"
    lines += [".. code-block:: python", "", f"   {code}", ""]
    lines += [f".. auto{public.kind}:: {public.full}", *_options(public), ""]
    inherited = (
        [base for base in public_bases(public) if members(base)]
        if inspect.isclass(public.value)
        else []
    )
    for base in inherited:
        own = members(public)
        names = ", ".join(f":py:obj:`{m} <{base.full}.{m}>`" for m in members(base) if m not in own)
        if names:
            lines += [f"Inherited from :py:obj:`{base.name} <{base.full}>`: {names}.", ""]
    lines += [f".. used-in:: {public.full}", ""]
    return "\n".join(lines)


def _options(public: PublicName) -> list[str]:
    if not inspect.isclass(public.value):
        return []
    shown = members(public)
    lines = ["   :show-inheritance:"] if public_bases(public) else []
    if shown:
        lines += [f"   :members: {', '.join(shown)}", "   :member-order: bysource"]
    return lines


def page_of_room(room: str) -> str:
    """Return the page of a room: its docstring, and its names with a line each, also those of other
    rooms.
    """
    module = module_of(room)
    lines = [*title(f"nodeflow.{room}"), f".. automodule:: nodeflow.{room}", "   :no-members:", ""]
    lines += [
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: auto",
        "",
        "   * - name",
        "     - purpose",
    ]
    inner = [name for name in module.__all__ if f"{room}.{name}" in rooms()]
    for name in module.__all__:
        value = getattr(module, name)
        link = f":py:mod:`{name} <nodeflow.{room}.{name}>`" if name in inner else f"``{name}``"
        if not inspect.ismodule(value):
            link = f":py:obj:`{name} <{public_name_of(value).full}>`"
        lines += [f"   * - {link}", f"     - {first_line(value)}"]
    if inner:
        lines += [
            "",
            ".. toctree::",
            "   :hidden:",
            "",
            *(f"   nodeflow.{room}.{name}" for name in inner),
        ]
    return "\n".join([*lines, ""])


def page_of_all() -> str:
    """Return the page that lists every public name, by room."""
    words = (
        "Every public name, by module. Other names may change without notice; ``help(name)`` shows "
        "what a page says."
    )
    lines = [
        *title("Reference"),
        words,
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :widths: auto",
        "",
    ]
    lines += ["   * - module", "     - names"]
    for room in rooms():
        inside = [public for public in public_names() if public.room == room]
        links = ", ".join(f":py:obj:`{public.name} <{public.full}>`" for public in inside)
        lines += [
            f"   * - :py:mod:`{room} <nodeflow.{room}>`",
            f"     - {first_line(module_of(room))} {links}",
        ]
    outer = [f"reference/nodeflow.{room}" for room in rooms() if "." not in room]
    lines += [
        "",
        ".. toctree::",
        "   :hidden:",
        "",
        *(
            f"   {place}"
            for place in [*outer, "reference/settings", "reference/errors", "reference/types"]
        ),
    ]
    return "\n".join([*lines, ""])


def page_of_types() -> str:
    """Return the page of the names that stand for types in signatures."""
    words = (
        "These names stand for types in signatures. They are no part of the package's public names."
    )
    lines = [*title("Types in signatures"), words, ""]
    for name, (value, meaning) in type_aliases().items():
        lines += [
            f".. py:type:: nodeflow.types.{name}",
            f"   :canonical: {value}",
            "",
            f"   {meaning}",
            "",
        ]
    return "\n".join(lines)


@cache
def type_aliases() -> dict[str, tuple[str, str]]:
    """Return the aliases of types by name, each with what it stands for and its docstring."""
    body = ast.parse(inspect.getsource(types)).body
    found: dict[str, tuple[str, str]] = {}
    for node, after in pairwise(body):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(after, ast.Expr)
        ):
            value = (
                node.value.value
                if isinstance(node.value, ast.Constant)
                else ast.unparse(node.value or after)
            )
            found[node.target.id] = (
                re.sub(r"\bnp\.", "numpy.", str(value)),
                " ".join(str(ast.literal_eval(after.value)).split()),
            )
    return found
