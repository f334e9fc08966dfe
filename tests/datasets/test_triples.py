"""read_folder on knowledge graphs: triples in text files, and arrays with relations."""

from __future__ import annotations

import numpy as np
import pytest
from _support.text_folders import NAMES, ends, fresh, read, write_rows
from hypothesis import given, strategies as st

from nodeflow.datasets import read_folder


def test_triples_with_titles_by_number_and_without_validation(tmp_path):
    data = read(tmp_path, train_csv="Relation,Head,Tail\n5,0,1\n2,1,2\n", test_tsv="0\t2\t2\n")
    assert (data.node_names, data.relation_names) == (None, None)
    assert ends(data) == [[0, 1, 0], [1, 2, 2]]
    assert data.graph.edata["relation"].tolist() == [5, 2, 2]
    assert data.graph.edata["split"].tolist() == [0, 0, 2]


WORDS = NAMES.filter(lambda name: name[0] not in "#%")  # which may begin comments


@given(triples=st.lists(st.tuples(WORDS, WORDS, WORDS, st.integers(0, 2))))
def test_triples_are_read_back(tmp_path_factory, triples):
    folder = fresh(tmp_path_factory)
    # a first triple whose words are in no other row would be taken for titles
    triples = sorted(
        [("a b", "some relation", "c d", 0), *triples] * 2, key=lambda triple: triple[3]
    )
    for part, stem in enumerate(("train", "val", "test")):
        rows = [list(triple[:3]) for triple in triples if triple[3] == part]
        write_rows(folder / f"{stem}.tsv", rows, "\n", False)  # type: ignore[arg-type]
    data = read_folder(folder, labels=False)
    names = data.node_names
    relations = data.relation_names
    columns = zip(
        *ends(data),
        data.graph.edata["relation"].tolist(),
        data.graph.edata["split"].tolist(),
        strict=True,
    )
    assert [(names[u], relations[r], names[v], part) for u, v, r, part in columns] == triples


@pytest.mark.parametrize(("name", "relations"), [("fb15k237", 237), ("wn18rr", 11)])
def test_real_knowledge_graphs(name, relations, real_folder):  # type: ignore[no-untyped-def]
    data = read_folder(real_folder(name), labels=False)
    with np.load(real_folder(name) / "edges.npz") as stored:
        assert data.graph.num_nodes == stored["num_nodes"]
        assert ends(data) == [stored["src"].tolist(), stored["dst"].tolist()]
        sizes = np.bincount(stored["split"])
    assert list(data.graph.edata) == ["relation", "split"]
    assert int(data.graph.edata["relation"].max()) == relations - 1
    assert np.array_equal(np.bincount(data.graph.edata["split"]), sizes)
