"""The forms in which a page may write the name of a public object, such as ``Flow.data``."""

from __future__ import annotations

import re

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
"""Guides call an object by the lower-case word, so that ``batch.seeds`` is ``NodeFlow.seeds``."""


def targets(names: list[str]) -> dict[str, str]:
    """Return the full name by every form in which a text may write it.

    A form is an end of the full name that no other name has. One word alone stands for a name where
    it cannot be read as an ordinary word: it has a capital or an underscore. Names of other
    libraries' interfaces (``nodeflow.compat``) need their room.

    >>> targets(["nodeflow.fn.sum", "nodeflow.flow.Flow.data"])["Flow.data"]
    'nodeflow.flow.Flow.data'
    """
    found: dict[str, str] = {}
    several: set[str] = set()
    for full in names:
        found[full] = full
        room = full.startswith("nodeflow.compat.")
        parts = full.split(".")[1:]
        for first in range(len(parts)):
            form = ".".join(parts[first:])
            is_word = first == len(parts) - 1 and re.search(r"[A-Z_]", form) is None
            if is_word or (room and first > 0):
                continue
            if found.setdefault(form, full) != full:
                several.add(form)
            found.setdefault(f"nodeflow.{form}", full)
    for form in several:
        del found[form]
    for word, owner in INSTANCES.items():
        of_owner = [form for form in found if form.startswith(f"{owner}.")]
        for form in of_owner:
            found.setdefault(f"{word}.{form.removeprefix(f'{owner}.')}", found[form])
    return found
