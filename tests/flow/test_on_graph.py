"""Message passing on the parent graph, against the full NodeFlow and dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.old_nodeflow import Edges, edge_lists, summed
from hypothesis import given
from hypothesis import strategies as st

from nodeflow import Graph, create_full_node_flow, fn
from nodeflow.flow import EdgeBatch, NodeBatch, apply_edges, apply_nodes, pull, update_all


def graph_of(edges: Edges, ids: list[int] | None = None) -> Graph:
    n, e = edges.num_nodes, len(edges.src)
    h, w = torch.arange(2.0 * n).view(-1, 2) - 3, torch.arange(1.0, e + 1)
    return Graph.from_edges(edges.src, edges.dst, num_nodes=n, edge_ids=ids, ndata={"h": h}, edata={"w": w})


@given(edges=edge_lists(), data=st.data())
def test_all_ways_to_compute_agree(edges: Edges, data: st.DataObject) -> None:
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
        update_all(graph, *functions)
        expected = full.ldata[-1][name]
        torch.testing.assert_close(graph.ndata.pop(name), expected)
        chosen = data.draw(st.lists(st.integers(0, edges.num_nodes - 1), unique=True))
        pull(graph, chosen, *functions)
        found, left = graph.ndata.pop(name), sorted(set(range(edges.num_nodes)) - set(chosen))
        torch.testing.assert_close(found[chosen], expected[chosen])
        assert not found[left].any()
    h = graph.ndata["h"].numpy()
    src, dst = graph.edges()
    update_all(graph, fn.copy_u("h", "m"), fn.sum("m", "s"))
    dense = summed(list(zip(src.tolist(), dst.tolist(), strict=True)), h, edges.num_nodes)
    np.testing.assert_allclose(graph.ndata["s"].numpy(), dense)


@given(edges=edge_lists(), data=st.data())
def test_functions_on_edges(edges: Edges, data: st.DataObject) -> None:
    graph = graph_of(edges, data.draw(st.permutations(range(len(edges.src)))))
    src, dst = graph.edges()
    asked: list[torch.Tensor] = []

    def note(edges: EdgeBatch) -> dict[str, torch.Tensor]:
        asked.append(torch.stack([*edges.edges(), edges.edge_ids()]))
        return {"d": edges.src["h"] - edges.dst["h"] + edges.data["w"].unsqueeze(1)}

    expected = graph.ndata["h"][src] - graph.ndata["h"][dst] + graph.edata["w"].unsqueeze(1)
    chosen = torch.tensor(data.draw(st.lists(st.sampled_from(range(len(src) or 1)), unique=True, max_size=len(src))))
    chosen = chosen.long()
    apply_edges(graph, note, chosen)
    assert torch.equal(asked[0], torch.stack([src[chosen], dst[chosen], chosen]))
    assert torch.equal(graph.edata["d"][chosen], expected[chosen])
    apply_edges(graph, note)
    assert torch.equal(asked[1], torch.stack([src, dst, torch.arange(len(src))]))
    assert torch.equal(graph.edata["d"], expected)
    apply_edges(graph, fn.u_dot_v("h", "h", "d"))  # a column of another shape replaces it
    torch.testing.assert_close(graph.edata["d"], (graph.ndata["h"][src] * graph.ndata["h"][dst]).sum(1, keepdim=True))


def test_edge_ids_of_a_flow() -> None:
    batch = create_full_node_flow(Graph.from_edges([0, 1, 2], [1, 2, 1]), 1)
    batch.apply_flows(0, lambda edges: {"id": edges.edge_ids()}, edges=[2, 0])
    assert batch.fdata[0]["id"].tolist() == [0, 0, 2]
    batch.flow_compute(0, lambda edges: {"m": edges.edge_ids()}, fn.max("m", "last"))
    assert batch.ldata[1]["last"].tolist() == [0, 1, 2]


def test_a_call_that_fails_changes_nothing() -> None:
    graph = graph_of(Edges([0, 1], [1, 0], 2))
    before = graph.ndata.snapshot(), graph.edata.snapshot()

    def fail(nodes: NodeBatch) -> dict[str, torch.Tensor]:
        raise ZeroDivisionError

    sums = fn.copy_u("h", "m"), fn.sum("m", "h")
    for call, error in (
        (lambda: update_all(graph, *sums, fail), ZeroDivisionError),
        (lambda: pull(graph, [1], *sums, fail), ZeroDivisionError),
        (lambda: apply_nodes(graph, fail), ZeroDivisionError),
        (lambda: update_all(graph, fn.copy_u("y", "m"), sums[1]), KeyError),
        (lambda: pull(graph, [1, 1], *sums), ValueError),
        (lambda: pull(graph, [2], *sums), IndexError),
        (lambda: apply_edges(graph, fn.copy_e("w", "w2"), [0, 0]), ValueError),
        (lambda: update_all(create_full_node_flow(graph, 1), *sums), TypeError),  # type: ignore[arg-type]
        (lambda: apply_nodes(graph, lambda nodes: {"h": torch.zeros(3)}), ValueError),
    ):
        with pytest.raises(error):
            call()
        for frame, columns in zip((graph.ndata, graph.edata), before, strict=True):
            assert frame.snapshot().keys() == columns.keys()
            assert all(frame[name] is column for name, column in columns.items())


@given(edges=edge_lists())
def test_mailboxes_of_copies_are_the_same_with_and_without_gradient(edges: Edges) -> None:
    graph = graph_of(edges)
    seen: list[list[torch.Tensor]] = [[], []]
    for k, with_gradient in enumerate((False, True)):
        graph.ndata["h"] = graph.ndata["h"].detach().requires_grad_(with_gradient)

        def note(nodes: NodeBatch, k: int = k) -> dict[str, torch.Tensor]:
            seen[k] += [nodes.nodes(), nodes.mailbox["m"].detach()]
            return {"r": nodes.mailbox["m"].sum(1)}

        update_all(graph, fn.copy_u("h", "m"), note)
    assert len(seen[0]) == len(seen[1])
    assert all(map(torch.equal, *seen))
    for nodes, mailbox in zip(seen[0][::2], seen[0][1::2], strict=True):
        for row, node in enumerate(nodes.tolist()):
            near = [u for u, v in zip(edges.src, edges.dst, strict=True) if v == node]
            assert torch.equal(mailbox[row], graph.ndata["h"][near].detach())


def test_errors_name_the_graph() -> None:
    graph = graph_of(Edges([0, 1], [1, 0], 2))
    with pytest.raises(KeyError, match="no column 'y' in the graph's nodes, which has 'h'"):
        update_all(graph, fn.copy_u("y", "m"), fn.sum("m", "s"))
    with pytest.raises(KeyError, match="no column 'y' in the graph's edges, which has 'w'"):
        update_all(graph, fn.copy_e("y", "m"), fn.sum("m", "s"))


def test_gradients() -> None:
    graph = Graph.from_edges([0, 0, 1], [1, 2, 2])
    h = torch.ones(3, 2, requires_grad=True)
    graph.ndata["h"] = h
    update_all(graph, fn.copy_u("h", "m"), fn.sum("m", "s"))
    pull(graph, [2], fn.copy_u("s", "m"), fn.sum("m", "t"))
    graph.ndata["t"].sum().backward()
    assert h.grad is not None
    assert h.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_no_edges_and_no_nodes() -> None:
    for n in (0, 2):
        graph = graph_of(Edges([], [], n))
        update_all(graph, fn.copy_u("h", "m"), fn.sum("m", "s"))
        pull(graph, [], fn.copy_u("h", "m"), fn.sum("m", "p"))
        apply_edges(graph, fn.copy_u("h", "e"))
        assert (graph.ndata["s"].shape, graph.ndata["p"].shape, graph.edata["e"].shape) == ((n, 2), (n, 2), (0, 2))
