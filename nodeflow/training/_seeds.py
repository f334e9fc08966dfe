"""Runs that differ in their seed alone: their mean, and a line for a table."""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from nodeflow._base.checks import as_count
from nodeflow._base.files import is_file
from nodeflow._disk.manifest import replace_file
from nodeflow.training._folder import RESULT, output_folder, read_result
from nodeflow.training._settings import read_toml


class Summary(NamedTuple):
    """A metric on the test part over several runs; the deviation is that of a sample, divided by n - 1."""

    mean: float
    deviation: float
    n: int


def train_seeds(options: argparse.Namespace, say: Callable[[str], None], train: Callable[..., None]) -> None:
    """Train ``options.seeds`` runs with the seeds ``seed``, ``seed + 1``, ..., each in a folder of its own.

    Prints, and writes into ``seeds.json``, the mean, deviation and number of the test scores, with a row for a table in
    Markdown and in LaTeX. A run that is there already, and finished, is not trained again.
    """
    count = as_count(options.seeds, "seeds", 2)
    if options.resume is not None:
        raise ValueError("--seeds starts runs, and --resume goes on with one; to go on with them, give --seeds again")
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        raise ValueError("--seeds is for one process; under torchrun start a run for every --seed")
    in_file = {} if options.config is None else read_toml(options.config)
    in_file = {**in_file, **in_file.get("run", {})}
    folder, first = options.output or Path("runs/latest"), getattr(options, "seed", in_file.get("seed", 0))
    places = [folder / f"seed-{first + i}" for i in range(count)]
    for i, place in enumerate(places):
        say(f"seed {first + i}, run {i + 1} of {count}")
        if is_file(place / RESULT):
            say(f"{place} is finished")
            continue
        one = copy.copy(options)
        one.seed, one.output, one.seeds = first + i, place, None
        train(one, say)
    title, scores = _scores(places)
    say("")
    for line in table(title, scores):
        say(line)
    with output_folder(folder):
        facts = {
            "seeds": [first + i for i in range(count)],
            "test": {name: summary._asdict() for name, summary in scores.items()},
            "table": [*table(title, scores)],
        }
        replace_file(folder / "seeds.json", (json.dumps(facts, indent=2, ensure_ascii=False) + "\n").encode())


def _scores(places: list[Path]) -> tuple[str, dict[str, Summary]]:
    results = [read_result(place) for place in places]
    alike = [{k: v for k, v in result["settings"].items() if k != "seed"} for result in results]
    for place, settings in zip(places, alike, strict=True):
        if settings != alike[0]:
            name = next(k for k in {**settings, **alike[0]} if settings.get(k) != alike[0].get(k))
            raise ValueError(
                f"{place} is a run with another {name} than {places[0]}; remove it, or give another --output"
            )
    values: Mapping[str, list[float]] = {
        name: [result["scores"]["test"][name] for result in results] for name in results[0]["scores"].get("test", {})
    }
    return f"{results[0]['dataset']}, {results[0]['settings'].get('model', 'none')}", {
        name: Summary(statistics.fmean(each), statistics.stdev(each), len(each))
        for name, each in values.items()
        if None not in each
    }


def table(title: str, scores: Mapping[str, Summary]) -> Iterator[str]:
    """Yield the titles and the row of a table in Markdown, then the row in LaTeX."""
    n = next((summary.n for summary in scores.values()), 0)
    yield "| run | " + " | ".join(f"test {name}" for name in scores) + " | n |"
    yield "|---|" + "---|" * (len(scores) + 1)
    cells = [f"{summary.mean:.4f} ± {summary.deviation:.4f}" for summary in scores.values()]
    yield f"| {title} | " + " | ".join(cells) + f" | {n} |"
    cells = [rf"${summary.mean:.4f} \pm {summary.deviation:.4f}$" for summary in scores.values()]
    yield title.replace("_", r"\_") + " & " + " & ".join(cells) + rf" & {n} \\"
