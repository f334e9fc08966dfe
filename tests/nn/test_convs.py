"""Every convolution against its equations, by dense matrices or edge by edge; what all share; half
precision.
"""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from _support.edge_reference import (
    CONVS,
    EVERY,
    SPARSE,
    hub_flow,
    make,
    reference,
    small_flow,
    with_columns,
)
from _support.effort import examples
from _support.nn_reference import (
    CONVS as DENSE,
    KINDS,
    LINEAR,
    OWN,
    as_csr,
    assert_near,
    dense_conv,
    flows,
    gradients,
    make_conv,
    values,
)
from hypothesis import given, strategies as st
from torch import nn

from nodeflow import (
    Flow,
    FullSampler,
    Graph,
    NeighborSampler,
    create_full_node_flow,
    create_node_flow,
    flow_from_edges,
)
from nodeflow.nn import (
    EdgeConv,
    GATConv,
    GATv2Conv,
    GINConv,
    GINEConv,
    GraphConv,
    RGCNConv,
    SAGEConv,
)
from nodeflow.testing import graphs

WIDTHS = [(2, 3), (3, 2), (1, 1)]
few = examples(8)  # of every one of many convolutions
pytestmark = pytest.mark.usefixtures("one_thread")


def check(name: str, flow: Flow, widths: tuple[int, int]) -> None:
    conv = make(name, *widths)
    h = values((flow.num_src, widths[0])).requires_grad_()
    found = conv(flow, h)
    expected = dense_conv(name, conv, flow, h) if name in KINDS else reference(conv, flow, h)
    assert_near(found, expected)
    inputs = (h, *conv.parameters()) if flow.num_dst else tuple(conv.parameters())
    # that a parameter plays no part, such as the score's of a node with one edge, only the
    # reference knows
    weighted = (expected * values(tuple(expected.shape), 99)).sum()
    wanted = torch.autograd.grad(weighted, inputs, allow_unused=True, materialize_grads=True)
    for one, other in zip(gradients(found, *inputs), wanted, strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("name", EVERY)
@few
@given(flow=flows(), widths=st.sampled_from(WIDTHS))
def test_values_and_gradients_are_those_of_the_equations(name, flow, widths):
    check(name, with_columns(flow), widths)


@pytest.mark.parametrize("name", EVERY)
def test_a_hub_and_a_single_node(name):
    check(name, hub_flow(), (3, 2))
    lonely = create_node_flow([flow_from_edges([], [], num_src=1, num_dst=1)], [[4], [4]]).flows[0]
    check(name, with_columns(lonely), (3, 2))


@pytest.mark.parametrize("name", SPARSE)
@few
@given(flow=flows(), widths=st.sampled_from(WIDTHS))
def test_sparse_rows_equal_dense_rows(name, flow, widths):
    conv = make(name, *widths)
    flow = with_columns(flow)
    h = values((flow.num_src, widths[0]), zeros=0.6)
    outs = conv(flow, as_csr(h)), conv(flow, h)
    assert_near(*outs)
    for one, other in zip(*(gradients(out, *conv.parameters()) for out in outs), strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("widths", [(2, 3), (3, 2)])
def test_gradients_are_numerical_ones(name, widths):
    conv = make(name, *widths)
    flow = small_flow()
    names = [name for name, _ in conv.named_parameters()]
    h = values((4, widths[0]), 5).requires_grad_()

    def call(h: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(
            conv, dict(zip(names, parameters, strict=True)), (flow, h)
        )

    parameters = [parameter.detach().clone().requires_grad_() for parameter in conv.parameters()]
    assert torch.autograd.gradcheck(call, (h, *parameters))
    assert torch.autograd.gradgradcheck(call, (h, *parameters), fast_mode=True)


@pytest.mark.parametrize("name", CONVS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_numbers_are_summed_in_wide_ones(name, dtype):
    flow = hub_flow(2000)
    # a mean that does not cancel
    conv = make(name, 4, 4).to(dtype)
    h = (values((20, 4)) + 1).to(dtype)
    flow.data["feat"] = flow.data["feat"].to(dtype)
    found = conv(flow, h)
    assert found.dtype == dtype
    flow.data["feat"] = flow.data["feat"].float()
    expected = conv.float()(flow, h.float())
    size = expected.abs().amax().item()
    torch.testing.assert_close(
        found.float(), expected, rtol=0, atol=size * 16 * torch.finfo(dtype).eps
    )


@pytest.mark.parametrize("name", EVERY)
@few
@given(graph=graphs(min_nodes=1, edge_columns={"feat": (2,)}), seed=st.integers(0, 9))
def test_batches_with_all_neighbours_equal_the_whole_graph(name, graph, seed):
    graph.edata["type"] = torch.randint(
        3, (graph.num_edges,), generator=torch.Generator().manual_seed(seed)
    )
    conv = make(name, 2, 3)
    h = values((graph.num_nodes, 2), seed)
    outs = []
    for batch in (
        create_full_node_flow(graph, 1),
        FullSampler(graph, 1)(range(graph.num_nodes - 1, -1, -1)),
    ):
        batch.copy_from_parent(None, {0: ["feat", "type"]})
        batch.fdata[0]["feat"] = batch.fdata[0]["feat"].double()
        outs.append(conv(batch, 0, h[batch.front.parent_nid]))
    assert_near(outs[0], outs[1].flip(0))


@pytest.mark.parametrize("name", CONVS)
def test_rows_of_edges_may_be_given(name):
    flow = small_flow()
    bare = small_flow()
    conv = make(name, 2, 3)
    h = values((4, 2))
    if name in ("gat", "gat mean", "gat2", "gat2 mean", "edge"):  # read no rows of edges
        bare.data.clear()
        assert_near(conv(bare, h), conv(flow, h))
        return
    column = "type" if name.startswith("rgcn") else "feat"
    rows = bare.data.pop(column)
    assert_near(conv(bare, h, rows), conv(flow, h))
    with pytest.raises(KeyError, match=f"no column '{column}'"):
        conv(bare, h)
    with pytest.raises(ValueError, match="must have 4 rows, one per edge"):
        conv(flow, h, rows[1:])


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("widths", [(2, 8), (8, 1)])
def test_batches_without_destinations_are_refused_with_what_to_do(name, widths):
    batch = NeighborSampler(Graph.from_edges([0, 1], [1, 2]), [-1], include_dst=False)([2])
    conv = make(name, *widths)
    flow = with_columns(batch.flows[0])
    h = values((batch.layer_sizes[0], widths[0]))
    reads_own = name in OWN or (name in CONVS and not name.startswith("rgcn bare"))
    for rows in (h, as_csr(h)) if name in SPARSE else (h,):
        if not reads_own:
            assert conv(flow, rows).shape == (1, widths[1])
            continue
        with pytest.raises(ValueError, match=r"not in its source layer.*include_dst=True"):
            conv(flow, rows)


@pytest.mark.parametrize("name", EVERY)
def test_rows_that_do_not_fit_the_flow_are_refused(name):
    with pytest.raises(ValueError, match="4 rows"):
        make(name, 2, 3)(small_flow(), values((5, 2)))


@pytest.mark.parametrize("name", EVERY)
def test_start_values_depend_on_the_seed_only(name):
    parameters = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        conv = CONVS[name](4, 6) if name in CONVS else DENSE[name][0](4, 6, True)
        parameters.append(list(conv.parameters()))
    assert all(map(torch.equal, parameters[0], parameters[1]))
    assert not any(
        torch.equal(a, b) for a, b in zip(parameters[0], parameters[2], strict=True) if a.ndim > 1
    )


@pytest.mark.parametrize("name", EVERY)
def test_convolutions_are_copied_and_pickled(name):
    conv = make(name, 3, 2)
    h = values((4, 3))
    for other in (copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert torch.equal(other(small_flow(), h), conv(small_flow(), h))


@pytest.mark.parametrize("kind", [GATConv, GATv2Conv])
def test_large_scores_do_not_overflow(kind):
    conv = kind(2, 2).double()
    flow = small_flow()
    h = values((4, 2)) * 1e6
    for x in (h, -h):
        assert torch.isfinite(conv(flow, x)).all()
        assert_near(conv(flow, x) / 1e6, reference(conv, flow, x) / 1e6)


@pytest.mark.parametrize("kind", [GATConv, GATv2Conv])
@pytest.mark.parametrize("self_loops", [True, False])
def test_dropout_of_attention_keeps_its_mean(kind, self_loops):
    torch.manual_seed(0)
    copies = 4000
    one = small_flow()
    rows = values((4, 2))
    shift = torch.arange(copies)[:, None]
    src, dst = (
        (end + size * shift).flatten() for end, size in zip(one.edges(), (4, 3), strict=True)
    )
    flow = flow_from_edges(src, dst, num_src=4 * copies, num_dst=3 * copies)
    names = [(10 * shift + layer.parent_nid).flatten() for layer in (one.src_layer, one.dst_layer)]
    flow = create_node_flow([flow], names).flows[0]
    h = rows.repeat(copies, 1)
    conv = kind(2, 2, attention_dropout=0.5, self_loops=self_loops).double()
    mean = conv(flow, h).view(copies, 3, 2).mean(0)
    assert not torch.equal(conv(flow, h), conv(flow, h))
    torch.testing.assert_close(mean, conv.eval()(one, rows), rtol=0, atol=0.1)
    assert torch.equal(conv(flow, h), conv(flow, h))


def test_types_may_be_of_a_narrow_type():
    conv = RGCNConv(2, 3, 3)
    flow = small_flow()
    h = torch.ones(4, 2)
    narrow = torch.tensor([0, 1, 2, 2], dtype=torch.uint8)
    assert torch.equal(conv(flow, h, narrow), conv(flow, h, narrow.long()))


def test_columns_have_the_name_that_was_chosen():
    flow = small_flow()
    h = torch.ones(4, 2)
    flow.data["kind"], flow.data["text"] = flow.data.pop("type"), flow.data.pop("feat").float()
    RGCNConv(2, 3, 3, edge_type="kind")(flow, h)
    GATConv(2, 3, edge_features=2, edge_column="text")(flow, h)
    EdgeConv(torch.nn.Linear(6, 3), edge_column="text")(flow, h)
    GINEConv(torch.nn.Identity(), 2, edge_column="text")(flow, h)


# ---- sums, means and maxima


@pytest.mark.parametrize(("kind", "name"), [("sage", "own"), ("sage pool", "own"), ("sage gcn", "neigh"),
                                            ("gcn", "linear"), ("gcn none", "linear")])  # fmt: skip
def test_a_node_without_neighbours_keeps_its_own_row(kind, name):
    flow = create_node_flow([flow_from_edges([], [], num_src=2, num_dst=1)], [[4, 9], [9]]).flows[0]
    conv = make_conv(kind, 3, 2, bias=False)
    h = values((2, 3))
    assert_near(conv(flow, h), h[1:] @ conv.get_submodule(name).weight.T)


@pytest.mark.parametrize(("aggregator", "fan_in"), [("mean", 16), ("gcn", 8), ("pool", 16)])
def test_start_values_of_sage_are_bounded_as_those_of_the_one_matrix(aggregator, fan_in):
    torch.manual_seed(0)
    conv = SAGEConv(8, 500, aggregator=aggregator)
    for name, parameter in conv.named_parameters():
        bound = (8 if name.startswith("pool") else fan_in) ** -0.5
        assert 0.8 * bound < parameter.abs().max() <= bound
    names = [
        name for name, _ in SAGEConv(2, 2, aggregator=aggregator, bias=False).named_parameters()
    ]
    rest = {"mean": ["own.weight"], "gcn": [], "pool": ["own.weight", "pool.weight", "pool.bias"]}
    assert names == ["neigh.weight", *rest[aggregator]]


def test_start_values_of_gcn_are_glorot_ones():
    torch.manual_seed(0)
    conv = GraphConv(8, 500)
    bound = (6 / 508) ** 0.5
    assert 0.9 * bound < conv.linear.weight.abs().max() <= bound
    assert not conv.linear.bias.any()
    assert [name for name, _ in GraphConv(2, 2, bias=False).named_parameters()] == ["linear.weight"]


def test_eps_is_learned_when_asked_for():
    assert not list(GINConv(nn.Identity(), eps=0.25).parameters())
    assert GINConv(nn.Identity(), eps=0.25).state_dict()["eps"] == 0.25
    conv = GINConv(nn.Identity(), eps=0.25, train_eps=True)
    conv(small_flow(), torch.ones(4, 2)).sum().backward()
    assert conv.eps.grad == 6  # a 1 for each of two columns of three destinations


# ---- half precision and autocast: results near those of float32, long sums right


@pytest.mark.parametrize(
    ("kind", "order"),
    [(kind, "aggregate") for kind in EVERY] + [(kind, "transform") for kind in LINEAR],
)
def test_autocast(kind, order):
    conv = make(kind, 5, 3).float()
    flow = small_flow()
    flow.data["feat"] = flow.data["feat"].float()
    if kind in LINEAR:
        conv.order = order
    h = values((4, 5)).float().requires_grad_()
    expected = conv(flow, h)
    wanted = torch.autograd.grad(expected.sum(), [h, *conv.parameters()])
    with torch.autocast("cpu", torch.bfloat16):
        found = conv(flow, h)
        loss = found.float().sum()
    got = torch.autograd.grad(loss, [h, *conv.parameters()])
    assert not torch.equal(found.float(), expected)  # products in bfloat16
    for a, b in zip([found, *got], [expected, *wanted], strict=True):
        assert torch.isfinite(a).all()
        # much cancels in gradients of attention and of numbers
        if a.ndim and (a is found or kind in KINDS):
            assert (a.float() - b).abs().max() <= 0.1 * b.abs().max()
    assert [a.dtype for a in got] == [torch.float32] * len(got)
