"""The error for names of DGL 0.4 that have no stand-in: it names the page that says where their users go."""

from __future__ import annotations

from typing import NoReturn


def refuse(owner: str, name: str) -> NoReturn:
    """Raise AttributeError for a name that ``owner`` does not have."""
    page = 'the page "Coming from DGL\'s NodeFlow" of the documentation says what to use instead of names of DGL'
    raise AttributeError(f"{owner} of nodeflow.compat has no {name!r}: {page}", name=name)
