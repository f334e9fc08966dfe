"""Errors of calls that do not fit a signature: unknown arguments, and arguments of types other than
it says.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Callable, Iterable
from functools import cache, wraps
from os import PathLike
from typing import Any, Final, ParamSpec, TypeVar, get_type_hints

import numpy as np
import torch

from nodeflow._base.checks import as_device, describe
from nodeflow._base.habits import hint_of, renamed

P = ParamSpec("P")
R = TypeVar("R")

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "None": (type(None),),
    "bool": (bool, np.bool_),  # the text "no" is true, so nothing else is a flag
    "FileLike": (str, PathLike),
    "Path": (PathLike,),
    "str": (str,),
    "torch.device": (torch.device,),
    "Tensor": (torch.Tensor,),
}
_OURS: Final = frozenset(
    (
        "Checkpoints",
        "Dataset",
        "Decoder",
        "Edges",
        "Flow",
        "Graph",
        "HeldGraph",
        "History",
        "Inputs",
        "NodeFlow",
    )
    + (
        "NarrowRows",
        "NodeFlowLoader",
        "PartsReport",
        "Propagation",
        "Result",
        "Settings",
        "Structure",
        "Trainer",
    )
)
_NAMED: Final = ("str",), ("Tensor",)
"""Types of which the functions themselves say more: which names there are, and which rows a tensor
has.
"""

_WORDS_OF: Final = {
    "Tensor": "a tensor",
    "None": "None",
    "bool": "True or False",
    "FileLike": "a path",
    "Path": "a Path",
    "str": "a str",
    "HeldGraph": "a nodeflow.Graph",
    "Graph": "a nodeflow.Graph",
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``function`` with a check of its flags, files, devices and objects of this package.

    Their annotations say so. Raises TypeError for an argument of another type. A check costs a
    microsecond.

    >>> def save(path: FileLike, *, overwrite: bool = False): ...
    >>> checked(save)("here", overwrite="no")
    Traceback (most recent call last):
    TypeError: overwrite must be True or False, got str 'no'
    """
    parameters = inspect.signature(function).parameters.values()
    rules = _rules(parameters)
    takes = [p.name for p in parameters]
    places = [(p.name, rules.get(p.name)) for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # only the arguments that are there: most functions have many that are seldom given
        for value, (name, kinds) in zip(args, places, strict=False):
            if kinds is not None:
                check_kinds(value, name, kinds)
        for name, value in kwargs.items():
            if name in rules:
                check_kinds(value, name, rules[name])
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            unknown = [name for name in kwargs if name not in takes]
            if error.__traceback__ is None or error.__traceback__.tb_next or not unknown:
                raise  # from within the call, which fits
            raise TypeError(f"{error}; {hint_of(unknown[0], takes)}") from None

    return call


def _rules(parameters: Iterable[inspect.Parameter]) -> dict[str, tuple[str, ...]]:
    """Return the types that a parameter takes, by name, of those whose annotation has known names
    only.
    """
    rules = {}
    for parameter in parameters:
        kinds = tuple(map(str.strip, str(parameter.annotation).split("|")))
        simple = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if (
            simple
            and kinds not in _NAMED
            and all(kind in _TYPES or kind in _OURS for kind in kinds)
        ):
            rules[parameter.name] = kinds
    return rules


def check_kinds(value: object, name: str, kinds: tuple[str, ...]) -> None:
    """Raise TypeError unless ``value`` is of one of some types, by the names that annotations
    have.
    """
    if kinds[0] == "torch.device":
        if value is not None or "None" not in kinds:
            as_device(value, name)
        return
    of: type = type(value)
    if not _takes(kinds, of):
        words = [_WORDS_OF.get(kind, f"a {kind}") for kind in kinds]
        raise TypeError(
            f"{name} must be {' or '.join(dict.fromkeys(words))}, got {describe(value)}"
        )


@cache
def _takes(kinds: tuple[str, ...], of: type) -> bool:
    return any(
        issubclass(of, _TYPES[kind]) if kind in _TYPES else _is_our(of, kind) for kind in kinds
    )


def _is_our(of: type, name: str) -> bool:
    """Whether a class is one of this package: by its name, because this room is below those that
    define it.
    """
    if name == "HeldGraph":
        return hasattr(of, "held")
    modules = [base.__module__ for base in of.__mro__ if base.__name__ == name]
    # classes of compat have the names of those that they stand for, and are others
    return any(
        module.startswith("nodeflow") and not module.startswith("nodeflow.compat")
        for module in modules
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
        flags = _flags(cls)
        for name in options.keys() & flags:
            check_kinds(options[name], name, ("bool",))
        try:
            return super().__call__(*args, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from within the call, which fits
            parameters = _signature(cls).parameters
            several = (inspect.Parameter.VAR_KEYWORD,)
            takes = [name for name, p in parameters.items() if p.kind not in several]
            others = len(takes) < len(parameters)  # passed on to something else, which checks them
            for name in options:
                if name not in takes and (not others or renamed(name, takes)):
                    raise TypeError(
                        f"{cls.__name__} got an unexpected keyword argument {name!r}; "
                        f"{hint_of(name, takes)}"
                    ) from None
            try:
                _signature(cls).bind(*args, **options)
            except TypeError as wrong:
                raise TypeError(f"{cls.__name__}: {wrong}; it takes {', '.join(takes)}") from None
            raise


class ExplainedABC(Explained, ABCMeta):
    """The type of such classes that have abstract methods."""


def _signature(kind: type) -> inspect.Signature:
    """The signature of ``__init__`` without ``self``, with annotations as they are written."""
    _self, *parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
    return inspect.Signature(parameters)


@cache
def _flags(kind: Explained) -> frozenset[str]:
    rules = _rules(_signature(kind).parameters.values())
    return frozenset(name for name, kinds in rules.items() if kinds == ("bool",))
