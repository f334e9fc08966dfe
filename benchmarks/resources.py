"""What a sampler needs beside time: memory beyond the graph's own arrays, and the first call of a
new process.

python benchmarks/resources.py

For every sampler new processes load an RMAT graph, bind the sampler and sample batches of 1,024
seeds. Printed are the seconds of the first call, with an empty cache of compiled kernels and with a
full one; and, in a process that has loaded its kernels on a small graph first, the memory that
binding and sampling add at their peak (Linux only).
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from child import figures_of

HERE = Path(__file__).resolve().parent
MAKE = {
    "NeighborSampler": "NeighborSampler(graph, [5, 10, 15])",
    "NeighborSampler, replace": "NeighborSampler(graph, [5, 10, 15], replace=True)",
    "NeighborSampler, prob": "NeighborSampler(graph, [5, 10, 15], prob='w')",
    "BernoulliSampler": "BernoulliSampler(graph, [5, 10, 15])",
    "LaborSampler": "LaborSampler(graph, [5, 10, 15])",
    "LaborSampler, LABOR-1": "LaborSampler(graph, [5, 10, 15], iterations=1)",
    "LadiesSampler": "LadiesSampler(graph, [512, 512, 512])",
    "FastGCNSampler": "FastGCNSampler(graph, [512, 512, 512])",
    "RandomWalkSampler": "RandomWalkSampler(graph, 3, 10)",
}


def status(field: str) -> float:
    """A line of /proc/self/status in MB; the high-water mark can be reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def child(kind: str, folder: str, warm_up: str) -> None:
    """Measure one sampler in this process; print the figures as JSON."""
    sys.path.insert(0, str(HERE.parent))
    start = time.perf_counter()
    import numpy as np

    import nodeflow

    imported = time.perf_counter() - start
    indptr, indices = (np.load(f"{folder}/{name}.npy") for name in ("indptr", "indices"))

    def bind(graph: nodeflow.Graph) -> Any:
        return eval(MAKE[kind], {**vars(nodeflow.sampling), "graph": graph})

    def weighted(graph: nodeflow.Graph) -> nodeflow.Graph:
        if "'w'" in MAKE[kind]:
            graph.edata["w"] = np.random.default_rng(2).random(graph.num_edges, np.float32)
        return graph

    if warm_up == "warm":
        few = np.arange(3000, dtype=np.int64)
        bind(weighted(nodeflow.Graph(few // 3 * 3, few[: few[-1] // 3 * 3] % 100)))(few[:1024])
    graph = weighted(nodeflow.Graph(indptr, indices))
    del indices
    own = sum(array.nbytes for array in graph.csc() if array is not None)
    own += sum(column.nbytes for column in graph.edata.values())
    seeds = np.random.default_rng(0).permutation(graph.num_nodes)[: 20 * 1024]
    seeds = np.array_split(seeds, 20)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    start = time.perf_counter()
    sampler = bind(graph)
    bound = time.perf_counter() - start
    at_bind = status("VmHWM") - before
    start = time.perf_counter()
    batch = sampler(seeds[0])
    first = time.perf_counter() - start
    for part in seeds[1:]:
        batch = sampler(part)
    size = sum(x.nbytes for flow in batch.flows for x in (flow.indptr, flow.indices))
    size += sum(layer.parent_nid.nbytes for layer in batch.layers)
    figures = {
        "graph": own / 2**20,
        "bind": at_bind,
        "peak": status("VmHWM") - before,
        "batch": size / 2**20,
    }
    print(json.dumps({**figures, "import": imported, "bind_s": bound, "first": first}))


def run(kind: str, folder: Path, cache: str, warm_up: str = "cold") -> dict[str, Any]:
    return figures_of(__file__, kind, folder, warm_up, NUMBA_CACHE_DIR=cache, OMP_NUM_THREADS="1")


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:5])
        return
    from rmat import ensure

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--edge-factor", type=int, default=16)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--samplers", nargs="+", default=list(MAKE), choices=list(MAKE))
    options = parser.parse_args()
    folder = ensure(options.data, options.scale, options.edge_factor)
    print("| sampler | graph MB | bind adds MB | peak adds MB | batch MB | (graph + peak - batch) "
          "/ graph | first call s, empty cache | full cache |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    show: Callable[[float], str] = "{:.1f}".format
    for kind in options.samplers:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm, room = (run(kind, folder, cache, how) for how in ("cold", "cold", "warm"))
        ratio = (room["graph"] + room["peak"] - room["batch"]) / room["graph"]
        cells = [show(room[name]) for name in ("graph", "bind", "peak", "batch")]
        times = [f"{figures['bind_s'] + figures['first']:.2f}" for figures in (cold, warm)]
        print(f"| {kind} | {' | '.join(cells)} | {ratio:.2f} | {' | '.join(times)} |", flush=True)
    print("\nThe first call includes binding; importing the package comes before it.")


if __name__ == "__main__":
    main()
