"""Options of the command line, made from the fields of ``Settings``."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from nodeflow.training._settings import Settings

_SHORT = {"learning_rate": "--lr"}
_METAVAR = {"memory": "SIZE", "partitions": "FOLDER"}
_NO_DEFAULT = ("slots",)
"""Settings whose default is refused where they are read."""


def add_settings(parser: argparse._ArgumentGroup) -> None:
    """Add an option for every setting; options that are not given are absent from the namespace."""
    for field in fields(Settings):
        name = field.name
        flags = [f"--{name.replace('_', '-').removesuffix('-options')}"]
        text, default = field.metadata["help"], field.default
        if name.endswith("_options"):
            flags[0] += "-option"
            parser.add_argument(
                *flags, action=_Pair, dest=name, metavar="NAME=VALUE", default=argparse.SUPPRESS, help=text
            )
            continue
        if name in _SHORT:
            flags.append(_SHORT[name])
        if isinstance(default, bool):
            parser.add_argument(*flags, action="store_true", default=argparse.SUPPRESS, help=text)
            continue
        options: dict[str, Any] = {"help": f"{text} (default: {'none' if name in _NO_DEFAULT else _shown(default)})"}
        choices = field.metadata["choices"]
        if name == "fanouts":
            options |= {"type": _numbers, "nargs": "+", "metavar": "K"}
        elif choices and name != "model":
            options["choices"] = list(choices)
        elif isinstance(default, (int, float)):
            options |= {"type": type(default), "metavar": "N" if isinstance(default, int) else "X"}
        else:
            options["metavar"] = f"{{{','.join(choices)}}}" if choices else _METAVAR.get(name, "NAME")
        parser.add_argument(*flags, default=argparse.SUPPRESS, **options)


def _shown(default: object) -> str:
    """A default as text; the empty text means that there is none."""
    return "by the sampler" if default is None else "none" if default == "" else str(default)


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given on the command line."""
    given = {field.name: getattr(options, field.name) for field in fields(Settings) if hasattr(options, field.name)}
    if "fanouts" in given:
        given["fanouts"] = [number for group in given["fanouts"] for number in group]
    return given


class _Pair(argparse.Action):
    """Collects name=value into a table; values are read as in TOML, other words as strings."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: str | Sequence[Any] | None,
        option: str | None = None,
    ) -> None:  # fmt: skip
        name, equals, value = str(values).partition("=")
        if not equals or not name:
            parser.error(f"argument {option}: expected NAME=VALUE, got {values!r}")
        table = dict(getattr(namespace, self.dest, {}))
        try:
            table[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            table[name] = value
        setattr(namespace, self.dest, table)


def _numbers(text: str) -> list[int]:
    """Return the integers of ``"2"``, ``"2,2"`` or ``"2,"``; raises ArgumentTypeError."""
    try:
        return [int(part) for part in text.removesuffix(",").split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid int value: {text!r}") from None
