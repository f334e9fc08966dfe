"""Assertions about NodeFlows; their messages name the first difference."""

from __future__ import annotations

import torch
from torch import Tensor

from nodeflow.flow import NodeFlow
from nodeflow.graph import Frame


def assert_valid(batch: NodeFlow) -> None:
    """Assert that every invariant of ``batch`` holds; the message names the first broken one.

    It is ``batch.validate()`` for tests: a broken invariant fails the test as an AssertionError, where ``validate``
    raises ValueError, as programs expect.

    >>> from nodeflow import Graph, create_full_node_flow
    >>> assert_valid(create_full_node_flow(Graph.from_edges([0], [1]), 2))
    """
    try:
        batch.validate()
    except ValueError as error:
        raise AssertionError(str(error)) from error


def assert_same_node_flow(a: NodeFlow, b: NodeFlow, *, frames: bool = True) -> None:
    """Assert that two NodeFlows are the same, bit for bit: structure, ids, estimator weights, seed index and frames.

    Args:
        a, b: the NodeFlows; their parent graphs are not compared.
        frames: compare the columns of layers, flows and seeds too.

    Raises AssertionError that names the first difference.

    >>> from nodeflow import FullSampler, Graph
    >>> sampler = FullSampler(Graph.from_edges([0, 1], [1, 2]), num_flows=2)
    >>> assert_same_node_flow(sampler([2]), sampler([2]))
    >>> assert_same_node_flow(sampler([2]), sampler([1]))
    Traceback (most recent call last):
        ...
    AssertionError: layer sizes differ: (3, 2, 1) and (2, 2, 1)
    """
    _same(a.layer_sizes, b.layer_sizes, "layer sizes")
    _same(a.flows.pairs(), b.flows.pairs(), "pairs of layers joined by flows")
    for i, (x, y) in enumerate(zip(a.layers, b.layers, strict=True)):
        _same(x.has_parent, y.has_parent, f"layers[{i}].has_parent")
        if x.has_parent:
            _same_tensor(x.parent_nid, y.parent_nid, f"layers[{i}].parent_nid")
        _same(x.context is None, y.context is None, f"whether layers[{i}] has no contexts")
        if x.context is not None and y.context is not None:
            _same_tensor(x.context, y.context, f"layers[{i}].context")
        if frames:
            _same_frame(x.data, y.data, f"layers[{i}].data")
    for pair in a.flows.pairs():
        f, g, name = a.flows[pair], b.flows[pair], f"flows[{pair[0]}, {pair[1]}]"
        _same_tensor(f.indptr, g.indptr, f"{name}.indptr")
        _same_tensor(f.indices, g.indices, f"{name}.indices")
        _same(f.has_parent, g.has_parent, f"{name}.has_parent")
        if f.has_parent:
            _same_tensor(f.parent_eid, g.parent_eid, f"{name}.parent_eid")
        _same_tensor(f.weight, g.weight, f"{name}.weight")
        if frames:
            _same_frame(f.data, g.data, f"{name}.data")
    _same_tensor(a.seed_index, b.seed_index, "seed_index")
    if a.back.has_parent:
        _same_tensor(a.seed_ids, b.seed_ids, "seed_ids")
    if frames:
        _same_frame(a.seed_data, b.seed_data, "seed_data")


def _same(x: object, y: object, name: str) -> None:
    if x != y:
        raise AssertionError(f"{name} differ: {x} and {y}")


def _same_frame(x: Frame, y: Frame, name: str) -> None:
    _same(sorted(x), sorted(y), f"columns of {name}")
    for column in x:
        _same_tensor(x[column], y[column], f"{name}[{column!r}]")


def _same_tensor(x: Tensor, y: Tensor, name: str) -> None:
    x, y = x.detach().cpu(), y.detach().cpu()
    _same((x.dtype, tuple(x.shape), x.layout), (y.dtype, tuple(y.shape), y.layout), f"type and shape of {name}")
    if x.layout == torch.sparse_csr:
        for part in ("crow_indices", "col_indices", "values"):
            _same_tensor(getattr(x, part)(), getattr(y, part)(), f"{name}.{part}()")
        return
    # bytes are compared, because 0 equals -0 and NaN does not equal itself
    differs = (_bytes(x) != _bytes(y)).nonzero()
    if len(differs):
        first = int(differs[0, 0]) // x.element_size()
        row = tuple(int(i) for i in torch.unravel_index(torch.tensor(first), x.shape))
        raise AssertionError(f"{name} differs first at {list(row)}: {x[row].item()} and {y[row].item()}")


def _bytes(x: Tensor) -> Tensor:
    # torch refuses to view some empty tensors as another type
    return x.contiguous().view(-1).view(torch.uint8) if x.numel() else torch.empty(0, dtype=torch.uint8)
