"""What comes in other forms than lists and tensors counts the same: iterators, views, numpy's
bools, foreign arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch

from nodeflow import Frame, Graph, NeighborSampler
from nodeflow.sampling.base import Edges
from nodeflow.transform import subgraph

SRC = [3, 0, 1, 2, 0]
DST = [0, 1, 2, 3, 2]
FORMS: dict[str, Callable[[list[int]], Iterable[int]]] = {
    "iterator": iter,
    "generator": lambda ids: (i for i in ids),
    "map": lambda ids: map(int, ids),
    "dict view": lambda ids: dict(enumerate(ids)).values(),
    "range-like": tuple,
    "big-endian": lambda ids: np.array(ids, ">i8"),
    "backwards": lambda ids: np.array(ids[::-1])[::-1],
    "small": lambda ids: np.array(ids, np.uint8),
}


@pytest.mark.parametrize("form", FORMS)
def test_edges_in_other_forms(form):
    make: Any = FORMS[form]
    src, dst = Graph.from_edges(make(SRC), make(DST)).edges()
    assert (src.tolist(), dst.tolist()) == (SRC, DST)


@pytest.mark.parametrize("form", FORMS)
def test_ids_in_other_forms(form):
    graph = Graph.from_edges(SRC, DST)
    make = FORMS[form]
    given: Any = make([2, 0])
    assert graph.in_edges(given)[2].tolist() == [2, 4, 0]
    given = make([2, 0])
    assert subgraph(graph, given).num_nodes == 2
    given = make([2, 0])
    assert NeighborSampler(graph, [2])(given).seeds.tolist() == [2, 0]


@pytest.mark.parametrize(
    "column",
    [
        np.arange(4, dtype=">f4"),
        np.arange(4.0)[::-1][::-1].astype(np.float32),
        np.arange(3, -1, -1)[::-1],
    ],
)
def test_columns_in_other_forms(column):
    assert Frame(4, {"x": column})["x"].tolist() == [0, 1, 2, 3]
    assert Frame(4, {"x": np.asarray(column)[::-1]})["x"].tolist() == [3, 2, 1, 0]


def test_bools_of_numpy_are_flags(tmp_path):
    graph = Graph.from_edges(SRC, DST)
    graph.save(tmp_path / "graph", overwrite=np.False_)  # type: ignore[arg-type]
    assert Graph.open(tmp_path / "graph", verify=np.True_).num_edges == 5  # type: ignore[arg-type]


def test_edges_of_a_graph_stay_within_it():
    with pytest.raises(IndexError, match="indices"):
        Edges([0, 1], [-1], None)


def test_layers_ask_for_as_many_as_there_are():
    """Without replacement a size beyond the population is the population."""
    graph = Graph.from_edges(SRC, DST)
    assert NeighborSampler(graph, [10**12])([2]).flow_sizes == (2,)


def test_a_structure_shares_its_tensors():
    from nodeflow.ops import Structure

    indptr = torch.tensor([0, 1])
    assert Structure(indptr, torch.tensor([0]), 1).indptr is indptr
