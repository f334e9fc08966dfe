"""Time the fetch of rows that are all in fast memory: caches and tiers beside a plain gather from a
tensor.

python benchmarks/gather.py [--widths 16 64 256 1024] [--batches 1000 10000 200000]

Every contestant fetches the same random rows, in turn, new ones in every round:

- plain: ``fetch_rows`` of a tensor, which is what batches call for a column that is a tensor.
- index_select: of torch.
- cached: ``storage.Cached`` that holds the whole column.
- cached half: ``storage.Cached`` that holds half of a column twice as long; only rows in it are
  asked for.
- tiered: ``storage.Tiered`` of one tier, in memory, in another order than the column.
- two tiers: the same, cut into two.
- int8: ``storage.narrow`` of the column; its rows are the same but for its errors.

Each has a column of its own in "shares of the plain rate": the median time of plain over its own.
Less is slower.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from nodeflow import storage
from nodeflow._rows.rows import fetch_rows

ROWS = 200_000  # fetched in a round, in as many calls as that takes
Contestant = tuple[Callable[[Tensor], Tensor], Tensor | None]
"""What fetches, and the ids that it knows the rows of the column by; None: the places in the
column.
"""


class LongColumn:
    """A column of which only some rows are there: row ``ids[k]`` is row k of ``rows``."""

    def __init__(self, rows: Tensor, ids: Tensor, count: int) -> None:
        self.rows = rows
        self.shape = (count, *rows.shape[1:])
        self.dtype = rows.dtype
        self.at = torch.full((count,), -1)
        self.at[ids] = torch.arange(len(ids))

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        found = fetch_rows(self.rows, self.at[ids])
        return found if out is None else out.copy_(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--widths", type=int, nargs="+", default=[16, 64, 256, 1024], help="float32 numbers per row"
    )
    parser.add_argument(
        "--batches", type=int, nargs="+", default=[1000, 10_000, 200_000], help="rows per call"
    )
    parser.add_argument("--table", type=float, default=1.0, help="GiB of the column")
    parser.add_argument(
        "--rounds", type=int, default=9, help="rounds after the first, which does not count"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="contestants beside plain (default: all)"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"column of {options.table:g} GiB float32, one thread, {options.rounds} rounds in turn; "
          f"{platform.machine()}, {os.cpu_count()} cores\n")  # fmt: skip
    names: list[str] = []
    for width in options.widths:
        count = int(options.table * 2**30) // (4 * width)
        contestants = prepared(count, width, options.only)
        if not names:
            names = list(contestants)
            head = f"| width | rows per call | plain us | plain GB/s | {' | '.join(names[1:])} |"
            line = "|---"
            print(f"{head}\n{line * (len(names) + 3)}|")
        for batch in options.batches:
            times = measured(contestants, count, batch, options.rounds)
            plain, *others = (statistics.median(times[name]) for name in names)
            rates = " | ".join(f"{plain / other:.2f}" for other in others)
            print(
                f"| {width} | {batch} | {1e6 * plain:.0f} | {4e-9 * width * batch / plain:.1f} | "
                f"{rates} |",
                flush=True,
            )
    print("\nright of plain: shares of the plain rate, ratios of medians.")


def prepared(count: int, width: int, only: list[str] | None = None) -> dict[str, Contestant]:
    """Return the contestants for a column of ``count`` rows, plain and those named, or all."""
    rng = np.random.default_rng(0)
    table = torch.rand(count, width, generator=torch.Generator().manual_seed(0))
    hot = torch.from_numpy(rng.permutation(2 * count)[:count])
    half = storage.Cached(
        LongColumn(table, hot, 2 * count),
        np.bincount(hot.numpy(), minlength=2 * count),
        table.nbytes,
    )
    heat = rng.random(count)
    one = [("memory", None)]
    two = [("memory", 0.5), ("memory", None)]
    makers: dict[str, Callable[[], Contestant]] = {
        "plain": lambda: (lambda ids: fetch_rows(table, ids), None),
        "index_select": lambda: (lambda ids: table.index_select(0, ids), None),
        "cached": lambda: (storage.Cached(table, heat, table.nbytes).fetch, None),
        "cached half": lambda: (half.fetch, hot),
        "tiered": lambda: (storage.Tiered.split(table, heat, one).fetch, None),
        "two tiers": lambda: (storage.Tiered.split(table, heat, two).fetch, None),
        "int8": lambda: (partial(fetch_rows, storage.narrow(table)), None),
    }
    return {
        name: make() for name, make in makers.items() if only is None or name in ("plain", *only)
    }


def measured(
    contestants: dict[str, Contestant], count: int, batch: int, rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of a call by contestant and round; raises ValueError where one fetches
    something else.
    """
    rng = np.random.default_rng(batch)
    times = {name: list[float]() for name in contestants}
    calls = max(1, ROWS // batch)
    for number in range(rounds + 1):
        chosen = torch.from_numpy(rng.integers(0, count, calls * batch))
        first = contestants["plain"][0](chosen[:batch]) if number == 0 else None
        for name, (fetch, known_as) in contestants.items():
            parts = (chosen if known_as is None else known_as[chosen]).split(batch)
            if first is not None and (fetch(parts[0]) - first).abs().max() > (
                0.5 / 250 if name == "int8" else 0
            ):
                raise ValueError(f"{name} fetches other rows")
            # of this thread alone: other programs may keep the processor busy
            begun = time.thread_time()
            for ids in parts:
                fetch(ids)
            times[name].append((time.thread_time() - begun) / calls)
    return {name: found[1:] for name, found in times.items()}


if __name__ == "__main__":
    main()
