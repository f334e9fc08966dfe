"""Histories over a graph that lies on several ranks: those of one process, by commits that all make
or none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from _support.history_parts import (
    OWNER,
    OWNERS,
    SPARSE,
    THREE,
    TWO,
    WHOLE,
    X,
    everything,
    filled,
    history_of,
)
from _support.ranks import Parts, ThreadTransport, run_ranks
from _support.sampler_families import NODES, fingerprint
from _support.views import viewed
from torch import Tensor

from nodeflow import ControlVariateSampler, Graph, History, NeighborSampler, NodeFlowLoader, Updater
from nodeflow.distributed import PeerError
from nodeflow.nn import VRGCN, VRModel
from nodeflow.sampling import Call

SEEDS = [(7 * v) % NODES for v in range(41)]
LABELS = torch.arange(NODES) % 3
close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)


def trained(graph: Graph, add: Callable[[list[Tensor]], None], **options: Any) -> tuple[Any, ...]:
    """Train for two epochs; return the history, the model, the loss of every step, and fingerprints
    of batches.
    """
    torch.random.manual_seed(0)
    model: VRModel = options["model"]
    history = history_of(
        graph, model.history_widths, inputs=graph.ndata["h"], edge_filter=options["edge_filter"]
    )
    Updater(model, history, graph.ndata["h"]).step()
    sampler = ControlVariateSampler(history, [0, 1, 2])
    loader = NodeFlowLoader(
        sampler, SEEDS, options["batch_size"], shuffle=True, num_workers=options.get("workers", 0)
    )
    losses = []
    seen = []
    for _ in range(2):
        for batch in loader:
            loss = (
                torch.nn.functional.cross_entropy(
                    model(batch), LABELS[batch.seeds], reduction="sum"
                )
                / 12
            )
            model.zero_grad()
            loss.backward()
            grads = [one.grad for one in model.parameters() if one.grad is not None]
            told = loss.detach().clone()
            add([told, *grads])
            with torch.no_grad():
                for one in model.parameters():
                    one -= 0.3 * one.grad
            history.push(batch)
            history.commit()
            losses.append(told)
            seen.append(
                {
                    i: dict(layer.data) | {"nodes": layer.parent_nid}
                    for i, layer in enumerate(batch.layers)
                }
            )
    return history, model, torch.stack(losses), seen


@pytest.mark.parametrize(
    "size", [1, 3, pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("edge_filter", [None, "old"])
def test_training_is_that_of_one_process(size, edge_filter):
    torch.manual_seed(0)
    model = VRGCN(4, 5, 3, num_layers=3).double()
    parts = Parts(WHOLE, OWNERS[size], size)
    before = copy.deepcopy(model)
    options = {"edge_filter": edge_filter}
    history, last, losses, batches = trained(
        WHOLE, lambda _: None, model=model, batch_size=12, **options
    )

    def on_a_rank(graph: Graph, rank: int) -> None:
        def add(tensors: list[Tensor]) -> None:
            told = graph.peers.gather("gradients", [tensor.numpy() for tensor in tensors])
            for k, tensor in enumerate(tensors):
                tensor.copy_(sum(torch.from_numpy(arrays[k]) for arrays in told))

        own, found, summed, seen = trained(
            graph,
            add,
            model=copy.deepcopy(before),
            batch_size=12 // size,
            workers=int(size == 3),
            **options,
        )
        close(summed, losses)
        close(list(found.parameters()), list(last.parameters()))
        assert int(own.step) == int(history.step) == len(losses) + 1
        for i in own.widths:
            close(getattr(own, f"h_{i}"), getattr(history, f"h_{i}")[graph.masters])
            assert torch.equal(own.age(i), history.age(i)[graph.masters])
            nodes = [[5, 5, 0], [], list(range(NODES))][rank % 3]
            close(own.rows(i, nodes), history.rows(i, nodes))
            assert torch.equal(own.age(i, nodes), history.age(i, nodes))
            close(own.aggregated_rows(i, nodes), history.aggregated_rows(i, nodes))
        # the columns of a share are those of the union
        for share, union in zip(seen, batches, strict=True):
            for i, columns in share.items():
                place = {int(v): k for k, v in enumerate(union[i]["nodes"])}
                at = torch.tensor([place[int(v)] for v in columns["nodes"]], dtype=torch.int64)
                assert set(columns) == set(union[i])
                for name, column in columns.items():
                    close(column, union[i][name][at])

    parts.run(on_a_rank)


@pytest.mark.parametrize("stored", [False, True])
def test_a_pass_of_the_updater_is_that_of_one_process(stored):
    torch.manual_seed(0)
    model = VRGCN(4, 5, 3, num_layers=3).double()
    options: dict[str, Any] = {"aggregated": "stored" if stored else "on demand"}
    whole = history_of(WHOLE, model.history_widths, **options)
    Updater(model, whole, X, chunk_size=7).step()
    outputs = model.inference(whole.propagation, X)
    expected = fingerprint(ControlVariateSampler(whole, [2, 2, 2]).draw_batch([4, 5], Call()))

    def passed(graph: Graph, rank: int) -> None:
        own_model = copy.deepcopy(model)
        history = history_of(graph, model.history_widths, **options)
        assert Updater(own_model, history, graph.ndata["h"], chunk_size=7).step()
        sampler = ControlVariateSampler(history, [2, 2, 2])
        assert fingerprint(sampler.draw_batch([4, 5], Call())) == expected
        nodes = np.arange(rank * 20)
        for i in history.widths:
            close(history.rows(i, nodes), whole.rows(i, nodes))
            close(history.aggregated_rows(i, nodes), whole.aggregated_rows(i, nodes))
        close(own_model.inference(history.propagation, X), outputs[graph.masters])
        before = {name: buffer.clone() for name, buffer in history.named_buffers()}
        wrong = VRGCN(4, 5, 3, num_layers=3).double()
        if rank == 0:
            with torch.no_grad():
                wrong.convs[0].linear.weight[0, 0] = torch.nan
        with pytest.raises(
            (ValueError, PeerError),
            match=r"the model's rows of layer 1 are not finite|rank \d failed",
        ):
            Updater(wrong, history, X).run()
        for name, buffer in history.named_buffers():
            assert torch.equal(buffer, before[name]), name

    THREE.run(passed)


@THREE.on_every_rank
def test_rows_of_a_node_that_several_ranks_push_are_those_of_the_first(graph, rank):
    history = history_of(graph, {1: 2, 0: 1})
    nodes = [[], [0, 5, 9, 1], [9, 5, 7]][rank]
    history.write(1, nodes, torch.full((len(nodes), 2), 1.0 + rank, dtype=torch.float64))
    assert history.rows(1, [9]).tolist() == [[0, 0]]
    history.commit()
    assert history.rows(1, [7, 9, 5, 0, 1, 2])[:, 0].tolist() == [3, 2, 2, 2, 2, 0]
    assert history.age(1, [7, 2]).tolist() == [0, -1]
    assert history.age(0, [7]).tolist() == [-1]
    history.commit()
    assert history.age(1, [7]).tolist() == [1]
    history.clear()
    assert history.rows(1, range(NODES)).count_nonzero() == 0


@THREE.on_every_rank
def test_rows_travel_once_and_only_to_their_owners(graph, rank):
    head = 8 * 2
    history = history_of(graph, {1: 2})
    counters = graph.peers.counters
    history.rows(1, [5, 1, 1, 5, 5])  # 5 is rank 2's, 1 is rank 0's
    asked = [1, 2, 1][rank]
    assert counters.by_kind["rows of layer 1 of the history: questions"] == asked * (head + 8)
    assert counters.by_kind["rows of layer 1 of the history: answers"] == [2, 0, 2][rank] * (
        head + 8 + 16
    )
    history.write(1, [5, 1], torch.ones(2, 2, dtype=torch.float64))
    history.commit()
    sent = counters.by_kind["rows that were pushed"]
    words = 8 * (2 + 2 + 3) + 8  # what the arrays are, and the step, for each of two others
    assert sent == 2 * words + asked * (8 + 16)


# ---- failures


def test_states_are_those_of_a_rank():
    def loaded(transport: ThreadTransport) -> None:
        graph = TWO.on(transport)
        history = filled(graph)
        again = history_of(graph, {1: 2, 0: 1})
        state = copy.deepcopy(history.state_dict())
        again.load_state_dict(state)
        assert everything(again) == everything(history)
        empty = history_of(graph, {1: 2, 0: 1}).state_dict()
        again.load_state_dict(state if transport.rank == 0 else empty)
        with pytest.raises(
            ValueError, match=r"are of different commits: numbers \[1, 0\], by rank"
        ):
            again.commit()
        other = Parts(WHOLE, OWNERS[2][::-1], 2).on(transport)
        with pytest.raises(ValueError, match="the state is of another history: its graph"):
            history_of(other, {1: 2, 0: 1}).load_state_dict(state)

    run_ranks(2, loaded)


def test_mistakes():
    out = Parts(WHOLE, OWNER, 3, "out")

    def mistaken(transport: ThreadTransport) -> None:
        graph = THREE.on(transport)
        rank = transport.rank
        with pytest.raises(
            ValueError,
            match=r"arguments of History must be the same .* widths is \{1: 2\} on rank 0",
        ):
            History(graph, {1: 2 + rank // 2})
        others: dict[str, Any] = {
            "dtype": torch.float64,
            "aggregated": "stored",
            "folder": "x",
            "inputs": SPARSE,
        }
        for name, value in others.items():
            with pytest.raises(
                ValueError, match=rf"arguments of History must be the same .*{name} is .* on rank 0"
            ):
                viewed(History, graph, {1: 2}, **{name: value} if rank == 2 else {})
        with pytest.raises(
            (ValueError, PeerError),
            match=r"widths\[1\] must be|rank 1 failed .* widths\[1\] must be",
        ):
            History(graph, {1: int(rank != 1)})
        with pytest.raises(ValueError, match="the out-edges of a node do not lie together"):
            History(graph.view("out"), {1: 2})
        with pytest.raises(ValueError, match="the in-edges of a node do not lie together"):
            History(out.on(transport), {1: 2})
        sums, whole = (History(one, {1: 2}, inputs=SPARSE) for one in (graph, WHOLE))
        batch, other = (NeighborSampler(one, [2, 2])([3, rank]) for one in (graph, WHOLE))
        sums.pull(batch)
        whole.pull(other)
        assert batch.ldata[1]["agg_h_0"].to_dense().allclose(other.ldata[1]["agg_h_0"].to_dense())
        history = history_of(graph, {1: 2})
        with pytest.raises((IndexError, PeerError), match=r"nodes\[0\] is 60|rank 0 failed"):
            history.rows(1, [NODES] if rank == 0 else [])
        history.write(
            1, [v for v in range(NODES) if v != 5], torch.ones(NODES - 1, 2, dtype=torch.float64)
        )
        history.commit()
        sampler = ControlVariateSampler(history, [-1, -1], missing="refuse")
        seed = WHOLE.edges()[1][WHOLE.edges()[0] == 5].tolist()[:1]
        with pytest.raises(
            (ValueError, PeerError),
            match=r"layer 1 of the history has no row yet of node 5|rank 1 f",
        ):
            sampler(seed if rank == 1 else [])
        with pytest.raises(
            (ValueError, PeerError),
            match=r"edge \d+ has 'p' = 0, so it is never drawn|rank \d failed",
        ):
            ControlVariateSampler(history, [2, 2], prob="p")

    run_ranks(3, mistaken)
