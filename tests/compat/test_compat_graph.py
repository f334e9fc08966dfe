"""``DGLGraph`` of ``nodeflow.compat.dgl``: what it is made of, queries, frames, message passing,
growing.
"""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from _support.old_nodeflow import edge_lists
from hypothesis import given

import nodeflow
import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl import DGLGraph


def pairs(g: DGLGraph) -> list[tuple[int, int]]:
    src, dst = g.all_edges()
    return list(zip(src.tolist(), dst.tolist(), strict=True))


# ----------------------------------------------------------------------------------------------------------
# structure


def test_what_a_graph_is_made_of():
    edges = [(0, 1), (2, 0), (0, 1), (1, 1)]
    src, dst = zip(*edges, strict=True)
    coo = scipy.sparse.coo_matrix((np.ones(4), (src, dst)), shape=(3, 3))
    for data in (edges, (src, dst), (torch.tensor(src), torch.tensor(dst)), coo):
        g = DGLGraph(data)
        assert pairs(g) == edges
        assert g.number_of_nodes() == 3
    # a matrix that is not square is filled up
    csr = scipy.sparse.csr_matrix([[0, 1, 1], [0, 0, 0]])
    assert (pairs(DGLGraph(csr)), len(DGLGraph(csr))) == ([(0, 1), (0, 2)], 3)
    shared = DGLGraph(DGLGraph(edges, node_frame={"x": torch.zeros(3)}))
    assert (pairs(shared), list(shared.ndata)) == (edges, [])
    whole = nodeflow.Graph.from_edges(src, dst, ndata={"x": torch.ones(3)})
    assert (pairs(DGLGraph(whole)), list(DGLGraph(whole).ndata)) == (edges, ["x"])
    assert DGLGraph(whole).graph is whole


def test_networkx():
    given = networkx.DiGraph()
    given.add_nodes_from(range(4))
    for u in (2, 0, 1):
        given.add_edge(u, u + 1, id=u)
    assert pairs(DGLGraph(given)) == [(0, 1), (1, 2), (2, 3)]
    assert sorted(pairs(DGLGraph(networkx.path_graph(3)))) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    with pytest.raises(TypeError, match="integers 0 to n - 1"):
        DGLGraph(networkx.DiGraph([("b", "c")]))
    given.edges[0, 1]["id"] = 2
    with pytest.raises(ValueError, match="edge_ids"):
        DGLGraph(given)


@given(edges=edge_lists())
def test_queries(edges):
    g = DGLGraph()
    g.add_nodes(edges.num_nodes)
    for u, v in zip(edges.src, edges.dst, strict=True):
        g.add_edge(u, v)
    every = list(zip(edges.src, edges.dst, strict=True))
    n = edges.num_nodes
    assert pairs(g) == every
    assert g.in_degrees().tolist() == [edges.dst.count(v) for v in range(n)]
    assert g.out_degrees().tolist() == [edges.src.count(v) for v in range(n)]
    assert g.out_degrees(0).tolist() == [edges.src.count(0)]
    for v in range(n):
        ids = [e for e in range(len(every)) if edges.dst[e] == v]
        src, dst, eid = g.in_edges(v, "all")
        assert (eid.tolist(), src.tolist(), dst.tolist()) == (
            ids,
            [edges.src[e] for e in ids],
            [v] * len(ids),
        )
        assert g.out_edges([v], "eid").tolist() == [
            e for e in range(len(every)) if edges.src[e] == v
        ]
    for u in range(n):
        assert g.has_edges_between(u, list(range(n))).tolist() == [
            int((u, v) in every) for v in range(n)
        ]
        for v in range(n):
            ids = [e for e, pair in enumerate(every) if pair == (u, v)]
            assert g.edge_ids(u, v, return_uv=True)[2].tolist() == ids
            if len(ids) == 1:
                assert g.edge_ids(u, v).tolist() == ids
            else:
                with pytest.raises(ValueError, match="no edge" if not ids else "several edges"):
                    g.edge_ids(u, v)
    assert g.all_edges("eid", "eid").tolist() == list(range(len(every)))


def test_growing_keeps_columns():
    g = DGLGraph()
    g.set_n_initializer(lambda shape, dtype, ctx, ids: torch.full(shape, 9.0, dtype=dtype), "x")
    g.add_nodes(2)
    g.ndata["x"] = torch.tensor([1.0, 2.0])
    g.add_nodes(2)
    g.add_edges([0, 1], 3)
    g.edata["w"] = torch.tensor([5.0, 6.0])
    assert g.ndata["x"].tolist() == [1.0, 2.0, 9.0, 9.0]
    g.add_edge(3, 0)
    assert g.edata["w"].tolist() == [5.0, 6.0, 0.0]
    assert (pairs(g), len(g.nodes), len(g.edges)) == ([(0, 3), (1, 3), (3, 0)], 4, 3)
    g.add_edges([], [])
    assert len(g) == 4
    assert not g.is_readonly
    g.readonly()
    with pytest.raises(ValueError, match="read-only"):
        g.add_nodes(1)
    g.readonly(False)


# -------------------------------------------------------------------------------------------------------------
# frames


def test_rows_of_frames():
    g = DGLGraph([(0, 1), (1, 2), (0, 1)])
    g.nodes[[0, 2]].data["x"] = torch.tensor([1.0, 2.0])
    assert g.ndata["x"].tolist() == [1.0, 0.0, 2.0]
    assert g.nodes[:].data is g.ndata
    assert g.nodes[2].data["x"].tolist() == [2.0]
    assert g.nodes().tolist() == [0, 1, 2]
    g.edges[0, 1].data["w"] = torch.tensor([3.0, 4.0])  # both edges of the pair
    assert g.edata["w"].tolist() == [3.0, 0.0, 4.0]
    assert g.to("cpu") is g
    assert repr(g) == "DGLGraph(num_nodes=3, num_edges=3, ndata=['x'], edata=['w'])"


# -----------------------------------------------------------------------------------------------------------
# messages


def test_nodes_without_messages():
    g = DGLGraph([(0, 1), (0, 1)], node_frame={"h": torch.tensor([1.0, 2.0])})
    g.set_n_initializer(lambda shape, dtype, ctx, ids: torch.full(shape, -1.0, dtype=dtype), "u")
    g.update_all(lambda e: {"m": e.src["h"]}, lambda n: {"u": n.mailbox["m"].sum(1)})
    assert g.ndata["u"].tolist() == [-1.0, 2.0]
    # repeats count once
    g.pull([1, 1], fn.copy_src("h", "m"), fn.sum("m", "u"), lambda n: {"q": n.data["h"]})
    assert (g.ndata["u"].tolist(), g.ndata["q"].tolist()) == ([-1.0, 2.0], [0.0, 2.0])
    # there is nothing to reduce
    g.pull([0], fn.copy_src("h", "m"), fn.sum("m", "p"), lambda n: {"q": n.data["h"]})
    assert (set(g.ndata), g.ndata["q"].tolist()) == ({"h", "u", "q"}, [1.0, 2.0])


def test_functions_see_edges_in_the_order_of_their_ids():
    g = DGLGraph([(0, 2), (1, 0), (2, 1), (0, 1)])
    seen = []

    def note(edges: dgl.EdgeBatch) -> dict[str, torch.Tensor]:
        seen.append([ids.tolist() for ids in edges.edges()])
        return {"m": torch.arange(float(len(edges)))}

    g.apply_edges(note)
    assert seen == [[[0, 1, 2, 0], [2, 0, 1, 1], [0, 1, 2, 3]]]
    assert g.edata["m"].tolist() == [0.0, 1.0, 2.0, 3.0]
    g.update_all(note, fn.sum("m", "s"))
    assert (seen[1], g.ndata["s"].tolist()) == (seen[0], [1.0, 5.0, 0.0])
    g.apply_edges(note, [3, 0])
    assert (seen[2], g.edata["m"].tolist()) == ([[0, 0], [1, 2], [3, 0]], [1.0, 1.0, 2.0, 0.0])
    # all, in another order
    g.apply_edges(lambda edges: {"new": torch.stack([edges.edges()[2]] * 2, 1)}, [3, 0, 2, 1])
    assert g.edata["new"].tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    g.apply_edges(fn.u_add_v("s", "s", "both"), ([0], [2]))
    assert g.edata["both"].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_registered_functions_of_a_graph():
    g = DGLGraph([(0, 1), (1, 2)], node_frame={"h": torch.tensor([1.0, 2.0, 3.0])})
    g.apply_nodes()  # nothing is registered, nothing happens
    g.register_message_func(fn.copy_src("h", "m"))
    g.register_reduce_func(fn.sum("m", "h"))
    g.register_apply_node_func(lambda nodes: {"h": nodes.data["h"] * 10})
    g.register_apply_edge_func(lambda edges: {"e": edges.src["h"]})
    g.apply_edges()
    g.pull(2)
    assert (g.edata["e"].tolist(), g.ndata["h"].tolist()) == ([1.0, 2.0], [1.0, 2.0, 20.0])
    g.apply_nodes(v=0)
    g.update_all()
    assert g.ndata["h"].tolist() == [0.0, 100.0, 20.0]
    g.pull([1], apply_node_func=None)
    assert g.ndata["h"].tolist() == [0.0, 0.0, 20.0]
