"""The data set that comes with the package."""

from __future__ import annotations

from importlib import resources

import numpy as np
import torch
from numpy.typing import NDArray

from nodeflow._core.base.checks import Ints
from nodeflow._core.base.types import Array
from nodeflow._core.rows.csr import csr_tensor
from nodeflow.datasets._dataset import Dataset
from nodeflow.graph import Graph


def debian() -> Dataset:
    """Load the packages of Debian 12.15 (main, amd64) and their dependencies; the task is to tell a
    package's section.

    63,666 packages, 300,546 edges, 2,000 features (4.35 non-zeros a row), 58 classes; no download.

    - ``edata["kind"]``, int8: 0 Depends, 1 Pre-Depends, 2 Recommends, 3 Suggests; an edge leads
      from a package to the package it names. Two packages may be joined by edges of several kinds;
      there are no self-loops.
    - ``ndata["feat"]``, sparse CSR float32: TF-IDF of the words of the short description,
      ``tf * ln(N / df)`` with rows of Euclidean norm 1 (Salton & Buckley 1988); a description
      without any of the words is a row of zeros.
    - ``ndata["label"]``, int64: the section, named in ``class_names``. Sizes are very unequal (15
      to 6,711).
    - The split is fixed and random: one half, one quarter, one quarter.
    - ``node_names`` are the packages, in alphabetical order; ``feature_names`` the words, commonest
      first.

    ``scripts/make_debian.py`` in the source repository makes the file and defines every rule.

    >>> data = debian()
    >>> data.node_names[int(data.graph.in_degrees().argmax())]
    'libc6'
    """
    # The package may lie in an archive, where the file has no path: it is read as a stream.
    source = resources.files("nodeflow.datasets").joinpath("debian.npz")
    with source.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        arrays: dict[str, Array] = {name: stored[name] for name in stored.files}
    classes = _unpack(arrays["classes"])
    words = _unpack(arrays["words"])
    src, kind = _sources_and_kinds(arrays["edge_count"])
    label = arrays["label"].astype(np.int64)
    feat = _tf_idf(arrays["word_count"], arrays["word_id"], arrays["word_tf"], len(words))
    graph = Graph.from_edges(
        src,
        arrays["edge_dst"].astype(np.int64),
        num_nodes=len(label),
        ndata={"feat": feat, "label": label},
        edata={"kind": kind},
    )
    train, val, test = (
        torch.from_numpy(np.flatnonzero(arrays["split"] == part)) for part in range(3)
    )
    return Dataset(
        name="debian",
        graph=graph,
        train=train,
        val=val,
        test=test,
        num_classes=len(classes),
        class_names=classes,
        description="packages of Debian 12.15 (main, amd64) and what they depend on; label = "
        "section",
        node_names=_unpack(arrays["names"]),
        feature_names=words,
        category_names={"kind": ("Depends", "Pre-Depends", "Recommends", "Suggests")},
    )


def _unpack(packed: Array) -> tuple[str, ...]:
    text = packed.tobytes().decode()
    return tuple(text.split("\n"))


def _sources_and_kinds(count: Array) -> tuple[Ints, NDArray[np.int8]]:
    """Return source and kind of each edge, int64 and int8 ``[num_edges]``; ``count`` is
    ``[kinds, num_nodes]``.
    """
    kinds, num_nodes = count.shape
    # edges are stored node by node, and kind by kind within one node
    per_node = count.T.astype(np.int64)
    src = np.repeat(np.arange(num_nodes), per_node.sum(1))
    kind = np.repeat(np.tile(np.arange(kinds, dtype=np.int8), num_nodes), per_node.ravel())
    return src, kind


def _tf_idf(count: Array, word: Array, tf: Array, num_words: int) -> torch.Tensor:
    """Return the features, sparse CSR float32 ``[num_nodes, num_words]``."""
    num_nodes = len(count)
    indices = word.astype(np.int64)
    df = np.bincount(indices, minlength=num_words)
    values = tf.astype(np.float64) * np.log(num_nodes / df)[indices]
    row = np.repeat(np.arange(num_nodes), count)
    # Rows are normalised in float64 and stored in float32, so that the file defines them to the
    # last bit on every machine.
    norm = np.sqrt(np.bincount(row, weights=values**2, minlength=num_nodes))
    indptr = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    parts = (indptr, indices, (values / norm[row]).astype(np.float32))
    rows, columns, data = (torch.from_numpy(part) for part in parts)
    return csr_tensor(rows, columns, data, (num_nodes, num_words))
