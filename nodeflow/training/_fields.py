"""Fields of settings: the default, check, help and command-line words of one setting, and groups of
them.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterable
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
    read: Conditions = ({},),
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


def text(default: str, help: str, *, read: Conditions = ({},)) -> Any:
    """A setting that is a string."""
    return setting(default, help, check_text, read=read, metavar="NAME")


def check_text(value: object, name: str) -> str:
    """Return a string; raises TypeError for another type."""
    checks().check_type(value, name, str, "a string")
    return str(value)


def count(
    default: int | ComputedDefault, help: str, *, least: int = 0, read: Conditions = ({},)
) -> Any:
    """A setting that is an integer of at least ``least``."""
    return setting(
        default,
        help,
        lambda value, name: checks().as_count(value, name, least),
        read=read,
        type=int,
        metavar="N",
    )


def number(
    default: float | ComputedDefault, help: str, *, read: Conditions = ({},), **bounds: float
) -> Any:
    """A setting that is a finite number within ``bounds``, those of ``as_number``; at least 0
    without a lower one.
    """
    if "above" not in bounds:
        bounds = {"least": 0.0, **bounds}
    return setting(
        default,
        help,
        lambda value, name: checks().as_number(value, name, **bounds),
        read=read,
        type=float,
        metavar="X",
    )


def flag(help: str, *, read: Conditions = ({},)) -> Any:
    """A setting that is off by default."""
    return setting(
        False,
        help,
        lambda value, name: checks().as_flag(value, name),
        read=read,
        action="store_true",
    )


def table(help: str, *, name: str, read: Conditions = ({},)) -> Any:
    """A setting that is a table of further arguments by name."""

    def check(value: Any, label: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise TypeError(
                f"{label} must be a table of arguments by name, got {checks().describe(value)}"
            )
        return dict(value)

    return setting(
        ComputedDefault("none", lambda _: {}),
        help,
        check,
        name=name,
        read=read,
        action=_Pair,
        metavar="NAME=VALUE",
    )


class Group:
    """Base of the groups of settings, frozen dataclasses of the fields above, whose values are
    checked.

    ``read`` are the alternatives under which a run reads any of them.
    """

    read: ClassVar[Conditions] = ({},)
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            value = value.value(self) if isinstance(value, ComputedDefault) else value
            object.__setattr__(self, one.name, one.metadata["check"](value, name_of(one)))


def name_of(one: Field[Any]) -> str:
    """Return the name of a setting among those of all groups."""
    return str(one.metadata["name"] or one.name)


def option_of(one: Field[Any]) -> str:
    """Return the option of the command for a setting; that of a table is repeated for every
    entry.
    """
    name = name_of(one)
    return f"--{name.removesuffix('s') if one.metadata['words'].get('action') is _Pair else name}".replace(
        "_", "-"
    )


def default_of(one: Field[Any]) -> str:
    """Return the default as text, "none" for an empty text, "off" for False."""
    if isinstance(one.default, ComputedDefault):
        return one.default.words
    return "off" if one.default is False else str(one.default) or "none"


def add_option(parser: argparse._ActionsContainer, one: Field[Any], read: str = "") -> None:
    """Add the option of a setting to a parser; an option that is not given is absent from the
    namespace.

    ``read``: the values of other settings with which it is read; empty if always.
    """
    words = one.metadata["words"]
    notes = [] if words.get("action") in ("store_true", _Pair) else [f"default: {default_of(one)}"]
    notes += [f"read with {read}"] if read else []
    text = " ".join([one.metadata["help"], *([f"({'; '.join(notes)})"] if notes else [])]).replace(
        "%", "%%"
    )
    parser.add_argument(
        option_of(one), dest=name_of(one), default=argparse.SUPPRESS, help=text, **words
    )


def documentation(group: str, one: Field[Any]) -> str:
    """Return the entry of a setting in a docstring; ``group`` is the attribute of ``Settings`` that
    holds it.
    """
    choices = one.metadata["words"].get("choices")
    several = f"; one of {', '.join(choices)}" if choices else ""
    return fill(
        f"{name_of(one)}: {one.metadata['help']} (``{group}.{one.name}``; default: "
        f"{default_of(one)}{several}).",
        120,
        initial_indent=" " * 8,
        subsequent_indent=" " * 12,
        break_on_hyphens=False,
    )


class _Pair(argparse.Action):
    """Collects name=value into a table; values are read as in TOML, other words as strings."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        name, equals, value = str(values).partition("=")
        if not equals or not name:
            parser.error(f"argument {option}: expected NAME=VALUE, got {values!r}")
        try:
            read: object = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            read = value
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), name: read})


class Numbers(argparse.Action):
    """Collects integers given as ``2 2`` or ``2,2``, of which each may be several by name, as in
    ``a=5,b=10 2``.
    """

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        numbers: list[int | dict[str, int]] = []
        try:
            for word in values:
                parts = word.removesuffix(",").split(",")
                if "=" in word:
                    pairs = [part.rpartition("=")[::2] for part in parts]
                    by_name = {name.strip(): int(number) for name, number in pairs}
                    if "" in by_name or len(by_name) < len(pairs):
                        parser.error(
                            f"argument {option}: expected NAME=NUMBER,NAME=NUMBER of one layer, "
                            f"got {word!r}"
                        )
                    numbers.append(by_name)
                else:
                    numbers += map(int, parts)
        except ValueError:
            parser.error(
                f"argument {option}: expected integers, as in 10 10, or by name, as in a=5,b=10, "
                f"got {' '.join(values)!r}; DATA goes before {option}"
            )
        setattr(namespace, self.dest, numbers)
