"""Links of one relation of a graph of several types: splits, messages, negatives, ranks, and the
command.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from _support.cli_tools import rows_of
from _support.training_tools import check_goes_on

from nodeflow import FullSampler, Graph, NodeFlow
from nodeflow.datasets import Dataset, read_folder
from nodeflow.sampling import LinkSampler
from nodeflow.training import Settings, Trainer, load_model
from nodeflow.training._data import split_edges

MODELS = ("rgcn", "hgt", "typed")
SHORT = Settings(
    task="link", target="writes", model="rgcn", fanouts=(5, 5), hidden=16, embedding=8, lr=0.02, dropout=0.1,
    batch_size=64, negatives=16, chunk=16, epochs=2,
)  # fmt: skip


def papers(*, reverse: bool = False, split: str = "") -> Graph:
    """Authors write papers of their group, and papers cite papers of it; "reviews" has the same
    ends as "writes".
    """
    random = np.random.default_rng(3)
    group = np.arange(60) % 6
    topic = np.arange(90) % 6
    paper = np.repeat(np.arange(90), 3)
    author = random.integers(0, 10, len(paper)) * 6 + topic[paper]
    cites = np.repeat(np.arange(90), 2)
    edges: dict[Any, Any] = {
        ("paper", "cites", "paper"): (cites, random.integers(0, 15, len(cites)) * 6 + topic[cites]),
        ("author", "writes", "paper"): (author, paper, {"w": torch.rand(len(paper))}),
        ("author", "reviews", "paper"): (author[::2], paper[::2]),
        ("paper", "at", "venue"): (np.arange(90), topic),
    }
    nodes: dict[str, Any] = {
        "author": {"x": np.eye(6, dtype=np.float32)[group]},
        "paper": 90,
        "venue": 6,
    }
    graph = Graph.typed(nodes, edges, reverse=reverse)
    part = torch.from_numpy(random.permutation(np.repeat([0, 1, 2], [200, 35, 35])))
    if split == "own":
        graph.relations["writes"].data["split"] = part
    elif split == "all":
        graph.edata["split"] = torch.zeros(graph.num_edges, dtype=torch.int64)
        ids = graph.relations["writes"].ids
        graph.edata["split"][ids.start : ids.stop] = part
    return graph


def pairs_of(graph: Graph, relation: Any) -> list[tuple[int, int]]:
    ids = graph.relations[relation].ids
    src, dst = graph.edges()
    return list(
        zip(src[ids.start : ids.stop].tolist(), dst[ids.start : ids.stop].tolist(), strict=True)
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("split", ["", "own", "all"])
def test_held_out_edges_and_their_reverses_carry_no_message(split, reverse):
    graph = papers(reverse=reverse, split=split)
    _, relation, triples, kept = split_edges(Dataset("p", graph), "", "writes")
    every = pairs_of(graph, "writes")
    parts = {part: list(map(tuple, rows.tolist())) for part, rows in triples.items()}
    assert relation is None
    assert sorted(every) == sorted(pair for pairs in parts.values() for pair in pairs)
    assert [len(pairs) for pairs in parts.values()] == [200, 35, 35] or not split
    assert pairs_of(kept, "writes") == parts["train"]
    assert "split" not in {*kept.edata, *kept.relations["writes"].data}
    assert len(kept.relations["writes"].data["w"]) == len(parts["train"])
    hidden = {*parts["val"], *parts["test"]}
    # drawn splits keep parallel edges together, others may not
    assert not split or hidden & {*parts["train"]}
    for name in ("cites", "reviews", "at"):
        assert pairs_of(kept, name) == pairs_of(graph, name)
    if reverse:
        for name in ("rev_cites", "rev_reviews", "rev_at"):
            assert pairs_of(kept, name) == pairs_of(graph, name)
        back = [(v, u) for u, v in pairs_of(kept, "rev_writes")]
        assert back == [pair for pair in every if pair not in hidden]


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("target", ["writes", "cites"])
def test_no_message_goes_along_seeds_and_their_reverses(direction, reverse, target):
    data = Dataset("p", papers(reverse=reverse))
    run = SHORT.replace(
        target=target, direction=direction, fanouts=(-1,), batch_size=4, chunk=4, negatives=1
    )
    trainer = Trainer(data, run)
    schema = trainer.task.graph.schema
    other = 0
    for batch in trainer.batches:
        assert isinstance(batch, NodeFlow)
        ends = batch.seeds[batch.seed_index[:, :2]].tolist()
        seeds = {frozenset(pair) for pair in ends}
        flow = batch.flows[0]
        src = batch.layers[0].parent_nid
        dst = batch.layers[1].parent_nid
        u, v = flow.edges()
        names = [list(schema.relations)[i][1] for i in schema.relations_of(flow.parent_eid.numpy())]
        for a, b, name in zip(src[u].tolist(), dst[v].tolist(), names, strict=True):
            assert name.replace("rev_", "") != target or frozenset((a, b)) not in seeds
            other += frozenset((a, b)) in seeds
        if target == "writes":
            types = schema.types_of(batch.seeds.numpy())[batch.seed_index]
            assert (types[:, 0] == 0).all()  # sources, and their negatives
            assert (types[:, 1::2][:, 1:] == 0).all()
            assert (types[:, 2::2] == 1).all()
    assert target == "cites" or other > 0  # reviews between the ends of seeds stay


@pytest.mark.parametrize("model", MODELS)
def test_ranks_are_among_nodes_of_the_type(model):
    trainer = Trainer(Dataset("p", papers()), SHORT.replace(model=model, decoder="dot", epochs=1))
    scores = trainer.run().scores
    task: Any = trainer.task
    with torch.no_grad():
        trainer.network.eval()
        rows = task.rows().double().numpy()
    every = [tuple(pair) for part in task.triples.values() for pair in part.tolist()]
    authors = range(60)
    venues = range(60, 150)
    for part in ("val", "test"):
        ranks = []
        for u, v in task.triples[part].tolist():
            answers = {"dst": [n for n in venues if n == v or (u, n) not in every]}
            answers["src"] = [n for n in authors if n == u or (n, v) not in every]
            for fixed, wanted, among in ((u, v, answers["dst"]), (v, u, answers["src"])):
                value = np.array([rows[fixed] @ rows[n] for n in among])
                truth = rows[fixed] @ rows[wanted]
                ranks.append(1 + (value > truth).sum() + 0.5 * ((value == truth).sum() - 1))
        assert scores[part]["mean_rank"] == pytest.approx(np.mean(ranks), abs=0.06)
        assert scores[part]["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)), abs=0.005)
    best = trainer.top_links([3], 90)
    assert sorted(best.ids[0].tolist())[-1] < 150
    assert {*best.ids[0].tolist()} - {-1} == {n for n in venues if (3, n) not in every}
    assert {*trainer.top_links([70], 60, side="source").ids[0].tolist()} <= {-1, *authors}
    with pytest.raises(IndexError, match=r"nodes\[0\] is 70"):
        trainer.top_links([70])


@pytest.mark.cases(1)
@pytest.mark.parametrize("model", MODELS)
def test_it_learns_the_links_of_a_relation(model):
    run = SHORT.replace(model=model, epochs=30, lr=0.01, hidden=32, embedding=16)
    result = Trainer(Dataset("p", papers(reverse=True)), run).run()
    # at random the mean rank is about 37; among the nodes of the right group about 6
    assert result.scores["test"]["mean_rank"] < 15


@pytest.mark.parametrize("corrupt", ["both", "destination", "source"])
def test_the_softmax_corrects_for_the_number_of_nodes_of_the_type(corrupt):
    trainer = Trainer(Dataset("p", papers()), SHORT.replace(corrupt=corrupt))
    task: Any = trainer.task
    batch = next(iter(trainer.batches))
    wanted = {"destination": [math.log(1 / 90)], "source": [math.log(1 / 60)]}
    chance = task._log_chance(batch)
    if corrupt == "both":
        assert torch.allclose(chance[:64], torch.full((64, 16), wanted["destination"][0]))
        assert torch.allclose(chance[64:], torch.full((64, 16), wanted["source"][0]))
    else:
        assert chance.item() == pytest.approx(wanted[corrupt][0])


@pytest.mark.cases(1)
@pytest.mark.parametrize("model", MODELS)
def test_a_run_goes_on_from_any_step(model, tmp_path):
    data = Dataset("p", papers(reverse=True, split="own"))
    run = SHORT.replace(
        model=model, norm="batch", fanouts=[{"writes": 4, "rev_writes": 4, "cites": 2}, 5]
    )
    check_goes_on(lambda: data, run, [1, 5], tmp_path, workers=0)
    # other edges of another relation are another data set
    other = papers(reverse=True, split="own")
    edges: dict[Any, Any] = {
        name: tuple(
            np.array(pairs_of(other, name)).T
            - [[other.nodes[name[end]].ids.start] for end in (0, 2)]
        )
        for name in other.schema.relations
    }
    edges["paper", "at", "venue"] = (np.arange(90), np.arange(90) // 15)
    changed = Graph.typed(
        {"author": {"x": other.nodes["author"].data["x"]}, "paper": 90, "venue": 6}, edges
    )
    changed.relations["writes"].data["split"] = other.relations["writes"].data["split"]
    assert Trainer(Dataset("p", changed), run).fingerprint != Trainer(data, run).fingerprint


def test_the_command(tmp_path, cli):
    papers(reverse=True).save(tmp_path / "data")
    run = tmp_path / "run"
    words = ["--task link --model typed --fanouts writes=3,rev_writes=3 2 --hidden 8 --no-plot"]
    words += ["--embedding 8 --negatives 8 --batch-size 64 --chunk 16 --epochs 2 --storage cached"]
    words += ["--target", "author writes paper"]
    printed = cli("train", tmp_path / "data", "--output", run, *words)
    assert "links of author writes paper: train/val/test 2" in printed
    tested = next(line for line in printed.splitlines() if line.startswith(" test"))
    assert tested in cli("evaluate", run)
    assert tested in cli("evaluate", run, "--data", tmp_path / "data")
    assert "the same, bit for bit" in cli("reproduce", run)
    assert "is finished" in cli("train --resume", run)
    assert "60 nodes" in cli("predict", run, "--output", tmp_path / "all.csv", "--top 3")
    assert "90 nodes" in cli("predict", run, "--output", tmp_path / "src.npy", "--side src")
    rows = rows_of(tmp_path / "all.csv")
    assert len(rows) == 180
    assert {int(row["answer"]) - int(row["answer_local"]) for row in rows} == {60}
    assert all(row["node"] == row["local"] for row in rows)
    assert np.load(tmp_path / "src.npy").max() < 60
    np.save(tmp_path / "ids.npy", [100])
    assert "nodes[0] is 100" in cli.failure(
        "predict", run, "--output", tmp_path / "x.csv", "--nodes", tmp_path / "ids.npy"
    )
    assert hasattr(load_model(run / "checkpoint.safetensors"), "decoder")
    wrong = ["--fanouts 3 at=3"]
    assert (
        "fanouts[1] draws nothing: it has 'paper at venue', but its nodes are of type author, paper"
        in cli.failure(
            "train",
            tmp_path / "data",
            "--output",
            tmp_path / "wrong",
            "--task link --target writes",
            *wrong,
        )
    )
    data = read_folder(tmp_path / "data", labels=False)
    trainer = Trainer(data, SHORT.replace(sampler="shadow", fanouts=(3,), storage="lookahead"))
    assert math.isfinite(trainer.run().records[-1].loss)


def test_links_of_a_relation_between_nodes_of_one_type():
    """Links of a graph of several relations: models without types, one-vs-all, and no encoder."""
    graph = papers()
    ids = graph.relations["cites"].ids
    src, dst = (end[ids.start : ids.stop] - 60 for end in graph.edges())
    edges: dict[Any, Any] = {
        ("p", "cites", "p"): (src, dst),
        ("p", "like", "p"): (dst, (src + 6) % 90),
    }
    data = Dataset("p", Graph.typed({"p": 90}, edges))
    common: dict[str, Any] = {
        "task": "link",
        "target": "cites",
        "embedding": 8,
        "lr": 0.05,
        "batch_size": 64,
    }
    for change in (
        {"model": "sage", "fanouts": (3,), "hidden": 8},
        {"model": "none"},
        {"model": "none", "link_loss": "one-vs-all"},
    ):
        result = Trainer(data, Settings(**common, **change, epochs=2)).run()
        assert math.isfinite(result.scores["test"]["mrr"])


def test_a_list_of_relations_to_exclude():
    graph = papers(reverse=True)

    seeds = graph.relations["writes"].to_graph([0, 4])
    for names in (["reviews"], ["writes", "rev_writes"], []):
        batch = LinkSampler(FullSampler(graph, 1), num_negatives=0, exclude=names)(seeds)
        src, dst = graph.find_edges(seeds)
        pairs = {frozenset(pair) for pair in zip(src.tolist(), dst.tolist(), strict=True)}
        for name in ("writes", "rev_writes", "reviews", "rev_reviews"):
            flow = batch.flows[0].of(name)
            u, v = graph.find_edges(flow.parent_eid)
            drawn = {frozenset(pair) for pair in zip(u.tolist(), v.tolist(), strict=True)}
            assert bool(drawn & pairs) == (name not in names)
    with pytest.raises(KeyError, match="no relation 'wrote'"):
        LinkSampler(FullSampler(graph, 1), exclude=["wrote"])
