"""Built-in message and reduce functions of named columns, which ``flow_compute`` runs in compiled loops.

    >>> from nodeflow import fn
    >>> fn.u_mul_e("h", "w", "m")
    MessageFunction(op='mul', lhs_kind='u', lhs='h', rhs_kind='e', rhs='w', out='m')
    >>> fn.mean("m", "agg")
    ReduceFunction(reduce='mean', message='m', out='agg')

``u`` stands for the source of an edge, ``v`` for its destination, ``e`` for the edge itself. ``{u,v,e}_{op}_{u,v,e}``
combines two columns, with ``op`` one of add, sub, mul, div and dot; feature dimensions broadcast aligned at the right,
a column of one number per row fits any shape, and dot contracts the last dimension and keeps it with size 1.
``Flow.aggregate`` has variances and standard deviations too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Protocol

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

    def __call__(self, lhs: str, rhs: str, out: str) -> MessageFunction:
        """Return the message function ``out`` of two columns."""


class ReduceMaker(Protocol):
    """Makes a reduce function.

    >>> maker: ReduceMaker = mean
    >>> maker("m", "agg").reduce
    'mean'
    """

    def __call__(self, message: str, out: str) -> ReduceFunction:
        """Return the reduce function of the messages to the column ``out``."""


_ENDS: Final = {"u": "the source", "v": "the destination", "e": "the edge"}
_WORDS: Final = {"add": "plus", "sub": "minus", "mul": "times", "div": "divided by", "dot": "dot"}


def _check_names(function: MessageFunction | ReduceFunction, names: tuple[str, ...]) -> None:
    for field in fields(function):
        value = getattr(function, field.name)
        if field.name in names and not isinstance(value, str):
            raise TypeError(f"{field.name} must be the name of a column, a str, got {describe(value)}")


def copy_u(column: str, out: str) -> MessageFunction:
    """Message ``out``: the column ``column`` of the source.

    >>> copy_u("h", "m")
    MessageFunction(op='copy', lhs_kind='u', lhs='h', rhs_kind=None, rhs=None, out='m')
    """
    return MessageFunction("copy", "u", column, None, None, out)


def copy_e(column: str, out: str) -> MessageFunction:
    """Message ``out``: the column ``column`` of the edge.

    >>> copy_e("w", "m")
    MessageFunction(op='copy', lhs_kind='e', lhs='w', rhs_kind=None, rhs=None, out='m')
    """
    return MessageFunction("copy", "e", column, None, None, out)


def _binary(left: str, op: str, right: str) -> BinaryMaker:
    def make(lhs: str, rhs: str, out: str) -> MessageFunction:
        return MessageFunction(op, left, lhs, right, rhs, out)

    doc = f"Message ``out``: column ``lhs`` of {_ENDS[left]} {_WORDS[op]} column ``rhs`` of {_ENDS[right]}."
    _name(make, f"{left}_{op}_{right}", doc, "lhs", "rhs", "out")
    return make


def _reducer(name: str, doc: str) -> ReduceMaker:
    def make(message: str, out: str) -> ReduceFunction:
        return ReduceFunction(name, message, out)

    doc = f"Column ``out``: the {doc} of the messages ``message`` of each destination."
    _name(make, name, doc, "message", "out")
    return make


def _name(make: Callable[..., object], name: str, doc: str, *arguments: str) -> None:
    """Give a function the name and the docstring of a public one, with a call as its example."""
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{doc}\n\n>>> {name}({', '.join(map(repr, arguments))})\n{make(*arguments)!r}\n"


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

# every public name defined in this file
__all__ = sorted(
    name for name, value in globals().items() if name[0] != "_" and getattr(value, "__module__", "") == __name__
)
