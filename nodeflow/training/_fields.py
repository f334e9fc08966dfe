"""Fields of settings: the default, check, help and command-line words of one setting, and groups of
them.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from textwrap import fill
from typing import Any, ClassVar

from nodeflow.training._choices import Conditions

Check = Callable[[Any, str], Any]
"""Takes a value and its name; returns the value, converted where types of files and of Python
differ, or raises.
"""


def checks() -> Any:
    """Return the module of checks. It imports torch, which values need and the help does not."""
    from nodeflow._core.base import checks

    return checks


ALWAYS: Conditions = ({},)
"""What reads a setting that every run reads."""


@dataclass(frozen=True)
class ComputedDefault:
    """A default by other settings, in ``words`` for the help; ``value`` takes the group with its
    earlier fields set.
    """

    words: str
    value: Callable[[Any], object]


def setting(
    default: object,
    help: str,
    check: Check,
    *,
    name: str = "",
    read: Conditions = ALWAYS,
    **words: Any,
) -> Any:
    """Return a dataclass field, from which the command, files of settings, docstrings and tables
    are made.

    ``name`` is that among the settings of all groups, empty for that of the field; ``words`` are
    further arguments of ``argparse`` for the command's option. ``read`` are the alternatives under
    which a run reads the setting: always, unless it is given.
    """
    return field(
        default=default,
        metadata={"help": help, "check": check, "name": name, "read": read, "words": words},
    )


def one_of(names: str | Iterable[str], help: str, *, default: str = "", **further: Any) -> Any:
    """A setting that is one of ``names``, by default the first; names without spaces may be in one
    string.
    """
    names = tuple(names.split() if isinstance(names, str) else names)

    def check(value: Any, label: str) -> str:
        checks().check_one_of(value, label, names)
        return str(value)

    return setting(default or names[0], help, check, choices=names, **further)


def text(default: str, help: str, **further: Any) -> Any:
    """A setting that is a string."""
    return setting(default, help, check_text, metavar="NAME", **further)


def check_text(value: object, name: str) -> str:
    """Return a string; raises TypeError for another type."""
    checks().check_type(value, name, str, "a string")
    return str(value)


def count(default: int | ComputedDefault, help: str, *, least: int = 0, **further: Any) -> Any:
    """A setting that is an integer of at least ``least``."""

    def check(value: Any, label: str) -> Any:
        return checks().as_count(value, label, least)

    return setting(default, help, check, type=int, metavar="N", **further)


def number(
    default: float | ComputedDefault, help: str, *, read: Conditions = ALWAYS, **bounds: float
) -> Any:
    """A setting that is a finite number within ``bounds``, those of ``as_number``; at least 0
    without a lower one.
    """
    if "above" not in bounds:
        bounds.setdefault("least", 0.0)

    def check(value: Any, label: str) -> Any:
        return checks().as_number(value, label, **bounds)

    return setting(default, help, check, read=read, type=float, metavar="X")


def flag(help: str, **further: Any) -> Any:
    """A setting that is off by default."""

    def check(value: Any, label: str) -> Any:
        return checks().as_flag(value, label)

    return setting(default=False, help=help, check=check, action="store_true", **further)


def table(help: str, **further: Any) -> Any:
    """A setting that is a table of further arguments by name."""

    def check(value: Any, label: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise TypeError(
                f"{label} must be a table of arguments by name, got {checks().describe(value)}"
            )
        return dict(value)

    default = ComputedDefault("none", lambda _: {})
    return setting(default, help, check, action=PairOption, metavar="NAME=VALUE", **further)


class Group:
    """Base of the groups of settings, frozen dataclasses of the fields above, whose values are
    checked.

    ``read`` are the alternatives under which a run reads any of them.
    """

    read: ClassVar[Conditions] = ({},)
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            # those of earlier fields are set by now
            if isinstance(value, ComputedDefault):
                value = value.value(self)
            object.__setattr__(self, part.name, part.metadata["check"](value, name_of(part)))


def name_of(field: Field[Any]) -> str:
    """Return the name of a setting among those of all groups."""
    return str(field.metadata["name"] or field.name)


def option_of(field: Field[Any]) -> str:
    """Return the command's option for a setting; that of a table is repeated for every entry."""
    name = name_of(field)
    if field.metadata["words"].get("action") is PairOption:
        name = name.removesuffix("s")
    return f"--{name}".replace("_", "-")


def default_of(field: Field[Any]) -> str:
    """Return the default as text, "none" for an empty text, "off" for False."""
    if isinstance(field.default, ComputedDefault):
        return field.default.words
    if field.default is False:
        return "off"
    return str(field.default) or "none"


def add_option(parser: argparse._ActionsContainer, field: Field[Any], read: str = "") -> None:
    """Add the option of a setting to a parser; without it, the namespace lacks the setting.

    ``read``: the values of other settings with which it is read; empty if always.
    """
    words = field.metadata["words"]
    # a flag is off and a table empty without saying so
    notes = []
    if words.get("action") not in ("store_true", PairOption):
        notes.append(f"default: {default_of(field)}")
    if read:
        notes.append(f"read with {read}")
    text = field.metadata["help"]
    if notes:
        text += f" ({'; '.join(notes)})"
    parser.add_argument(
        option_of(field),
        dest=name_of(field),
        default=argparse.SUPPRESS,
        help=text.replace("%", "%%"),  # which argparse would fill in
        **words,
    )


def documentation(group: str, field: Field[Any]) -> str:
    """Return the entry of a setting in a docstring; ``group`` is the attribute of ``Settings`` that
    holds it.
    """
    choices = field.metadata["words"].get("choices")
    several = ""
    if choices:
        several = f"; one of {', '.join(choices)}"
    return fill(
        f"{name_of(field)}: {field.metadata['help']} (``{group}.{field.name}``; default: "
        f"{default_of(field)}{several}).",
        120,
        initial_indent=" " * 8,
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
    )


class PairOption(argparse.Action):
    """Collects name=value into a table; values are read as in TOML, other words as strings."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        name, equals, word = str(values).partition("=")
        if not equals or not name:
            parser.error(f"argument {option}: expected NAME=VALUE, got {values!r}")
        # a word that is no value of TOML is a string, so that quotes may be left out
        value: object = word
        with suppress(tomllib.TOMLDecodeError):
            value = tomllib.loads(f"value = {word}")["value"]
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), name: value})


class NumbersOption(argparse.Action):
    """Collects integers given as ``2 2`` or ``2,2``, of which each may be several by name, as in
    ``a=5,b=10 2``.
    """

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        numbers: list[int | dict[str, int]] = []
        try:
            for word in values:
                numbers += _numbers(word)
        except ValueError:
            parser.error(
                f"argument {option}: expected integers, as in 10 10, or by name, as in a=5,b=10, "
                f"got {' '.join(values)!r}; DATA goes before {option}"
            )
        setattr(namespace, self.dest, numbers)


def _numbers(word: str) -> list[int] | list[dict[str, int]]:
    """Return the numbers of a word, or those of one layer by name; ValueError for other words."""
    parts = word.removesuffix(",").split(",")
    if "=" not in word:
        return [*map(int, parts)]
    by_name = {}
    for part in parts:
        name, _, number = part.rpartition("=")
        by_name[name.strip()] = int(number)
    # a name given twice would silently keep its last number
    if "" in by_name or len(by_name) < len(parts):
        raise ValueError("a number without a name, or a name given twice")
    return [by_name]
