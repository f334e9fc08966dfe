"""The border checks: every kind of bad id and index is refused, with words that say what came."""

from __future__ import annotations

import math
import os
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from nodeflow import ALL
from nodeflow._core.base import sizes
from nodeflow._core.base.checks import as_count, as_ids, as_index, as_int, as_number
from nodeflow._core.base.frozen import Frozen, Lazy


class Series(list[int]):
    """A column of objects, as pandas has it."""

    def to_numpy(self) -> Any:
        return np.array(self, object)


@pytest.mark.parametrize(
    "value",
    [
        [3, 0, 3],
        (3, 0, 3),
        np.array([3, 0, 3]),
        np.array([3, 0, 3], np.uint8),
        np.array([3, 0, 3], np.int32),
        torch.tensor([3, 0, 3]),
        torch.tensor([3, 0, 3], dtype=torch.int16),
        [torch.tensor(3), torch.tensor(0), torch.tensor(3)],
        (np.int64(i) for i in (3, 0, 3)),
        np.array([3, 9, 0, 9, 3])[::2],
        Series([3, 0, 3]),
    ],
)
def test_ids_come_as_int64_whatever_holds_them(value: Any) -> None:
    ids = as_ids(value, "v", 4)
    assert ids.dtype == np.int64
    assert ids.flags.c_contiguous
    assert ids.tolist() == [3, 0, 3]


@pytest.mark.parametrize(
    "value", [[], (), range(0), np.zeros(0), torch.zeros(0), torch.zeros(0, dtype=torch.int32)]
)
def test_nothing_is_a_legal_list_of_ids(value: Any) -> None:
    assert as_ids(value, "v", 0).shape == (0,)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([0, 1, 4], IndexError, r"v\[2\] is 4, but node ids go from 0 to 3"),
        ([0, -1], IndexError, r"v\[1\] is -1, but node ids go from 0 to 3"),
        (np.array([2**64 - 1], np.uint64), IndexError, r"v\[0\] is 18446744073709551615"),
        (np.array([5], np.int8), IndexError, r"v\[0\] is 5"),
        ([1.0], TypeError, "integer node ids, got dtype float64"),
        (torch.tensor([1.0]), TypeError, "integer node ids, got dtype float32"),
        (
            torch.tensor([1.0], dtype=torch.bfloat16),
            TypeError,
            "v must be dense integers, got .*bfloat16",
        ),
        (torch.tensor([1]).to_sparse(), TypeError, "v must be dense integers, got .*sparse"),
        (torch.tensor([True, False]), TypeError, "got a bool mask; pass mask.nonzero"),
        (np.array([True]), TypeError, "got a bool mask"),
        ([True, False], TypeError, "a bool in it"),
        ([2, True], TypeError, "a bool in it"),
        ([np.True_, 1], TypeError, "a bool in it"),
        (torch.zeros(0, dtype=torch.bool), TypeError, "got a bool mask"),
        ([[0, 1]], ValueError, r"one-dimensional, got shape \(1, 2\)"),
        ([[0], [1, 2]], ValueError, "v must be one-dimensional"),
        (torch.tensor(1), (TypeError, ValueError), "v must be"),
        (3, TypeError, "v must be a tensor, an array or a list of node ids, got int 3"),
        ("12", TypeError, "v must be a tensor, an array or a list"),
        ({0: 1}, TypeError, "v must be a tensor, an array or a list"),
        (None, TypeError, "got NoneType None"),
        (["a"], TypeError, "integer node ids"),
        ([None], TypeError, "integer node ids"),
        ([2**70], TypeError, "integer node ids"),
    ],
)
def test_what_are_no_ids_is_refused(value: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        as_ids(value, "v", 4)


def test_ids_of_an_empty_set_say_that_there_are_none() -> None:
    with pytest.raises(IndexError, match=r"v\[0\] is 0, but there is no edge at all"):
        as_ids([0], "v", 0, "edge")


@given(st.lists(st.integers(-3, 6), max_size=6), st.integers(0, 5))
def test_ids_agree_with_brute_force(ids: list[int], upper: int) -> None:
    bad = [at for at, i in enumerate(ids) if not 0 <= i < upper]
    if bad:
        with pytest.raises(IndexError, match=rf"v\[{bad[0]}\] is {ids[bad[0]]}, "):
            as_ids(torch.tensor(ids), "v", upper)
    else:
        assert as_ids(torch.tensor(ids, dtype=torch.int64), "v", upper).tolist() == ids


@pytest.mark.parametrize(
    "value",
    [True, np.True_, 1.0, "1", None, torch.tensor(True), torch.tensor(1.0), np.array(1.5), [1]],
)
def test_an_integer_is_an_integer(value: Any) -> None:
    with pytest.raises(TypeError, match="n must be an integer, got "):
        as_int(value, "n")


@pytest.mark.parametrize("value", [2, np.int32(2), np.array(2), torch.tensor(2)])
def test_integers_of_all_kinds_are_taken(value: Any) -> None:
    assert as_int(value, "n") == 2
    assert type(as_int(value, "n")) is int


def test_counts_have_a_least_value() -> None:
    assert as_count(0, "n") == 0
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        as_count(0, "n", 1)


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), torch.tensor(2)]
)
def test_numbers_of_all_kinds_are_taken(value: Any) -> None:
    number = as_number(value, "v", least=2, most=2)
    assert type(number) is float
    assert number == 2


@pytest.mark.parametrize(
    "value", ["2", None, True, np.bool_(True), torch.tensor(True), 2j, [2.0], np.array([2.0])]
)
def test_what_are_no_numbers_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="v must be a number, got "):
        as_number(value, "v")


@pytest.mark.parametrize(
    ("value", "bounds", "words"),
    [
        (math.nan, {}, "v must be finite, got nan"),
        (-math.inf, {}, "v must be finite, got -inf"),
        (np.float32("inf"), {"above": 0}, "v must be finite and above 0, got inf"),
        (10**400, {"least": 0}, "v must be finite and at least 0, got 1000"),
        (0, {"above": 0}, "v must be finite and above 0, got 0"),
        (1.5, {"below": 1.5}, "v must be finite and below 1.5, got 1.5"),
        (-0.1, {"least": 0, "below": 1}, "v must be at least 0 and below 1, got -0.1"),
        (math.nan, {"above": 0, "most": 1}, "v must be above 0 and at most 1, got nan"),
        (torch.tensor(2.0), {"above": 0, "most": 1}, "v must be above 0 and at most 1, got 2.0"),
    ],
)
def test_numbers_out_of_bounds_are_refused(
    value: Any, bounds: dict[str, float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        as_number(value, "v", **bounds)


def test_indices_count_from_the_end_and_never_wrap_twice() -> None:
    assert [as_index(i, "layer", 3) for i in range(-3, 3)] == [0, 1, 2, 0, 1, 2]
    for index in (3, -4):
        with pytest.raises(
            IndexError, match=f"layer {index} is out of range: there are 3, so it goes from -3 to 2"
        ):
            as_index(index, "layer", 3)
    with pytest.raises(IndexError, match="flow 0 is out of range: there are none"):
        as_index(0, "flow", 0)


def test_memory_is_compared_where_the_system_tells_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine: Any = sizes._machine
    assert 2**27 < machine.__wrapped__() < 2**60
    monkeypatch.delattr(os, "sysconf")
    assert machine.__wrapped__() == 2**40


def test_all_prints_and_travels_as_itself() -> None:
    assert repr(ALL) == "ALL"
    assert pickle.loads(pickle.dumps(ALL)) is ALL


def test_frozen_refuses_every_change() -> None:
    class Point(Frozen):
        __slots__ = ("x",)

        def __init__(self) -> None:
            self._set(x=1)

    point = Point()
    with pytest.raises(AttributeError, match="Point is immutable: cannot set 'x'"):
        point.x = 2
    with pytest.raises(AttributeError, match="Point is immutable: cannot set 'other'"):
        point.other = 2
    with pytest.raises(AttributeError, match="Point is immutable: cannot delete 'x'"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_lazy_computes_once_and_frees_what_made_it() -> None:
    calls: list[int] = []
    cell = Lazy(lambda: calls.append(1) or "value")
    assert (cell.get(), cell.get(), calls) == ("value", "value", [1])
    assert cell._make is None
    assert Lazy.of(3).get() == 3
