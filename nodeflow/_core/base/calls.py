"""Errors of calls that do not fit a signature: unknown arguments, and arguments of types other than
it says.

This room is below those that define the package's own classes, so types are compared by the names
that stand in annotations.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Callable
from functools import cache, wraps
from os import PathLike
from typing import Any, Final, ParamSpec, TypeVar, get_type_hints

import numpy as np
import torch

from nodeflow._core.base.checks import as_device, describe
from nodeflow._core.base.habits import hint_of, renamed

P = ParamSpec("P")
R = TypeVar("R")

_TYPES: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "None": ("None", (type(None),)),
    "bool": ("True or False", (bool, np.bool_)),  # the text "no" is true, so it is no flag
    "FileLike": ("a path", (str, PathLike)),
    "Path": ("a Path", (PathLike,)),
    "str": ("a str", (str,)),
    "Tensor": ("a tensor", (torch.Tensor,)),
}
"""By the word of an annotation: what messages call the type, and the classes that it stands for."""
_DEVICE: Final = "torch.device"
_OURS: Final = {
    "Checkpoints",
    "Dataset",
    "Decoder",
    "Edges",
    "Flow",
    "Frame",
    "Graph",
    "GraphOfPeers",
    "History",
    "Inputs",
    "Layer",
    "NarrowRows",
    "NodeFlow",
    "NodeFlowLoader",
    "PartsReport",
    "Propagation",
    "Result",
    "Settings",
    "Structure",
    "Trainer",
}
"""Classes of this package."""
_BETTER_CHECKED: Final = ("str", "Tensor")
"""Types that functions check themselves, with a better message."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` with a check of its flags, files, devices and objects of this package.

    Their annotations say so. Raises TypeError for an argument of another type. A check costs a
    microsecond.

    >>> def save(path: FileLike, *, overwrite: bool = False): ...
    >>> checked(save)("here", overwrite="no")
    Traceback (most recent call last):
    TypeError: overwrite must be True or False, got str 'no'
    """
    signature = inspect.signature(function)
    rules = _rules(signature)
    parameters = signature.parameters.values()
    takes = [p.name for p in parameters]
    places = [(p.name, rules.get(p.name)) for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # only the arguments that are there: most functions have many that are seldom given
        for value, (name, kinds) in zip(args, places, strict=False):
            if kinds is not None:
                _check(value, name, kinds)
        for name, value in kwargs.items():
            if name in rules:
                _check(value, name, rules[name])
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # a keyword that the signature lacks fails in this frame, before the function begins
            unknown = [name for name in kwargs if name not in takes]
            if error.__traceback__ is None or error.__traceback__.tb_next or not unknown:
                raise  # from within the call, which fits
            raise TypeError(f"{error}; {hint_of(unknown[0], takes)}") from None

    return call


def _rules(signature: inspect.Signature) -> dict[str, tuple[str, ...]]:
    """Return the types that each parameter takes, where its annotation has known names only."""
    rules = {}
    known = {*_TYPES, *_OURS, _DEVICE}
    for name, parameter in signature.parameters.items():
        words = str(parameter.annotation)
        kinds = tuple(words.split(" | "))
        several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if not several and words not in _BETTER_CHECKED and known.issuperset(kinds):
            rules[name] = kinds
    return rules


def _check(value: object, name: str, kinds: tuple[str, ...]) -> None:
    """Raise TypeError unless ``value`` is of one of some types."""
    of: type = type(value)
    if _takes(kinds, of):
        return
    if _DEVICE in kinds:
        as_device(value, name)
        return
    words = dict.fromkeys(_words(kind) for kind in kinds)
    raise TypeError(f"{name} must be {' or '.join(words)}, got {describe(value)}")


def _words(kind: str) -> str:
    if kind in _TYPES:
        return _TYPES[kind][0]
    return "a nodeflow.Graph" if kind in ("Graph", "GraphOfPeers") else f"a {kind}"


@cache
def _takes(kinds: tuple[str, ...], of: type) -> bool:
    """Return whether a class is of one of some types, devices aside."""
    if _DEVICE in kinds:
        return "None" in kinds and of is type(None)
    if "GraphOfPeers" in kinds and hasattr(of, "held_part"):
        return True
    classes = tuple(part for kind in kinds if kind in _TYPES for part in _TYPES[kind][1])
    if issubclass(of, classes):
        return True
    # classes of compat have the names of those that they stand for, and are others
    return any(
        base.__name__ in kinds and base.__module__.startswith("nodeflow.")
        for base in of.__mro__
        if not base.__module__.startswith("nodeflow.compat")
    )


class Explained(type):
    """The type of classes whose calls explain arguments that they do not take, that are missing or
    of another type.

    >>> class Model(metaclass=Explained):
    ...     def __init__(self, in_features, hidden=8): ...
    >>> Model(in_channels=4)
    Traceback (most recent call last):
    TypeError: Model got an unexpected keyword argument 'in_channels'; it is called in_features= here
    """

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of ``__init__``, which ``inspect`` does not find behind ``__call__``."""
        signature = _signature(cls)
        try:
            types = get_type_hints(cls.__init__)  # type: ignore[misc]
        except (NameError, TypeError):  # an annotation for type checkers alone
            return signature
        parameters = [
            p.replace(annotation=types.get(name, p.annotation))
            for name, p in signature.parameters.items()
        ]
        return inspect.Signature(parameters)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        for name in _flags(cls) & options.keys():
            _check(options[name], name, ("bool",))
        try:
            return super().__call__(*args, **options)
        except TypeError:
            # binding takes as long as a small layer, so it is left to calls that have failed
            signature = _signature(cls)
            try:
                signature.bind(*args, **options)
            except TypeError as error:
                raise TypeError(_explanation(cls.__name__, signature, options, error)) from None
            raise


class ExplainedABC(Explained, ABCMeta):
    """The type of such classes that have abstract methods."""


@cache
def _signature(kind: type) -> inspect.Signature:
    """The signature of ``__init__`` without ``self``, with annotations as they are written."""
    _self, *parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
    return inspect.Signature(parameters)


@cache
def _flags(kind: type) -> set[str]:
    """Return the names of the arguments that are True or False."""
    rules = _rules(_signature(kind))
    return {name for name, kinds in rules.items() if kinds == ("bool",)}


def _explanation(
    name: str, signature: inspect.Signature, options: dict[str, Any], error: TypeError
) -> str:
    """Return what is wrong with arguments that do not fit a signature."""
    parameters = signature.parameters.values()
    takes = [p.name for p in parameters if p.kind != p.VAR_KEYWORD]
    # to something else, which checks other words
    passed_on = len(takes) < len(parameters)
    for word in options:
        if word not in takes and (not passed_on or renamed(word, takes)):
            return f"{name} got an unexpected keyword argument {word!r}; {hint_of(word, takes)}"
    return f"{name}: {error}; it takes {', '.join(takes)}"
