"""Message passing on a ``DGLGraph``, against the full NodeFlow and dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.old_nodeflow import Edges, edge_lists, summed
from hypothesis import given, strategies as st

from nodeflow import Graph, create_full_node_flow, fn
from nodeflow.compat.dgl import DGLGraph, EdgeBatch, NodeBatch


def graph_of(edges: Edges, ids: list[int] | None = None) -> Graph:
    n = edges.num_nodes
    e = len(edges.src)
    h = torch.arange(2.0 * n).view(-1, 2) - 3
    w = torch.arange(1.0, e + 1)
    return Graph.from_edges(
        edges.src, edges.dst, num_nodes=n, edge_ids=ids, ndata={"h": h}, edata={"w": w}
    )


@given(edges=edge_lists(), data=st.data())
def test_all_ways_to_compute_agree(edges, data):
    graph = graph_of(edges, data.draw(st.permutations(range(len(edges.src)))))
    full = create_full_node_flow(graph, 1)
    full.copy_from_parent()

    def message(edges: EdgeBatch) -> dict[str, torch.Tensor]:
        return {"m": edges.src["h"] * edges.data["w"].unsqueeze(1) + edges.dst["h"]}

    def reduce(nodes: NodeBatch) -> dict[str, torch.Tensor]:
        return {"r": nodes.mailbox["m"].sum(1) + nodes.data["h"]}

    for functions, name in (
        ((fn.u_mul_e("h", "w", "m"), fn.sum("m", "s")), "s"),
        ((fn.copy_u("h", "m"), fn.max("m", "x")), "x"),
        (([fn.copy_u("h", "m"), fn.copy_e("w", "k")], [fn.mean("m", "a"), fn.sum("k", "b")]), "b"),
        ((message, reduce, lambda nodes: {"u": nodes.data["r"] - nodes.data["h"]}), "u"),
    ):
        full.flow_compute(0, *functions)
        if not edges.src:  # there is nothing to reduce
            continue
        DGLGraph(graph).update_all(*functions)
        expected = full.ldata[-1][name]
        torch.testing.assert_close(graph.ndata.pop(name), expected)
        chosen = data.draw(st.lists(st.integers(0, edges.num_nodes - 1), unique=True))
        DGLGraph(graph).pull(chosen, *functions)
        if not set(chosen) & set(edges.dst):
            assert name not in graph.ndata or functions[2:]
            continue
        column = graph.ndata.pop(name)
        left = sorted(set(range(edges.num_nodes)) - set(chosen))
        torch.testing.assert_close(column[chosen], expected[chosen])
        assert not column[left].any()
    h = graph.ndata["h"].numpy()
    src, dst = graph.edges()
    if not edges.src:
        return
    DGLGraph(graph).update_all(fn.copy_u("h", "m"), fn.sum("m", "s"))
    dense = summed(list(zip(src.tolist(), dst.tolist(), strict=True)), h, edges.num_nodes)
    np.testing.assert_allclose(graph.ndata["s"].numpy(), dense)


def test_a_call_that_fails_changes_nothing():
    graph = graph_of(Edges([0, 1], [1, 0], 2))
    before = graph.ndata.snapshot(), graph.edata.snapshot()

    def fail(nodes: NodeBatch) -> dict[str, torch.Tensor]:
        raise ZeroDivisionError

    sums = fn.copy_u("h", "m"), fn.sum("m", "h")
    for call, error, *words in (
        (lambda: DGLGraph(graph).update_all(*sums, fail), ZeroDivisionError),
        (lambda: DGLGraph(graph).pull([1], *sums, fail), ZeroDivisionError),
        (lambda: DGLGraph(graph).apply_nodes(fail), ZeroDivisionError),
        (
            lambda: DGLGraph(graph).update_all(fn.copy_u("y", "m"), sums[1]),
            KeyError,
            "'y' in layer 0, which has 'h'",
        ),
        (lambda: DGLGraph(graph).pull([2], *sums), IndexError),
        (lambda: DGLGraph(graph).apply_edges(fn.copy_e("w", "w2"), [0, 0]), ValueError),
        (lambda: DGLGraph(graph).apply_nodes(lambda nodes: {"h": torch.zeros(3)}), ValueError),
    ):
        with pytest.raises(error, match=words[0] if words else None):
            call()
        for frame, columns in zip((graph.ndata, graph.edata), before, strict=True):
            assert frame.snapshot().keys() == columns.keys()
            assert all(frame[name] is column for name, column in columns.items())


@given(edges=edge_lists())
def test_mailboxes_of_copies_are_the_same_with_and_without_gradient(edges):
    graph = graph_of(edges)
    seen: list[list[torch.Tensor]] = [[], []]
    for k, with_gradient in enumerate((False, True)):
        graph.ndata["h"] = graph.ndata["h"].detach().requires_grad_(with_gradient)

        def note(nodes: NodeBatch, k: int = k) -> dict[str, torch.Tensor]:
            seen[k] += [nodes.nodes(), nodes.mailbox["m"].detach()]
            return {"r": nodes.mailbox["m"].sum(1)}

        DGLGraph(graph).update_all(fn.copy_u("h", "m"), note)
    assert len(seen[0]) == len(seen[1])
    assert all(map(torch.equal, *seen))
    for nodes, mailbox in zip(seen[0][::2], seen[0][1::2], strict=True):
        for row, node in enumerate(nodes.tolist()):
            near = [u for u, v in zip(edges.src, edges.dst, strict=True) if v == node]
            assert torch.equal(mailbox[row], graph.ndata["h"][near].detach())
