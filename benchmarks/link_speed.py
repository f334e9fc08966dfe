"""Time link prediction in nodeflow and PyKEEN, in turn, in one run: training, or the filtered
evaluation.

python benchmarks/link_speed.py train FILE --pykeen PYTHON [--decoders distmult complex] [--widths 200 400]
python benchmarks/link_speed.py evaluate FILE --pykeen PYTHON --triples 1000

FILE is an ``edges.npz`` with src, dst, relation, split (0 train, 1 validation, 2 test), num_nodes
and num_relations. PYTHON is the interpreter of an environment that has PyKEEN (see
workers/link_pykeen_worker.py for what to install); it is left out where that is not given.

"evaluate" ranks the same test triples among all nodes, both sides, by the same random rows: the
MRRs must agree. "train" is an epoch over training triples with the same decoder, width, batch,
optimiser (Adam), loss (logistic) and 256 negatives per triple, half of them for each end: drawn for
every triple on its own, as in PyKEEN, and in a second row shared by 256 triples of a batch.
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", choices=["train", "evaluate"])
    parser.add_argument("file", type=Path, help="edges.npz of a knowledge graph")
    parser.add_argument("--pykeen", metavar="PYTHON", help="interpreter with pykeen 1.11")
    parser.add_argument(
        "--decoders", nargs="+", choices=["distmult", "complex"], default=["distmult", "complex"]
    )
    parser.add_argument(
        "--widths", nargs="+", type=int, default=[200, 400], help="numbers per node"
    )
    parser.add_argument(
        "--triples", type=int, default=0, help="so many triples, drawn at random; 0 for all"
    )
    parser.add_argument(
        "--batch", type=int, default=0,
        help="triples per batch of training (default 1024), and of PyKEEN's evaluation (256; its "
             "own default is 32)",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds after the first, which does not count"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if not options.pykeen:
        print(
            "PyKEEN is left out: give the interpreter of an environment that has it, --pykeen "
            "PYTHON\n"
        )
    print(
        f"{options.threads} thread(s), {options.rounds} rounds in turn; {platform.machine()}, "
        f"{os.cpu_count()} cores\n"
    )
    print("| decoder | width | triples | nodeflow s | least to most | pykeen s | least to most | "
          "ratio | MRR, loss |\n"
          "|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for decoder in options.decoders:
        for width in options.widths:
            for text in rows(options, decoder, width):
                print(text, flush=True)
    print("\ns: medians; ratio: PyKEEN's median over nodeflow's.")


def rows(options: argparse.Namespace, decoder: str, width: int) -> list[str]:
    """Measure one decoder: a row, or for training two. Raises ValueError where the two find another
    MRR.
    """
    batch = options.batch or {"train": 1024, "evaluate": 256}[options.job]
    arguments = [
        str(options.file),
        decoder,
        *map(str, (width, options.triples, batch, options.threads)),
    ]
    jobs = {"nodeflow": options.job, "nodeflow, shared": "train-shared", "pykeen": options.job}
    if options.job == "evaluate":
        del jobs["nodeflow, shared"]
    if not options.pykeen:
        del jobs["pykeen"]
    workers = {
        name: Worker(*(
            (options.pykeen, "link_pykeen") if name == "pykeen" else (sys.executable, "link_nodeflow")
        ), [*arguments, job], options.threads)
        for name, job in jobs.items()
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    found: dict[str, float] = {}
    for number in range(options.rounds + 1):
        for name, worker in workers.items():
            answer = worker.ask("")
            found[name] = answer["found"]
            if number:  # the first is compilation, caches and memory
                seconds[name].append(answer["seconds"])
    for worker in workers.values():
        worker.process.communicate()
    theirs = found.get("pykeen", found["nodeflow"])
    if options.job == "evaluate" and abs(found["nodeflow"] - theirs) > 1e-4 * theirs:
        raise ValueError(
            f"pykeen finds another MRR of {decoder}, width {width}: {theirs}, not "
            f"{found['nodeflow']}"
        )
    table = []
    for name in jobs:
        if name == "pykeen":
            continue
        note = ", shared negatives" if name == "nodeflow, shared" else ""
        cells = [decoder + note, str(width), f"{workers[name].ready['triples']:,}"]
        for one in (name, "pykeen"):
            times = seconds.get(one)
            cells += (
                [f"{statistics.median(times):.3g}", f"{min(times):.3g} to {max(times):.3g}"]
                if times
                else ["", ""]
            )
        there = "pykeen" in seconds
        cells.append(
            f"{statistics.median(seconds['pykeen']) / statistics.median(seconds[name]):.1f}"
            if there
            else ""
        )
        table.append(f"| {' | '.join([*cells, f'{found[name]:.5f}'])} |")
    return table


if __name__ == "__main__":
    main()
