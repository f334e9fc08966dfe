"""A model on data that are read again with their words in another order: everything goes by
name.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import Cli, status

from nodeflow import Graph
from nodeflow.datasets import Dataset, features_of, read_folder
from nodeflow.distributed import GraphParts
from nodeflow.training import open_finished
from nodeflow.training._checkpoints import write_tensors
from nodeflow.training._data import _names_of_parts
from nodeflow.training._names import Names

Row = dict[str, Any]
OPTIONS = [
    "--epochs 3 --hidden 8 --fanouts 3 --lr 0.05 --no-plot --batch-size 32",
]
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


def write(folder: Path, nodes: list[Row], edges: list[Row]) -> Path:
    folder.mkdir()
    for name, rows in (("nodes", nodes), ("edges", edges)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, rows[0], extrasaction="ignore")
            table.writeheader()
            table.writerows(rows)
    return folder


def titled(nodes: list[Row], *titles: str, **renamed: str) -> list[Row]:
    return [{renamed.get(title, title): node[title] for title in titles} for node in nodes]


LAYOUTS: dict[str, Callable[[list[Row], list[Row]], tuple[list[Row], list[Row]]]] = {
    "as they are": lambda nodes, edges: (nodes, edges),
    "without labels": lambda nodes, edges: (titled(nodes, "name", "x1", "x2"), edges),
    "columns swapped": lambda nodes, edges: (titled(nodes, "name", "x2", "label", "x1"), edges),
    "rows reversed": lambda nodes, edges: (nodes[::-1], edges),
    "classes from the last": lambda nodes, edges: (
        sorted(nodes, key=lambda node: str(node["label"]))[::-1],
        edges,
    ),
    "edges by kind": lambda nodes, edges: (
        nodes,
        sorted(edges, key=lambda e: e["kind"] == edges[0]["kind"]),
    ),
    "labels all empty": lambda nodes, edges: ([{**node, "label": ""} for node in nodes], edges),
    "a relation of another data set": lambda nodes, edges: (
        nodes,
        [{**edge, "relation": f"r{i % 2}"} for i, edge in enumerate(edges)],
    ),
    "a type that all share": lambda nodes, edges: (
        nodes,
        [{**edge, "type": "Directed"} for edge in edges],
    ),
    "one class alone": lambda nodes, edges: (
        [{**n, "label": n["label"] if n["label"] == "eel" else ""} for n in nodes],
        edges,
    ),
}


def predicted(cli: Cli, run: Path, data: Path) -> dict[str, Row]:
    file = data.parent / "out.csv"
    cli("predict", run, "--data", data, "--output", file)
    with file.open(newline="") as lines:
        return {row["name"]: row for row in csv.DictReader(lines)}


RUNS = {
    "sage": [],
    "drawn by kind": ["--sampler-option edge_type=kind"],
    "rgcn": ["--model rgcn"],
    "rows of nodes": ["--inputs embedding --embedding 8"],
    "both": ["--model rgcn --inputs both --embedding 8"],
}


@pytest.mark.parametrize("run", RUNS)
def test_predictions_go_by_name(run: str, tmp_path: Path, cli: Cli) -> None:
    own = write(tmp_path / "people", *people())
    cli("train", own, *OPTIONS, *RUNS[run], "--output", tmp_path / "run")
    right = predicted(cli, tmp_path / "run", own)
    measured = cli("evaluate", tmp_path / "run", "--data", own).splitlines()[1:]
    assert len({row["class_name"] for row in right.values()}) > 1
    for name, change in LAYOUTS.items():
        data = write(tmp_path / name, *change(*people()))
        for node, row in predicted(cli, tmp_path / "run", data).items():
            wanted = right[node]
            assert (row["class"], row["class_name"]) == (wanted["class"], wanted["class_name"])
            assert float(row["probability"]) == pytest.approx(
                float(wanted["probability"]), rel=1e-4
            )
        if name in ("columns swapped", "edges by kind"):  # of the same split
            assert cli("evaluate", tmp_path / "run", "--data", data).splitlines()[1:] == measured


def _edge(name: str) -> Row:
    return {"src": "p0", "dst": name, "kind": "knows"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda n, e: (titled(n, "name", "x1", "x2", x1="height", x2="weight"), e), "'x1', which "
                                                                                    "is missing"),
        (lambda n, e: (titled(n, "name", "x2"), e), "the model reads 'x1', which is missing"),
        (lambda n, e: ([{**node, "x3": 1} for node in n], e), "the model knows no 'x3'; leave it "
                                                              "out"),
        (lambda n, e: (titled(n, "name"), e), "has no features of 'node', which the model reads"),
        (lambda n, e: ([{**n[0], "label": "fox"}, *n[1:]], e), "label in data set 'other': the "
                                                               "model knows no 'fox'"),
        (lambda n, e: ([{**node, "label": 1} for node in n], e), "has numbers, and the model knows "
                                                                 "names"),
        (lambda n, e: (n, [{**e[0], "kind": "envies"}, *e[1:]]), "'other': the model knows no "
                                                                 "'envies'"),
        (lambda n, e: (n, [{**edge, "kind": 1} for edge in e]), "has numbers, and the model knows "
                                                                "names"),
        (lambda n, e: (n, titled(e, "src", "dst")), "has no edge column 'kind'"),
        (lambda n, e: ([*n, {**n[0], "name": "new"}], [*e, _edge("new")]), "none for node 'new' of "
                                                                           "data set 'other'"),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_has_no_name_in_the_model_is_refused(
    change: Any, words: str, finished: Path, tmp_path: Path, cli: Cli
) -> None:
    data = write(tmp_path / "other", *change(*people()))
    for command in (["evaluate"], ["predict --output", tmp_path / "x.csv"]):
        assert words in cli.failure(*command, finished, "--data", data)
        assert not (tmp_path / "x.csv").exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a relational model with features and a learned row per node."""
    place = tmp_path_factory.mktemp("names")
    words = [
        "train",
        write(place / "people", *people()),
        *OPTIONS,
        *RUNS["both"],
        "--output",
        place / "run",
    ]
    assert status(words) == 0
    return place / "run"


def test_a_finished_run_is_opened_for_other_data(finished: Path, tmp_path: Path) -> None:
    nodes, edges = people()
    other = read_folder(
        write(tmp_path / "other", titled(nodes[::-1], "name", "x2", "x1"), edges[::-1]),
        labels=False,
    )
    own = open_finished(finished)
    new = open_finished(finished, other)
    rows = [(own.task.dataset.node_names or ()).index(name) for name in other.node_names or ()]
    torch.testing.assert_close(new.outputs(torch.arange(40)), own.outputs(torch.tensor(rows)))
    assert new.task.dataset.class_names == own.task.dataset.class_names


def test_several_labels_per_node_go_by_name(tmp_path: Path, cli: Cli) -> None:
    nodes, edges = people()
    several = [
        {**node, "label": f"{node['label']};tame" if i % 2 else node["label"]}
        for i, node in enumerate(nodes)
    ]
    own = write(tmp_path / "people", several, edges)
    cli("train", own, *OPTIONS, "--output", tmp_path / "run")
    turned = [{**node, "label": ";".join(node["label"].split(";")[::-1])} for node in several]
    other = write(tmp_path / "other", turned[::-1], edges)
    assert read_folder(own).class_names != read_folder(other).class_names
    right = predicted(cli, tmp_path / "run", own)
    shown = predicted(cli, tmp_path / "run", other)
    for node, row in right.items():
        assert list(shown[node]) == list(row)
        for title in ("tame", *KINDS):
            assert float(shown[node][title]) == pytest.approx(float(row[title]), rel=1e-4)
    names = Names.of(read_folder(own))
    data = read_folder(other)
    ours = names.align(data).graph.ndata["label"]
    for at, name in enumerate(names.classes or ()):
        assert (
            ours[:, at].tolist()
            == data.graph.ndata["label"][:, (data.class_names or ()).index(name)].tolist()
        )


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
def test_types_and_relations_go_by_name(model: str, tmp_path: Path, cli: Cli) -> None:
    papers(TYPES, RELATIONS, turned=False).save(tmp_path / "own")
    cli(
        "train",
        tmp_path / "own",
        *OPTIONS,
        "--model",
        model,
        "--target paper --output",
        tmp_path / "run",
    )
    papers(TYPES[::-1], RELATIONS[::-1], turned=True).save(tmp_path / "other")
    outputs = {}
    for name in ("own", "other"):
        cli(
            "predict",
            tmp_path / "run",
            "--data",
            tmp_path / name,
            "--output",
            tmp_path / f"{name}.npy",
        )
        outputs[name] = np.load(tmp_path / f"{name}.npy")
    np.testing.assert_allclose(outputs["other"], outputs["own"], rtol=1e-4, atol=1e-5)
    dropped = papers(TYPES, RELATIONS[:2], turned=False)
    dropped.save(tmp_path / "dropped")
    words = cli.failure("evaluate", tmp_path / "run", "--data", tmp_path / "dropped")
    assert (
        "relation of the data: the model reads ('paper', 'at', 'venue'), which is missing" in words
    )


def test_the_type_that_was_learned_is_kept(tmp_path: Path, cli: Cli) -> None:
    """Other data may have labels of another type, or of none."""
    own = papers(TYPES, RELATIONS, turned=False)
    own.save(tmp_path / "own")
    cli("train", tmp_path / "own", *OPTIONS, "--model typed --output", tmp_path / "run")
    label = own.graph.nodes["paper"].data.pop("y")
    own.save(tmp_path / "without")
    own.graph.nodes["author"].data["y"] = label[:20]
    own.save(tmp_path / "of authors")
    tables = {}
    for name in ("own", "without", "of authors"):
        cli(
            "predict", tmp_path / "run", "--data", tmp_path / name, "--output", tmp_path / "out.csv"
        )
        tables[name] = (tmp_path / "out.csv").read_text()
    assert tables["own"].count("\n") == 31
    assert tables["own"] == tables["without"] == tables["of authors"]
    assert "no labels of 'paper'" in cli.failure(
        "evaluate", tmp_path / "run", "--data", tmp_path / "of authors"
    )


def test_names_of_typed_features_go_through_folders(tmp_path: Path) -> None:
    data = papers(TYPES, RELATIONS, turned=False)
    data.save(tmp_path / "own")
    assert (
        read_folder(tmp_path / "own", labels=False).names_of_features() == data.names_of_features()
    )
    with pytest.raises(
        ValueError, match="feature_names must be None or hold 2 names for 'paper', got 1"
    ):
        replace(data, feature_names={"paper": ("one",)})
    with pytest.raises(
        ValueError, match="feature_names must be None or hold 0 names for 'venue', got 1"
    ):
        replace(data, feature_names={"venue": ("one",)})


# links


def test_answers_of_learned_rows_go_by_name(tmp_path: Path, cli: Cli) -> None:
    _, edges = people()
    cli(
        "train",
        write_edges(tmp_path / "own", edges),
        "--task link",
        *LINKS,
        "--output",
        tmp_path / "run",
    )
    answers = []
    for name, order in (("own", edges), ("other", edges[::-1])):
        data = tmp_path / name if name == "own" else write_edges(tmp_path / name, order)
        cli(
            "predict",
            tmp_path / "run",
            "--data",
            data,
            "--output",
            tmp_path / "out.csv",
            "--top 2 --with-known",
        )
        with (tmp_path / "out.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        answers.append(
            {(row["name"], row["relation_name"], row["rank"]): row["answer_name"] for row in rows}
        )
    assert answers[0] == answers[1]
    lost = write_edges(
        tmp_path / "lost", [*edges, {"src": "p1", "dst": "stranger", "kind": "knows"}]
    )
    words = cli.failure(
        "predict", tmp_path / "run", "--data", lost, "--output", tmp_path / "out.csv"
    )
    assert "none for node 'stranger' of data set 'lost'" in words


LINKS = [
    "--model none --decoder complex --embedding 8 --epochs 5 --no-plot --seed 2",
]


def write_edges(folder: Path, edges: list[Row]) -> Path:
    folder.mkdir()
    lines = [f"{edge['src']},{edge['dst']},{edge['kind']}" for edge in edges]
    (folder / "edges.csv").write_text("\n".join(["src,dst,kind", *lines]))
    return folder


# the names themselves


@pytest.mark.parametrize("named", [False, True])
def test_parts_have_the_names_of_their_data_set(named: bool, tmp_path: Path, cli: Cli) -> None:
    """Their nodes may have other numbers; a checkpoint of a run on them finds its rows in the data
    set.
    """
    nodes, edges = people()
    words = {f"p{i}": f"p{i}" if named else str(i) for i in range(40)}
    edges = [{**edge, "src": words[edge["src"]], "dst": words[edge["dst"]]} for edge in edges]
    place = write(
        tmp_path / "people", [{**node, "name": words[node["name"]]} for node in nodes], edges
    )
    parts = tmp_path / "parts"
    cli(
        "partition",
        place,
        "--for processes --parts 2 --method hash --renumber --output",
        parts,
    )
    data = read_folder(place)
    cut = GraphParts.open(parts)
    names = _names_of_parts(parts, cut, data.graph)
    expected = Names.of(data)
    assert (names.classes, names.features, names.categories) == (
        expected.classes, expected.features, expected.categories,
    )  # fmt: skip
    learned = replace(names, schema=data.graph.schema)
    assert cut.original_nodes is not None
    assert [learned.rows(data, "")[old] for old in cut.original_nodes] == [*range(40)]
    (parts / "names.safetensors").unlink()  # as cut in Python
    learned = replace(_names_of_parts(parts, cut, data.graph), schema=data.graph.schema)
    bare = replace(data, node_names=None)
    assert [learned.rows(bare, "")[old] for old in cut.original_nodes] == [*range(40)]
    with pytest.raises(ValueError, match="has names, and the model knows numbers"):
        learned.align(data)
    write_tensors(parts / "names.safetensors", {}, {"classes": None})
    with pytest.raises(ValueError, match=r"names\.safetensors is damaged, or no file of names"):
        _names_of_parts(parts, cut, data.graph)


def test_partitions_of_other_kinds_of_edges_are_refused(tmp_path: Path, cli: Cli) -> None:
    """The same graph, whose kinds of edges were numbered the other way when it was cut."""
    nodes, edges = people()
    other = {"knows": "hates", "hates": "knows"}
    swapped = [{**edge, "kind": other[edge["kind"]]} for edge in edges]
    own = write(tmp_path / "own", nodes, edges)
    cut = write(tmp_path / "cut", nodes, swapped)
    options = [
        "--model rgcn --storage partitions --partitions",
        tmp_path / "parts",
        "--slots 2",
    ]
    for data in (cut, own):
        cli(
            "partition",
            data,
            "--parts 2 --direction both --output",
            tmp_path / "parts",
            "--overwrite",
        )
        run = ["train", own, *OPTIONS, *options, "--output", tmp_path / "run"]
        if data is own:
            cli(*run)
            cli("evaluate", tmp_path / "run")
        else:
            assert "the numbers of its edge column 'kind' stand for other words" in cli.failure(
                *run
            )


def test_ids_are_the_names_of_nodes_without_names() -> None:
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
def test_columns_are_put_in_the_order_of_the_model(sparse: bool) -> None:
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


def test_columns_of_features_that_the_model_did_not_learn_from_are_left_out() -> None:
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


def test_class_codes_and_classes_that_are_numbers_are_the_same_names() -> None:
    """Few classes of large numbers become codes, all of 150 stay numbers: either is found in the
    other.
    """

    def data(label: list[int], names: tuple[str, ...] | None) -> Dataset:
        graph = Graph.from_edges(
            [0], [1], num_nodes=len(label), ndata={"label": torch.tensor(label)}
        )
        return Dataset(
            "x", graph, class_names=names, num_classes=len(names or ()) or max(label) + 1
        )

    codes = data([0, 2, -1, 1], ("10", "20", "90210"))
    numbers = data([20, 10, -1, 20], None)
    assert Names.of(codes).align(numbers).graph.ndata["label"].tolist() == [1, 0, -1, 1]
    assert Names.of(data([149, 0], None)).align(codes).graph.ndata["label"].tolist() == [
        10,
        90210,
        -1,
        20,
    ]
    with pytest.raises(ValueError, match="the model knows no '30'; leave it out"):
        Names.of(codes).align(data([30, 10], None))
    with pytest.raises(ValueError, match="has numbers, and the model knows names"):
        Names.of(data([0, 1], ("10", "x"))).align(numbers)


def test_categories_that_no_edge_has_keep_their_numbers(tmp_path: Path, cli: Cli) -> None:
    """The reverses of edges have kinds of their own, after all that the model knows."""
    nodes, edges = people()
    some = [edge for edge in edges if edge["kind"] == edges[0]["kind"]]
    own = write(tmp_path / "people", nodes, edges)
    cli("train", own, *OPTIONS, "--model rgcn --output", tmp_path / "run")
    by_kind = sorted(edges, key=lambda edge: edge["kind"] != edges[0]["kind"])
    words = ["src,dst,kind", *(",".join(edge.values()) for edge in some)]
    other = write(tmp_path / "other", nodes, by_kind)
    (other / "edges.csv").write_text("\n".join(words))
    data = read_folder(other)
    names = Names.of(read_folder(own))
    assert names.align(data).category_names["kind"] == (*(names.categories["kind"] or ()),)
    cli("evaluate", tmp_path / "run", "--data", other)
