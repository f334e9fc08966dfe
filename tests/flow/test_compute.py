"""Message passing on NodeFlows: built-in and user-defined functions, subsets of edges and
destinations.
"""

from types import MappingProxyType

import pytest
import scipy.sparse
import torch
from _support.compute_example import DST, SRC, make_batch
from torch import nn

from nodeflow import ALL, Graph, create_full_node_flow, create_node_flow, flow_from_edges, fn

COPY = fn.copy_u("h", "m")
SUM = fn.sum("m", "h")
BUILT_IN = {
    "copy_u": COPY,
    "u_mul_e": fn.u_mul_e("h", "w", "m"),
    "e_sub_u": fn.e_sub_u("w", "h", "m"),
    "v_add_u": fn.v_add_u("old", "h", "m"),
    "u_dot_v": fn.u_dot_v("h", "old", "m"),
    "copy_e": fn.copy_e("w", "m"),
}
BY_HAND = {
    "copy_u": lambda e: {"m": e.src["h"]},
    "u_mul_e": lambda e: {"m": e.src["h"] * e.data["w"][:, None]},
    "e_sub_u": lambda e: {"m": e.data["w"][:, None] - e.src["h"]},
    "v_add_u": lambda e: {"m": e.dst["old"] + e.src["h"]},
    "u_dot_v": lambda e: {"m": (e.src["h"] * e.dst["old"]).sum(-1, keepdim=True)},
    "copy_e": lambda e: {"m": e.data["w"]},
}
REDUCE_BY_HAND = {
    name: lambda n, method=method: {"out": getattr(n.mailbox["m"], method)(1)}
    for name, method in {
        "sum": "sum",
        "mean": "mean",
        "max": "amax",
        "min": "amin",
        "prod": "prod",
    }.items()
}


@pytest.mark.parametrize("v", [ALL, [2], [3, 0], [1]])
@pytest.mark.parametrize("reduce", list(REDUCE_BY_HAND))
@pytest.mark.parametrize("message", list(BUILT_IN))
def test_built_in_and_user_defined_functions_agree(message, reduce, v):
    results = []
    for one in (BUILT_IN[message], BY_HAND[message]):
        for two in (getattr(fn, reduce)("m", "out"), REDUCE_BY_HAND[reduce]):
            batch = make_batch()
            leaves = [
                batch.layers[0].data["h"],
                batch.layers[1].data["old"],
                batch.flows[0].data["w"],
            ]
            for leaf in leaves:
                leaf.requires_grad_()
            batch.flow_compute(0, one, two, v=v)
            out = batch.layers[1].data["out"]
            if not callable(two) and reduce == "prod":
                assert (out[1] == (1 if v is ALL or 1 in v else 0)).all()
                # the empty product is 1; functions are not called for it
                out = out.index_fill(0, torch.tensor([1]), 0)
            weights = torch.linspace(1, 2, out.numel(), dtype=out.dtype).view(out.shape)
            grads = torch.autograd.grad(
                (out * weights).sum(), leaves, allow_unused=True, materialize_grads=True
            )
            results.append((out.detach(), *grads))
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])


def test_reduce_functions_run_once_per_degree_and_never_for_none():
    batch = make_batch()
    seen = []

    def reduce(nodes):
        mail = nodes.mailbox["m"]
        seen.append((mail.shape[1], nodes.nodes().tolist(), len(nodes)))
        assert torch.equal(nodes.data["old"], batch.layers[1].data["old"][nodes.nodes()])
        return {"out": mail.sum(1), "degree": torch.full((len(nodes),), mail.shape[1])}

    batch.flow_compute(0, COPY, reduce)
    assert seen == [(1, [3], 1), (3, [0, 2], 2)]
    assert batch.layers[1].data["degree"].tolist() == [3, 0, 3, 1]
    seen.clear()
    make_batch().flow_compute(0, COPY, reduce, v=[3, 1, 2])  # local ids of the destinations chosen
    assert seen == [(1, [3], 1), (3, [2], 1)]


@pytest.mark.parametrize(
    "message", [COPY, lambda edges: {"m": edges.src["h"]}, lambda edges: {"m": edges.data["h"]}]
)
def test_a_flow_without_edges_calls_reduce_with_no_nodes(message):
    batch = create_node_flow([flow_from_edges([], [], num_src=2, num_dst=3)])
    batch.layers[0].data["h"] = torch.ones(2, 4)
    batch.layers[1].data["k"] = torch.ones(3, 2)
    batch.flows[0].data["h"] = torch.ones(0, 4)
    seen = []

    def reduce(nodes):
        seen.append((len(nodes), *map(tuple, (nodes.mailbox["m"].shape, nodes.data["k"].shape))))
        return {"out": nodes.mailbox["m"].mean(1), "both": nodes.data["k"]}

    batch.flow_compute(0, message, reduce)
    assert seen == [(0, (0, 1, 4), (0, 2))]
    assert torch.equal(batch.layers[1].data["out"], torch.zeros(3, 4))
    assert torch.equal(batch.layers[1].data["both"], torch.zeros(3, 2))


def test_messages_see_the_ends_of_their_edges():
    batch = make_batch()

    def message(edges):
        src, dst = edges.edges()
        assert len(edges) == 7
        assert torch.equal(edges.src["h"], batch.layers[0].data["h"][src])
        assert torch.equal(edges.dst["old"], batch.layers[1].data["old"][dst])
        assert (src.tolist(), dst.tolist()) == (SRC, DST)
        return {"m": edges.data["w"]}

    batch.flow_compute(0, message, fn.sum("m", "out"))


def test_update_sees_reduced_columns_over_stored_ones():
    batch = make_batch()
    batch.layers[1].data["out"] = torch.full((4, 3), 99.0, dtype=torch.float64)
    layer = nn.Linear(6, 2, dtype=torch.float64)

    class Update(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, nodes):
            assert set(nodes.data) == {"old", "out"}
            assert nodes.nodes().tolist() == [0, 1, 2, 3]
            return {"z": self.layer(torch.cat([nodes.data["old"], nodes.data["out"]], 1))}

    batch.flow_compute(0, COPY, fn.sum("m", "out"), Update())
    data = batch.layers[1].data
    expected = torch.zeros(4, 3, dtype=torch.float64).index_add(
        0, torch.tensor(DST), batch.layers[0].data["h"][SRC]
    )
    torch.testing.assert_close(data["out"], expected)
    torch.testing.assert_close(data["z"], layer(torch.cat([data["old"], expected], 1)))
    data["z"].sum().backward()
    assert layer.weight.grad is not None


def test_several_messages_and_reducers_in_one_call():
    batch = make_batch()
    batch.flow_compute(
        0,
        [fn.copy_u("h", "a"), lambda e: {"b": e.data["w"], "c": e.data["w"] + 1}],
        [
            fn.max("a", "x"),
            fn.sum("b", "y"),
            lambda n: {"z": n.mailbox["a"].sum(1) + n.mailbox["c"].sum(1)[:, None]},
        ],
    )
    other = make_batch()
    other.flow_compute(0, COPY, fn.max("m", "x"))
    other.flow_compute(0, fn.copy_e("w", "m"), fn.sum("m", "y"))
    data = batch.layers[1].data
    assert torch.equal(data["x"], other.layers[1].data["x"])
    assert torch.equal(data["y"], other.layers[1].data["y"])
    assert set(data) == {"old", "x", "y", "z"}


def test_only_the_destinations_given_are_written():
    batch = make_batch()
    whole = make_batch()
    whole.flow_compute(0, COPY, fn.sum("m", "old"), lambda n: {"new": n.data["old"] * 2})
    old = batch.layers[1].data["old"].requires_grad_()
    kept = old.detach().clone()
    seen = []

    def update(nodes):
        seen.append(nodes.nodes().tolist())
        return {"new": nodes.data["old"] * 2}

    batch.flow_compute(0, COPY, fn.sum("m", "old"), update, v=torch.tensor([3, 0]))
    data = batch.layers[1].data
    expected = whole.layers[1].data["old"]
    assert seen == [[3, 0]]
    torch.testing.assert_close(
        data["old"], torch.stack([expected[0], kept[1], kept[2], expected[3]])
    )
    torch.testing.assert_close(data["new"][[0, 3]], 2 * expected[[0, 3]])
    assert (data["new"][[1, 2]] == 0).all()
    assert torch.equal(old, kept)  # the column stored before is not written into
    data["old"].sum().backward()
    assert old.grad[:, 0].tolist() == [0, 1, 1, 0]


def test_no_destinations_or_no_edges_given_changes_nothing():
    batch = make_batch()
    old = batch.layers[1].data["old"]
    batch.flow_compute(0, COPY, fn.sum("m", "old"), v=[])
    batch.flow_send_and_recv(0, [], COPY, fn.sum("m", "old"))
    batch.flow_send_and_recv(
        0, [], lambda e: {"m": e.src["h"]}, lambda n: {"old": n.mailbox["m"].sum(1)}
    )
    assert torch.equal(batch.layers[1].data["old"], old)


@pytest.mark.parametrize("edges", [[5, 1, 3, 0], [6], [2, 1, 0]])
@pytest.mark.parametrize("built_in", [True, False])
def test_send_and_recv_sends_on_the_edges_given(edges, built_in):
    batch = make_batch()
    h = batch.layers[0].data["h"]
    w = batch.flows[0].data["w"]
    old = batch.layers[1].data["old"]
    scale = torch.arange(1.0, len(edges) + 1, dtype=torch.float64)  # by position in the list given
    expected = old.clone()
    for v in {DST[e] for e in edges}:
        rows = [
            h[SRC[e]] * w[e] * (1 if built_in else scale[k])
            for k, e in enumerate(edges)
            if DST[e] == v
        ]
        expected[v] = torch.stack(rows).mean(0)

    def message(e):
        assert (e.edges()[0].tolist(), e.edges()[1].tolist()) == (
            [SRC[k] for k in edges],
            [DST[k] for k in edges],
        )
        return {
            "m": e.src["h"] * e.data["w"][:, None] * scale[:, None] * torch.ones_like(e.dst["old"])
        }

    seen = []

    def update(nodes):
        seen.extend(nodes.nodes().tolist())
        return {}

    batch.flow_send_and_recv(
        0, edges, fn.u_mul_e("h", "w", "m") if built_in else message, fn.mean("m", "old"), update
    )
    torch.testing.assert_close(batch.layers[1].data["old"], expected)
    assert seen == sorted({DST[e] for e in edges})


def test_send_and_recv_on_all_edges_leaves_nodes_without_edges():
    batch = make_batch()
    kept = batch.layers[1].data["old"][1].clone()
    batch.flow_send_and_recv(0, ALL, COPY, fn.sum("m", "old"))
    whole = make_batch()
    whole.flow_compute(0, COPY, fn.sum("m", "old"))
    assert torch.equal(batch.layers[1].data["old"][1], kept)
    assert torch.equal(
        batch.layers[1].data["old"][[0, 2, 3]], whole.layers[1].data["old"][[0, 2, 3]]
    )


def test_flows_that_skip_layers():
    batch = make_batch()
    batch.flow_compute((0, 2), COPY, fn.sum("m", "s"))
    h = batch.layers[0].data["h"]
    torch.testing.assert_close(batch.layers[2].data["s"], torch.stack([h[3], h[2] + h[1]]))
    batch.flow_compute((0, 1), COPY, fn.sum("m", "s"))
    assert "s" in batch.layers[1].data
    batch.apply_flows((0, 2), COPY)
    assert batch.flows[0, 2].data["m"].shape == (3, 3)
    with pytest.raises(IndexError, match="there is no flow from layer 1 to layer 0"):
        batch.flow_compute((1, 0), COPY, fn.sum("m", "s"))


def test_apply_layers():
    batch = make_batch()
    batch.apply_layers(-3, lambda n: {"twice": n.data["h"] * 2})
    assert torch.equal(batch.layers[0].data["twice"], batch.layers[0].data["h"] * 2)
    batch.apply_layers(ALL, lambda n: {"id": n.nodes()})
    assert [frame["id"].tolist() for frame in batch.ldata] == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1]]
    batch.apply_layers(slice(1, None), lambda n: {"id": n.nodes() + 10}, v=[1])
    assert [frame["id"].tolist() for frame in batch.ldata] == [[0, 1, 2, 3], [0, 11, 2, 3], [0, 11]]
    batch.apply_layers(0, lambda n: {"new": n.data["h"]}, v=[2])
    assert batch.layers[0].data["new"].abs().sum(1).bool().tolist() == [False, False, True, False]
    with pytest.raises(AttributeError, match=r"only reduce functions have nodes\.mailbox"):
        batch.apply_layers(0, lambda n: {"x": n.mailbox["m"]})


def test_apply_flows():
    batch = make_batch()
    h = batch.layers[0].data["h"]
    old = batch.layers[1].data["old"]
    w = batch.flows[0].data["w"]
    batch.apply_flows(0, fn.u_add_v("h", "old", "s"))
    torch.testing.assert_close(batch.flows[0].data["s"], h[SRC] + old[DST])
    batch.apply_flows(0, lambda e: {"s": e.src["h"], "k": torch.tensor([30, 10])}, edges=[3, 1])
    torch.testing.assert_close(
        batch.flows[0].data["s"][[0, 1, 3]], torch.stack([h[0] + old[0], h[1], h[2]])
    )
    assert batch.flows[0].data["k"].tolist() == [0, 10, 0, 30, 0, 0, 0]
    batch.apply_flows(0, fn.copy_e("w", "c"), edges=[6, 2])
    assert torch.equal(
        batch.flows[0].data["c"], torch.where(torch.tensor([0, 0, 1, 0, 0, 0, 1]).bool(), w, 0)
    )
    batch.apply_flows(ALL, lambda e: {"n": torch.ones(len(e))})
    assert "n" in batch.flows[1].data
    assert "n" not in batch.flows[0, 2].data
    batch.apply_flows(slice(1, 2), lambda e: {"only": torch.ones(len(e))})
    assert "only" not in batch.flows[0].data


def test_forward_runs_flows_in_order():
    batch = make_batch()
    by_hand = make_batch()
    batch.forward(COPY, fn.mean("m", "h"), lambda n: {"h": n.data["h"] + 1})
    for i in range(2):
        by_hand.flow_compute(i, COPY, fn.mean("m", "h"), lambda n: {"h": n.data["h"] + 1})
    assert torch.equal(batch.layers[2].data["h"], by_hand.layers[2].data["h"])

    batch = make_batch()
    batch.forward(
        [COPY, fn.copy_u("x", "m")],
        [fn.mean("m", "x"), fn.max("m", "y")],
        [None, lambda n: {"z": n.data["y"]}],
    )
    assert set(batch.layers[1].data) == {"old", "x"}
    assert set(batch.layers[2].data) == {"y", "z"}
    batch.forward(fn.copy_u("x", "m"), fn.sum("m", "only"), flows=slice(1, None))
    batch.forward(fn.copy_u("x", "m"), fn.sum("m", "last"), flows=-1)
    assert {"only", "last"} <= set(batch.layers[2].data)
    assert "only" not in batch.layers[1].data
    with pytest.raises(ValueError, match="message has 3 functions, but 2 flows are run"):
        batch.forward([COPY] * 3, fn.mean("m", "h"))


def test_registered_computations_run_in_layer_order():
    batch = make_batch()
    with pytest.raises(ValueError, match="no layer has a computation"):
        batch.compute()
    batch.register_layer_computation(-1, COPY, fn.sum("m", "wrong"))
    batch.register_layer_computation(2, COPY, SUM, lambda n: {"h": -n.data["h"]})
    batch.register_layer_computation(0, update=lambda n: {"h": n.data["h"] * 0 + 1})
    batch.register_layer_computation(1, COPY, SUM)
    batch.compute()
    assert batch.layers[1].data["h"][:, 0].tolist() == [3, 0, 3, 1]
    assert batch.layers[2].data["h"][:, 0].tolist() == [-4, -4]
    assert "wrong" not in batch.layers[2].data
    other = make_batch()
    other.register_layer_computation(1, update=lambda n: {"old": n.data["old"] * 0})
    other.compute()
    assert (other.layers[1].data["old"] == 0).all()


def test_sparse_columns():
    batch = make_batch()
    batch.layers[0].data["x"] = scipy.sparse.eye(4, 5, format="csr")
    with pytest.raises(TypeError, match=r"column 'x' of layer 0 is a sparse matrix.*sparse_linear"):
        batch.flow_compute(0, fn.copy_u("x", "m"), fn.sum("m", "out"))
    batch.flow_compute(0, lambda e: {"m": e.src["x"].to_dense()}, fn.sum("m", "out"))
    expected = torch.zeros(4, 4, dtype=torch.float64)
    for src, dst in zip(SRC, DST, strict=True):
        expected[dst, src] += 1
    assert torch.equal(batch.layers[1].data["out"][:, :4], expected)


def test_batches_of_rows_describe_themselves():
    batch = make_batch()
    seen = []

    def message(edges):
        edges.src["h"]
        seen.append(repr(edges))
        return {"m": edges.src["h"]}

    batch.flow_compute(0, message, fn.sum("m", "out"), lambda n: seen.append(repr(n)) or {})
    assert seen == [
        "EdgeBatch(7 edges; src from layer 0: h float64 [7, 3]; dst from layer 1: old; data from "
        "flow 0->1: w)",
        "NodeBatch(4 nodes; data from layer 1: old, out float64 [4, 3])",
    ]


def test_edge_ids_of_a_flow():
    batch = create_full_node_flow(Graph.from_edges([0, 1, 2], [1, 2, 1]), 1)
    batch.apply_flows(0, lambda edges: {"id": edges.edge_ids()}, edges=[2, 0])
    assert batch.fdata[0]["id"].tolist() == [0, 0, 2]
    batch.flow_compute(0, lambda edges: {"m": edges.edge_ids()}, fn.max("m", "last"))
    assert batch.ldata[1]["last"].tolist() == [0, 1, 2]


def test_functions_may_ask_which_columns_there_are():
    graph = Graph.from_edges([0, 1], [1, 0], ndata={"x": torch.ones(2), "y": torch.ones(2)})
    batch = create_full_node_flow(graph, 1)
    batch.copy_from_parent({0: ["x", "y"]})
    seen: list[object] = []

    def message(edges):
        seen.append((len(edges.src), [*edges.src]))
        return {"m": edges.src["x"]}

    batch.flow_compute(0, message, fn.sum("m", "s"))
    assert seen == [(2, ["x", "y"])]


def test_functions_may_return_any_table_of_columns():
    batch = make_batch()
    batch.flow_compute(0, lambda e: MappingProxyType({"m": e.src["h"]}), fn.sum("m", "table"))
    batch.flow_compute(0, fn.copy_u("h", "m"), fn.sum("m", "built in"))
    assert batch.ldata[1]["table"].equal(batch.ldata[1]["built in"])
