"""Built-in message and reduce functions of named columns, which ``flow_compute`` runs in compiled loops.

    >>> from nodeflow import fn
    >>> fn.u_mul_e("h", "w", "m")
    MessageFunction(op='mul', lhs_kind='u', lhs='h', rhs_kind='e', rhs='w', out='m')
    >>> fn.mean("m", "agg")
    ReduceFunction(reduce='mean', message='m', out='agg')

``u`` stands for the source of an edge, ``v`` for its destination, ``e`` for the edge itself. ``{u,v,e}_{op}_{u,v,e}``
combines two columns, with ``op`` one of add, sub, mul, div and dot; feature dimensions broadcast aligned at the right,
a column of one number per row fits any shape, and dot contracts the last dimension and keeps it with size 1. The older
spellings (``copy_src``, ``copy_edge``, ``src_mul_edge`` and so on) make the same functions, and so do DGL's keywords:
``copy_u(u=, out=)``, ``copy_e(e=, out=)``, ``u_mul_e(lhs_field=, rhs_field=, out=)``, ``sum(msg=, out=)``.
``Flow.aggregate`` has variances and standard deviations too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Final, Protocol, TypeVar, overload

from nodeflow._base.checks import describe


@dataclass(frozen=True, slots=True)
class MessageFunction:
    """A message per edge, ``out``: ``op`` on columns ``lhs`` and ``rhs`` of its ends or itself ("u", "v", "e").

    >>> from nodeflow import fn
    >>> fn.u_mul_e("h", "w", "m")
    MessageFunction(op='mul', lhs_kind='u', lhs='h', rhs_kind='e', rhs='w', out='m')
    """

    op: str
    lhs_kind: str
    lhs: str
    rhs_kind: str | None
    rhs: str | None
    out: str

    def __post_init__(self) -> None:
        _check_names(self, ("lhs", "out") if self.op == "copy" else ("lhs", "rhs", "out"))


@dataclass(frozen=True, slots=True)
class ReduceFunction:
    """The messages ``message`` reduced per destination ("sum", "mean", "max", "min", "prod") to the column ``out``.

    >>> from nodeflow import fn
    >>> fn.mean("m", "agg")
    ReduceFunction(reduce='mean', message='m', out='agg')
    """

    reduce: str
    message: str
    out: str

    def __post_init__(self) -> None:
        _check_names(self, ("message", "out"))


class BinaryMaker(Protocol):
    """Makes a message function of two columns.

    >>> maker: BinaryMaker = u_mul_e
    >>> maker("h", "w", "m").op
    'mul'
    """

    @overload
    def __call__(self, lhs: str, rhs: str, out: str) -> MessageFunction: ...
    @overload
    def __call__(self, *, lhs_field: str, rhs_field: str, out: str) -> MessageFunction: ...
    def __call__(self, *columns: str, **keywords: str) -> MessageFunction:
        """Return the message function ``out`` of two columns."""


class ReduceMaker(Protocol):
    """Makes a reduce function.

    >>> maker: ReduceMaker = mean
    >>> maker("m", "agg").reduce
    'mean'
    """

    @overload
    def __call__(self, message: str, out: str) -> ReduceFunction: ...
    @overload
    def __call__(self, *, msg: str, out: str) -> ReduceFunction: ...
    def __call__(self, *columns: str, **keywords: str) -> ReduceFunction:
        """Return the reduce function of the messages to the column ``out``."""


_F = TypeVar("_F", MessageFunction, ReduceFunction)

_ENDS: Final = {"u": "the source", "v": "the destination", "e": "the edge"}
_WORDS: Final = {"add": "plus", "sub": "minus", "mul": "times", "div": "divided by", "dot": "dot"}
_OLD: Final = {"src": "u", "dst": "v", "edge": "e"}


def _check_names(made: MessageFunction | ReduceFunction, names: tuple[str, ...]) -> None:
    for field in fields(made):
        value = getattr(made, field.name)
        if field.name in names and not isinstance(value, str):
            raise TypeError(f"{field.name} must be the name of a column, a str, got {describe(value)}")


def _arguments(
    name: str, spellings: tuple[tuple[str, ...], ...], args: tuple[str, ...], given: dict[str, str]
) -> list[str]:
    """Return the arguments of a call in order. Its keywords must all be of one of the ``spellings``, else TypeError."""
    for names in spellings:
        rest = names[len(args) :]
        if len(args) <= len(names) and given.keys() == set(rest):
            return [*args, *(given[key] for key in rest)]
    forms = " or ".join(f"{name}({', '.join(names)})" for names in spellings)
    got = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in given.items())])
    raise TypeError(f"arguments do not fit: call {forms}, by position or by these names; got {name}({got})")


def _maker(name: str, doc: str, spellings: tuple[tuple[str, ...], ...], build: Callable[..., _F]) -> Callable[..., _F]:
    """Return the public function ``name``, which calls ``build`` with its arguments in order."""

    def make(*args: str, **keywords: str) -> _F:
        return build(*_arguments(name, spellings, args, keywords))

    made = build(*spellings[0])
    parameters = [
        inspect.Parameter(word, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str) for word in spellings[0]
    ]
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{doc}\n\n>>> {name}({', '.join(map(repr, spellings[0]))})\n{made!r}\n"
    make.__annotations__ = {**dict.fromkeys(spellings[0], str), "return": type(made)}
    vars(make)["__signature__"] = inspect.Signature(parameters, return_annotation=type(made))
    return make


def _copier(name: str, kind: str, doc: str, *firsts: str) -> Callable[..., MessageFunction]:
    def build(column: str, out: str) -> MessageFunction:
        return MessageFunction("copy", kind, column, None, None, out)

    return _maker(name, doc, tuple((first, "out") for first in firsts), build)


def _binary(left: str, op: str, right: str) -> BinaryMaker:
    spellings = ("lhs", "rhs", "out"), ("lhs_field", "rhs_field", "out")
    doc = f"Message ``out``: column ``lhs`` of {_ENDS[left]} {_WORDS[op]} column ``rhs`` of {_ENDS[right]}."
    return _maker(f"{left}_{op}_{right}", doc, spellings, partial(_message, op, left, right))


def _old(left: str, op: str, right: str) -> Callable[..., MessageFunction]:
    """The older spelling: its arguments are called after the ends ("lhs" and "rhs" when both are the same)."""
    names = (left, right, "out") if left != right else ("lhs", "rhs", "out")
    doc = f"Older spelling of ``{_OLD[left]}_{op}_{_OLD[right]}``."
    return _maker(f"{left}_{op}_{right}", doc, (names,), partial(_message, op, _OLD[left], _OLD[right]))


def _message(op: str, left: str, right: str, lhs: str, rhs: str, out: str) -> MessageFunction:
    return MessageFunction(op, left, lhs, right, rhs, out)


def _reducer(name: str, doc: str) -> ReduceMaker:
    doc = f"Column ``out``: the {doc} of the messages ``message`` of each destination."
    return _maker(name, doc, (("message", "out"), ("msg", "out")), partial(ReduceFunction, name))


copy_u = _copier("copy_u", "u", "Message ``out``: the column ``column`` of the source (``u=`` too).", "column", "u")
copy_e = _copier("copy_e", "e", "Message ``out``: the column ``column`` of the edge (``e=`` too).", "column", "e")
copy_src = _copier("copy_src", "u", "Older spelling of ``copy_u``.", "src")
copy_edge = _copier("copy_edge", "e", "Older spelling of ``copy_e``.", "edge")

sum = _reducer("sum", "sum (0 without messages)")
mean = _reducer("mean", "mean (0 without messages)")
max = _reducer("max", "largest (0 without messages)")
min = _reducer("min", "smallest (0 without messages)")
prod = _reducer("prod", "product (1 without messages)")

u_add_u = _binary("u", "add", "u")
u_add_v = _binary("u", "add", "v")
u_add_e = _binary("u", "add", "e")
v_add_u = _binary("v", "add", "u")
v_add_v = _binary("v", "add", "v")
v_add_e = _binary("v", "add", "e")
e_add_u = _binary("e", "add", "u")
e_add_v = _binary("e", "add", "v")
e_add_e = _binary("e", "add", "e")
u_sub_u = _binary("u", "sub", "u")
u_sub_v = _binary("u", "sub", "v")
u_sub_e = _binary("u", "sub", "e")
v_sub_u = _binary("v", "sub", "u")
v_sub_v = _binary("v", "sub", "v")
v_sub_e = _binary("v", "sub", "e")
e_sub_u = _binary("e", "sub", "u")
e_sub_v = _binary("e", "sub", "v")
e_sub_e = _binary("e", "sub", "e")
u_mul_u = _binary("u", "mul", "u")
u_mul_v = _binary("u", "mul", "v")
u_mul_e = _binary("u", "mul", "e")
v_mul_u = _binary("v", "mul", "u")
v_mul_v = _binary("v", "mul", "v")
v_mul_e = _binary("v", "mul", "e")
e_mul_u = _binary("e", "mul", "u")
e_mul_v = _binary("e", "mul", "v")
e_mul_e = _binary("e", "mul", "e")
u_div_u = _binary("u", "div", "u")
u_div_v = _binary("u", "div", "v")
u_div_e = _binary("u", "div", "e")
v_div_u = _binary("v", "div", "u")
v_div_v = _binary("v", "div", "v")
v_div_e = _binary("v", "div", "e")
e_div_u = _binary("e", "div", "u")
e_div_v = _binary("e", "div", "v")
e_div_e = _binary("e", "div", "e")
u_dot_u = _binary("u", "dot", "u")
u_dot_v = _binary("u", "dot", "v")
u_dot_e = _binary("u", "dot", "e")
v_dot_u = _binary("v", "dot", "u")
v_dot_v = _binary("v", "dot", "v")
v_dot_e = _binary("v", "dot", "e")
e_dot_u = _binary("e", "dot", "u")
e_dot_v = _binary("e", "dot", "v")
e_dot_e = _binary("e", "dot", "e")

src_add_src = _old("src", "add", "src")
src_add_dst = _old("src", "add", "dst")
src_add_edge = _old("src", "add", "edge")
dst_add_src = _old("dst", "add", "src")
dst_add_dst = _old("dst", "add", "dst")
dst_add_edge = _old("dst", "add", "edge")
edge_add_src = _old("edge", "add", "src")
edge_add_dst = _old("edge", "add", "dst")
edge_add_edge = _old("edge", "add", "edge")
src_sub_src = _old("src", "sub", "src")
src_sub_dst = _old("src", "sub", "dst")
src_sub_edge = _old("src", "sub", "edge")
dst_sub_src = _old("dst", "sub", "src")
dst_sub_dst = _old("dst", "sub", "dst")
dst_sub_edge = _old("dst", "sub", "edge")
edge_sub_src = _old("edge", "sub", "src")
edge_sub_dst = _old("edge", "sub", "dst")
edge_sub_edge = _old("edge", "sub", "edge")
src_mul_src = _old("src", "mul", "src")
src_mul_dst = _old("src", "mul", "dst")
src_mul_edge = _old("src", "mul", "edge")
dst_mul_src = _old("dst", "mul", "src")
dst_mul_dst = _old("dst", "mul", "dst")
dst_mul_edge = _old("dst", "mul", "edge")
edge_mul_src = _old("edge", "mul", "src")
edge_mul_dst = _old("edge", "mul", "dst")
edge_mul_edge = _old("edge", "mul", "edge")
src_div_src = _old("src", "div", "src")
src_div_dst = _old("src", "div", "dst")
src_div_edge = _old("src", "div", "edge")
dst_div_src = _old("dst", "div", "src")
dst_div_dst = _old("dst", "div", "dst")
dst_div_edge = _old("dst", "div", "edge")
edge_div_src = _old("edge", "div", "src")
edge_div_dst = _old("edge", "div", "dst")
edge_div_edge = _old("edge", "div", "edge")
src_dot_src = _old("src", "dot", "src")
src_dot_dst = _old("src", "dot", "dst")
src_dot_edge = _old("src", "dot", "edge")
dst_dot_src = _old("dst", "dot", "src")
dst_dot_dst = _old("dst", "dot", "dst")
dst_dot_edge = _old("dst", "dot", "edge")
edge_dot_src = _old("edge", "dot", "src")
edge_dot_dst = _old("edge", "dot", "dst")
edge_dot_edge = _old("edge", "dot", "edge")

# every public name defined in this file
__all__ = sorted(
    name for name, made in globals().items() if name[0] != "_" and getattr(made, "__module__", "") == __name__
)
