"""The arrays of a graph as they are stored: checked, int32 where ids fit, shared where possible, read-only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodeflow._base.checks import LARGEST, as_array, check_length, check_range, describe, first_true
from nodeflow._base.types import Array, IdsLike
from nodeflow._runtime.mapped import file_of

Stored = NDArray[Any]
"""A read-only int32 or int64 array of a graph."""


def integers(value: object, name: str) -> Array:
    """Return a one-dimensional int32 or int64 array of ``value``, shared where it is an array or tensor already."""
    array = as_array(value, name)
    if array.size == 0 and array.dtype.kind != "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {describe(array)}")
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {tuple(array.shape)}")
    if array.dtype not in (np.int32, np.int64):
        if array.size and int(array.max()) > LARGEST:
            raise ValueError(f"{name} holds {int(array.max())}, beyond the largest 64-bit id")
        array = array.astype(np.int64)
    return array


def permutation(value: IdsLike, size: int) -> Stored:
    """Return ids of ``size`` edges as ``integers`` does, after checking that they are a permutation."""
    ids = integers(value, "edge_ids")
    check_length(ids, "edge_ids", size, "edge")
    check_range(ids, "edge_ids", size, "edge")
    seen = np.zeros(size, np.bool_)
    seen[ids] = True
    if (missing := first_true(~seen)) is not None:
        raise ValueError(f"edge_ids must be a permutation, but no edge has id {missing}")
    return ids


def stored(array: Stored, copy: bool | None, upper: int) -> Stored:
    """Return ids below ``upper`` as a graph stores them; see ``Graph`` for ``copy``."""
    dtype = np.int32 if upper <= np.iinfo(np.int32).max else np.int64
    shared = not copy if copy is not None else file_of(array) is not None or array.dtype == dtype
    return read_only(np.ascontiguousarray(array if shared else array.astype(dtype)))


def stored_indptr(array: Stored, copy: bool | None) -> Stored:
    """Return an ``indptr`` as a graph stores it: always int64, because compiled loops take one width only."""
    return read_only(np.ascontiguousarray(array.astype(np.int64, copy=bool(copy))))


def read_only(array: Stored) -> Stored:
    """Return a view of an array that cannot be written to."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def by_id(values: Stored, ids: Stored) -> Stored:
    """Put ``values``, one for each of ``ids`` (a permutation), in the order of the ids."""
    out = np.empty_like(values)
    out[ids] = values
    return out
