"""NodeDropout: masks that belong to nodes, layers and steps; their law; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _support.loader_tools import random_graph
from _support.sampler_reference import chi_square
from hypothesis import given, strategies as st
from scipy.stats import binom

from nodeflow import NeighborSampler
from nodeflow.nn import NodeDropout


def mask(drop: NodeDropout, nodes, width: int = 1, layer: int = 0, step: int = 0) -> torch.Tensor:
    return drop(torch.ones(len(nodes), width), nodes, layer=layer, step=step) != 0


def test_a_node_has_one_mask_in_all_batches_of_a_step():
    sampler = NeighborSampler(random_graph(), [4, 4])
    drop = NodeDropout(0.4, seed=3)
    batches = [sampler(seeds) for seeds in ([1, 2, 3], [3, 9], [20, 1])]
    for i in range(3):
        found: dict[int, list[float]] = {}
        for batch in batches:
            layer = batch.layers[i]
            out = drop(torch.ones(len(layer), 8), layer, layer=i, step=5)
            assert out.equal(drop(torch.ones(len(layer), 8), layer.parent_nid, layer=i, step=5))
            for node, row in zip(layer.parent_nid.tolist(), out.tolist(), strict=True):
                assert found.setdefault(node, row) == row


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.integers(0, 3), st.booleans())
def test_masks_do_not_depend_on_the_other_rows(nodes, width, whole):
    drop = NodeDropout(0.5, seed=2, whole=whole)
    together = mask(drop, nodes, width)
    assert together.equal(torch.cat([mask(drop, [node], width) for node in nodes]))


def test_layers_steps_and_seeds_have_masks_of_their_own():
    """Joint tables of 2 x 2 cells, 40,000 entries: if one in 50 were a copy, n r^2 = 16 at p = 1/2,
    and more below.
    """
    nodes = torch.arange(10_000)
    ways = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 1)]
    masks = [
        mask(NodeDropout(0.5, s), nodes, 4, layer, step).flatten().numpy()
        for s, layer, step in ways
    ]
    for i, one in enumerate(masks):
        assert chi_square(np.bincount(one, minlength=2)) < 1
        for other in masks[:i]:
            assert chi_square(np.bincount(2 * one + other, minlength=4)) < 1


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_rates(p, whole):
    """Dropped entries of each of 10,000 nodes over 40 draws are binomial; false alarms at a rate of
    1e-6.
    """
    drop = NodeDropout(p, whole=whole)
    width = 1 if whole else 8
    kept = torch.cat(
        [mask(drop, torch.arange(10_000), width, step=k) for k in range(40 // width)], 1
    )
    counts = np.bincount(40 - kept.sum(1).numpy(), minlength=41)
    expected = binom.pmf(np.arange(41), 40, p) * 10_000
    rare = expected < 5
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    assert chi_square(observed, wanted) < 1


def test_exact_in_expectation():
    """The mean over 4,000 steps is within 5 standard errors of the input (a false alarm: 5e-6 over
    10 entries).
    """
    h = torch.randn(5, 2, dtype=torch.float64)
    drop = NodeDropout(0.3)
    outputs = torch.stack([drop(h, range(5), layer=0, step=k) for k in range(4_000)])
    values = outputs[(outputs != 0).nonzero(as_tuple=True)]
    # all that is kept is divided by 1 - p
    assert values.abs().unique().allclose((h.abs() / 0.7).flatten().unique())
    error = h.abs() * (0.3 / 0.7 / 4_000) ** 0.5
    assert ((outputs.mean(0) - h).abs() < 5 * error).all()


def test_whole_rows():
    kept = mask(NodeDropout(0.5, whole=True), range(100), 7)
    assert kept.all(1).logical_xor(~kept.any(1)).all()
    assert kept.any()
    assert not kept.all()


def test_gradient_type_and_shape():
    drop = NodeDropout(0.5)
    h = torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)
    out = drop(h, range(6), layer=0, step=0)
    out.sum().backward()
    assert h.grad.equal((out / h).detach())
    half = drop(torch.ones(6, 4, dtype=torch.bfloat16), range(6), layer=0, step=0)
    assert half.dtype == torch.bfloat16
    assert drop(torch.ones(0, 4), [], layer=0, step=0).shape == (0, 4)
    assert drop(torch.ones(6), range(6), layer=0, step=0).shape == (6,)


def test_only_in_training_and_without_state():
    state = torch.get_rng_state()
    h = torch.randn(6, 4)
    drop = NodeDropout(0.5)
    assert NodeDropout(0)(h, range(6), layer=0, step=0) is h
    assert not drop(h, range(6), layer=0, step=0).equal(h)
    assert drop.eval()(h, range(6), layer=0, step=0) is h
    assert list(drop.state_dict()) == []
    torch.manual_seed(1)
    one = mask(NodeDropout(0.5), range(50), 4)
    torch.manual_seed(2)
    assert mask(NodeDropout(0.5), range(50), 4).equal(one)
    torch.set_rng_state(state)
    assert repr(NodeDropout(0.25, 3, whole=True)) == "NodeDropout(p=0.25, seed=3, whole=True)"
