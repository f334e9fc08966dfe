"""Settings of a training run in groups, by name, and their file."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

from nodeflow._core.base.files import is_file
from nodeflow._core.base.habits import meant
from nodeflow.training._choices import Conditions, Values
from nodeflow.training._fields import ComputedDefault, Group, checks, documentation, name_of
from nodeflow.training._rules import check_values, unread
from nodeflow.training._train_options import (
    ComputeSettings,
    GraphSettings,
    LinkSettings,
    LossSettings,
    ModelSettings,
    OptimizerSettings,
    RunSettings,
    SamplerSettings,
    StorageSettings,
    check_import,
)

FREE = (
    "workers",
    "storage",
    "memory",
    "partitions",
    "share",
    "halo",
    "sample_on",
    "patience",
    "epochs",
)
"""Settings that may change when a run is resumed: ``epochs`` only with a constant schedule, which
does not read it; ``storage`` not to or from "partitions", whose batches differ; ``partitions`` to
the same folder moved elsewhere, or to other parts of the same graph.
"""


@dataclass(frozen=True, init=False, repr=False)
class Settings:
    """The settings of a training run; on one machine, the same settings give the same result.

    Every setting is a keyword, an option of ``nodeflow train``, and a line of its file of settings;
    it is read in its group, as in ``settings.model.hidden``. A whole group may be given too, as in
    ``link={"margin": 9}``.

    Args:
        base: settings to begin with, by name or group. Those that ``changes`` leave unread are left
            out.
        changes: settings by name, or groups.

    Raises ValueError for values that a setting cannot have, for settings that exclude each other,
    and for those that the run will not read; TypeError for values of another type.

    >>> settings = Settings(fanouts=(5, 5), epochs=1)
    >>> settings.sampler.batch_size, settings.optimizer.lr
    (1024, 0.003)
    >>> Settings(task="link", decoder="complex").replace(task="auto", hidden=8)
    Settings(task='auto', hidden=8)
    >>> Settings(margin=9)
    Traceback (most recent call last):
    ValueError: margin (= 9) is read with task 'link', and this run has task 'auto'; leave it out
    """

    run: RunSettings
    graph: GraphSettings
    model: ModelSettings
    sampler: SamplerSettings
    link: LinkSettings
    loss: LossSettings
    optimizer: OptimizerSettings
    storage: StorageSettings
    compute: ComputeSettings
    chosen: Values = field(init=False, compare=False)

    def __init__(self, base: Values = MappingProxyType({}), **changes: object) -> None:
        before = by_name(base)
        changed = by_name(changes)
        chosen = {**before, **changed}
        groups = _groups(chosen)
        strays = _unread(chosen, _values(groups))
        if strays:
            # drop base settings that these changes leave unread; other unread settings are errors
            never_read = _unread(before, _values(_groups(before)))
            for name, reason in strays.items():
                if name in never_read or name in changed:
                    raise _unread_error(name, chosen[name], reason)
            chosen = {name: value for name, value in chosen.items() if name not in strays}
            groups = _groups(chosen)
        check_values(_values(groups))
        # a frozen dataclass, which takes its attributes only like this
        for name, group in groups.items():
            object.__setattr__(self, name, group)
        object.__setattr__(self, "chosen", chosen)

    def replace(self, **changes: object) -> Settings:
        """Return settings with other values, by name or group; those that are then unread go back
        to their defaults.
        """
        return Settings(self.chosen, **changes)

    def check(self, **facts: str) -> None:
        """Raise ValueError where a run of these facts (see ``_rules.FACTS``, or ``task``) does not
        go with settings.
        """
        values = {**self.by_name(), **facts}
        # a setting with its default says nothing, whoever wrote it down
        for name, reason in _unread(self.chosen, values).items():
            if self.chosen[name] != FIELDS[name][1].default:
                raise _unread_error(name, self.chosen[name], reason)
        check_values(values)

    def by_name(self, *, read: bool = False) -> dict[str, Any]:
        """Return the values of all settings by name; with ``read`` of those that the run reads."""
        checks().as_flag(read, "read")
        values = _values(vars(self))
        if not read:
            return values
        unread = _unread(values, values)
        return {name: value for name, value in values.items() if name not in unread}

    def left_out(self, values: Values) -> list[str]:
        """Return the names of settings that a file changes and these do not have, because others
        leave them unread.
        """
        return [
            name
            for name, value in settings_in(values).items()
            if name not in self.chosen and value not in (FIELDS[name][1].default, {})
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that a run reads by group, in types that TOML and JSON have."""
        tables: dict[str, Any] = {}
        for name, value in self.by_name(read=True).items():
            group, field = FIELDS[name]
            tables.setdefault(group, {})[field.name] = (
                list(value) if isinstance(value, tuple) else value
            )
        return tables

    @classmethod
    def from_dict(cls, values: Values, **changes: object) -> Settings:
        """Return the settings of a file, by name or group, with changes; raises ValueError as
        ``Settings`` does.

        A model "module:factory" is imported where it is used, which runs code: one that ``values``
        name is refused, unless ``changes`` name a model too.
        """
        check_import(by_name(values).get("model"), by_name(changes).get("model"))
        return cls(values, **changes)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.chosen.items())})"


GROUPS: dict[str, type[Group]] = {
    name: kind for name, kind in get_type_hints(Settings).items() if name != "chosen"
}
"""The groups by the attribute of ``Settings`` that holds them."""
FIELDS = {name_of(part): (group, part) for group, kind in GROUPS.items() for part in fields(kind)}
"""The group and the field of every setting by its name."""
_SETTINGS = "        changes: settings by name, or groups.\n"
Settings.__doc__ = (Settings.__doc__ or "").replace(
    _SETTINGS,
    "\n".join([_SETTINGS[:-1], *(documentation(*place) for place in FIELDS.values()), ""]),
)


def by_name(values: Values) -> dict[str, Any]:
    """Return settings by name, also those of a whole group; raises ValueError for unknown names."""
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        if name in GROUPS and isinstance(value, Mapping):
            names = {field.name: name_of(field) for field in fields(GROUPS[name])}
            for key, entry in value.items():
                if _is_known(key, entry, names, f"{name}."):
                    chosen[names[key]] = entry
        elif _is_known(name, value, FIELDS, ""):
            chosen[name] = value
    # None leaves open what other settings tell
    return {
        name: value
        for name, value in chosen.items()
        if value is not None or not isinstance(FIELDS[name][1].default, ComputedDefault)
    }


def settings_in(values: Values) -> dict[str, Any]:
    """Return the settings of a file by name, without what else it holds, such as its data."""
    return by_name(
        {name: value for name, value in values.items() if name in FIELDS or name in GROUPS}
    )


_GONE = ("pack", "")
"""A setting that earlier versions wrote into every run with lookahead, as it was without it."""


def named_again(values: Values, model: str | None) -> dict[str, str]:
    """Return ``model`` as a change for ``from_dict`` of a run's settings; ValueError unless it is
    theirs, or None.
    """
    # the other settings are not checked yet: they may be those of a model that is not imported
    trained = settings_in(values).get("model", FIELDS["model"][1].default)
    if model is not None and model != trained:
        raise ValueError(f"its model is {trained!r}, got {model!r}; a trained run keeps its model")
    if model is None:
        return {}
    return {"model": model}


def _is_known(name: str, value: object, names: Collection[str], group: str) -> bool:
    """Return whether a setting is one of these; raises ValueError for one that never was."""
    if name in names:
        return True
    if (name, value) == _GONE:
        return False
    close = meant(name, names)
    hint = f"did you mean {group}{close}?" if close else f"the settings are {', '.join(names)}"
    raise ValueError(f"there is no setting {f'{group}{name}'!r} (= {value!r}); {hint}")


def _unread_error(name: str, value: object, reason: str) -> ValueError:
    return ValueError(f"{name} (= {value!r}) {reason}; leave it out")


def _groups(chosen: Values) -> dict[str, Any]:
    """Return the groups by their attributes; raises for values that they cannot have."""
    inside: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for name, value in chosen.items():
        group, field = FIELDS[name]
        inside[group][field.name] = value
    return {group: kind(**inside[group]) for group, kind in GROUPS.items()}


def _values(groups: Values) -> dict[str, Any]:
    """Return the values of all settings by name."""
    return {name: getattr(groups[group], field.name) for name, (group, field) in FIELDS.items()}


def conditions_of(name: str) -> tuple[Conditions, Conditions]:
    """Return what a setting is read with: the condition of its group, and its own."""
    group, field = FIELDS[name]
    return GROUPS[group].read, field.metadata["read"]


def _unread(names: Values, values: Values) -> dict[str, str]:
    """Return why settings are not read in a run of these values, by name."""
    reasons = {name: unread(conditions_of(name), values) for name in names}
    return {name: reason for name, reason in reasons.items() if reason}


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of a TOML file; raises FileNotFoundError, or ValueError for one that is
    no TOML.
    """
    if not is_file(path):
        raise FileNotFoundError(f"no file of settings at {path}")
    with checks().blaming(
        f"{path} is no TOML", ValueError, RecursionError
    ):  # as TOML and Unicode raise
        return tomllib.loads(path.read_text(encoding="utf-8"))
