"""Built-in message and reduce functions by DGL's names and keywords; they make those of
``nodeflow.fn``.

``copy_src`` is also ``copy_u``, ``src_mul_edge`` also ``u_mul_e``, and so on. A dot product drops
the dimension that it contracts, as in version 0.4: run by this layer, ``u_dot_v`` of rows ``[D]``
makes a column ``[num_edges]``.

>>> import nodeflow.compat.dgl.function as fn
>>> fn.src_mul_edge(src="h", edge="w", out="m") == fn.u_mul_e(lhs_field="h", rhs_field="w", out="m")
True
>>> fn.sum(msg="m", out="h")
ReduceFunction(reduce='sum', message='m', out='h')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from nodeflow.fn import MessageFunction, ReduceFunction

_Maker = Callable[..., MessageFunction | ReduceFunction]
_OLD = {"u": "src", "v": "dst", "e": "edge"}


def _maker(name: str, words: tuple[str, ...], build: _Maker) -> tuple[str, _Maker]:
    """Return the name, and a function of arguments called ``words``, which are those of ``build``
    in order.
    """
    signature = inspect.Signature(
        [inspect.Parameter(word, inspect.Parameter.POSITIONAL_OR_KEYWORD) for word in words]
    )

    def make(*args: str, **keywords: str) -> MessageFunction | ReduceFunction:
        return build(*signature.bind(*args, **keywords).args)

    make.__name__ = make.__qualname__ = name
    vars(make)["__signature__"] = signature
    return name, make


def _message(op: str, left: str, right: str | None, *columns: str) -> MessageFunction:
    lhs, *rhs, out = columns
    return MessageFunction(op, left, lhs, right, rhs[0] if rhs else None, out)


def _makers() -> Iterator[tuple[str, _Maker]]:
    for name in ("sum", "mean", "max", "min", "prod"):
        yield _maker(name, ("msg", "out"), partial(ReduceFunction, name))
    for kind in "ue":
        for word in (kind, _OLD[kind]):
            yield _maker(f"copy_{word}", (word, "out"), partial(_message, "copy", kind, None))
    for op, left, right in product(("add", "sub", "mul", "div", "dot"), "uve", "uve"):
        build = partial(_message, op, left, right)
        a = _OLD[left]
        b = _OLD[right]
        yield _maker(f"{left}_{op}_{right}", ("lhs_field", "rhs_field", "out"), build)
        yield _maker(f"{a}_{op}_{b}", (a, b, "out") if a != b else ("lhs", "rhs", "out"), build)


globals().update(_makers())
__all__ = sorted(name for name, _ in _makers())


def __getattr__(name: str) -> _Maker:
    """Raise AttributeError; type checkers learn from it that the names above are functions."""
    raise AttributeError(f"nodeflow.compat.dgl.function has no {name!r}", name=name)
