"""Training on nodes of several types: labels of one type that depend on the neighbours of
another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import SMALL, rows_of
from _support.run_files import read_run
from _support.training_tools import check_goes_on, same_result

from nodeflow import FullSampler, Graph
from nodeflow.datasets import Dataset, debian, read_folder
from nodeflow.distributed import write_partitions
from nodeflow.nn import TypedModel
from nodeflow.storage import Lookahead
from nodeflow.training import Settings, Trainer, load_model

MODELS = ("rgcn", "hgt", "typed")
SHORT = Settings(
    target="paper",
    fanouts=(4, 4),
    hidden=16,
    embedding=8,
    lr=0.02,
    dropout=0.1,
    batch_size=64,
    epochs=2,
)
BUFFERED = Settings(
    target="paper",
    fanouts=(4, 4),
    hidden=16,
    lr=0.01,
    batch_size=20,
    storage="partitions",
    partitions="parts",
    slots=2,
)


def papers() -> Graph:
    """200 papers of 3 classes, which are those of their authors; features of papers are noise,
    venues have none.
    """
    random = np.random.default_rng(3)
    group = np.arange(90) % 3
    label = random.integers(0, 3, 200)
    paper = np.repeat(np.arange(200), 4)
    author = random.integers(0, 30, len(paper)) * 3 + label[paper]
    masks = {name: np.zeros(200, np.bool_) for name in ("train", "val", "test")}
    for name, ids in zip(masks, np.split(random.permutation(200), [100, 150]), strict=True):
        masks[name][ids] = True
    noisy = np.eye(3)[group] + random.normal(0, 0.3, (90, 3))
    nodes: dict[str, Any] = {
        "author": {"x": noisy.astype(np.float32)},
        "venue": 5,
        "paper": {"x": random.normal(0, 1, (200, 4)), "y": label, **masks},  # float64
    }
    edges: dict[Any, Any] = {
        ("author", "writes", "paper"): (author, paper),
        ("paper", "at", "venue"): (np.arange(200), random.integers(0, 5, 200)),
        ("paper", "cites", "paper"): tuple(random.integers(0, 200, (2, 100))),
    }
    return Graph.typed(nodes, edges)


def data() -> Dataset:
    return Dataset("papers", papers())


@pytest.mark.parametrize("model", MODELS)
def test_it_learns_from_neighbours_of_another_type(model):
    trainer = Trainer(data(), SHORT.replace(model=model, epochs=10))
    result = trainer.run()
    assert result.test_score > 0.9  # the features of papers alone give about 0.33
    nodes = trainer.task.dataset.test
    full = trainer.outputs(nodes)
    batch = FullSampler(trainer.task.graph, 2)(nodes)
    batch.copy_from_parent({0: ["feat"]})
    result.network.eval()
    with torch.no_grad():
        assert torch.allclose(result.network(batch), full, atol=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_a_run_goes_on_from_any_step(model, tmp_path):
    run = SHORT.replace(model=model, norm="batch")
    check_goes_on(data, run, [1, 3], tmp_path, workers=0)
    other = Graph.typed({"a": 2}, {("a", "to", "a"): ([0], [1])})
    other.ndata["y"] = torch.tensor([0, 1])
    assert (
        Trainer(Dataset("o", other, [0], [1], [], 2), SHORT.replace(target="")).fingerprint
        != Trainer(data(), run).fingerprint
    )  # type: ignore[arg-type]


def test_features_in_files_give_the_same_run(tmp_path):
    papers().save(tmp_path / "data")
    folder = read_folder(tmp_path / "data")
    wanted = Trainer(folder, SHORT.replace(model="hgt")).run()
    for storage, memory in (
        ("file", {}),
        *(("cached", {"memory": size}) for size in ("1100 B", "2 MB")),
        *(("lookahead", {"memory": size}) for size in ("30 B", "1100 B", "2 MB")),
    ):
        trainer = Trainer(folder, SHORT.replace(model="hgt", storage=storage, **memory))
        assert same_result(trainer.run(), wanted)
        columns: Any = [trainer.task.graph.nodes[name].data["feat"] for name in ("author", "paper")]
        if storage == "cached":
            assert [len(x.ids) for x in columns] == {"1100 B": [90, 1], "2 MB": [90, 200]}[
                memory["memory"]
            ]
        assert isinstance(trainer.batches, Lookahead) == (storage == "lookahead")


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "model", ["hgt", "rgcn", "typed", pytest.param("sage", marks=pytest.mark.slow)]
)
def test_it_trains_on_partitions(model, tmp_path, cli):
    graph = papers()
    graph.nodes["venue"].data["x"] = torch.eye(5)
    graph.save(tmp_path / "data")
    parts, run = (tmp_path / name for name in ("parts", "run"))
    partition = [
        "partition",
        tmp_path / "data",
        "--target paper --parts 4 --output",
        parts,
    ]
    assert "4 parts of 75 nodes (author 23, venue 2, paper 50)" in cli(*partition)
    settings = BUFFERED.replace(model=model, partitions=str(parts), epochs=5)
    folder = read_folder(tmp_path / "data")
    wanted = Trainer(folder, settings).run()
    assert wanted.test_score > 0.6  # of partitions half of the edges are seen
    check_goes_on(lambda: folder, settings, [1, 5], tmp_path)
    words = [
        "--model",
        model,
        "--target paper --no-plot --storage partitions --partitions",
        parts,
    ]
    printed = cli("train", tmp_path / "data", *SMALL, "--output", run, *words, "--slots 2")
    tested = next(line for line in printed.splitlines() if line.startswith(" test"))
    assert tested in cli("evaluate", run)
    assert "the same, bit for bit" in cli("reproduce", run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"author": torch.rand(90, 3)}, "its features of type 'author' are"),
        ({"venue": torch.rand(5, 2)}, "its features of type 'venue' are torch.float32"),
        ({}, "its types and sizes are Schema"),
    ],
)
def test_partitions_of_other_data_are_refused(change, message, tmp_path):
    graph = papers()
    graph.nodes["venue"].data["x"] = torch.eye(5)
    data = Dataset("papers", graph).of_type("paper")
    direction = "both" if "sizes" in message else "in"
    write_partitions(data.graph, tmp_path / "parts", 4, train=data.train, progress=False)
    for name, x in change.items():
        data.graph.nodes[name].data["x"] = x
    settings = BUFFERED.replace(
        model="hgt", direction=direction, partitions=str(tmp_path / "parts")
    )
    with pytest.raises(ValueError, match=message):
        Trainer(data, settings)


def test_the_command(tmp_path, cli):
    papers().save(tmp_path / "data")
    run = tmp_path / "run"
    words = ["--model typed --target paper --norm layer --no-plot"]
    printed = cli("train", tmp_path / "data", *SMALL, "--output", run, *words)
    assert "3 + 4 features, 3 classes, train/val/test 100/50/50" in printed
    cli("predict", run, "--output", tmp_path / "all.csv")
    cli("predict", run, "--output", tmp_path / "test.npy", "--nodes test")
    rows = rows_of(tmp_path / "all.csv")
    assert [(int(row["node"]), int(row["local"])) for row in rows] == [
        (95 + i, i) for i in range(200)
    ]
    outputs = np.load(tmp_path / "test.npy")
    test = np.flatnonzero(papers().nodes["paper"].data["test"].numpy())
    assert [int(rows[i]["class"]) for i in test] == outputs.argmax(1).tolist()
    network = load_model(run / "checkpoint.safetensors")
    assert isinstance(network.model, TypedModel)
    papers().save(tmp_path / "unlabelled")
    assert "author" in cli("info", tmp_path / "unlabelled")


BY_RELATION = ["--fanouts", "writes=3,paper cites paper=2", "writes=4,rev_cites=1"]


def test_the_command_takes_fanouts_by_relation(tmp_path, cli):
    papers().save(tmp_path / "data")
    run = tmp_path / "run"
    words = ["--model hgt --target paper --no-plot", *BY_RELATION]
    short = [word for word in SMALL if word not in ("--fanouts", "3")]
    assert "fanouts [{'writes': 3, 'paper cites paper': 2}" in cli(
        "train", tmp_path / "data", *short, "--output", run, *words
    )
    settings = read_run(run).settings
    assert settings.sampler.fanouts == (
        {"writes": 3, "paper cites paper": 2},
        {"writes": 4, "rev_cites": 1},
    )
    names: list[Any] = [
        {"writes": 3, ("paper", "cites", "paper"): 2},
        {"writes": 4, "rev_cites": 1},
    ]
    assert Settings(fanouts=names).sampler.fanouts == settings.sampler.fanouts
    trainer = Trainer(read_folder(tmp_path / "data").of_type("paper"), settings)
    drawn = next(iter(trainer.batches)).flows
    names = [
        {name[1] for name in trainer.task.graph.schema.relations if flow.of(name).num_edges}
        for flow in drawn
    ]
    assert names == [{"writes", "cites"}, {"writes", "rev_cites"}]
    assert "the same, bit for bit" in cli("reproduce", run)
    assert "is finished" in cli("train --resume", run)
    again = cli("train --config", run / "run.toml", "--output", tmp_path / "again")
    assert next(line for line in again.splitlines() if line.startswith(" test")) in cli(
        "evaluate", run
    )
    for fanout, message in {
        "wrote=3": "no relation 'wrote'; there are ('author', 'writes', 'paper'), ('paper', 'at', "
        "'venue')",
        "at=3": "draws nothing: it has 'paper at venue', but its nodes are of type paper; "
        "relations that direction='in' follows from these: 'author writes paper', 'paper cites paper', 'venue rev_at "
        "paper', 'paper rev_cites paper'",
        "writes": "or by name, as in a=5,b=10, got '3 writes'",
        "writes=3,writes=4": "or by name, as in a=5,b=10, got '3 writes=3,writes=4'",
        "writes=3,5": "or by name, as in a=5,b=10, got '3 writes=3,5'",
        "writes=-2": "fanouts[1]['writes'] must be -1",
    }.items():
        wrong = ["--target paper --fanouts 3", fanout]
        assert message in cli.failure(
            "train", tmp_path / "data", *short, "--output", tmp_path / "wrong", *wrong
        )


def test_which_samplers_take_fanouts_by_name():
    fanouts: Any = [{"writes": 2}, {"writes": 2}]
    for name in ("labor", "bernoulli", "shadow"):
        Trainer(data(), SHORT.replace(model="rgcn", sampler=name, fanouts=fanouts))
    sizes: Any = [{"author": 9}, {"author": 5, "paper": 4}]
    trainer = Trainer(data(), SHORT.replace(model="sage", sampler="ladies", fanouts=sizes))
    assert trainer.task.method.sampler(0).settings["layer_sizes"] == tuple(sizes)


def test_fanouts_by_type_of_an_edge_column():
    dataset = debian()
    column = next(
        name for name in dataset.graph.edata if not dataset.graph.edata[name].is_floating_point()
    )
    fanouts: Any = [{"0": 2}, {0: 3, "1": 1}]
    options = {
        "fanouts": fanouts,
        "sampler_options": {"edge_type": column},
        "direction": "in",
        "hidden": 4,
    }
    trainer = Trainer(dataset, Settings(model="rgcn", **options))
    assert trainer.task.method.sampler(0).settings["fanouts"] == ({0: 2}, {0: 3, 1: 1})


@pytest.mark.parametrize("model", ["hgt", "typed"])
def test_a_graph_of_one_type_is_one_with_types(model):
    """The same run, whether its only type and relation have names of their own or not."""
    label = torch.arange(40) % 2
    x = torch.rand(40, 3, generator=torch.Generator().manual_seed(0))
    src, dst = torch.randint(0, 40, (2, 200), generator=torch.Generator().manual_seed(1))
    graphs = [
        Graph.from_edges(src, dst, ndata={"label": label, "feat": x}),
        Graph.typed({"n": {"label": label, "x": x}}, {("n", "to", "n"): (src, dst)}),
    ]
    settings = SHORT.replace(target="", model=model, inputs="features", direction="in")
    settings = Settings(
        {name: value for name, value in settings.chosen.items() if name != "embedding"}
    )
    sets = [
        Dataset("one", graph, torch.arange(20), torch.arange(20, 30), torch.arange(30, 40), 2)
        for graph in graphs
    ]
    one, other = (Trainer(each, settings).run() for each in sets)
    assert one.scores == other.scores
    assert [record.loss for record in one.records] == [record.loss for record in other.records]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"task": "link", "target": None},
            "target must name the relation whose links .*: 'author writes paper', 'pap",
        ),
        (
            {"task": "link", "target": "writes", "model": "none", "fanouts": None, "hidden": None},
            "'none' does not go with several node types: .* take model 'typed'",
        ),
        (
            {"sampler": "cv"},
            "sampler 'cv' does not go with several node types: .* take sampler 'neighbor'",
        ),
        (
            {"storage": "partitions", "partitions": "p", "slots": 2},
            "'partitions' does not go .* take storage 'cached'",
        ),
        (
            {"inputs": "both"},
            "inputs 'both' does not go with several node types: .* take inputs 'auto'",
        ),
        (
            {"sampler": "random-walk", "model": "rgcn"},
            "'random-walk' does not go with model 'rgcn' and several node",
        ),
        (
            {"model": "gat"},
            "'gat' would be biased with sampler 'neighbor', .* Take model sage",
        ),
        (
            {"inputs": "features", "embedding": None},
            "has no features of type .venue., so inputs must be .auto.; got .features.",
        ),
        ({"target": "author"}, "data set 'papers' has no labels"),
    ],
)
def test_what_cannot_be(change, message):
    changed = {
        name: value for name, value in {**SHORT.chosen, **change}.items() if value is not None
    }
    with pytest.raises(ValueError, match=message):
        Trainer(data(), Settings(changed))


def test_features_must_be_finite_and_targets_known():
    graph = papers()
    graph.nodes["paper"].data["x"][7] = torch.inf
    with pytest.raises(
        ValueError,
        match="the features of type 'paper' of data set 'papers' must be finite, but row 7",
    ):
        Trainer(Dataset("papers", graph), SHORT)
    with pytest.raises(KeyError, match="no node type 'book'; there are 'author', 'venue', 'paper'"):
        Trainer(data(), SHORT.replace(target="book"))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("direction", ["in", "both"])
def test_one_relation_between_two_types(model, direction):
    nodes: dict[str, Any] = {
        "a": 3,
        "b": {"y": torch.tensor([0, 1, 0, 1]), "x": torch.rand(4, 2)},
        "empty": 0,
    }
    graph = Graph.typed(nodes, {("a", "to", "b"): ([0, 1, 2], [0, 1, 2])})
    result = Trainer(
        Dataset("small", graph), SHORT.replace(model=model, target="", direction=direction)
    ).run()
    assert set(result.scores["test"]) == {"accuracy", "f1_macro"}


@pytest.mark.parametrize(
    "change", [{}, {"storage": "lookahead"}, {"inputs": "both", "embedding": 4}], ids=str
)
def test_several_relations_of_one_node_type(change, tmp_path):
    label = np.arange(60) % 2
    src, dst = np.random.default_rng(0).integers(0, 60, (2, 240))
    same = label[src] == label[dst]
    edges: dict[Any, Any] = {
        ("n", "same", "n"): (src[same], dst[same]),
        ("n", "other", "n"): (src[~same], dst[~same]),
    }
    noisy = (label[:, None] + np.random.default_rng(1).normal(0, 1, (60, 2))).astype(np.float32)
    Graph.typed({"n": {"label": label, "feat": noisy}}, edges).save(tmp_path / "g")
    settings = Settings(
        {name: value for name, value in SHORT.chosen.items() if name not in ("embedding", "target")}
    )
    result = Trainer(
        read_folder(tmp_path / "g"), settings.replace(model="rgcn", epochs=10, **change)
    ).run()
    assert result.test_score > 0.85
    with pytest.raises(
        ValueError, match=r"target must name the relation .*: 'n same n', 'n other n'"
    ):
        Trainer(read_folder(tmp_path / "g"), Settings(task="link"))
