"""The graph of the benchmarks: RMAT (Chakrabarti, Zhan, Faloutsos 2004), made symmetric, without self-loops or repeats.

python benchmarks/rmat.py --scale 20 --edge-factor 16 FOLDER      writes indptr.npy and indices.npy (int64)
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse


def rmat(scale: int, edge_factor: int, seed: int = 1) -> scipy.sparse.csr_matrix:
    """Return the adjacency of 2**scale nodes, from edge_factor * 2**scale edges drawn with a, b, c = .57, .19, .19."""
    a, b, c = 0.57, 0.19, 0.19
    num_nodes, num_edges, rng = 1 << scale, edge_factor << scale, np.random.default_rng(seed)
    src, dst = np.zeros(num_edges, np.int64), np.zeros(num_edges, np.int64)
    for bit in range(scale):
        quadrant = rng.random(num_edges, dtype=np.float32)
        src |= (quadrant >= a + b).astype(np.int64) << bit
        dst |= (((quadrant >= a) & (quadrant < a + b)) | (quadrant >= a + b + c)).astype(np.int64) << bit
    names = rng.permutation(num_nodes)
    ones = np.ones(num_edges, np.int8)
    adjacency = scipy.sparse.coo_matrix((ones, (names[dst], names[src])), shape=(num_nodes, num_nodes)).tocsr()
    adjacency = (adjacency + adjacency.T).tocsr()
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    adjacency.sort_indices()
    return adjacency


def ensure(folder: Path, scale: int, edge_factor: int) -> Path:
    """Return the folder below ``folder`` that holds this graph, made on first use."""
    place = folder / f"rmat-{scale}-{edge_factor}"
    if not (place / "indices.npy").exists():
        place.mkdir(parents=True, exist_ok=True)
        adjacency = rmat(scale, edge_factor)
        np.save(place / "indptr.npy", adjacency.indptr.astype(np.int64))
        np.save(place / "indices.npy", adjacency.indices.astype(np.int64))
    return place


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edge-factor", type=int, default=16)
    options = parser.parse_args()
    print(ensure(options.folder, options.scale, options.edge_factor))
