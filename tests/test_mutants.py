"""Planted faults, of which the tests should find every one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TRIALS = Path(__file__).parents[1] / "trials"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"trials_{name}", TRIALS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its classes look for their annotations
    spec.loader.exec_module(module)
    return module


SOURCE = '''
"""A text of 3 words."""
if TYPE_CHECKING:
    import numpy
def keep(x: int | str, *, most: int = 1) -> list[int] | None:
    """A text."""
    if not x and most < 2:
        raise ValueError(f"é{x + 1}" + "a")
    self.rows = x.copy()
    return total(x, key=-most)
'''
MUTANTS = {
    ("constant", "most: int = (2)"),
    ("sign", "if (x) and most"),
    ("and/or", "if (not x or most < 2):"),
    ("comparison", "and (most <= 2):"),
    ("constant", "most < (3)"),
    ("condition", "if (not (not x and most < 2)):"),
    ("no statement", "        pass\n    self.rows"),
    ("no statement", "    pass\n    return"),
    ("no copy", "self.rows = (x)"),
    ("no key=", "return (total(x))"),
    ("sign", "key=(most)"),
}


def test_mutants_are_one_change_each_and_none_of_texts_and_annotations():
    mutants = load("mutants").mutants_of("a.py", SOURCE)
    source = SOURCE.encode()
    places = set()
    for mutant in mutants:
        text = (source[: mutant.begin] + mutant.text.encode() + source[mutant.end :]).decode()
        compile(text, "a.py", "exec")
        places |= {(kind, part) for kind, part in MUTANTS if kind == mutant.kind and part in text}
    assert places == MUTANTS
    assert len(mutants) == len(MUTANTS)
    assert {mutant.lines for mutant in mutants} == {(5, 10), (7, 7), (8, 8), (9, 9), (10, 10)}


@pytest.mark.parametrize(
    ("killed", "of", "low", "high"), [(10, 10, 0.7225, 1.0), (90, 100, 0.8256, 0.9448)]
)
def test_interval_is_wilsons(killed, of, low, high):
    assert load("mutants").interval(killed, of) == pytest.approx((low, high), abs=1e-4)
