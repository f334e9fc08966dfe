"""PyTorch Geometric on a graph whose features are mapped from a file, which the system reads page
by page when asked.

It needs what ``pyg_worker.py`` needs. Arguments: folder of the graph, ``.npy`` file of the
features, threads, batches of an epoch. For every line on standard input,
``{"epochs": n, "workers": k}``, it forgets the cached pages of the file, runs n epochs, and answers
with seconds per epoch and the bytes of the file that the page cache holds after them; ``"batches"``
ends every epoch after so many, and ``"advice": "random"`` tells the system not to read ahead.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import sys
import time
from itertools import islice
from typing import Any

import numpy as np
import torch
from pyg_worker import BACKEND, Net  # first: it turns off the warnings of importing the peer
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from work import Work, load


def main() -> None:
    folder, features, threads, batches = sys.argv[1:]
    torch.set_num_threads(int(threads))
    indptr, indices = load(folder)
    num_nodes = len(indptr) - 1
    work = Work(width=np.load(features, mmap_mode="r").shape[1], fanouts_from_seeds=(10, 10))
    edges = torch.stack([indices, torch.repeat_interleave(torch.arange(num_nodes), indptr.diff())])
    y = torch.randint(0, work.classes, (num_nodes,), generator=torch.Generator().manual_seed(0))
    train = torch.from_numpy(
        np.random.default_rng(0).permutation(num_nodes)[: work.batch_size * int(batches)]
    )
    graph = Data(y=y, edge_index=edges, num_nodes=num_nodes)
    options = {
        "num_neighbors": list(work.fanouts_from_seeds),
        "batch_size": work.batch_size,
        "is_sorted": True,
    }
    loader = NeighborLoader(graph, input_nodes=train, shuffle=True, **options)
    del indptr, indices, edges
    print(json.dumps({"ready": True, "note": BACKEND}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(loader, work, features, **json.loads(line))), flush=True)


def run(
    loader: NeighborLoader,
    work: Work,
    features: str,
    epochs: int,
    workers: int,
    batches: int | None = None,
    advice: str = "normal",
) -> dict[str, Any]:
    """Train from the first batch of the first epoch to the last step of the last one."""
    forget(features)
    before = cached_bytes(features)
    loader.num_workers = workers
    loader.prefetch_factor = 2 if workers else None
    mapped = np.load(features, mmap_mode="r")
    mapped._mmap.madvise({"normal": mmap.MADV_NORMAL, "random": mmap.MADV_RANDOM}[advice])
    loader.data.x = torch.from_numpy(mapped)
    del mapped
    net = Net(work)
    optimizer = torch.optim.Adam(net.parameters())
    times = []
    edges = 0
    begun = time.perf_counter()
    for _ in range(epochs):
        for batch in islice(loader, batches):
            loss = torch.nn.functional.cross_entropy(
                net(batch.x, batch.edge_index)[: batch.batch_size], batch.y[: batch.batch_size]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            edges += batch.edge_index.shape[1]
        times.append(time.perf_counter() - begun - sum(times))
    loader.data.x = None
    gc.collect()  # a page that is mapped cannot be forgotten
    return {
        "seconds": times,
        "edges": edges,
        "cached": cached_bytes(features),
        "cached before": before,
    }


def forget(file: str) -> None:
    """Have the system drop the pages of a file that no process maps."""
    descriptor = os.open(file, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def cached_bytes(file: str) -> int:
    """Return how many bytes of a file the page cache holds."""
    with open(file, "rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        pages = np.zeros(-(-len(mapped) // mmap.PAGESIZE), np.uint8)
        start = np.frombuffer(mapped, np.uint8)
        ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(start.ctypes.data),
            ctypes.c_size_t(len(mapped)),
            ctypes.c_void_p(pages.ctypes.data),
        )
        del start
    return int((pages & 1).sum()) * mmap.PAGESIZE


if __name__ == "__main__":
    main()
