"""From lists of edges, tables in text files and data sets in parts to a trained model, by commands
alone.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from _support.cli_tools import SMALL, rows_of, status
from _support.pages import ROOT, blocks
from _support.partition_tools import check_parts
from _support.run_files import write_tensors

from nodeflow import Graph, storage
from nodeflow.datasets import Dataset, read_folder
from nodeflow.distributed import GraphParts, Partitions, partition_graph
from nodeflow.training import _data, load_model
from nodeflow.transform import reverse

pytestmark = pytest.mark.usefixtures("here")


def scores(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line.split()[:1] in (["train"], ["val"], ["test"])
    ]


def test_from_edges_to_a_trained_model(data, cli):
    with np.load(data / "edges.npz") as arrays:
        ends = np.stack([arrays["src"], arrays["dst"]], 1)
    np.savetxt("a.csv", ends[:400], "%d", delimiter=",", header="src,dst", comments="")
    np.save("b.npy", ends[400:])
    columns = {name: np.load(data / f"{name}.npy") for name in ("features", "labels")}
    for name, array in {**columns, **read_folder(data).splits}.items():
        np.save(f"{name}.npy", array)
    files = " ".join(f"--{name}={name}.npy" for name in (*columns, *_data.PARTS))
    assert "120 nodes, 600 edges, 4 features, 2 classes, train/val/test 60/30/30" in cli(
        "build a.csv b.npy --output papers", files
    )
    assert cli("info papers") == cli("info", data).replace("two", "papers", 1)
    from_folder = scores(cli.train(Path("papers"), Path("run"), "--no-plot"))
    assert from_folder == scores(cli.train(data, Path("other"), "--no-plot"))
    assert len(from_folder) == 3
    cli("evaluate run")


def test_options_of_build(cli):
    Path("e.tsv").write_text("x\t5\tann\tbob\nx\t6\tbob\tcid\n")
    np.save("age.npy", np.arange(3))
    np.save("when.npy", np.arange(2))
    command = (
        "build e.tsv --output g --named --no-header --memory=1GB --node-column age=age.npy "
        "--edge-column when=when.npy --columns _ w src dst"
    )
    cli(command)
    graph = Graph.open("g")
    assert [*graph.ndata, *graph.edata] == ["age", "w", "when"]
    assert graph.edata["w"].tolist() == [5, 6]
    assert "to replace it (nodeflow: --overwrite)" in cli.failure(command)
    cli(command, "--overwrite")


BUILD = {
    "e.csv": "line 3: dst must be an integer from 0, got '-2'",
    "e.csv --node-column x": "--node-column must be NAME=FILE, got 'x'",
    "e.csv --memory lots": "memory must be a number and a unit",
    "none.csv": "there is no file none.csv",
    "debian --named": "debian is a data set, which is written as it is; options are for files of "
    "edges",
}


@pytest.mark.parametrize("words", BUILD)
def test_mistakes_are_one_line(words, cli):
    Path("e.csv").write_text("0,1\n\n1,-2\n")
    told = cli.failure("build", words, "--output g")
    assert BUILD[words] in told
    assert told.startswith("nodeflow build: ")
    assert not Path("g").exists()


def test_a_data_set_is_built_narrow(data, tmp_path, cli):
    cli("build", data, "--store int8 --output g")
    plain, narrow = (read_folder(folder).graph.ndata["feat"] for folder in (data, tmp_path / "g"))
    nodes = torch.arange(120)
    assert narrow.fetch(nodes).equal(storage.narrow(plain).fetch(nodes))
    assert "; feat float32 as int8 [120, 4]; " in cli("info g")
    words = ["build g", "--store int8 --output h"]
    assert "floating-point numbers that are not narrow yet" in cli.failure(*words)
    assert not (tmp_path / "h").exists()


def write(folder: Path, labels: list[str]) -> None:
    """Write 60 people in two teams who mostly cite their own team, in no order, with an age and a
    column left out.
    """
    random = np.random.default_rng(0)
    folder.mkdir()
    names = [f"person {v:02d}" for v in range(60)]
    with (folder / "nodes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "label", "age", "_note"])
        rows.writerows(
            [names[v], labels[v], 0.01 * random.integers(20, 70) + v % 2, ""]
            for v in random.permutation(60)
        )
    with (folder / "edges.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["from", "to", "how"])
        for u, v in random.integers(0, 60, (300, 2)):
            rows.writerow(
                [
                    names[u],
                    names[v if (u - v) % 2 == 0 else (v + 1) % 60],
                    ["cites", "praises"][u % 2],
                ]
            )


def test_from_tables_to_predictions(cli):
    pytest.importorskip("matplotlib")
    write(Path("people"), [("red", "blue")[v % 2] if v > 3 else "" for v in range(60)])
    printed = cli("info people")
    assert "  names of  how 2\n" in printed
    assert "  classes   2, 56 nodes with a label\n" in printed
    cli("train people --output run", *SMALL, "--lr 0.1 --epochs 10")
    cli("train --resume run --epochs 30")
    cli("evaluate run")
    cli("predict run --output table.csv")
    cli("predict run --nodes unlabelled --output new.csv")
    new = sorted(row["name"] for row in rows_of(Path("new.csv")))
    assert new == [f"person {v:02d}" for v in range(4)]
    assert Path("run/curves.png").is_file()
    rows = rows_of(Path("table.csv"))
    right = [row["class_name"] == ("red", "blue")[int(row["name"][-2:]) % 2] for row in rows]
    assert len(right) == 60
    assert sum(right) >= 54


def test_numbers_to_predict(cli):
    write(Path("people"), [f"{v % 2 + 0.5}" if v > 3 else "" for v in range(60)])
    assert "rmse" in cli.train(Path("people"), Path("run"), "--lr 0.1 --epochs 10")


def test_the_model_of_the_page_weights_its_means_by_a_column(tmp_path, monkeypatch):
    """By name from a file, drawn by the column too; the outputs of the first layer beside dense
    matrices.
    """
    data = tmp_path / "people"
    run = tmp_path / "run"
    write(data, [("red", "blue")[v % 2] for v in range(60)])
    rows = list(csv.reader((data / "edges.csv").read_text().splitlines()))
    with (data / "edges.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [*row[:2], "weight" if i == 0 else f"{0.5 + i % 4}"] for i, row in enumerate(rows)
        )
    (page,) = (
        block.text
        for block in blocks(ROOT / "docs" / "training.md")
        if "class WeightedMean" in block.text
    )
    (tmp_path / "weighted_by_column.py").write_text(page)
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--direction in --sampler-option prob=weight --epochs 2 --no-plot"]
    arguments = [
        "--model weighted_by_column:make --fanouts 3 3 --hidden 8",
        *options,
    ]
    assert status(["train", data, "--output", run, *arguments]) == 0

    graph = read_folder(data).graph
    src, dst = graph.edges()
    dense = torch.zeros(60, 60, dtype=torch.float64)
    dense.index_put_((dst, src), graph.edata["weight"].double(), accumulate=True)
    mean = dense / dense.sum(1, keepdim=True).clamp(min=1e-12)
    model = load_model(
        run / "checkpoint.safetensors", model="weighted_by_column:make"
    ).model.double()
    first, second = model.convs
    x = graph.ndata["feat"].double()
    hidden = first.linear(torch.cat([x, mean @ x], 1)).relu()
    expected = second.linear(torch.cat([hidden, mean @ hidden], 1))
    torch.testing.assert_close(model.inference(graph, x), expected, rtol=1e-12, atol=1e-12)


def test_parts_hold_the_data_set(data, tmp_path, cli):
    words = [
        "partition",
        data,
        "--parts 4 --for processes --method random --direction out",
    ]
    said = cli(*words, "--output a --edges out --seed 3")
    parts = GraphParts.open(tmp_path / "a")
    dataset = read_folder(data)
    assert (parts.edges, parts.method) == ("out", "random")
    check_parts(reverse(dataset.graph), parts)
    for own, nodes in zip(
        (parts.train, parts.val, parts.test), dataset.splits.values(), strict=True
    ):
        assert own.tolist() == sorted(nodes.tolist())
    assert str(parts.report()) in said
    assert repr(parts) in said


def test_partitions_for_a_buffer_are_described(data, tmp_path, cli):
    printed = cli("partition", data, "--parts 4 --output a")
    parts = Partitions.open(tmp_path / "a")
    assert f"edges, {parts.cut:.1%} cut, ndata" in repr(parts)
    assert repr(parts) in printed


@pytest.fixture
def joined() -> Iterator[None]:
    """As one of several processes, here with the only part."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def written_parts(name: str, edges: str = "in", **columns: torch.Tensor) -> str:
    graph = Graph.from_edges([0, 1], [1, 0], ndata={"feat": torch.ones(2, 1), **columns})
    partition_graph(graph, name, 1, edges=edges, progress=False)
    return name


def refused_parts(words: str, folder: str, target: str = "", **options: bool) -> None:
    with pytest.raises(ValueError, match=words):
        _data.read_parts(folder, target, **options)


@pytest.mark.usefixtures("joined")
def test_parts_that_cannot_be_trained_on_are_refused():
    out = written_parts("out", "out")
    refused_parts("has edges 'out', but training finds neighbours where", out, links=False)
    bare = written_parts("bare")
    refused_parts("bare has no labels, so a model cannot be trained on it", bare, links=False)
    words = "bare has no links.safetensors, so links cannot be learned: write it with"
    refused_parts(words, bare, links=True)
    file = Path("bare/links.safetensors")
    write_tensors(file, {}, 3)
    refused_parts(r"links\.safetensors is damaged, or no file of links", bare, links=True)
    triples = dict.fromkeys(_data.PARTS, torch.zeros((0, 2), dtype=torch.int64))
    write_tensors(file, triples, {"target": ["node", "edge", "node"], "relation": None})
    assert _data.read_parts(bare, "edge", links=True).links.relation is None
    words = "bare was cut for links of 'node edge node', so target must name .* 'follows'"
    refused_parts(words, bare, "follows", links=True)
    several = written_parts("several", label=torch.eye(2))
    assert _data.read_parts(several, links=False).num_classes == 2


def two_types(folder: Path) -> Path:
    papers = {
        "x": torch.ones(3, 1),
        "y": torch.tensor([0, 1, 1]),
        "train": torch.tensor([True, True, False]),
    }
    Graph.typed(
        {"paper": papers, "author": {"x": torch.ones(2, 1)}},
        {("author", "writes", "paper"): ([0], [2])},
    ).save(folder)
    return folder


PARTITION = "partition data --output parts --parts 1 --method random --for processes"


@pytest.mark.usefixtures("joined")
def test_parts_keep_class_codes(cli):
    """A run numbers them as one process does, or takes them for numbers to predict."""
    columns = {"x": torch.ones(4, 1), "label": torch.tensor([90210, 10001, -1, 90210])}
    Graph.from_edges([0, 1, 2], [1, 2, 3], ndata=columns).save("data")
    cli(PARTITION)
    data = _data.read_parts("parts", links=False)
    everything = read_folder("data")
    assert data.class_names == everything.class_names == ("10001", "90210")
    for task, label in (("auto", [1, 0, -1, 1]), ("regression", [90210, 10001, -1, 90210])):
        for dataset in (data, everything):
            learned = _data.learned_part(dataset, task, "").graph.ndata["label"]
            assert learned.nan_to_num(-1).tolist() == label


@pytest.mark.usefixtures("joined")
def test_parts_keep_classes_that_no_node_has(cli):
    columns = {"x": torch.ones(2, 1), "label": torch.tensor([250, 0])}
    graph = Graph.from_edges([0], [1], ndata=columns)
    names = tuple(map(str, range(1000, 1300)))
    Dataset("few", graph, num_classes=300, class_names=names).save("data")
    cli(PARTITION)
    data = _data.read_parts("parts", links=False)
    assert (data.num_classes, data.class_names) == (300, names)
    assert data.graph.ndata["label"].tolist() == [250, 0]


@pytest.mark.usefixtures("joined")
def test_parts_of_another_type_are_refused(cli):
    two_types(Path("data"))
    cli(PARTITION, "--target paper")
    assert _data.read_parts("parts", "paper", links=False).train.tolist() == [0, 1]
    words = "parts was cut for nodes that are not 'author': cut it with nodeflow partition"
    refused_parts(words, "parts", "author", links=False)


MISTAKES = {
    "--for processes --target author": "has no labels of 'author', so a model cannot be trained on "
    "it; nodes with labels are of type paper",
    "--for processes --links --target reads": "no relation 'reads'; there are",
    "--edges in": "--edges is for parts of processes; give --for processes, or leave it out",
    "--links": "--links is for parts of processes",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_of_parts(words, cli):
    two_types(Path("data"))
    command = "partition data --parts 1 --method random --output parts"
    assert MISTAKES[words] in cli.failure(command, words)
    assert not Path("parts").exists()


def test_metis_is_what_processes_get(data, cli):
    pytest.importorskip("pymetis")
    cli("partition", data, "--parts 2 --for processes --output a")
    assert GraphParts.open("a").method == "metis"
