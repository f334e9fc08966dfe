"""Built-in functions: names, arguments, and what they say."""

import inspect
import itertools
import pickle

import pytest

from nodeflow import fn

OPS = ["add", "sub", "mul", "div", "dot"]
OLD = {"u": "src", "v": "dst", "e": "edge"}


@pytest.mark.parametrize(("op", "left", "right"), list(itertools.product(OPS, "uve", "uve")))
def test_every_binary_function_in_both_spellings(op, left, right):
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

    old_name = f"{OLD[left]}_{op}_{OLD[right]}"
    old = getattr(fn, old_name)
    assert old("a", "b", "m") == expected
    assert old_name in fn.__all__
    assert old.__name__ == old_name
    assert name in old.__doc__
    keywords = {"lhs": "a", "rhs": "b"} if left == right else {OLD[left]: "a", OLD[right]: "b"}
    assert old(**keywords, out="m") == expected
    assert list(inspect.signature(old).parameters) == [*keywords, "out"]


def test_copies_in_both_spellings():
    assert fn.copy_u("h", "m") == fn.copy_u(column="h", out="m") == fn.copy_src(src="h", out="m")
    assert fn.copy_e("w", "m") == fn.copy_e(column="w", out="m") == fn.copy_edge(edge="w", out="m")
    assert fn.copy_u("h", "m") == fn.MessageFunction("copy", "u", "h", None, None, "m")
    assert fn.copy_e("h", "m").lhs_kind == "e"


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
def test_reducers(name):
    make = getattr(fn, name)
    assert make("m", "h") == make(message="m", out="h") == fn.ReduceFunction(name, "m", "h")
    assert make.__name__ == name
    assert name in fn.__all__


def test_all_names_exist_and_none_is_forgotten():
    assert sorted(set(fn.__all__)) == fn.__all__
    made = {name for name in vars(fn) if name.split("_")[0] in {"u", "v", "e", "src", "dst", "edge", "copy"}}
    assert made <= set(fn.__all__)
    assert len(made) == 2 * 45 + 4


def test_functions_are_values():
    made = fn.u_mul_e("h", "w", "m")
    assert hash(made) == hash(fn.u_mul_e("h", "w", "m"))
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(AttributeError):
        made.out = "x"


def test_a_tensor_instead_of_a_name_is_refused():
    with pytest.raises(TypeError, match="rhs must be the name of a column, a str, got int 3"):
        fn.u_mul_e("h", 3, "m")
    with pytest.raises(TypeError, match="lhs must be the name of a column"):
        fn.copy_u(None, "m")
    with pytest.raises(TypeError, match="message must be the name of a column"):
        fn.sum(fn.copy_u("h", "m"), "h")
    with pytest.raises(TypeError, match="argument"):
        fn.src_mul_edge("h", "w")


def test_keywords_of_dgl():
    assert fn.sum(msg="m", out="h") == fn.sum("m", out="h") == fn.sum("m", "h")
    assert fn.copy_u(u="h", out="m") == fn.copy_u("h", "m")
    assert fn.copy_e(e="w", out="m") == fn.copy_e("w", "m")
    expected = fn.u_mul_e("h", "w", "m")
    assert fn.u_mul_e(lhs_field="h", rhs_field="w", out="m") == fn.u_mul_e("h", rhs_field="w", out="m") == expected


@pytest.mark.parametrize(
    ("make", "keywords"),
    [
        (fn.sum, {"msg": "m", "message": "m", "out": "h"}),
        (fn.sum, {"msg": "m"}),
        (fn.copy_u, {"e": "h", "out": "m"}),
        (fn.copy_e, {"u": "h", "out": "m"}),
        (fn.u_mul_e, {"lhs": "h", "rhs_field": "w", "out": "m"}),
        (fn.u_mul_e, {"lhs_field": "h", "rhs_field": "w"}),
    ],
)
def test_a_mixture_of_keywords_is_refused(make, keywords):
    with pytest.raises(TypeError, match=rf"arguments do not fit: call {make.__name__}\(.* or {make.__name__}\("):
        make(**keywords)
