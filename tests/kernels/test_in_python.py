"""Compiled loops and instructions against their forms in Python, which ``NUMBA_DISABLE_JIT=1`` puts
in their place.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _support import instructions
from _support.sampler_families import everything

Results = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of another process, which compiles nothing."""
    file = tmp_path_factory.mktemp("python") / "results.npz"
    tests = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    subprocess.run([sys.executable, instructions.__file__, str(file)], env=environment, check=True)
    return dict(np.load(file))


def test_instructions_do_what_their_forms_in_python_do(python: Results) -> None:
    compiled = instructions.results()
    assert compiled.keys() < python.keys()
    for name, numbers in compiled.items():
        # neither empty nor all NaN
        assert np.count_nonzero(numbers == numbers) > numbers.size / 4, name
        if name.startswith("rounded"):
            # a * b + c is rounded twice by a processor without an instruction for it
            assert (
                np.abs(numbers[0] - python[name][0]) <= compiled[f"error of {name.split()[1]}"]
            ).all(), name
            np.testing.assert_array_max_ulp(numbers[1], python[name][1], 2)  # powers of e
        else:
            np.testing.assert_array_equal(numbers, python[name], err_msg=name)


def test_samplers_draw_the_same_bits_without_the_compiler(python: Results) -> None:
    assert everything() == {str(family): str(digest) for family, digest in python["samplers"]}
