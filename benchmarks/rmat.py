"""The graph of the benchmarks: RMAT (Chakrabarti, Zhan, Faloutsos 2004), made symmetric, without
self-loops or repeats.

python benchmarks/rmat.py --scale 20 --edge-factor 16 FOLDER      writes indptr.npy and indices.npy (int64)
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse


def rmat(scale: int, edge_factor: int, seed: int = 1) -> scipy.sparse.csr_matrix:
    """Return the adjacency of 2**scale nodes, from edge_factor * 2**scale edges drawn with a, b, c
    = .57, .19, .19.
    """
    a = 0.57
    b = 0.19
    c = 0.19
    num_nodes = 1 << scale
    num_edges = edge_factor << scale
    rng = np.random.default_rng(seed)
    src = np.zeros(num_edges, np.int32)
    dst = np.zeros(num_edges, np.int32)
    for bit in range(scale):
        quadrant = rng.random(num_edges, dtype=np.float32)
        src |= (quadrant >= a + b).astype(np.int32) << bit
        dst |= (((quadrant >= a) & (quadrant < a + b)) | (quadrant >= a + b + c)).astype(
            np.int32
        ) << bit
    names = rng.permutation(num_nodes).astype(np.int32)
    is_loop = src == dst
    src = names[src[~is_loop]]
    dst = names[dst[~is_loop]]
    # row and column in one number, sorted in place: adding scipy's matrices takes more memory
    entries = np.concatenate([src, dst]).astype(np.int64)
    entries <<= scale
    entries |= np.concatenate([dst, src])
    del src, dst, is_loop
    entries.sort()
    entries = entries[np.diff(entries, prepend=-1) != 0]
    indptr = np.searchsorted(entries, np.arange(num_nodes + 1) << scale)
    entries &= num_nodes - 1
    ones = np.ones(len(entries), np.int8)
    return scipy.sparse.csr_matrix((ones, entries, indptr), shape=(num_nodes, num_nodes))


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
