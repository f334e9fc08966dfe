"""Train link prediction by files of settings, and print a table of filtered ranks and seconds.

python benchmarks/link_tasks.py --data FOLDER settings/fb15k237-complex.toml ... [--seeds 3] [--threads 2]
python benchmarks/link_tasks.py settings/debian-links.toml --vary model none sage gcn rgcn --vary decoder dot distmult

``--vary`` trains with every combination of values of some settings, in place of those of the files.
A data set is "debian" or a folder as ``nodeflow.datasets.read_folder`` reads it. Settings are those
of ``nodeflow train
--config``. Ranks are of the test edges among all nodes, both sides, without other known edges.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import resource
import statistics
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import torch

from nodeflow.datasets import debian, read_folder
from nodeflow.training import EpochRecord, Settings, Trainer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="+", type=Path, help="files of settings")
    parser.add_argument("--data", default="debian", metavar="FOLDER", help='a folder, or "debian"')
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs with each file, with seeds 0, 1, ..."
    )
    parser.add_argument("--epochs", type=int, help="instead of those of the settings")
    parser.add_argument(
        "--vary",
        nargs="+",
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="values of a setting",
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dataset = debian() if options.data == "debian" else read_folder(options.data, labels=False)
    machine = (
        f"{options.threads} thread(s), {options.seeds} seed(s); {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
    print(f"{dataset}; {machine}\n")
    titles = (
        "settings",
        "test MRR",
        "deviation",
        "hits@1",
        "hits@10",
        "val MRR",
        "epochs",
        "seconds",
        "CPU seconds",
    )
    print(f"| {' | '.join(titles)} |\n{'|---' * len(titles)}|", flush=True)
    names = [name for name, *_ in options.vary]
    for file, *values in itertools.product(
        options.settings, *(values for _, *values in options.vary)
    ):
        changes = dict(zip(names, map(value_of, values), strict=True))
        settings = Settings.from_dict(
            {"task": "link", **tomllib.loads(file.read_text()), **changes}
        )
        if options.epochs is not None:
            settings = settings.replace(epochs=options.epochs)
        runs = []
        for seed in range(options.seeds):
            begun = time.perf_counter()
            used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
            result = Trainer(dataset, settings.replace(seed=seed)).run(report)
            used = resource.getrusage(resource.RUSAGE_SELF).ru_utime - used
            runs.append((result, time.perf_counter() - begun, used))
        test = [result.scores["test"] for result, _, _ in runs]
        mrr = [scores["mrr"] for scores in test]
        cells = [
            f"{statistics.mean(mrr):.4f}", f"{statistics.stdev(mrr) if len(mrr) > 1 else 0:.4f}",
            *(f"{statistics.mean(scores[name] for scores in test):.4f}" for name in ("hits@1", "hits@10")),
            f"{statistics.mean(result.best_val_score for result, _, _ in runs):.4f}",
            f"{statistics.mean(len(result.records) for result, _, _ in runs):.0f}",
            *(f"{statistics.mean(run[i] for run in runs):.0f}" for i in (1, 2)),
        ]  # fmt: skip
        print(f"| {', '.join([file.stem, *values])} | {' | '.join(cells)} |", flush=True)
    print("\nseconds: a whole run with validation and evaluation; means over the seeds")


def value_of(text: str) -> Any:
    """Return what TOML reads, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def report(record: EpochRecord) -> None:
    print(
        record.epoch,
        f"{record.loss:.4f}",
        {k: round(v, 4) for k, v in record.scores.items()},
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
