"""One setting of a training run: its default, its allowed values and its help, as a dataclass field."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, fields
from textwrap import fill
from typing import Any, TypeVar

from nodeflow._base.checks import as_count, as_int, as_number, check_one_of, describe

Check = Callable[[Any, str], Any]
"""Takes a value and its name; returns the value, converted where types of files and of Python differ, or raises."""
_Class = TypeVar("_Class")


def option(default: Any, help: str, check: Check, *, choices: Iterable[str] = ()) -> Any:
    """Return a dataclass field; its metadata is what the command line and the files of settings are made from."""
    return field(default=default, metadata={"help": help, "check": check, "choices": tuple(choices)})


def one_of(default: str, names: Iterable[str], help: str) -> Any:
    """A setting that is one of ``names``."""
    names = tuple(names)

    def check(value: Any, name: str) -> str:
        check_one_of(value, name, names)
        return str(value)

    return option(default, help, check, choices=names)


def text(default: str, help: str) -> Any:
    """A setting that is a string."""

    def check(value: Any, name: str) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, got {describe(value)}")
        return value

    return option(default, help, check)


def count(default: int, help: str, *, least: int = 0) -> Any:
    """A setting that is an integer of at least ``least``."""
    return option(default, help, lambda value, name: as_count(value, name, least))


def integer(default: int, help: str) -> Any:
    """A setting that is any integer."""
    return option(default, help, as_int)


def number(
    default: float, help: str, *, least: float = 0.0, above: float | None = None, below: float | None = None
) -> Any:
    """A setting that is a finite number of at least ``least``, or above ``above``, and below ``below``."""

    def check(value: Any, name: str) -> float:
        return as_number(value, name, least=None if above is not None else least, above=above, below=below)

    return option(default, help, check)


def flag(help: str) -> Any:
    """A setting that is off unless asked for."""

    def check(value: Any, name: str) -> bool:
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be true or false, got {describe(value)}")
        return value

    return option(False, help, check)


def table(help: str) -> Any:
    """A setting that is a table of further arguments by name."""

    def check(value: Any, name: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise TypeError(f"{name} must be a table of arguments by name, got {describe(value)}")
        return dict(value)

    made = option(None, help, check)
    made.default_factory, made.default = dict, made.default_factory
    return made


def documented(settings: type[_Class]) -> type[_Class]:
    """Add what every field means to the docstring of a dataclass of options."""
    lines = [(settings.__doc__ or "").rstrip(), "", "    Args:"]
    for one in fields(settings):  # type: ignore[arg-type]
        choices = f"; one of {', '.join(one.metadata['choices'])}" if one.metadata["choices"] else ""
        default = "" if one.name.endswith("_options") else f" (default: {one.default!r}{choices})"
        text = f"{one.name}: {one.metadata['help']}{default}."
        lines.append(fill(text, 120, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False))
    settings.__doc__ = "\n".join([*lines, "    "])
    return settings
