"""A model on data that are read again with their words in another order: everything goes by
name.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import Cli, rows_of, status
from _support.run_files import write_tensors

from nodeflow import Graph
from nodeflow.datasets import Dataset, features_of, read_folder
from nodeflow.training import _data, _names, open_finished

Names = _names.Names

pytestmark = pytest.mark.usefixtures("here")

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row]]
OPTIONS = "--epochs 3 --hidden 8 --fanouts 3 --lr 0.05 --no-plot --batch-size 32"
KINDS = {"cat": 0.0, "dog": 1.0, "eel": 2.0}


def people() -> tuple[list[Row], list[Row]]:
    """Forty people, the first column of whom tells their class, and the edges of two kinds between
    them.
    """
    draw = random.Random(0)
    label = [draw.choice([*KINDS]) for _ in range(40)]
    nodes = [
        {"name": f"p{i}", "label": label[i], "x1": KINDS[label[i]], "x2": draw.gauss(0, 1)}
        for i in range(40)
    ]
    edges = [{"src": f"p{draw.randrange(40)}", "dst": f"p{draw.randrange(40)}"} for _ in range(160)]
    for edge in edges:
        edge["kind"] = draw.choice(["knows", "hates"])
    return nodes, edges


def write(place: Path | str, nodes: list[Row], edges: list[Row]) -> Path:
    folder = Path(place)
    folder.mkdir()
    for name, rows in (("nodes", nodes), ("edges", edges)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0], extrasaction="ignore")
            table.writeheader()
            table.writerows(rows)
    return folder


def titled(nodes: list[Row], *titles: str, **renamed: str) -> list[Row]:
    return [{renamed.get(title, title): node[title] for title in titles} for node in nodes]


def with_entry(rows: list[Row], **entries: object) -> list[Row]:
    return [row | entries for row in rows]


def as_they_are(rows: list[Row]) -> list[Row]:
    return rows


def empty_but(kept: str) -> Change:
    return lambda nodes: [{**n, "label": n["label"] if n["label"] == kept else ""} for n in nodes]


LAYOUTS: dict[str, tuple[Change, Change]] = {
    "as they are": (as_they_are, as_they_are),
    "without labels": (lambda nodes: titled(nodes, "name", "x1", "x2"), as_they_are),
    "columns swapped": (lambda nodes: titled(nodes, "name", "x2", "label", "x1"), as_they_are),
    "rows reversed": (lambda nodes: nodes[::-1], as_they_are),
    "classes from the last": (
        lambda nodes: sorted(nodes, key=itemgetter("label"), reverse=True),
        as_they_are,
    ),
    "edges by kind": (
        as_they_are,
        lambda edges: sorted(edges, key=lambda edge: edge["kind"] == edges[0]["kind"]),
    ),
    "labels all empty": (empty_but("none"), as_they_are),
    "a relation of another data set": (
        as_they_are,
        lambda edges: [{**edge, "relation": f"r{i % 2}"} for i, edge in enumerate(edges)],
    ),
    "a type that all share": (as_they_are, lambda edges: with_entry(edges, type="Directed")),
    "one class alone": (empty_but("eel"), as_they_are),
}


def predicted(cli: Cli, run: Path, data: Path) -> dict[str, Row]:
    cli("predict", run, "--data", data, "--output out.csv")
    return {row["name"]: row for row in rows_of(Path("out.csv"))}


RUNS = {
    "sage": "--model sage",
    "drawn by kind": "--sampler-option edge_type=kind",
    "rgcn": "--model rgcn",
    "rows of nodes": "--inputs embedding --embedding 8",
    "both": "--model rgcn --inputs both --embedding 8",
}


@pytest.mark.parametrize("run", RUNS)
def test_predictions_go_by_name(run, cli):
    nodes, edges = people()
    own = write("people", nodes, edges)
    cli("train", own, OPTIONS, RUNS[run], "--output run")
    right = predicted(cli, Path("run"), own)
    measured = cli("evaluate run --data", own).splitlines()[1:]
    assert len({row["class_name"] for row in right.values()}) > 1
    for name, (of_nodes, of_edges) in LAYOUTS.items():
        data = write(name, of_nodes(nodes), of_edges(edges))
        for node, row in predicted(cli, Path("run"), data).items():
            wanted = right[node]
            assert (row["class"], row["class_name"]) == (wanted["class"], wanted["class_name"])
            assert float(row["probability"]) == pytest.approx(
                float(wanted["probability"]), rel=1e-4
            )
        if name in ("columns swapped", "edges by kind"):  # of the same split
            assert cli("evaluate run --data", data).splitlines()[1:] == measured


NEW = {"name": "new", "label": "cat", "x1": 0, "x2": 0}
TO_NEW = {"src": "p0", "dst": "new", "kind": "knows"}
REFUSED: list[tuple[Change, Change, str]] = [
    (
        lambda n: titled(n, "name", "x1", "x2", x1="height", x2="weight"),
        as_they_are,
        "'x1', which is missing",
    ),
    (
        lambda n: titled(n, "name", "x2"),
        as_they_are,
        "the model reads 'x1', which is missing",
    ),
    (lambda n: with_entry(n, x3=1), as_they_are, "the model knows no 'x3'; leave it out"),
    (
        lambda n: titled(n, "name"),
        as_they_are,
        "has no features of 'node', which the model reads",
    ),
    (
        lambda n: [{**n[0], "label": "fox"}, *n[1:]],
        as_they_are,
        "label in data set 'other': the model knows no 'fox'",
    ),
    (lambda n: with_entry(n, label=1), as_they_are, "has numbers, and the model knows names"),
    (
        as_they_are,
        lambda e: [{**e[0], "kind": "envies"}, *e[1:]],
        "'other': the model knows no 'envies'",
    ),
    (as_they_are, lambda e: with_entry(e, kind=1), "has numbers, and the model knows names"),
    (as_they_are, lambda e: titled(e, "src", "dst"), "has no edge column 'kind'"),
    (
        lambda n: [*n, NEW],
        lambda e: [*e, TO_NEW],
        "none for node 'new' of data set 'other'",
    ),
]


@pytest.mark.parametrize(("of_nodes", "of_edges", "words"), REFUSED, ids=range(10))
def test_what_has_no_name_in_the_model_is_refused(of_nodes, of_edges, words, finished, cli):
    nodes, edges = people()
    data = write("other", of_nodes(nodes), of_edges(edges))
    for command in ("evaluate", "predict --output x.csv"):
        assert words in cli.failure(command, finished, "--data", data)
        assert not Path("x.csv").exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a relational model with features and a learned row per node."""
    place = tmp_path_factory.mktemp("names")
    own = write(place / "people", *people())
    assert status(["train", own, OPTIONS, RUNS["both"], "--output", place / "run"]) == 0
    return place / "run"


def test_a_finished_run_is_opened_for_other_data(finished, tmp_path):
    nodes, edges = people()
    other = read_folder(
        write("other", titled(nodes[::-1], "name", "x2", "x1"), edges[::-1]),
        labels=False,
    )
    own = open_finished(finished)
    new = open_finished(finished, other)
    rows = [(own.task.dataset.node_names or ()).index(name) for name in other.node_names or ()]
    torch.testing.assert_close(new.outputs(torch.arange(40)), own.outputs(torch.tensor(rows)))
    assert new.task.dataset.class_names == own.task.dataset.class_names


def test_several_labels_per_node_go_by_name(tmp_path, cli):
    nodes, edges = people()
    several = [
        {**node, "label": f"{node['label']};tame" if i % 2 else node["label"]}
        for i, node in enumerate(nodes)
    ]
    own = write("people", several, edges)
    cli("train", own, OPTIONS, "--output run")
    turned = [{**node, "label": ";".join(node["label"].split(";")[::-1])} for node in several]
    other = write("other", turned[::-1], edges)
    data = read_folder(other)
    names = Names.of(read_folder(own))
    assert (*names.classes,) != data.class_names
    right = predicted(cli, Path("run"), own)
    shown = predicted(cli, Path("run"), other)
    for node, row in right.items():
        assert list(shown[node]) == list(row)
        for title in ("tame", *KINDS):
            assert float(shown[node][title]) == pytest.approx(float(row[title]), rel=1e-4)
    label = names.align(data).graph.ndata["label"]
    columns = [data.class_names.index(name) for name in names.classes]
    assert label.equal(data.graph.ndata["label"][:, columns])


# graphs of several types

TYPES: list[Any] = ["author", "paper", "venue"]
RELATIONS = [("author", "writes", "paper"), ("paper", "cites", "paper"), ("paper", "at", "venue")]


def papers(types: list[str], relations: list[Any], turned: bool) -> Dataset:
    """Papers with two features and a class, authors with features, venues without; ``turned``:
    columns turned.
    """
    draw = np.random.default_rng(0)
    sizes = {"author": 20, "paper": 30, "venue": 4}
    ends = {
        (a, name, b): (draw.integers(0, sizes[a], 60), draw.integers(0, sizes[b], 60))
        for a, name, b in RELATIONS
    }
    columns = {
        name: torch.from_numpy(draw.normal(size=(sizes[name], 2))).float()
        for name in ("author", "paper")
    }
    label = (columns["paper"][:, 0] > 0).long()
    step = -1 if turned else 1
    nodes: dict[str, Any] = {
        name: {"x": columns[name].flip(1) if turned else columns[name]}
        if name in columns
        else sizes[name]
        for name in types
    }
    nodes["paper"] |= {"y": label, "train": torch.ones(30, dtype=torch.bool)}
    names = {name: (f"{name} a", f"{name} b")[::step] for name in columns}
    return Dataset(
        "papers", Graph.typed(nodes, {r: ends[r] for r in relations}), feature_names=names
    )


@pytest.mark.parametrize("model", ["rgcn", "hgt", "typed"])
def test_types_and_relations_go_by_name(model, cli):
    papers(TYPES, RELATIONS, turned=False).save("own")
    cli("train own --target paper --output run", OPTIONS, f"--model {model}")
    papers(TYPES[::-1], RELATIONS[::-1], turned=True).save("other")
    for name in ("own", "other"):
        cli(f"predict run --data {name} --output {name}.npy")
    np.testing.assert_allclose(np.load("other.npy"), np.load("own.npy"), rtol=1e-4, atol=1e-5)
    papers(TYPES, RELATIONS[:2], turned=False).save("dropped")
    words = "relation of the data: the model reads ('paper', 'at', 'venue'), which is missing"
    assert words in cli.failure("evaluate run --data dropped")


def test_the_type_that_was_learned_is_kept(cli):
    """Other data may have labels of another type, or of none."""
    own = papers(TYPES, RELATIONS, turned=False)
    own.save("own")
    cli("train own", OPTIONS, "--model typed --output run")
    label = own.graph.nodes["paper"].data.pop("y")
    own.save("without")
    own.graph.nodes["author"].data["y"] = label[:20]
    own.save("of_authors")
    tables = []
    for name in ("own", "without", "of_authors"):
        cli(f"predict run --data {name} --output out.csv")
        tables.append(Path("out.csv").read_text())
    assert tables[0].count("\n") == 31
    assert tables == tables[:1] * 3
    assert "no labels of 'paper'" in cli.failure("evaluate run --data of_authors")


def test_names_of_typed_features_go_through_folders():
    data = papers(TYPES, RELATIONS, turned=False)
    data.save("own")
    assert read_folder("own", labels=False).names_of_features() == data.names_of_features()
    for name, count in (("paper", 2), ("venue", 0)):
        words = f"feature_names for '{name}' must be None or hold {count} names, got 1"
        with pytest.raises(ValueError, match=words):
            replace(data, feature_names={name: ("one",)})


# links


def test_answers_of_learned_rows_go_by_name(cli):
    _, edges = people()
    data = write_edges("own", edges)
    cli("train", data, "--task link --model none --decoder complex --embedding 8 --epochs 5")
    answers = []
    for place in (data, write_edges("other", edges[::-1])):
        cli("predict runs/latest --data", place, "--output out.csv --top 2 --with-known")
        answers.append(
            {
                (row["name"], row["relation_name"], row["rank"]): row["answer_name"]
                for row in rows_of(Path("out.csv"))
            }
        )
    assert answers[0] == answers[1]
    lost = write_edges("lost", [*edges, {"src": "p1", "dst": "stranger", "kind": "knows"}])
    words = "none for node 'stranger' of data set 'lost'"
    assert words in cli.failure("predict runs/latest --output out.csv --data", lost)


def write_edges(place: str, edges: list[Row]) -> Path:
    folder = Path(place)
    folder.mkdir()
    lines = [",".join(edge.values()) for edge in edges]
    (folder / "edges.csv").write_text("\n".join(["src,dst,kind", *lines]))
    return folder


# the names themselves


@pytest.mark.parametrize("named", [False, True])
def test_parts_have_the_names_of_their_data_set(named, tmp_path, cli):
    """A checkpoint of a run on parts finds its rows in the data set."""
    nodes, edges = people()
    words = {f"p{i}": f"p{i}" if named else str(i) for i in range(40)}
    edges = [{**edge, "src": words[edge["src"]], "dst": words[edge["dst"]]} for edge in edges]
    place = write("people", [{**node, "name": words[node["name"]]} for node in nodes], edges)
    parts = Path("parts")
    cli("partition", place, "--for processes --parts 2 --method hash --output parts")
    data = read_folder(place)
    names = _data.read_names(parts)
    assert names is not None
    expected = Names.of(data)
    assert (names.classes, names.features, names.categories) == (
        expected.classes, expected.features, expected.categories,
    )  # fmt: skip
    learned = replace(names, schema=data.graph.schema)
    assert learned.rows(data, "").tolist() == [*range(40)]
    (parts / "names.safetensors").unlink()  # as cut in Python
    assert _data.read_names(parts) is None
    write_tensors(parts / "names.safetensors", {}, {"classes": None})
    with pytest.raises(ValueError, match=r"names\.safetensors is damaged, or no file of names"):
        _data.read_names(parts)


def test_partitions_of_other_kinds_of_edges_are_refused(tmp_path, cli):
    """The same graph, whose kinds of edges were numbered the other way when it was cut."""
    nodes, edges = people()
    other = {"knows": "hates", "hates": "knows"}
    swapped = [{**edge, "kind": other[edge["kind"]]} for edge in edges]
    own = write("own", nodes, edges)
    cut = write("cut", nodes, swapped)
    run = ["train own --output run --model rgcn --storage partitions --partitions parts --slots 2"]
    run.append(OPTIONS)
    for data in (cut, own):
        cli("partition", data, "--parts 2 --direction both --output parts --overwrite")
        if data is own:
            cli(*run)
            cli("evaluate run")
        else:
            assert "its words of edge column 'kind' are" in cli.failure(*run)


def test_ids_are_the_names_of_nodes_without_names():
    """A table of rows learned on ids 0 to 4; names that are integers are the same words."""

    def data(count: int, names: tuple[str, ...] | None = None) -> Dataset:
        return Dataset("ids", Graph.from_edges([0], [1], num_nodes=count), node_names=names)

    learned = replace(Names.of(data(5)), schema=data(5).graph.schema)
    assert learned.rows(data(3), "").tolist() == [0, 1, 2]
    assert learned.rows(data(3, ("4", "0", "2")), "").tolist() == [4, 0, 2]
    for other, node in ((data(6), "5"), (data(2, ("1", "01")), "'01'")):
        with pytest.raises(ValueError, match=f"none for node {node} of data set 'ids'"):
            learned.rows(other, "")
    twice = replace(learned, nodes=torch.ones(5, dtype=torch.int64))
    with pytest.raises(ValueError, match="share a name"):
        twice.rows(data(3), "")


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_put_in_the_order_of_the_model(sparse):
    x = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    graph = Graph.from_edges(
        [0], [1], num_nodes=2, ndata={"feat": x.to_sparse_csr() if sparse else x}
    )
    data = Dataset("x", graph, feature_names=("a", "b", "c"))
    names = Names(None, {"node": ["c", "a", "b"]}, {"node": "feat"}, {})
    aligned = names.align(data)
    column = aligned.graph.ndata["feat"]
    assert isinstance(column, torch.Tensor)
    assert torch.equal(column.to_dense() if sparse else column, x[:, [2, 0, 1]])
    assert aligned.names_of_features() == {"node": ("c", "a", "b")}
    assert graph.ndata["feat"] is data.graph.ndata["feat"]
    with pytest.raises(ValueError, match="'a' is there twice, so it cannot be matched by name"):
        names.align(replace(data, feature_names=("a", "a", "b")))
    assert Names.from_json(names.to_json()).features == names.features


def test_columns_of_features_that_the_model_did_not_learn_from_are_left_out():
    feat = torch.zeros(2, 3)
    x = torch.ones(2, 3)

    def data(**columns: torch.Tensor) -> Dataset:
        return Dataset("x", Graph.from_edges([0], [1], num_nodes=2, ndata={**columns}))

    learned = Names.from_json(Names.of(data(x=x)).to_json())
    assert features_of(learned.align(data(feat=feat, x=x)).graph)["node"] is x
    # another title for the only ones
    assert features_of(learned.align(data(feat=feat)).graph)["node"] is feat
    assert (
        features_of(Names.of(data(feat=feat, x=x)).align(data(feat=feat, x=x)).graph)["node"]
        is feat
    )
    assert not features_of(Names.of(data()).align(data(feat=feat)).graph)


def test_categories_that_no_edge_has_keep_their_numbers(tmp_path, cli):
    """The reverses of edges have kinds of their own, after all that the model knows."""
    nodes, edges = people()
    some = [edge for edge in edges if edge["kind"] == edges[0]["kind"]]
    own = write("people", nodes, edges)
    cli("train", own, OPTIONS, "--model rgcn --output run")
    by_kind = sorted(edges, key=lambda edge: edge["kind"] != edges[0]["kind"])
    words = ["src,dst,kind", *(",".join(edge.values()) for edge in some)]
    other = write("other", nodes, by_kind)
    (other / "edges.csv").write_text("\n".join(words))
    data = read_folder(other)
    names = Names.of(read_folder(own))
    assert names.align(data).category_names["kind"] == (*(names.categories["kind"] or ()),)
    cli("evaluate run --data", other)
