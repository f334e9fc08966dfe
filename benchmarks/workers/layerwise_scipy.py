"""LADIES and FastGCN as their papers' formulas read, in numpy and scipy: what nodeflow's samplers
are compared with.

python benchmarks/workers/layerwise_scipy.py FOLDER [--rounds 25] [--size 512] [--seeds 1024]
[--ones]

FOLDER has indptr.npy and indices.npy (see rmat.py). Both sides sample the same seeds in turn, 3
layers, with replacement, A = the symmetrically normalised adjacency or 1 (``--ones``); printed are
medians and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from nodeflow import Graph
from nodeflow.sampling import FastGCNSampler, LadiesSampler
from nodeflow.transform import edge_norm

Rows = NDArray[np.int64]


def layer(
    rows: Any, q: NDArray[np.float64], size: int, rng: np.random.Generator
) -> tuple[Any, Rows]:
    """Draw ``size`` columns with probabilities ``q``; return their matrix, re-weighted, and their
    ids.
    """
    drawn, times = np.unique(rng.choice(len(q), size, p=q), return_counts=True)
    return rows[:, drawn].multiply(times / (size * q[drawn])).tocsr(), drawn


def sample(
    P: Any, seeds: Rows, sizes: list[int], rng: np.random.Generator, q: NDArray[np.float64] | None
) -> list[Any]:
    """Matrices of all layers, seeds first: LADIES (``q`` None), or FastGCN with its fixed ``q``."""
    dst = seeds
    found = []
    for size in sizes:
        rows = P[dst, :]
        if q is None:
            norms = np.asarray(rows.power(2).sum(0)).ravel()
            matrix, drawn = layer(rows, norms / norms.sum(), size, rng)
        else:
            matrix, drawn = layer(rows, q, size, rng)
        found.append(matrix)
        # the destinations are in the layer too, as in ours
        dst = np.unique(np.concatenate([dst, drawn]))
    return found


def timed(run: Callable[[int], object], number: int) -> float:
    start = time.thread_time()  # of this thread: other work on the machine does not count
    run(number)
    return 1e3 * (time.thread_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=1024)
    parser.add_argument("--ones", action="store_true")
    options = parser.parse_args()
    graph = Graph(np.load(options.folder / "indptr.npy"), np.load(options.folder / "indices.npy"))
    graph.edata["p"] = edge_norm(graph, "both")
    n = graph.num_nodes
    sizes = [options.size] * 3
    values = np.ones(graph.num_edges, np.float32) if options.ones else graph.edata["p"].numpy()
    P = scipy.sparse.csr_matrix((values, graph.indices, graph.indptr), shape=(n, n))
    weight = None if options.ones else "p"
    order = np.random.default_rng(0).permutation(n)
    parts = [order[i * options.seeds :][: options.seeds] for i in range(options.rounds + 1)]
    for name, kind in (("LADIES", LadiesSampler), ("FastGCN", FastGCNSampler)):
        ours = kind(graph, sizes, weight=weight)
        rng = np.random.default_rng(1)
        norms = np.asarray(P.power(2).sum(0)).ravel() if kind is FastGCNSampler else None
        q = None if norms is None else norms / norms.sum()
        mine = []
        theirs = []
        edges = []
        for i, part in enumerate(parts):
            mine.append(
                timed(lambda i, ours=ours, part=part: ours(part, epoch=i).flows[0].weight, i)
            )
            theirs.append(
                timed(lambda _, part=part, q=q, rng=rng: sample(P, part, sizes, rng, q), i)
            )
            edges.append(sum(ours(part, epoch=i).flow_sizes))
        one = statistics.median(mine[1:])
        other = statistics.median(theirs[1:])
        print(
            f"{name}: nodeflow {one:.2f} ms, numpy and scipy {other:.2f} ms per batch, ratio "
            f"{other / one:.1f}, {statistics.median(edges):,.0f} edges"
        )


if __name__ == "__main__":
    main()
