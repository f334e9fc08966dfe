"""``nodeflow.compat.dgl.function``: every name of DGL 0.4 with its keywords, and the shape of its
dot products.
"""

from __future__ import annotations

import inspect
import itertools
import pickle

import pytest
import torch

import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.fn import MessageFunction, ReduceFunction

OLD = {"u": "src", "v": "dst", "e": "edge"}


@pytest.mark.parametrize(
    ("op", "left", "right"),
    list(itertools.product(["add", "sub", "mul", "div", "dot"], "uve", "uve")),
)
def test_every_binary_function_in_both_spellings(op, left, right):
    a = OLD[left]
    b = OLD[right]
    for name, words in (
        (f"{left}_{op}_{right}", ("lhs_field", "rhs_field", "out")),
        (f"{a}_{op}_{b}", (a, b, "out") if a != b else ("lhs", "rhs", "out")),
    ):
        make = getattr(fn, name)
        columns = ("a", "b", "m")
        expected = MessageFunction(op, left, "a", right, "b", "m")
        assert make(*columns) == make(**dict(zip(words, columns, strict=True))) == expected
        assert (make.__name__, list(inspect.signature(make).parameters)) == (name, list(words))
        assert pickle.loads(pickle.dumps(make)) is make


def test_copies_and_reducers():
    for word, kind in (("src", "u"), ("u", "u"), ("edge", "e"), ("e", "e")):
        make = getattr(fn, f"copy_{word}")
        expected = MessageFunction("copy", kind, "h", None, None, "m")
        assert make("h", "m") == make(**{word: "h"}, out="m") == make("h", out="m") == expected
    for name in ("sum", "mean", "max", "min", "prod"):
        assert (
            getattr(fn, name)(msg="m", out="h")
            == getattr(fn, name)("m", "h")
            == ReduceFunction(name, "m", "h")
        )


def test_the_names():
    assert len(fn.__all__) == 2 * 45 + 4 + 5
    for wrong in ({"column": "h", "out": "m"}, {"src": "h"}, {"src": 3, "out": "m"}):
        with pytest.raises(TypeError):
            fn.copy_src(**wrong)
    with pytest.raises(AttributeError, match="has no 'copy_dst'"):
        fn.copy_dst("h", "m")


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_dot_products_drop_their_dimension(shape):
    """As in version 0.4.3, also in messages that a function of the program's own or a built-in one
    reduces.
    """
    g = dgl.DGLGraph([(0, 2), (1, 0), (2, 1), (0, 1)])
    h = torch.randn(3, *shape)
    g.ndata["h"], (src, dst) = h, g.edges()
    expected = (h[src] * h[dst]).sum(-1) if shape else h[src] * h[dst]
    g.apply_edges(fn.u_dot_v("h", "h", "s"))
    torch.testing.assert_close(g.edata["s"], expected)
    total = torch.zeros(3, *shape[:-1]).index_add(0, dst, expected)
    for reduce in (fn.sum("m", "t"), lambda nodes: {"t": nodes.mailbox["m"].sum(1)}):
        g.update_all(fn.src_dot_dst("h", "h", "m"), reduce)
        torch.testing.assert_close(g.ndata["t"], total)
    (nf,) = dgl.contrib.sampling.NeighborSampler(g, 3, 9, num_hops=1, seed_nodes=[0, 1, 2])
    nf.copy_from_parent()
    nf.apply_block(0, fn.u_dot_v("h", "h", "s"))
    torch.testing.assert_close(nf.blocks[0].data["s"], expected[nf.block_parent_eid(0)])
    nf.block_compute(0, fn.u_dot_v("h", "h", "m"), fn.sum("m", "t"))
    torch.testing.assert_close(nf.layers[1].data["t"], total)


def test_ids_of_utils():
    g = dgl.DGLGraph([(0, 2), (1, 2), (2, 0)])
    (nf,) = dgl.contrib.sampling.NeighborSampler(g, 1, 9, num_hops=1, seed_nodes=[2])
    ids = dgl.utils.toindex(nf.layer_parent_nid(0))
    assert nf.map_from_parent_nid(0, ids, remap_local=True).tolist() == [0, 1]
