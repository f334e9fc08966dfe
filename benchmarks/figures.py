"""Figures of the README and of the pages, from the stored runs (``results/``).

python benchmarks/figures.py            # names the pages whose figures are not those of the stored runs
python benchmarks/figures.py --write    # writes the figures into the pages

A page has two kinds of them. Between ``<!-- tables of COMMAND -->`` and ``<!-- end of tables -->``
stand the tables of the stored runs of a command. Sentences with figures are in ``figures.toml``,
page by page, with a slot for each figure:

{WORK: ms}                the milliseconds of a row; WORK may have stars, and then stands for several rows
{WORK: times of PEER}     how many times as fast as a peer nodeflow is
{WORK: share of PEER}     nodeflow's part of a peer's time
{NODES: ns of an edge}    what a drawn edge costs in a graph with so many nodes
{WORK: runs}              the machines and dates of the runs that the figures are from

A slot over several runs or rows is a range, as "6.6 to 8.8". A sentence stands in its page once,
lines broken anywhere.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from stored_runs import FOLDER, Run, stored_runs

ROOT = FOLDER.parents[1]
MACHINE = ROOT / "docs" / "performance.md"
TABLES = re.compile(r"(<!-- tables of ([^\n]+) -->\n).*?(<!-- end of tables -->)", re.DOTALL)
SLOT = re.compile(r"\{([^{}]+): ([^{}:]+)\}")
NUMBER = r"\d[\d,]*(?:\.\d+)?"
DIGITS = {"ms": 2, "times": 1, "share": 2, "ns": 1}


def sentences() -> dict[Path, list[str]]:
    """Return the sentences with slots, by page."""
    pages = tomllib.loads((FOLDER.parent / "figures.toml").read_text(encoding="utf-8"))
    return {ROOT / page: texts for page, texts in pages.items()}


def figures(run: Run, subject: str, quantity: str) -> list[float]:
    """Return the figures that a slot asks of one run; none where the run did not measure it."""
    if quantity == "ns of an edge":
        return [run.edge_ns[subject]] if subject in run.edge_ns else []
    rows = [row for row in run.rows if fnmatchcase(row.work, subject)]
    kind, _, peer = quantity.partition(" of ")
    if quantity in ("ms", "runs"):
        return [row.ms for row in rows]
    if kind == "times":
        return [row.peers[peer].times for row in rows if peer in row.peers]
    if kind == "share":
        return [
            row.ms / row.peers[peer].ms for row in rows if peer in row.peers and row.peers[peer].ms
        ]
    raise ValueError(
        f"a slot asks for {quantity!r}: see the first lines of figures.py for what it may ask"
    )


def written(slot: str, runs: Sequence[Run]) -> str:
    """Return what stands in a page for a slot, without its braces."""
    subject, quantity = slot.rsplit(": ", 1)
    by_run = [(run, figures(run, subject, quantity)) for run in runs]
    numbers = sorted(number for _, of_run in by_run for number in of_run)
    if not numbers:
        raise ValueError(f"no stored run has a figure for the slot {{{slot}}}")
    if quantity == "runs":
        return "; ".join(f"{run.machine}, {run.date}" for run, of_run in by_run if of_run)
    digits = DIGITS[quantity.split()[0]]
    least, most = (f"{number:,.{digits}f}" for number in (numbers[0], numbers[-1]))
    return least if least == most else f"{least} to {most}"


def fill(text: str, sentence: str, put: Callable[[str], str]) -> str:
    """Return a text in which the slots of a sentence have what ``put`` returns for them."""
    slots = [match[0][1:-1] for match in SLOT.finditer(sentence)]
    pattern = r"\s+".join(re.escape(word) for word in SLOT.sub("\0", sentence).split())
    for slot in slots:
        figure = r"([^\n]+?)" if slot.endswith(": runs") else rf"({NUMBER}(?:\s+to\s+{NUMBER})?)"
        pattern = pattern.replace("\0", figure, 1)
    places = list(re.finditer(pattern, text))
    if len(places) != 1:
        raise ValueError(
            f"a page has this sentence of figures.toml {len(places)} times, not once: {sentence}"
        )
    # from the last slot on, so that the places of those before it stay right
    for number, slot in reversed(list(enumerate(slots, 1))):
        text = text[: places[0].start(number)] + put(slot) + text[places[0].end(number) :]
    return text


def with_figures(page: Path, text: str, runs: Sequence[Run]) -> str:
    """Return the text of a page with the figures of stored runs in its tables and sentences."""
    machine = os.path.relpath(MACHINE, page.parent) if page != MACHINE else ""

    def tables(match: re.Match[str]) -> str:
        shown = [
            f"{run.table()}\n\n{run.origin(f'{machine}#the-machine')}"
            for run in runs
            if run.command == match[2]
        ]
        if not shown:
            raise ValueError(
                f"{page.name} shows the tables of {match[2]!r}, of which no run is stored"
            )
        return "\n".join([match[1], "\n\n".join(shown), "", match[3]])

    text = TABLES.sub(tables, text)
    for sentence in sentences().get(page, []):
        text = fill(text, sentence, lambda slot: written(slot, runs))
    return text


def pages_with_figures() -> list[Path]:
    """Return the README and the pages that have tables or sentences of stored runs."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        page
        for page in pages
        if page in sentences() or TABLES.search(page.read_text(encoding="utf-8"))
    ]


def main(write: bool) -> int:
    runs = stored_runs()
    stale = 0
    for page in pages_with_figures():
        before = page.read_text(encoding="utf-8")
        after = with_figures(page, before, runs)
        if after != before:
            stale += 1
            print(
                f"{page.relative_to(ROOT)}: "
                f"{'written' if write else 'not the figures of the stored runs'}"
            )
            if write:
                page.write_text(after, encoding="utf-8")
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
