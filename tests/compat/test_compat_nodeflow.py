"""NodeFlows of ``nodeflow.compat.dgl`` against an independent model of version 0.4, on full
neighbourhoods.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.old_nodeflow import Edges, OldNodeFlow, edge_lists, full_nodeflow, graph_of, summed
from hypothesis import given, strategies as st

import nodeflow.compat.dgl as dgl
import nodeflow.compat.dgl.function as fn
from nodeflow.compat.dgl.contrib.sampling.sampler import create_full_nodeflow

options = {
    "hops": st.integers(1, 3),
    "direction": st.sampled_from(["in", "out"]),
    "loops": st.booleans(),
}


def both(
    data: st.DataObject, edges: Edges, hops: int, direction: str, loops: bool
) -> tuple[dgl.DGLGraph, dgl.NodeFlow, OldNodeFlow]:
    seeds = data.draw(st.lists(st.integers(0, edges.num_nodes - 1), min_size=1, max_size=5))
    g = graph_of(edges)
    (nf,) = dgl.contrib.sampling.NeighborSampler(
        g, 9, 10_000, hops, direction, seed_nodes=seeds, add_self_loop=loops
    )
    return g, nf, full_nodeflow(edges, seeds, hops, direction, loops)


@given(data=st.data(), edges=edge_lists(), **options)
def test_ids_orders_and_edges(data, edges, hops, direction, loops):
    g, nf, old = both(data, edges, hops, direction, loops)
    assert (nf.num_layers, nf.num_blocks) == (hops + 1, hops)
    nodes = eids = 0
    for i, layer in enumerate(old.layers):
        assert (
            nf.layer_parent_nid(i).tolist() == layer == nf.layer_parent_nid(i - hops - 1).tolist()
        )
        assert nf.layer_nid(i).tolist() == list(range(nodes, nodes + len(layer)))
        assert nf.map_to_parent_nid(nf.layer_nid(i)).tolist() == layer
        assert nf.map_from_parent_nid(i, layer).tolist() == nf.layer_nid(i).tolist()
        missing = sorted(set(range(edges.num_nodes)) - set(layer))
        for local in (True, False):  # version 0.4 gave an id of the layer before for the second
            assert nf.map_from_parent_nid(i, missing, local).tolist() == [-1] * len(missing)
        nodes += len(layer)
    for i, block in enumerate(old.blocks):
        src, dst, eid = nf.block_edges(i)
        assert (
            list(zip(src.tolist(), dst.tolist(), nf.block_parent_eid(i).tolist(), strict=True))
            == block
        )
        assert eid.tolist() == nf.block_eid(i).tolist() == list(range(eids, eids + len(block)))
        assert nf.map_to_parent_eid(eid).tolist() == [e for *_, e in block]
        local = nf.block_edges(i, remap_local=True)
        starts = nf.layer_nid(i)[:1], nf.layer_nid(i + 1)[:1]
        if block:
            assert torch.equal(local[0] + starts[0], src)
            assert torch.equal(local[1] + starts[1], dst)
        assert local[2].tolist() == list(range(len(block)))
        eids += len(block)
        assert nf.layer_in_degree(i + 1).tolist() == [
            sum(v == n for _, v, _ in block) for n in nf.layer_nid(i + 1)
        ]
        assert nf.layer_out_degree(i).tolist() == [
            sum(u == n for u, *_ in block) for n in nf.layer_nid(i)
        ]
    assert (len(nf), nf.number_of_nodes(), nf.number_of_edges()) == (nodes, nodes, eids)
    every = [(u, v) for block in old.blocks for u, v, _ in block]
    assert [*zip(*(end.tolist() for end in nf.all_edges()), strict=True)] == every
    assert nf.in_degrees().tolist() == [sum(v == n for _, v in every) for n in range(nodes)]
    assert nf.is_readonly
    assert g.graph is nf.batch.parent


@given(data=st.data(), edges=edge_lists(), **options)
def test_columns_and_messages(data, edges, hops, direction, loops):
    g, nf, old = both(data, edges, hops, direction, loops)
    nf.layers[0].data["mine"] = torch.zeros(nf.layer_size(0))
    nf.copy_from_parent()
    assert set(nf.layers[0].data) == {"x"}  # frames are replaced
    x = g.ndata["x"].numpy()
    h = x[old.layers[0]]
    for i, block in enumerate(old.blocks):
        assert nf.layers[i].data["x"].tolist() == x[old.layers[i]].tolist()
        assert nf.blocks[i].data["w"].tolist() == [e + 1.0 if e >= 0 else 0.0 for *_, e in block]
        first, second = (nf.batch.layer_offsets()[k] for k in (i, i + 1))
        local = [(u - first, v - second) for u, v, _ in block]
        nf.layers[i].data["h"] = torch.from_numpy(h).float()
        total = summed(local, h, len(old.layers[i + 1]))
        some = nf.layer_nid(i + 1)[::2]
        nf.set_n_initializer(
            lambda shape, dtype, ctx, ids: torch.full(shape, 7.0, dtype=dtype), i + 1, "part"
        )
        nf.block_compute(
            i,
            fn.copy_src("h", "m"),
            fn.sum("m", "part"),
            lambda n: {"part": n.data["part"] + 1},
            v=some,
        )
        expected = np.full(total.shape, 7.0)
        expected[::2] = total[::2] + 1
        np.testing.assert_allclose(nf.layers[i + 1].data["part"].numpy(), expected)
        nf.block_compute(
            i, lambda e: {"m": e.src["h"]}, lambda n: {"s": n.mailbox["m"].sum(1)}, v=dgl.ALL
        )
        np.testing.assert_allclose(nf.layers[i + 1].data["s"].numpy(), total)
        ids: list[torch.Tensor] = []

        def note(edges: dgl.EdgeBatch, ids: list[torch.Tensor] = ids) -> dict[str, torch.Tensor]:
            assert edges.batch_size() == len(edges) == len(edges.edges()[2])
            ids.append(torch.stack(edges.edges()))
            return {"sum": edges.src["h"] + edges.dst["x"]}

        nf.apply_block(i, note, edges=nf.block_eid(i).flip(0))
        assert ids[0].flip(1).tolist() == torch.stack(nf.block_edges(i, remap_local=True)).tolist()
        both_ends = h[[u for u, _ in local]] + x[old.layers[i + 1]][[v for _, v in local]]
        np.testing.assert_allclose(nf.blocks[i].data["sum"].numpy(), both_ends.reshape(-1, 2))
        h = total
    nf.layers[0].data["h"] = torch.from_numpy(x[old.layers[0]]).float()
    nf.prop_flow(fn.copy_src("h", "m"), fn.sum("m", "h"), [lambda n: {"h": n.data["h"] * 1}] * hops)
    np.testing.assert_allclose(nf.layers[-1].data["h"].numpy(), h)
    g.ndata["h"] = torch.zeros(edges.num_nodes, 2)
    nf.copy_to_parent([[]] * hops + [["h"]], None)
    expected = np.zeros((edges.num_nodes, 2))
    expected[old.layers[-1]] = h
    np.testing.assert_allclose(g.ndata["h"].numpy(), expected)


@pytest.fixture
def nf() -> dgl.NodeFlow:
    g = graph_of(Edges([0, 1, 2, 3], [1, 2, 3, 3], 4))
    return create_full_nodeflow(g, 2)


def test_a_full_nodeflow_holds_sources_only(nf):
    assert [nf.layer_parent_nid(i).tolist() for i in range(3)] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [0, 1, 2, 3],
    ]
    nf = create_full_nodeflow(graph_of(Edges([0, 1], [1, 2], 3)), 2)
    assert [nf.layer_parent_nid(i).tolist() for i in range(3)] == [[0], [0, 1], [0, 1, 2]]


def test_registered_functions(nf):
    nf.copy_from_parent()
    nf.register_message_func(fn.copy_src("x", "m"))
    nf.register_reduce_func(fn.sum("m", "s"))
    nf.register_apply_node_func(lambda n: {"x": n.data["s"] + 1}, 0)
    nf.register_apply_edge_func(lambda e: {"d": e.dst["x"]}, -1)
    nf.block_compute(0)
    first = nf.layers[1].data["x"].clone()
    assert torch.equal(first, nf.layers[1].data["s"] + 1)
    nf.layers[1].data["s"] = first * 10
    nf.apply_layer(1)  # the function of block 0 belongs to layer 1
    assert torch.equal(nf.layers[1].data["x"], first * 10 + 1)
    nf.apply_block(1)
    assert torch.equal(nf.blocks[1].data["d"], nf.layers[2].data["x"][nf.block_edges(1, True)[1]])


def test_several_messages_at_once(nf):
    nf.copy_from_parent()
    messages = [fn.copy_src("x", "m"), lambda edges: {"k": edges.src["x"] * 2}]
    nf.block_compute(0, messages, [fn.sum("m", "a"), fn.sum("k", "b")])
    assert torch.equal(nf.layers[1].data["b"], nf.layers[1].data["a"] * 2)
    assert nf.layers[1].data["a"].any()


def test_flow_range_takes_a_number_and_slices(nf):
    calls: list[int] = []

    def message(edges: dgl.EdgeBatch) -> dict[str, torch.Tensor]:
        calls.append(len(edges))
        return {"m": edges.src["x"]}

    nf.copy_from_parent()
    reduce = fn.sum("m", "x")
    slices = (slice(0, 2), 2), (slice(1, None), 1), (slice(0, 2, 1), 2)
    for chosen, count in ((0, 1), (1, 1), (-1, 1), *slices, (dgl.ALL, 2)):
        calls.clear()
        nf.prop_flow(message, reduce, None, chosen)
        assert len(calls) == count


def test_nodes_as_functions_see_them(nf):
    nf.copy_from_parent()
    seen = []

    def update(nodes: dgl.NodeBatch) -> dict[str, torch.Tensor]:
        seen.append((nodes.mailbox, nodes.nodes().tolist(), nodes.batch_size(), len(nodes)))
        return {"x": nodes.data["x"] * 0}

    nf.apply_layer(1, update, v=[5, 7])
    assert seen == [(None, [1, 3], 2, 2)]
    assert nf.layers[1].data["x"].any(1).tolist() == [True, False, True, False]


def test_choices_of_columns(nf):
    nf.copy_from_parent([["x"], [], ["x"]], None)
    assert [list(layer.data) for layer in nf.layers] == [["x"], [], ["x"]]
    assert [list(block.data) for block in nf.blocks] == [[], []]
    nf.copy_from_parent(None, [["w"], []])
    assert [list(layer.data) for layer in nf.layers] == [["x"], [], ["x"]]
    assert list(nf.blocks[0].data) == ["w"]
    for wrong in ([["x"]], ["x", "x", "x"], "x"):
        with pytest.raises(ValueError, match="list of 3 lists"):
            nf.copy_from_parent(wrong)
    with pytest.raises(KeyError, match="no column 'y'"):
        nf.copy_from_parent([["y"], [], []])
    assert [list(layer.data) for layer in nf.layers] == [["x"], [], ["x"]]


def test_layers_and_blocks_are_views(nf):
    nf.layers[0].data["h"] = np.ones((4, 1), np.float32)
    assert torch.equal(nf.layers[0].data.pop("h"), torch.ones(4, 1))
    assert (len(nf.layers), len(nf.blocks)) == (3, 2)
    nf.set_e_initializer(lambda shape, dtype, ctx, ids: torch.ones(shape, dtype=dtype))
    nf.apply_block(0, lambda e: {"k": torch.zeros(len(e))}, edges=nf.block_eid(0)[:1])
    assert nf.blocks[0].data["k"].tolist() == [0.0, 1.0, 1.0, 1.0]
    nf.apply_block(0, lambda e: {"k": torch.full((len(e),), 5.0)}, edges=([3], [7]))
    assert nf.blocks[0].data["k"].tolist() == [0.0, 1.0, 1.0, 5.0]
    assert repr(nf) == "dgl.NodeFlow(4 -> 4 -> 4 nodes, 4 + 4 edges)"
