"""Built-in message and reduce functions of named columns, which ``flow_compute`` runs in compiled
loops.

    >>> from nodeflow import fn
    >>> fn.u_mul_e("h", "w", "m")
    MessageFunction(op='mul', lhs_kind='u', lhs='h', rhs_kind='e', rhs='w', out='m')
    >>> fn.mean("m", "agg")
    ReduceFunction(reduce='mean', message='m', out='agg')

``u`` stands for the source of an edge, ``v`` for its destination, ``e`` for the edge itself.
``{u,v,e}_{op}_{u,v,e}`` combines two columns, with ``op`` one of add, sub, mul, div and dot;
feature dimensions broadcast aligned at the right, a column of one number per row fits any shape,
and dot contracts the last dimension and keeps it with size 1. ``Flow.aggregate`` has variances and
standard deviations too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from nodeflow._core.base.checks import check_type


@dataclass(frozen=True, slots=True)
class MessageFunction:
    """A message per edge, ``out``: ``op`` on columns ``lhs`` and ``rhs`` of its ends or itself
    ("u", "v", "e").

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
        _check_names(self, "op", "lhs_kind", "lhs", "out")
        if self.op != "copy":
            _check_names(self, "rhs_kind", "rhs")


@dataclass(frozen=True, slots=True)
class ReduceFunction:
    """The messages ``message`` reduced per destination to the column ``out``, by the reduction that
    ``reduce`` names.

    >>> from nodeflow import fn
    >>> fn.mean("m", "agg")
    ReduceFunction(reduce='mean', message='m', out='agg')
    """

    reduce: str
    message: str
    out: str

    def __post_init__(self) -> None:
        _check_names(self, "reduce", "message", "out")


class _MessageMaker(Protocol):
    def __call__(self, lhs: str, rhs: str, out: str) -> MessageFunction: ...


class _ReduceMaker(Protocol):
    def __call__(self, message: str, out: str) -> ReduceFunction: ...


_ENDS: Final = {"u": "the source", "v": "the destination", "e": "the edge"}
_WORDS: Final = {"add": "plus", "sub": "minus", "mul": "times", "div": "divided by", "dot": "dot"}


def _check_names(function: MessageFunction | ReduceFunction, *names: str) -> None:
    for name in names:
        check_type(getattr(function, name), name, str, "the name of a column, a str")


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


def _binary(op: str, left: str) -> Iterator[_MessageMaker]:
    """Yield the functions of a column of ``left`` and one of the source, the destination, the
    edge.
    """
    return (_message_maker(left, op, right) for right in _ENDS)


def _message_maker(left: str, op: str, right: str) -> _MessageMaker:
    def make(lhs: str, rhs: str, out: str) -> MessageFunction:
        return MessageFunction(op, left, lhs, right, rhs, out)

    _name(
        make,
        f"{left}_{op}_{right}",
        f"Message ``out``: column ``lhs`` of {_ENDS[left]} {_WORDS[op]} column ``rhs`` of "
        f"{_ENDS[right]}.",
        "lhs",
        "rhs",
        "out",
    )
    return make


def _reducer(name: str, words: str) -> _ReduceMaker:
    def make(message: str, out: str) -> ReduceFunction:
        return ReduceFunction(name, message, out)

    _name(
        make,
        name,
        f"Column ``out``: the {words} of the messages ``message`` of each destination.",
        "message",
        "out",
    )
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

u_add_u, u_add_v, u_add_e = _binary("add", "u")
v_add_u, v_add_v, v_add_e = _binary("add", "v")
e_add_u, e_add_v, e_add_e = _binary("add", "e")
u_sub_u, u_sub_v, u_sub_e = _binary("sub", "u")
v_sub_u, v_sub_v, v_sub_e = _binary("sub", "v")
e_sub_u, e_sub_v, e_sub_e = _binary("sub", "e")
u_mul_u, u_mul_v, u_mul_e = _binary("mul", "u")
v_mul_u, v_mul_v, v_mul_e = _binary("mul", "v")
e_mul_u, e_mul_v, e_mul_e = _binary("mul", "e")
u_div_u, u_div_v, u_div_e = _binary("div", "u")
v_div_u, v_div_v, v_div_e = _binary("div", "v")
e_div_u, e_div_v, e_div_e = _binary("div", "e")
u_dot_u, u_dot_v, u_dot_e = _binary("dot", "u")
v_dot_u, v_dot_v, v_dot_e = _binary("dot", "v")
e_dot_u, e_dot_v, e_dot_e = _binary("dot", "e")

# every public name defined in this file
__all__ = sorted(
    name
    for name, value in globals().items()
    if name[0] != "_" and getattr(value, "__module__", "") == __name__
)
