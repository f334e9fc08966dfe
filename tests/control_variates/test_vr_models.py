"""Models over sampled flows: equal to the full pass where they must be, and to each other where
nothing is left out.
"""

from __future__ import annotations

import pickle

import pytest
import scipy.sparse
import torch
from _support import graphs
from _support.graphs import sparse_column
from _support.views import viewed

from nodeflow import FullSampler, Graph, NodeFlowLoader, storage, transform
from nodeflow.control_variates import ControlVariateSampler, History
from nodeflow.nn import VRGCN, VRGraphSAGE, VRModel
from nodeflow.propagation import Propagation


def random_graph(seed: int = 0, nodes: int = 40, edges: int = 200) -> Graph:
    graph = transform.add_self_loops(graphs.random_graph(seed, nodes, edges))
    graph.edata["p"] = transform.edge_norm(graph)
    return graph


def inputs(model: VRModel, graph: Graph, x: torch.Tensor, kind: type) -> torch.Tensor:
    if model.embed is None:
        return x
    px = Propagation(graph.view(weight="p"))(x)
    return px if kind is VRGCN else torch.cat([x, px], 1)


@pytest.mark.parametrize("precomputed", [False, True])
@pytest.mark.parametrize("estimator", ["ns", "cv", "cvd"])
@pytest.mark.parametrize("kind", [VRGCN, VRGraphSAGE])
def test_with_all_neighbours_it_is_the_full_pass(kind, estimator, precomputed):
    torch.manual_seed(0)
    graph = random_graph()
    x = torch.randn(40, 5, dtype=torch.float64)
    model = (
        kind(5, 6, 3, num_layers=3, estimator=estimator, dropout=0.5, precomputed=precomputed)
        .double()
        .eval()
    )
    rows = inputs(model, graph, x, kind)
    inputs_of = {} if precomputed or estimator == "ns" else {"inputs": x}
    history = viewed(
        History, graph.view(weight="p"), model.history_widths, dtype=torch.float64, **inputs_of
    )
    for i, width in history.widths.items():
        history.write(i, range(40), torch.randn(40, width))  # any history
    history.commit()
    flows = len(model.convs)
    batch = ControlVariateSampler(history, [-1] * flows)([3, 1, 7])
    out = model(batch, rows[batch.front.parent_nid])
    torch.testing.assert_close(
        out, model.inference(graph.view(weight="p"), rows)[[3, 1, 7]], rtol=1e-6, atol=1e-6
    )
    assert sorted(i for i in range(batch.num_layers) if "h" in batch.ldata[i]) == sorted(
        model.history_widths
    )
    with pytest.raises(ValueError, match="needs batches of"):
        model(FullSampler(graph, flows + 1)([0]), rows)


def test_history_holds_rows_before_dropout_and_dropout_acts():
    torch.manual_seed(0)
    graph = random_graph()
    model = VRGCN(5, 64, 3, num_layers=2, estimator="cvd", dropout=0.5)
    x = torch.randn(40, 5)
    history = History(graph.view(weight="p"), model.history_widths, inputs=x)
    sampler = ControlVariateSampler(history, [-1, 2])
    one = sampler([0, 1])
    two = sampler([0, 1])
    first, second = (model(batch, x[batch.front.parent_nid]) for batch in (one, two))
    assert not torch.equal(first, second)
    assert torch.equal(one.ldata[1]["h"], two.ldata[1]["h"])
    assert not one.ldata[1]["h"].requires_grad
    first.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("precomputed", [False, True])
@pytest.mark.parametrize("kind", [VRGCN, VRGraphSAGE])
def test_a_started_history_is_that_of_the_models_propagation_after_a_full_pass(kind, precomputed):
    torch.manual_seed(0)
    graph = random_graph()
    x = torch.randn(40, 5)
    graph.edata["p"] = transform.edge_norm(graph, "both" if kind is VRGCN else "right")
    model = kind(5, 6, 3, num_layers=3, precomputed=precomputed)
    rows = inputs(model, graph, x, kind)
    history = model.start_history(graph, rows, chunk_size=7)
    expected = model.start_history(graph.view(weight="p"), rows, aggregated="stored")
    assert torch.equal(graph.edata["edge_norm"], graph.edata["p"])
    assert (history.widths, history.has_inputs) == (model.history_widths, not precomputed)
    for i in history.widths:
        assert history.age(i).tolist() == [0] * 40
        torch.testing.assert_close(history.rows(i, range(40)), expected.rows(i, range(40)))
        torch.testing.assert_close(
            history.aggregated_rows(i, range(40)), expected.aggregated_rows(i, range(40))
        )
    batch = ControlVariateSampler(history, [1] * len(model.convs))([3, 1, 7])
    # control variates are exact where the history is the present
    out = model(batch, rows[batch.front.parent_nid])
    torch.testing.assert_close(out, model.inference(history.propagation, rows)[[3, 1, 7]])
    history.commit(batch)
    assert history.age(max(history.widths), [3, 0]).tolist() == [
        0,
        0 if 0 in batch.layers[-2].parent_nid else 1,
    ]


@pytest.mark.parametrize("estimator", ["cv", "cvd"])
def test_rows_of_the_input_layer_that_nothing_reads_may_be_left_out(estimator):
    graph = random_graph()
    x = torch.randn(40, 5)
    for kind, least in ((VRGCN, True), (VRGraphSAGE, False)):
        model = kind(5, 4, 3, num_layers=2, estimator=estimator).eval()
        history = History(graph.view(weight="p"), model.history_widths, inputs=x)
        batch = ControlVariateSampler(history, [2, 2])([3, 1])
        if least:
            assert torch.equal(model(batch), model(batch, x[batch.front.parent_nid]))
        else:
            with pytest.raises(
                TypeError, match="h is missing: this model reads the rows of the input layer"
            ):
                model(batch)
            with pytest.raises(
                TypeError, match="h is missing: this convolution reads a node's own row"
            ):
                model.convs[0].combine(batch.ldata[1]["agg_h_0"], batch.flows[0], None)
    with pytest.raises(TypeError, match="h is missing"):
        VRGCN(5, 4, 3, num_layers=3, precomputed=True)(batch)
    with pytest.raises(TypeError, match="h is missing"):
        VRGCN(5, 4, 3, num_layers=2, estimator="ns")(batch)


def test_mistakes():
    graph = random_graph()
    model = VRGCN(5, 4, 3, num_layers=2)
    x = torch.randn(40, 5)
    batch = FullSampler(graph.view(weight="p"), 2)(range(40))
    with pytest.raises(ValueError, match=r"no column 'agg_h_0'.* make the history with inputs=x"):
        model(batch, x)
    history = History(graph.view(weight="p"), {1: 9}, inputs=x)
    history.pull(batch)
    with pytest.raises(ValueError, match="layer 1 of the history has width 9, but the rows have 4"):
        model(batch, x)
    model.estimator = "ns"
    assert model(batch, x).shape == (40, 3)
    with pytest.raises(
        ValueError, match=r"nothing was drawn in the first flow.* draw neighbours there"
    ):
        model(ControlVariateSampler(history, [0, 1])(range(40)), x)


@pytest.mark.parametrize("aggregated", ["on demand", "stored"])
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_of_inputs_are_exact(aggregated, sparse):
    graph = random_graph()
    x = torch.randn(40, 5).relu()
    rows = sparse_column(scipy.sparse.csr_array(x.numpy())) if sparse else x
    history = History(graph.view(weight="p"), {1: 4}, inputs=rows, aggregated=aggregated)
    batch = ControlVariateSampler(history, [0, 1])([3, 7])
    found = batch.ldata[1]["agg_h_0"]
    expected = Propagation(graph.view(weight="p"))(x)[batch.layers[1].parent_nid]
    torch.testing.assert_close(found.to_dense() if sparse else found, expected)
    assert batch.flow_sizes[0] == 0  # so that no rows of neighbours are fetched either
    assert batch.layers[0].parent_nid.equal(batch.layers[1].parent_nid)
    drawn = ControlVariateSampler(history, [1, 1])([3, 7])
    assert drawn.flow_sizes[0] > 0  # where it is asked for
    assert (
        pickle.loads(pickle.dumps(ControlVariateSampler(history, [0, 1])))([3, 7]).flow_sizes[0]
        == 0
    )
    with pytest.raises(
        ValueError, match=r"fanouts\[0\] may be 0 only where the history has the inputs"
    ):
        ControlVariateSampler(History(graph, {1: 4}), [0, 1])
    with pytest.raises(ValueError, match="0"):
        ControlVariateSampler(history, [1, 0])


def test_after_as_many_epochs_as_layers_outputs_are_exact(shared_data):
    """Chen, Zhu, Song 2018, theorem 1: fixed weights, no dropout, cora, one drawn neighbour."""
    folder = shared_data / "cora"
    adjacency = scipy.sparse.load_npz(folder / "adjacency.npz").tocoo()
    graph = transform.add_self_loops(
        Graph.from_edges(adjacency.row, adjacency.col, num_nodes=adjacency.shape[0])
    )
    graph.edata["p"] = transform.edge_norm(graph)
    x = Propagation(graph.view(weight="p"))(
        sparse_column(scipy.sparse.load_npz(folder / "features.npz"))
    )
    rows = storage.Tiered([x])
    torch.manual_seed(0)
    model = VRGCN(x.shape[1], 16, 7, num_layers=3, precomputed=True)
    exact = model.inference(graph.view(weight="p"), x)
    history = History(graph.view(weight="p"), model.history_widths)
    loader = NodeFlowLoader(
        ControlVariateSampler(history, [1, 1]), range(graph.num_nodes), 500, shuffle=True
    )
    errors = []
    for _ in range(3):
        worst = 0.0
        for batch in loader:
            with torch.no_grad():
                out = model(batch, rows.fetch(batch.front.parent_nid))
            worst = max(worst, float((out - exact[batch.seeds]).abs().max()))
            history.commit(batch)
        errors.append(worst)
    assert errors[0] > 1e-2  # while the history is not there yet
    assert errors[2] < 1e-5 * float(exact.abs().max())
