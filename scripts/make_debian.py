"""Make the bundled data set ``debian`` from a dump of Debian's package index.

    apt-cache -o Dir::State::status=/dev/null dumpavail | python scripts/make_debian.py
    python scripts/make_debian.py dump.txt --output nodeflow/datasets/debian.npz

The option keeps the packages installed on the machine out of the dump: without it ``apt-cache``
prints an installed package as it is installed, from whatever archive it came, in place of what the
index says of it. The same dump gives the same file, byte for byte, whatever the order of its
records (given one version of zlib; the arrays in it never differ).

What it makes:

- Nodes: the packages, sorted by name (by code point). Where a name appears more than once, its
  first record counts.
- Edges: package -> package it names, from four fields, which are the four kinds of edge: 0
  ``Depends``, 1 ``Pre-Depends``, 2 ``Recommends``, 3 ``Suggests``. All alternatives (``a | b``)
  count; version constraints and architecture qualifiers are dropped, and so are names that are not
  in the index (virtual packages) and packages that name themselves. One edge for each (package,
  kind, package named); edges are sorted by these three.
- Labels: ``Section`` without the archive area in front of it (``contrib/``, ``non-free/``, ...).
  Classes are numbered in alphabetical order.
- Features: TF-IDF of the short description (first line of ``Description``) over its 2,000 commonest
  words. A word is a run of two or more of ``a-z0-9`` with a letter in it, in lower case, outside a
  short list of English function words; commonest = in most descriptions, ties in alphabetical
  order. With tf = times the word is in the description, N = number of packages, df = number of
  descriptions that have the word:

      x[v, w] = tf[v, w] * ln(N / df[w]),   then every row divided by its Euclidean norm

  ("tfc" of Salton & Buckley, Term-weighting approaches in automatic text retrieval, Information
  Processing & Management 24(5), 1988.)
- Split: ``numpy.random.default_rng(0).permutation(num_nodes)``: the first half is for training, the
  next quarter for validation, the rest for testing.

What is in the file (plain arrays, no pickles; strings are UTF-8 bytes, joined by newlines):

    names, classes, words           uint8 [*]           package, class and vocabulary strings
    label                           uint8 [num_nodes]   class of each package
    split                           uint8 [num_nodes]   0 train, 1 validation, 2 test
    edge_count                      uint16 [4, num_nodes]  edges of each kind out of each node
    edge_dst                        uint16 or uint32 [num_edges]  targets, in edge order
    word_count                      uint8 [num_nodes]   distinct vocabulary words in each description
    word_id, word_tf                uint16, uint8 [nnz] column and tf of each non-zero, in CSR order

The loader, ``nodeflow.datasets.debian``, rebuilds sources, IDF and norms from these.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

KINDS = ("Depends", "Pre-Depends", "Recommends", "Suggests")
FIELDS = frozenset({"Package", "Section", "Description", *KINDS})
NUM_WORDS = 2000
SPLIT_SEED = 0
WORD = re.compile(r"[a-z0-9]*[a-z][a-z0-9]*")
FUNCTION_WORDS = """
    a an and any are as at based be by can for from in into is it its no not of on or other that the their
    this to up using via which with without you your
"""
STOP_WORDS = frozenset(FUNCTION_WORDS.split())
DEFAULT_OUTPUT = Path(__file__).resolve().parent.parent / "nodeflow" / "datasets" / "debian.npz"


def read_records(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield each record of a control file (Debian Policy, section 5.1) as ``{field: value}``, for
    the fields used.

    Folded fields are joined with a space, except the long part of ``Description``, which is left
    out.
    """
    record: dict[str, str] = {}
    field = ""
    for line in lines:
        line = line.rstrip("\n")
        if not line.strip():
            if record:
                yield record
            record = {}
            field = ""
        elif line[0] in " \t":
            if field and field != "Description":
                record[field] += " " + line.strip()
        else:
            field, _, value = line.partition(":")
            if field in FIELDS:
                record[field] = value.strip()
            else:
                field = ""
    if record:
        yield record


def named_packages(relation: str) -> Iterator[str]:
    """Yield the names in a relation field: ``"a (>= 1), b:any | c [amd64]"`` -> a, b, c."""
    for term in re.split(r"[,|]", relation):
        name = re.split(r"[\s:(\[<]", term.strip(), maxsplit=1)[0]
        if name:
            yield name


def words_of(description: str) -> list[str]:
    """Return the words of a description, in order, with repeats."""
    return [w for w in WORD.findall(description.lower()) if len(w) > 1 and w not in STOP_WORDS]


def build_edges(
    records: list[dict[str, str]], ids: dict[str, int]
) -> dict[str, NDArray[np.generic]]:
    """Return ``edge_count`` and ``edge_dst`` for ``records``, which are in the order of ``ids``."""
    edges = set()
    for src, record in enumerate(records):
        for kind, field in enumerate(KINDS):
            for name in named_packages(record.get(field, "")):
                dst = ids.get(name, src)
                if dst != src:
                    edges.add((src, kind, dst))
    table = np.array(sorted(edges), dtype=np.int64).reshape(-1, 3)
    counts = np.zeros((len(KINDS), len(records)), dtype=np.uint16)
    np.add.at(counts, (table[:, 1], table[:, 0]), 1)
    return {
        "edge_count": counts,
        "edge_dst": table[:, 2].astype(np.min_scalar_type(max(len(records) - 1, 0))),
    }


def build_features(
    records: list[dict[str, str]],
) -> tuple[list[str], dict[str, NDArray[np.generic]]]:
    """Return the vocabulary, commonest word first, and the arrays ``word_count``, ``word_id`` and
    ``word_tf``.
    """
    bags = [Counter(words_of(record.get("Description", ""))) for record in records]
    df = Counter(word for bag in bags for word in bag)
    vocabulary = sorted(df, key=lambda word: (-df[word], word))[:NUM_WORDS]
    column = {word: i for i, word in enumerate(vocabulary)}
    rows = [
        sorted((column[word], tf) for word, tf in bag.items() if word in column) for bag in bags
    ]
    entries = np.array([entry for row in rows for entry in row], dtype=np.int64).reshape(-1, 2)
    return vocabulary, {
        "word_count": np.array([len(row) for row in rows], dtype=np.uint8),
        "word_id": entries[:, 0].astype(np.uint16),
        "word_tf": entries[:, 1].astype(np.uint8),
    }


def pack(strings: list[str]) -> NDArray[np.uint8]:
    """Return the strings as UTF-8 bytes joined by newlines, uint8 [*]."""
    return np.frombuffer("\n".join(strings).encode(), dtype=np.uint8)


def build(lines: Iterable[str]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of the data set, in the order they are written; ``lines`` are those of the
    dump.
    """
    by_name: dict[str, dict[str, str]] = {}
    for number, record in enumerate(read_records(lines), start=1):
        if "Package" not in record or "Section" not in record:
            raise ValueError(
                f"record {number} of the dump has no Package or no Section: got {record}"
            )
        by_name.setdefault(record["Package"], record)
    if not by_name:
        raise ValueError(
            "the dump has no records; pipe the output of `apt-cache dumpavail` into this script"
        )
    names = sorted(by_name)
    records = [by_name[name] for name in names]
    sections = [record["Section"].rpartition("/")[2] for record in records]
    classes = sorted(set(sections))
    number_of = {section: i for i, section in enumerate(classes)}
    vocabulary, features = build_features(records)

    split = np.full(len(names), 2, dtype=np.uint8)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(names))
    half = len(names) // 2
    quarter = len(names) // 4
    split[order[:half]] = 0
    split[order[half : half + quarter]] = 1
    return {
        "names": pack(names),
        "classes": pack(classes),
        "words": pack(vocabulary),
        "label": np.array([number_of[section] for section in sections], dtype=np.uint8),
        "split": split,
        **build_edges(records, {name: i for i, name in enumerate(names)}),
        **features,
    }


def main() -> None:
    """Read the dump, write the file and print what is in it."""
    parser = argparse.ArgumentParser(
        description="Make nodeflow/datasets/debian.npz from a dump of the package index."
    )
    parser.add_argument(
        "dump", nargs="?", type=Path, help="file with the dump (default: standard input)"
    )
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="default: %(default)s")
    options = parser.parse_args()
    if options.dump is None:
        sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        arrays = build(sys.stdin)
    else:
        with options.dump.open(encoding="utf-8") as lines:
            arrays = build(lines)
    np.savez_compressed(options.output, allow_pickle=False, **arrays)
    print(
        f"{options.output}: {len(arrays['label']):,} packages, {len(arrays['edge_dst']):,} edges, "
        f"{int(arrays['label'].max()) + 1} classes, {len(arrays['word_id']):,} non-zero features, "
        f"{options.output.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
