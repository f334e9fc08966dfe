"""Print how graphs are cut into parts for processes: cut, replication and balance, by method and
place of the edges.

python benchmarks/parts.py [--data debian] [--parts 8] [--methods metis random ...] [--edges in out
grid] [--balance]

``--data`` is what ``nodeflow train`` takes. The reverse of every edge is added, as training does by
default. Columns are left out. "largest over mean" is 1 where all parts are equal; partners are
parts that share a node.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from nodeflow.distributed import partition_graph
from nodeflow.training._folder import read_dataset
from nodeflow.training._graph import directed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="debian")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--methods", nargs="+", default=["metis", "random", "ranges", "hash"])
    parser.add_argument("--edges", nargs="+", default=["in", "out", "grid"])
    parser.add_argument("--balance", action="store_true", help="balance training nodes")
    options = parser.parse_args()
    dataset = read_dataset(options.data)
    graph = directed(dataset.graph, "both")
    print(
        f"{dataset.name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {options.parts} "
        "parts\n"
    )
    titles = (
        "method", "edges", "cut, %", "replication factor", "partners", "largest over mean: "
                                                                       "nodes", "edges",
        "training nodes", "seconds",
    )  # fmt: skip
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    for method in options.methods:
        for edges in options.edges:
            with tempfile.TemporaryDirectory() as place:
                begun = time.perf_counter()
                parts = partition_graph(
                    graph, Path(place) / "parts", options.parts, method=method, edges=edges, ndata=[], edata=[],
                    train=dataset.train, balance=options.balance, progress=False,
                )  # fmt: skip
                seconds = time.perf_counter() - begun
                found = parts.report()
            row = (
                method, edges, f"{100 * found.cut:.1f}", f"{found.replication_factor:.2f}", max(found.partners),
                f"{found.node_balance:.2f}", f"{found.edge_balance:.2f}", f"{found.train_balance:.2f}",
                f"{seconds:.1f}",
            )  # fmt: skip
            print(f"| {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()
