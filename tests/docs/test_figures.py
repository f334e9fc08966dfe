"""Figures beside other libraries, in the README, pages and docstrings, are those of stored runs of
``make bench``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from _support.pages import ROOT

sys.path.append(str(ROOT / "benchmarks"))
try:
    from figures import TABLES, fill, pages_with_figures, sentences, with_figures, written
    from stored_runs import Beside, Row, Run, stored_runs
finally:
    sys.path.pop()  # benchmarks and tests both have a "calls"

RUNS = stored_runs()
MARKDOWN = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *(ROOT / "docs").rglob("*.md"),
]
MARKDOWN += [ROOT / folder / "README.md" for folder in ("benchmarks", "tests", "trials")]
_FOLDERS = ("nodeflow", "benchmarks", "scripts", "trials")
PROGRAMS = [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.py")]

PEERS = ("GraphBolt", "graphbolt", "Geometric", "PyG", "pyg", "DGL", "PyKEEN", "NeighborLoader")
PEER = re.compile(rf"\b(?:{'|'.join(PEERS)})\b")
"""Names of the libraries that nodeflow is measured beside."""

_PARTS = "half|third|quarter|fifth|sixth|tenth"
_TIMES = "twice|thrice|(?:two|three|four|five|six|seven|eight|nine|ten|twenty)\\s+times"
SPEED = re.compile(
    r"\d\s+times\b|\b0\.\d+\s+of\b|\d\s*%\s+(?:of|faster|slower|less|more)|factors?\s+of\s+\d|\d-fold|\d\s?(?:x\b|×)"
    rf"|\b(?:{_TIMES})\s+as\s+(?:fast|long|slow|quick)|\b(?:{_PARTS})\b[^.]*\btime\b"
    r"|\d\s*(?:ms|us|ns|s|seconds|minutes|hours)\b"
)
"""What figures of speed look like."""

TIMED = re.compile(r"\b(?:ms|us|ns|s|seconds|times?|ratio|fast|GB/s|edges/s)\b")
"""A word in the heading of a table of times or ratios."""


def names_a_peer(text: str) -> bool:
    """Whether a text may name another library; an expression takes long on a whole program."""
    return any(name in text for name in PEERS)


def prose_and_tables(text: str) -> Iterator[str]:
    """The paragraphs, points of lists, rows of tables of a text; a table of times is one piece,
    with its heading.
    """
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.lstrip().startswith("|"):
            yield from re.split(r"\n(?=\s*(?:[-*]|\d+\.)\s)", paragraph)
        elif TIMED.search(paragraph.lstrip().partition("\n")[0]):
            yield paragraph
        else:
            yield from paragraph.splitlines()


def claims(text: str) -> list[str]:
    """The pieces of a text that say how fast something is beside another library."""
    found = []
    for piece in prose_and_tables(text):
        if not names_a_peer(piece):
            continue
        words = re.sub(r"`[^`]*(?:python |make |--)[^`]*`", "", piece)  # a command is no claim
        table_of_times = words.lstrip().startswith("|") and "\n" in words.strip()
        if PEER.search(words) and (
            re.search(r"\|\s*\d", words) if table_of_times else SPEED.search(words)
        ):
            found.append(piece.strip())
    return found


def without_stored_figures(page: Path) -> str:
    """The text of a page without its tables of stored runs, and with no figure in the slots of its
    sentences.
    """
    text = TABLES.sub("", page.read_text(encoding="utf-8"))
    for sentence in sentences().get(page, []):
        text = fill(text, sentence, lambda _: "#")
    return text


def docstrings(program: Path) -> str:
    """The docstrings of a program that names another library, with arguments as paragraphs, and its
    comments.
    """
    text = program.read_text(encoding="utf-8")
    if not names_a_peer(text):
        return ""
    strings = re.findall(r'"""(.*?)"""', text, re.DOTALL)
    arguments_apart = [re.sub(r"\n(?= +\w+: )", "\n\n", string) for string in strings]
    return "\n\n".join([*arguments_apart, *re.findall(r"# .*", text)])


def prose_of(notebook: Path) -> str:
    """The cells of a notebook that are Markdown."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


# ------------------------------------------------------------------------------------------------------
# the documents


def test_figures_are_those_of_the_stored_runs():
    """``python benchmarks/figures.py --write`` writes them."""
    assert {
        ROOT / "README.md",
        ROOT / "docs" / "index.md",
        ROOT / "docs" / "performance.md",
    } <= sentences().keys()
    for page in pages_with_figures():
        text = page.read_text(encoding="utf-8")
        assert with_figures(page, text, RUNS) == text, page
        assert (
            text.count("<!-- tables of")
            == text.count("<!-- end of tables -->")
            == len(TABLES.findall(text))
        ), page


def test_no_other_figure_stands_beside_another_library():
    texts = {page: without_stored_figures(page) for page in MARKDOWN}
    texts |= {program: docstrings(program) for program in PROGRAMS}
    texts |= {notebook: prose_of(notebook) for notebook in (ROOT / "notebooks").glob("*.ipynb")}
    found = {str(path.relative_to(ROOT)): claims(text) for path, text in texts.items()}
    assert {name: pieces for name, pieces in found.items() if pieces} == {}


def test_pytorch_geometric_draws_with_one_library():
    """Its figures are those of pyg-lib: with torch-sparse it draws at another speed."""
    paths = [*MARKDOWN, *PROGRAMS, *(ROOT / "notebooks").glob("*.ipynb")]
    assert [
        str(path.relative_to(ROOT))
        for path in paths
        if "torch-sparse" in path.read_text(encoding="utf-8")
    ] == []
    assert not [run.peers for run in RUNS if re.search(r"torch.sparse", str(run.peers))]


def test_every_stored_run_is_shown_in_one_page():
    shown = [
        match[1] for page in MARKDOWN for match in TABLES.findall(page.read_text(encoding="utf-8"))
    ]
    assert sorted(shown) == sorted({run.command for run in RUNS})


def test_stored_ratios_are_those_of_the_stored_times():
    """Where nodeflow and its peer do the same work, that is where no edges are drawn at a rate."""
    steps = [row for run in RUNS for row in run.rows if "step" in row.work]
    assert len(steps) >= 5
    for row in steps:
        for peer in row.peers.values():
            assert peer.times == pytest.approx(peer.ms / row.ms, abs=0.051)


# --------------------------------------------------------------------------------------------------
# that they are seen


def test_a_changed_figure_is_seen():
    """In a sentence, in a table, in the line below it, and in a stored run."""
    readme = ROOT / "README.md"
    performance = ROOT / "docs" / "performance.md"
    changes = [
        (readme, "; LABOR | | "),
        (performance, "| LABOR-0 | 1 | "),
        (performance, "*Figures of 2026-"),
    ]
    for page, before in changes:
        text = page.read_text(encoding="utf-8")
        place = text.index(before) + len(before)
        changed = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
        assert with_figures(page, changed, RUNS) == text
    stored, *_ = (run for run in RUNS if run.command == "make bench")
    first = stored.rows[0]
    faster = replace(
        first, peers={name: replace(peer, times=99.9) for name, peer in first.peers.items()}
    )
    runs = [replace(run, rows=(faster, *run.rows[1:])) if run is stored else run for run in RUNS]
    for page in (readme, performance):
        assert "99.9" in with_figures(page, page.read_text(encoding="utf-8"), runs)


def test_a_sentence_that_is_not_in_its_page_is_seen():
    with pytest.raises(ValueError, match="0 times, not once: takes"):
        fill("it takes 8.8 hours", "takes {neighbours: ms} ms", str)
    with pytest.raises(ValueError, match="2 times"):
        fill("takes 1 ms, takes\n2.5 to 3 ms", "takes {neighbours: ms} ms", str)


def run_of(date: str, ms: float, **times: float) -> Run:
    peers = {name: Beside(2 * ms, number) for name, number in times.items()}
    row = Row("walks", 1, ms, peers, 0.0)
    return Run(date, f"machine {date}", "1.0", "2.0", dict.fromkeys(times, "peer"), 3, (row,))


def test_a_slot_is_a_figure_or_a_range_over_runs():
    runs = [
        run_of("b", 3.0, pyg=8.8),
        run_of("a", 1234.5, pyg=6.6, dgl=2.0),
        replace(run_of("c", 1.0), rows=()),
    ]
    slots = {
        "walks: times of pyg": "6.6 to 8.8",
        "walk*: times of dgl": "2.0",
        "walks: share of pyg": "0.50",
        "walks: ms": "3.00 to 1,234.50",
        "walks: runs": "machine b, b; machine a, a",
    }
    assert {slot: written(slot, runs) for slot in slots} == slots
    for slot in ("hops: ms", "walks: times of nobody", "walks: runs of nobody", "hops: runs"):
        with pytest.raises(ValueError, match=f"slot.*{slot.split(': ')[1]}"):
            written(slot, runs)


def test_claims_are_seen():
    for text in (
        "A step takes 0.55 to 0.70 of GraphBolt's\ntime.",
        "Neighbours are drawn 5 and 29\n  times as fast as by PyTorch\nGeometric.",
        "It is ten times as fast as DGL.",
        "A quarter of\nPyG's time.",
        "It needs half GraphBolt's time, that is, 2 × its speed.",
        "pyg-lib takes 87.2 ms.",
        "20 % faster than PyKEEN",
        "| | ms | ratio |\n|---|---|---|\n| nodeflow | 8.51 | 1 |\n| graphbolt | 42.27 | 4.97 |",
        "| question | answer |\n|---|---|\n| drawing | 29 times as fast as pyg-lib |",
    ):
        assert claims(text), text


def test_what_is_no_claim():
    assert claims("DGL 2.1.0 draws seeds twice.\n\nA step takes 0.62 of the time.") == []
    assert claims("`python benchmarks/typed.py --pyg PYTHON` takes 10 minutes") == []
