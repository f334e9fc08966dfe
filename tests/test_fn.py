"""Built-in functions: names, arguments, and what they say."""

import inspect
import itertools
import pickle

import pytest
from _support.ops_reference import REDUCTIONS

from nodeflow import fn

OPS = ["add", "sub", "mul", "div", "dot"]


@pytest.mark.parametrize(("op", "left", "right"), list(itertools.product(OPS, "uve", "uve")))
def test_every_binary_function(op, left, right):
    name = f"{left}_{op}_{right}"
    make = getattr(fn, name)
    expected = fn.MessageFunction(op, left, "a", right, "b", "m")
    assert make("a", "b", "m") == make(lhs="a", rhs="b", out="m") == expected
    assert make.__name__ == name
    assert name in fn.__all__
    assert list(inspect.signature(make).parameters) == ["lhs", "rhs", "out"]
    assert pickle.loads(pickle.dumps(make)) is make
    for end in (left, right):
        assert {"u": "source", "v": "destination", "e": "edge"}[end] in make.__doc__


def test_copies():
    for make, kind in ((fn.copy_u, "u"), (fn.copy_e, "e")):
        assert (
            make("h", "m")
            == make(column="h", out="m")
            == fn.MessageFunction("copy", kind, "h", None, None, "m")
        )


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reducers(name):
    make = getattr(fn, name)
    assert make("m", "h") == make(message="m", out="h") == fn.ReduceFunction(name, "m", "h")
    assert make.__name__ == name
    assert name in fn.__all__


def test_all_names_exist_and_none_is_forgotten():
    assert sorted(set(fn.__all__)) == fn.__all__
    makers = {name for name in vars(fn) if name.split("_")[0] in {"u", "v", "e", "copy"}}
    assert makers <= set(fn.__all__)
    assert len(makers) == 45 + 2


def test_functions_are_values():
    function = fn.u_mul_e("h", "w", "m")
    assert hash(function) == hash(fn.u_mul_e("h", "w", "m"))
    assert pickle.loads(pickle.dumps(function)) == function
    with pytest.raises(AttributeError):
        function.out = "x"
