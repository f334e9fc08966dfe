"""Checks of arguments: ids, sizes and numbers that users pass become int64 arrays, ints or floats,
or an error.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow._core.base.arrays import array_of

T = TypeVar("T")

Ints = NDArray[np.int64]
"""A one-dimensional int64 array."""


LARGEST: Final = int(np.iinfo(np.int64).max)
"""The largest 64-bit integer: the bound of ids without a graph."""


class _All:
    """Stands for every row, column or flow where an argument selects some; it prints and pickles as
    itself.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "ALL"

    def __reduce__(self) -> str:
        return "ALL"


ALL: Final = _All()
"""Selects every row, every column or every flow in an argument that selects some of them."""


def as_ids(value: object, name: str, upper: int, what: str = "node", *, lower: int = 0) -> Ints:
    """Return ``value`` as an int64 array of ids in ``[lower, upper)``; masks, floats and other ids
    are refused.

    Accepts tensors, arrays, pandas columns, lists, tuples and ranges of integers. Raises TypeError
    for another type (a bool mask and floats are the usual mistakes), ValueError for a wrong shape,
    IndexError for the first id out of range.
    """
    # arrays come first: they are told quickly
    if not isinstance(value, (torch.Tensor, np.ndarray, Iterable)) or isinstance(
        value, (str, bytes, dict)
    ):
        raise TypeError(
            f"{name} must be a tensor, an array or a list of {what} ids, got {describe(value)}"
        )
    array = as_array(value, name)
    if array.dtype == np.bool_:
        raise TypeError(
            f"{name} must hold {what} ids, got a bool mask; pass mask.nonzero().flatten() instead, "
            "or for another container numpy.flatnonzero(mask)"
        )
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {tuple(array.shape)}")
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integer {what} ids, got dtype {array.dtype}")
    check_range(array, name, upper, what, lower=lower)
    return np.ascontiguousarray(array, np.int64)


def pinned(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor in page-locked memory, a sparse one as it is.

    Raises ValueError where torch has no device that copies from there.
    """
    try:
        return tensor.pin_memory() if tensor.layout == torch.strided else tensor
    except RuntimeError as error:
        words = str(error).splitlines()[0]
        raise ValueError(
            f"pin_memory needs a GPU that torch can use ({words}); without one leave it out"
        ) from None


def unmasked(value: Any, name: str, size: int, what: str = "node", hint: str = "") -> Any:
    """Return the ids where a bool mask ``[size]`` is True; what is no mask comes back as it is.

    A mask is a tensor, an array, a column of another library, or a list of bools. Raises ValueError
    for one of another shape; ``hint`` ends its message.
    """
    mask = value
    if isinstance(value, list | tuple):
        if not value or not all(map(_is_bool, value)):
            return value
        mask = np.array(value)
    elif not isinstance(value, torch.Tensor) and hasattr(value, "__array__"):
        mask = np.asanyarray(value)  # a column of another library
    # ``dtype in (torch.bool, np.bool_)`` compares a dtype of numpy with one of torch, and numpy
    # drops any error of that comparison, also a KeyboardInterrupt
    of_bool = torch.bool if isinstance(mask, torch.Tensor) else np.bool_
    if not isinstance(mask, torch.Tensor | np.ndarray) or mask.dtype != of_bool:
        return value
    if mask.shape != (size,):
        raise ValueError(
            f"a mask of {name} must have one entry per {what} ({size}), got shape "
            f"{tuple(mask.shape)}{hint}"
        )
    return np.flatnonzero(as_array(mask, name))


def _is_bool(value: object) -> bool:
    return isinstance(value, (bool, np.bool_))


def as_array(value: Any, name: str, what: str = "integers") -> NDArray[Any]:
    """Return a tensor, array, pandas Series or list as an array, which shares memory where it can.

    An iterator is read to its end. Raises TypeError or ValueError for values that do not make an
    array of numbers, and for sets, which have no order; the error says that they must be ``what``.
    """
    if isinstance(value, torch.Tensor):
        return _array_of_tensor(value, name, what)
    if isinstance(value, np.ndarray):
        return plain_array(value, name)
    if isinstance(value, (set, frozenset)):
        raise TypeError(f"{name} must be ordered, got a set; pass sorted({name})")
    if isinstance(value, Mapping):
        raise TypeError(
            f"{name} must be {what} in their order, got a dict; pass list({name}.values())"
        )
    if hasattr(value, "to_numpy"):  # a column of pandas, polars or Arrow
        value = array_of(value, name)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return plain_array(value, name)
    items = list(value) if isinstance(value, Iterable) else value
    # numpy would read True among integers as 1
    if isinstance(items, list) and any(map(_is_bool, items)):
        raise TypeError(
            f"{name} must be {what}, got a list with a bool in it; of a mask pass "
            "numpy.flatnonzero(mask)"
        )
    try:
        return np.asarray(items)
    except ValueError:
        raise ValueError(
            f"{name} must be one-dimensional, got a list of lists of several lengths"
        ) from None


def _array_of_tensor(value: torch.Tensor, name: str, what: str) -> NDArray[Any]:
    if value.device.type == "meta":
        raise TypeError(
            f"{name} must be {what}, got a tensor on the meta device, which has no numbers"
        )
    # numpy knows neither
    if value.layout != torch.strided or value.dtype == torch.bfloat16:
        raise TypeError(
            f"{name} must be dense {what}, got {describe(value)} and layout {value.layout}"
        )
    return value.detach().cpu().numpy()


@contextlib.contextmanager
def blaming(what: str, *kinds: type[Exception]) -> Iterator[None]:
    """Raise ValueError for an error of some kinds within the block: ``what`` says what is wrong,
    the error says why.
    """
    try:
        yield
    except kinds as error:
        # the words of a KeyError are its key alone
        why = repr(error) if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{what}: {why}") from error


def lasting(value: T) -> T | list[Any]:
    """Return a value that can be read several times: the entries of an iterator as a list, else the
    value itself.
    """
    return list(value) if isinstance(value, Iterator) else value


def plain_array(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array as compiled loops and torch take it: a copy of one that is big-endian or runs
    backwards.

    Raises TypeError for a masked array, whose masked entries would count.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must have no missing entries, got a masked array; fill it with .filled(value) "
            "first"
        )
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    # C has two names for some of these types, of which torch knows one
    if array.dtype.kind in "iu":
        array = array.view(np.dtype(f"{array.dtype.kind}{array.dtype.itemsize}"))
    return array.copy() if min(array.strides, default=0) < 0 else array


def check_range(ids: NDArray[Any], name: str, upper: int, what: str, *, lower: int = 0) -> None:
    """Raise IndexError for the first id that is not in ``[lower, upper)``."""
    # min and max first: they need no memory, unlike a comparison, and the error path may take its
    # time
    if len(ids) and (np.minimum.reduce(ids) < lower or np.maximum.reduce(ids) >= upper):
        at = first_true((ids < lower) | (ids >= upper))
        rule = f"there is no {what} at all"
        if upper > lower:
            rule = f"{what} ids go from {lower} to {upper - 1}"
        raise IndexError(f"{name}[{at}] is {ids[at]}, but {rule}")


def check_indptr(indptr: NDArray[Any], num_edges: int) -> None:
    """Raise ValueError unless ``indptr`` goes from 0 to ``num_edges`` without a fall."""
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != num_edges:
        got = f"{indptr[0]} to {indptr[-1]}" if len(indptr) else "nothing"
        raise ValueError(f"indptr must go from 0 to the number of edges {num_edges}, got {got}")
    if (at := first_true(indptr[1:] < indptr[:-1])) is not None:
        raise ValueError(
            f"indptr must not decrease, but indptr[{at}] is {indptr[at]} and indptr[{at + 1}] "
            f"{indptr[at + 1]}"
        )


def check_length(ids: Sized, name: str, size: int, what: str) -> None:
    """Raise ValueError unless there is one entry per ``what``, of which there are ``size``."""
    if len(ids) != size:
        raise ValueError(f"{name} must have one entry per {what} ({size}), got {len(ids)}")


def check_num_rows(shape: Sequence[int], name: str, size: int, what: str, hint: str = "") -> None:
    """Raise ValueError unless there is one row per ``what``, of which there are ``size``."""
    if not shape or shape[0] != size:
        raise ValueError(
            f"{name} must have {size} rows, one per {what}, got shape {tuple(shape)}{hint}"
        )


def check_pairs(first: Sized, second: Sized, names: str, what: str) -> None:
    """Raise ValueError unless two arrays, the ``names``, have one entry per ``what`` each."""
    if len(first) != len(second):
        raise ValueError(
            f"{names} must have one entry per {what}, got {len(first)} and {len(second)}"
        )


def first_true(mask: NDArray[np.bool_]) -> int | None:
    """Return the index of the first True in ``mask``, None where there is none."""
    return int(mask.argmax()) if mask.any() else None


def as_int(value: object, name: str) -> int:
    """Return ``value`` as an int; a bool or anything that is not an integer raises TypeError."""
    if type(value) is int:  # the usual case, quickly
        return value
    if not _is_bool(value) and getattr(value, "dtype", None) != torch.bool:
        with contextlib.suppress(TypeError):  # arrays have __index__, whatever they hold
            return operator.index(value)  # type: ignore[arg-type]
    raise TypeError(f"{name} must be an integer, got {describe(value)}")


def as_count(value: object, name: str, least: int = 0) -> int:
    """Return ``value`` as an int of at least ``least``; raises TypeError or ValueError."""
    number = as_int(value, name)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {number}")
    return number


def as_flag(value: object, name: str) -> bool:
    """Return ``value`` as a bool; anything but True and False raises TypeError: the text "no" is
    true.
    """
    check_type(value, name, (bool, np.bool_), "True or False")
    return bool(value)


def as_number(
    value: object,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """Return ``value`` as a float that is finite and within the bounds; raises TypeError or
    ValueError.

    Takes Python's and numpy's numbers, and tensors and arrays without dimensions; a bool is no
    number.

    >>> as_number(1, "rate", above=0, most=1)
    1.0
    """
    number = value
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)) and value.ndim == 0:
        number = value.item()
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{name} must be a number, got {describe(value)}")
    limits: dict[str, tuple[Any, Any]] = {
        "above": (operator.gt, above),
        "at least": (operator.ge, least),
        "below": (operator.lt, below),
        "at most": (operator.le, most),
    }
    # only the bounds that are given are checked, and named in the message
    given = {word: limit for word, limit in limits.items() if limit[1] is not None}
    is_finite = abs(number) <= sys.float_info.max  # which NaN is not
    if not (is_finite and all(fits(number, bound) for fits, bound in given.values())):
        words = [f"{word} {bound}" for word, (_, bound) in given.items()]
        rule = " and ".join(words if len(words) == 2 else ["finite", *words])
        raise ValueError(f"{name} must be {rule}, got {number}")
    return float(number)


def as_index(value: object, name: str, size: int) -> int:
    """Return the index ``value`` of a sequence of ``size`` entries, counted from the end when
    negative.
    """
    index = as_int(value, name)
    if not -size <= index < size:
        bounds = "there are none"
        if size:
            bounds = f"there are {size}, so it goes from {-size} to {size - 1}"
        raise IndexError(f"{name} {index} is out of range: {bounds}")
    return index % size


def as_device(value: object, name: str = "device") -> torch.device:
    """Return ``value`` as a device that is there; raises TypeError for what names none, ValueError
    for a missing one.

    >>> as_device("cpu")
    device(type='cpu')
    """
    if not isinstance(value, (torch.device, str, int)) or isinstance(value, bool):
        raise TypeError(
            f"{name} must be a device of torch, such as 'cpu' or 'cuda:0', got {describe(value)}"
        )
    try:
        device = torch.device(value)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"{name} {value!r} is not there; torch says: {str(error).splitlines()[0]}"
        ) from None
    return device


def check_type(value: object, name: str, kind: Any, words: str) -> None:
    """Raise TypeError unless ``value`` is of a ``kind``, which ``isinstance`` takes and ``words``
    name.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {words}, got {describe(value)}")


def check_one_of(value: object, name: str, options: Iterable[str | None]) -> None:
    """Raise ValueError unless ``value`` is one of two or more ``options``: strings, and None where
    it is among them.
    """
    options = tuple(options)
    if not (value is None or isinstance(value, str)) or value not in options:
        *most, last = map(repr, options)
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}")


def describe(value: object) -> str:
    """Short words for a value in an error message: its type, and its shape or itself when that is
    short.
    """
    kind = type(value).__name__
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return f"{kind} of dtype {value.dtype} and shape {tuple(value.shape)}"
    text = repr(value)
    if len(text) > 60:
        return kind
    return text if text.startswith(f"{kind}(") else f"{kind} {text}"


def short(name: object) -> str:
    """Return the repr of a name for a message, without what is beyond 90 characters."""
    text = repr(name)
    return text if len(text) <= 90 else f"{text[:80]}... of {len(text):,} characters"


def titles(names: Iterable[str]) -> str:
    """Return names of columns for a repr, long ones as ``short`` has them."""
    return ", ".join(name if len(name) <= 80 else short(name) for name in names)


def with_article(noun: str) -> str:
    """Return a noun with "a" or "an" before it, for messages.

    >>> with_article("node"), with_article("edge")
    ('a node', 'an edge')
    """
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
