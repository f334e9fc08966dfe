"""Programs in the style of DGL 0.4's examples run after a change of import lines, and learn."""

from __future__ import annotations

import runpy
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.pages import ROOT

import nodeflow.compat.dgl as dgl


def communities(
    num_nodes: int = 800, num_labels: int = 6, degree: int = 6, seed: int = 3
) -> SimpleNamespace:
    """Return a graph in which 7 of 10 edges stay in a community; a feature row is its community
    plus large noise.
    """
    random = np.random.default_rng(seed)
    labels = random.integers(0, num_labels, num_nodes)
    src = random.integers(0, num_nodes, num_nodes * degree // 2)
    by_label = [np.flatnonzero(labels == label) for label in range(num_labels)]
    near = np.array([random.choice(by_label[labels[node]]) for node in src])
    dst = np.where(random.random(len(src)) < 0.7, near, random.integers(0, num_nodes, len(src)))
    nodes = np.arange(num_nodes)
    rows = np.concatenate([src, dst, nodes])
    columns = np.concatenate([dst, src, nodes])
    adj = scipy.sparse.coo_matrix(
        (np.ones(len(rows)), (rows, columns)), shape=(num_nodes, num_nodes)
    ).tocsr()
    features = np.eye(num_labels)[labels] @ random.normal(size=(num_labels, 16)) * 0.3
    features = (features + random.normal(size=features.shape)).astype(np.float32)
    order = random.permutation(num_nodes)
    return SimpleNamespace(
        adj=adj.tocoo(),
        features=features,
        labels=labels,
        train_nid=order[: num_nodes // 2],
        test_nid=order[num_nodes // 2 :],
        num_labels=num_labels,
    )


@pytest.mark.parametrize(("name", "more"), [("adaptive", []), ("cv_gcn", [0.0])])
@pytest.mark.usefixtures("one_thread")
def test_a_program_learns(name, more):
    """As nodeflow's own ways do: 0.88 and 0.86. ``more``: the error of the history after the
    inference pass.
    """
    dgl.random.seed(0)
    torch.manual_seed(0)
    main = runpy.run_path(str(ROOT / "tests" / "compat" / "scripts" / f"{name}.py"))["main"]
    accuracy, *rest = main(communities(), n_epochs=6)
    assert accuracy > 0.8
    assert rest == more
