"""The script that makes the bundled data set, on a dump small enough to check by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nodeflow.datasets import _bundled as bundled

unpack = bundled._unpack
SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_debian.py"

DUMP = """\
Package: editor
Section: contrib/text
Depends: libedit (>= 2.0) | libedit-alt:any, virtual-thing, editor,
 libc (>= 1)
Pre-Depends: libc
Suggests: editor-doc [amd64], editor-doc
Description: a small editor for text, small
 A long part that says: nothing of use.

Package: libc
Section: libs
Description: shared library

Package: libedit
Section: libs
Recommends: libc
Description: shared library for editor programs

Package: libedit-alt
Section: libs

Package: editor-doc
Section: doc
Description: text

Package: libc
Section: doc
Description: second record of a name
"""


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_debian", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(script: ModuleType, dump: str, output: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    source = output.with_suffix(".txt")
    source.write_text(dump, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["make_debian.py", str(source), "--output", str(output)])
    script.main()
    return output.read_bytes()


def test_nodes_edges_and_classes(script):
    arrays = script.build(DUMP.splitlines(keepends=True))
    names = unpack(arrays["names"])
    assert names == ("editor", "editor-doc", "libc", "libedit", "libedit-alt")
    assert unpack(arrays["classes"]) == ("doc", "libs", "text")
    assert arrays["label"].tolist() == [2, 0, 1, 1, 1]
    src, kind = bundled._sources_and_kinds(arrays["edge_count"])
    edges = [
        (names[s], int(k), names[d]) for s, k, d in zip(src, kind, arrays["edge_dst"], strict=True)
    ]
    assert edges == [
        ("editor", 0, "libc"),
        ("editor", 0, "libedit"),
        ("editor", 0, "libedit-alt"),
        ("editor", 1, "libc"),
        ("editor", 3, "editor-doc"),
        ("libedit", 2, "libc"),
    ]


def test_features_are_tf_idf(script):
    arrays = script.build(DUMP.splitlines(keepends=True))
    words = unpack(arrays["words"])
    assert words == ("editor", "library", "shared", "text", "programs", "small")
    features = bundled._tf_idf(
        arrays["word_count"], arrays["word_id"], arrays["word_tf"], len(words)
    ).to_dense()
    bags = [
        {"editor": 1, "small": 2, "text": 1},
        {"text": 1},
        {"library": 1, "shared": 1},
        {"shared": 1, "library": 1, "editor": 1, "programs": 1},
        {},
    ]
    expected = np.zeros((5, 6))
    for v, bag in enumerate(bags):
        for w, tf in bag.items():
            expected[v, words.index(w)] = tf * np.log(5 / sum(w in other for other in bags))
        expected[v] /= max(np.linalg.norm(expected[v]), 1e-300)
    np.testing.assert_allclose(features.numpy(), expected, atol=1e-7)


def test_split_is_a_seeded_permutation(script):
    dump = "\n\n".join(f"Package: p{i:03}\nSection: libs" for i in range(100))
    split = script.build(dump.splitlines())["split"]
    assert np.bincount(split).tolist() == [50, 25, 25]
    order = np.random.default_rng(0).permutation(100)
    assert (split[order[:50]] == 0).all()


def test_same_file_whatever_the_order_of_records(script, tmp_path, monkeypatch):
    records = DUMP.split("\n\n")
    first = make(script, DUMP, tmp_path / "one.npz", monkeypatch)
    again = make(script, DUMP, tmp_path / "two.npz", monkeypatch)
    # the last record repeats a name, and the first of a name counts: it stays last
    turned = make(
        script, "\n\n".join([*records[-2::-1], records[-1]]), tmp_path / "three.npz", monkeypatch
    )
    assert first == again == turned


def test_bundled_file_has_the_arrays_the_script_writes(script):
    made = script.build(DUMP.splitlines())
    with np.load(script.DEFAULT_OUTPUT, allow_pickle=False) as stored:
        assert list(made) == stored.files
        kinds = {name: stored[name].dtype.kind for name in stored.files}
    assert {name: array.dtype.kind for name, array in made.items()} == kinds


@pytest.mark.parametrize(
    ("dump", "message"),
    [("", "no records"), ("Package: a\n\nPackage: b\nSection: x\n", "record 1 of the dump has no")],
)
def test_bad_dump(script, dump, message):
    with pytest.raises(ValueError, match=message):
        script.build(dump.splitlines())


def test_names_in_a_relation(script):
    relation = "a (>= 1), b:any | c [amd64], d<!nocheck> |e(= 2),, "
    assert list(script.named_packages(relation)) == ["a", "b", "c", "d", "e"]
