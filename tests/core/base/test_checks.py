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
from nodeflow._core.base import checks, frozen, sizes


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
def test_ids_come_as_int64_whatever_holds_them(value):
    ids = checks.as_ids(value, "v", 4)
    assert ids.dtype == np.int64
    assert ids.flags.c_contiguous
    assert ids.tolist() == [3, 0, 3]


@pytest.mark.parametrize(
    "value", [[], (), range(0), np.zeros(0), torch.zeros(0), torch.zeros(0, dtype=torch.int32)]
)
def test_nothing_is_a_legal_list_of_ids(value):
    assert checks.as_ids(value, "v", 0).shape == (0,)


@given(st.lists(st.integers(-3, 6), max_size=6), st.integers(0, 5))
def test_ids_agree_with_brute_force(ids, upper):
    bad = [at for at, i in enumerate(ids) if not 0 <= i < upper]
    if bad:
        with pytest.raises(IndexError, match=rf"v\[{bad[0]}\] is {ids[bad[0]]}, "):
            checks.as_ids(torch.tensor(ids), "v", upper)
    else:
        assert checks.as_ids(torch.tensor(ids, dtype=torch.int64), "v", upper).tolist() == ids


@pytest.mark.parametrize("value", [2, np.int32(2), np.array(2), torch.tensor(2)])
def test_integers_of_all_kinds_are_taken(value):
    assert checks.as_int(value, "n") == 2
    assert type(checks.as_int(value, "n")) is int


def test_counts_have_a_least_value():
    assert checks.as_count(0, "n") == 0


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), torch.tensor(2)]
)
def test_numbers_of_all_kinds_are_taken(value):
    number = checks.as_number(value, "v", least=2, most=2)
    assert type(number) is float
    assert number == 2


@pytest.mark.parametrize(
    "value", ["2", None, True, np.bool_(True), torch.tensor(True), 2j, [2.0], np.array([2.0])]
)
def test_what_are_no_numbers_is_refused(value):
    with pytest.raises(TypeError, match="v must be a number, got "):
        checks.as_number(value, "v")


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
def test_numbers_out_of_bounds_are_refused(value, bounds, words):
    with pytest.raises(ValueError, match=words):
        checks.as_number(value, "v", **bounds)


def test_indices_count_from_the_end_and_never_wrap_twice():
    assert [checks.as_index(i, "layer", 3) for i in range(-3, 3)] == [0, 1, 2, 0, 1, 2]
    for index in (3, -4):
        with pytest.raises(
            IndexError, match=f"layer {index} is out of range: there are 3, so it goes from -3 to 2"
        ):
            checks.as_index(index, "layer", 3)
    with pytest.raises(IndexError, match="flow 0 is out of range: there are none"):
        checks.as_index(0, "flow", 0)


def test_memory_is_compared_where_the_system_tells_its_size(
    monkeypatch,
):
    machine: Any = sizes._machine
    assert 2**27 < machine.__wrapped__() < 2**60
    monkeypatch.delattr(os, "sysconf")
    assert machine.__wrapped__() == 2**40


def test_all_prints_and_travels_as_itself():
    assert repr(ALL) == "ALL"
    assert pickle.loads(pickle.dumps(ALL)) is ALL


def test_frozen_refuses_every_change():
    class Point(frozen.Frozen):
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


def test_lazy_computes_once_and_frees_what_made_it():
    calls: list[int] = []
    cell = frozen.Lazy(lambda: calls.append(1) or "value")
    assert (cell.get(), cell.get(), calls) == ("value", "value", [1])
    assert cell._make is None
    assert frozen.Lazy.of(3).get() == 3
