"""Time the filtered evaluation of link prediction in nodeflow and PyKEEN, in turn, in one run.

python benchmarks/link_evaluation.py FILE --pykeen PYTHON [--decoders distmult complex] [--widths 200 400]

FILE is an ``edges.npz`` with src, dst, relation, split (0 train, 1 validation, 2 test), num_nodes and num_relations.
PYTHON is the interpreter of an environment that has PyKEEN (see workers/link_pykeen_worker.py for what to install); it
is left out where that is not given. Both rank the same test triples among all nodes, both sides, by the same random
rows: their MRRs must agree.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from pathlib import Path

from compare import Worker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="edges.npz of a knowledge graph")
    parser.add_argument("--pykeen", metavar="PYTHON", help="interpreter with pykeen 1.11")
    parser.add_argument("--decoders", nargs="+", choices=["distmult", "complex"], default=["distmult", "complex"])
    parser.add_argument("--widths", nargs="+", type=int, default=[200, 400], help="numbers per node")
    parser.add_argument("--triples", type=int, default=0, help="so many test triples, drawn at random; 0 for all")
    parser.add_argument("--batch", type=int, default=256, help="triples per batch of PyKEEN, whose own default is 32")
    parser.add_argument("--rounds", type=int, default=5, help="rounds after the first, which does not count")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if not options.pykeen:
        print("PyKEEN is left out: give the interpreter of an environment that has it, --pykeen PYTHON\n")
    print(
        f"{options.threads} thread(s), {options.rounds} rounds in turn; {platform.machine()}, {os.cpu_count()} cores\n"
    )
    print("| decoder | width | triples | nodeflow s | least to most | pykeen s | least to most | ratio | MRR |\n"
          "|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for decoder in options.decoders:
        for width in options.widths:
            print(row(options, decoder, width), flush=True)
    print("\ns: medians; ratio: PyKEEN's median over nodeflow's.")


def row(options: argparse.Namespace, decoder: str, width: int) -> str:
    """Measure one decoder; raises ValueError where the two find another MRR."""
    arguments = [str(options.file), decoder, *map(str, (width, options.triples, options.batch, options.threads))]
    workers = {"nodeflow": Worker(sys.executable, "link_nodeflow", arguments, options.threads)}
    if options.pykeen:
        workers["pykeen"] = Worker(options.pykeen, "link_pykeen", arguments, options.threads)
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    found: dict[str, float] = {}
    for number in range(options.rounds + 1):
        for name, worker in workers.items():
            answer = worker.ask("")
            found[name] = answer["mrr"]
            if number:  # the first is compilation, caches and memory
                seconds[name].append(answer["seconds"])
    for worker in workers.values():
        worker.process.communicate()
    ours, theirs = found["nodeflow"], found.get("pykeen", found["nodeflow"])
    if abs(ours - theirs) > 1e-4 * ours:
        raise ValueError(f"pykeen finds another MRR of {decoder}, width {width}: {theirs}, not {ours}")
    cells = [decoder, str(width), f"{workers['nodeflow'].ready['triples']:,}"]
    for name in ("nodeflow", "pykeen"):
        times = seconds.get(name)
        cells += [f"{statistics.median(times):.3g}", f"{min(times):.3g} to {max(times):.3g}"] if times else ["", ""]
    medians = [statistics.median(times) for times in seconds.values()]
    cells += [f"{medians[1] / medians[0]:.1f}" if len(medians) > 1 else "", f"{ours:.5f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
