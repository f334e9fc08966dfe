"""Several runs side by side: a table and a picture."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nodeflow.plot import plot_curves
from nodeflow.training._folder import LOG, RESULT, Run, read_log
from nodeflow.training._methods import METHODS
from nodeflow.training._settings import Settings


def compare(options: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Print a table of runs, with the settings that differ, and draw their curves."""
    results = {str(folder): _result(folder) for folder in options.folders}
    metric = _metric_of_all(results)
    logs = {name: read_log(Path(name) / LOG, metric) for name in results}
    read = {name: Settings.from_dict(one["settings"]).by_name(read=True) for name, one in results.items()}
    validated = {name: _validation(settings) for name, settings in read.items()}
    settings = [{**each, "validate": validated[name]} for name, each in read.items()]
    names = dict.fromkeys(name for each in settings for name in each)
    differing = [name for name in names if len({str(each.get(name, "-")) for each in settings}) > 1]
    facts = [name for name in ("dataset", "metric") if len({one[name] for one in results.values()}) > 1]
    header = ["run", *("data" if name == "dataset" else "best by" for name in facts)]
    rows = [[*header, f"test {metric}", f"val {metric}", "best epoch", "seconds", "edges", *differing]]
    for (name, one), own in zip(results.items(), settings, strict=True):
        seconds = sum(record.seconds for record in logs[name])
        edges = sum(record.seconds * record.edges_per_second for record in logs[name])
        scores = (one["scores"].get(part, {}).get(metric) for part in ("test", "val"))
        shown = ["-" if score is None else f"{score:.4f}" for score in scores]
        cost = f"{seconds:.1f}", f"{edges / 1e6:.3g}M"
        cells = [name, *(one[which] for which in facts), *shown, str(one["best_epoch"]), *cost]
        rows.append([*cells, *(str(own.get(setting, "-")) for setting in differing)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if "validate" in differing:
        say(
            "validated differently: test and val above are from all neighbours, but best epochs and curves are of each "
            "run's own validation; train all with --validate full to compare these"
        )
    if options.output is not None:
        if "validate" in differing:
            logs = {f"{name} (validation {validated[name]})": records for name, records in logs.items()}
        plot_curves(logs, options.output, metric=metric)
        say(f"wrote {options.output}")


def _result(folder: Path) -> dict[str, Any]:
    """Return the result of a finished run."""
    path = folder / RESULT
    if not path.is_file():
        Run.read(folder)
        raise FileNotFoundError(f"the run in {folder} is not finished: nodeflow train --resume {folder}")
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _ = [result[name] for name in ("dataset", "metric", "best_epoch", "best_val_score", "scores")]
        Settings.from_dict(result["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged, or no result of a run: {type(error).__name__}: {error}") from error
    return result


def _metric_of_all(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the metric that chose the best epochs, or else the first of the first run that all runs have."""
    chosen = list(dict.fromkeys(one["metric"] for one in results.values()))
    if len(chosen) == 1:
        return str(chosen[0])
    measured = [list(one["scores"].get("test") or one["scores"].get("val") or {}) for one in results.values()]
    shared = [name for name in (*chosen, *measured[0]) if all(name in names for names in measured)]
    if not shared:
        raise ValueError(f"the runs have different metrics, {', '.join(sorted(chosen))}, and none in common")
    return str(shared[0])


def _validation(settings: Mapping[str, Any]) -> str:
    """Return "full" or "sampled": what a run was validated on, which "auto" leaves to its sampler."""
    validate, method = settings.get("validate", "sampled"), METHODS.get(str(settings.get("sampler")))
    if settings.get("task") == "link":
        return "full"  # ranks are always of rows from all neighbours
    if validate != "auto" or method is None:
        return str(validate)
    return "full" if method.validates_fully else "sampled"
