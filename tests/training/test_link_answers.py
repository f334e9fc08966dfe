"""The answers of a run that learned links: of a trainer against all scores, and the files of
``predict``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from _support.cli_tools import rows_of, status, train, two_communities
from _support.training_tools import FAST, planted

from nodeflow import Graph
from nodeflow.datasets import Dataset, read_folder
from nodeflow.training import (
    Settings,
    Trainer,
    open_trainer,
    write_predictions,
    write_top_links,
)

LINKS = FAST.replace(
    task="link", model="none", decoder="complex", embedding=8, negatives=10, chunk=16, dropout=0.0, epochs=1,
    direction="both",
)  # fmt: skip
NAMES = tuple(f"node {v}" for v in range(24))
KINDS = ("calls", "writes to")


def ring(*, relations: bool = True, features: bool = True, sparse: bool = False) -> Dataset:
    """24 nodes: v calls v + 1 and v + 2, and writes to v + 3."""
    src = np.tile(np.arange(24), 3)
    dst = (src + np.repeat([1, 2, 3], 24)) % 24
    edata: dict[str, Any] = {
        "split": np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [56, 8, 8]))
    }
    if relations:
        edata["kind"] = np.repeat([0, 0, 1], 24)
    feat = np.eye(24, dtype=np.float32)
    ndata = {"feat": scipy.sparse.csr_array(feat) if sparse else feat} if features else {}
    graph = Graph.from_edges(src, dst, num_nodes=24, ndata=ndata, edata=edata)
    names = {"kind": KINDS} if relations else {}
    return Dataset("ring", graph, [], [], [], 0, node_names=NAMES, category_names=names)


def in_order(
    trainer: Trainer, node: int, kind: int | None, side: str, *, with_known: bool
) -> list[int]:
    """All answers of a query, best first, from scores of single pairs."""
    task = trainer.task
    trainer.network.eval()
    with torch.no_grad():
        rows = task.rows()
    edges = {tuple(edge) for part in task.triples.values() for edge in part.tolist()}
    found = []
    for other in range(24):
        src, dst = (node, other) if side == "destination" else (other, node)
        known = ((src, dst) if kind is None else (src, kind, dst)) in edges
        if (known and not with_known) or (kind is None and src == dst):
            continue
        score = float(task.decoder(rows[[src]], rows[[dst]], kind, side=side).detach())
        found.append((-score, other))
    return [other for _, other in sorted(found)]


@pytest.mark.parametrize(
    "change",
    [{"inputs": "embedding"}, {"inputs": "features"}, {"inputs": "both"}, {"inputs": "both", "model": "sage"},
     {"inputs": "embedding", "model": "gcn"}, {"inverse": True, "inputs": "embedding"}],
)  # fmt: skip
@pytest.mark.parametrize("side", ["destination", "source"])
def test_answers_are_the_highest_scores_of_the_rows(change, side):
    trainer = Trainer(ring(), LINKS.replace(**change))
    trainer.run()
    ids, scores = trainer.top_links([5, 0], 24, side=side)
    kept = trainer.top_links([5], 4, relation="writes to", side=side, with_known=True)
    assert ids.shape == scores.shape == (2, 2, 24)
    for i, node in enumerate([5, 0]):
        for kind in (0, 1):
            wanted = in_order(trainer, node, kind, side, with_known=False)
            assert ids[i, kind].tolist() == wanted + [-1] * (24 - len(wanted))
    assert kept.ids.tolist() == [in_order(trainer, 5, 1, side, with_known=True)[:4]]
    assert torch.equal(trainer.top_links([0, 5], 3, relation=1, side=side).ids, ids[[1, 0], 1, :3])


def test_without_relations_a_node_is_no_answer_to_itself():
    trainer = Trainer(ring(relations=False), LINKS.replace(decoder="dot", inputs="embedding"))
    trainer.run()
    for with_known in (False, True):
        found = trainer.top_links(range(24), 24, with_known=with_known)
        assert found.ids.shape == (24, 24)
        for node in range(24):
            wanted = in_order(trainer, node, None, "destination", with_known=with_known)
            assert found.ids[node, : len(wanted)].tolist() == wanted
            assert len(wanted) == (23 if with_known else 20)


def test_sparse_features_are_compared_as_dense_ones():
    sparse, dense = (
        Trainer(ring(sparse=one), LINKS.replace(inputs="features")) for one in (True, False)
    )
    assert sparse.run().scores == dense.run().scores
    assert torch.equal(sparse.top_links([1]).ids, dense.top_links([1]).ids)


def test_what_a_trainer_refuses():
    links = Trainer(ring(), LINKS.replace(inputs="embedding"))
    plain = Trainer(ring(relations=False), LINKS.replace(inputs="embedding"))
    for relation in (2, -1, "texts"):
        with pytest.raises(
            ValueError, match=f"from 0 to 1 or a name, such as 'calls', in .*, got {relation!r}"
        ):
            links.top_links([0], relation=relation)
    with pytest.raises(TypeError, match="relation must be an integer"):
        links.top_links([0], relation=True)
    with pytest.raises(
        ValueError, match="relation must be left out, because the edges of data set 'ring' have no"
    ):
        plain.top_links([0], relation=0)
    with pytest.raises(IndexError, match=r"nodes\[0\] is 24"):
        plain.top_links([24])
    with pytest.raises(TypeError, match="answers of a task of links are those of top_links"):
        links.outputs(torch.tensor([0]))
    with pytest.raises(TypeError, match="the run learned links: write_top_links"):
        write_predictions("x.csv", links)
    with pytest.raises(
        TypeError, match=r"top_links is for a task of links; a task of nodes has outputs\(nodes\)"
    ):
        write_top_links("x.csv", Trainer(planted(), FAST))
    assert not Path("x.csv").exists()


# the command


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with finished runs: "links" with relations and names, "plain" without either, and
    "nodes" of labels.
    """
    place = tmp_path_factory.mktemp("answers")
    ring().save(place / "ring")
    replace(ring(relations=False), node_names=None).save(place / "bare")
    options = [
        "--task link --no-plot --embedding 8 --negatives 5 --decoder bilinear",
    ]
    assert train(place / "ring", place / "links", *options, "--model sage") == 0
    plain = [
        "train",
        str(place / "bare"),
        "--output",
        str(place / "plain"),
        *options,
        "--model",
        "none",
    ]
    assert status([*plain, "--inputs embedding --batch-size 40 --epochs 2 --lr 0.02"]) == 0
    assert train(two_communities(place / "two"), place / "nodes", "--no-plot") == 0
    return place


def predicted(place: Path, run: str, *options: str, file: str = "out.csv") -> list[dict[str, str]]:
    assert status(["predict", place / run, "--output", place / file, *options]) == 0
    return rows_of(place / "out.csv")


def best(place: Path, run: str) -> Trainer:
    trainer = open_trainer(place / run)
    trainer.result()
    return trainer


def test_a_table_has_a_row_per_answer_with_names(place, capsys):
    np.save(place / "ids.npy", [7, 3])
    rows = predicted(place, "links", "--nodes", str(place / "ids.npy"), "--top", "3")
    assert "out.csv: 2 nodes" in capsys.readouterr().out
    ids, scores = best(place, "links").top_links([7, 3], 3)
    wanted = [
        {
            "node": str(node), "name": NAMES[node], "relation": str(kind), "relation_name": KINDS[kind],
            "rank": str(rank + 1), "answer": str(int(ids[i, kind, rank])),
            "answer_name": NAMES[int(ids[i, kind, rank])], "score": str(float(scores[i, kind, rank])),
        }
        for i, node in enumerate([7, 3]) for kind in (0, 1) for rank in range(3)
    ]  # fmt: skip
    assert rows == wanted


def test_numbers_of_all_nodes_and_parquet(place, monkeypatch):
    # several pieces, the last one smaller
    monkeypatch.setattr("nodeflow.training._predictions._PIECE", 30)
    trainer = best(place, "links")
    rows = predicted(place, "links")
    assert len(rows) == 24 * 2 * 10
    predicted(place, "links", file="out.npy")
    assert np.array_equal(np.load(place / "out.npy"), trainer.top_links(range(24)).ids.numpy())
    parquet = pytest.importorskip("pyarrow.parquet")
    predicted(place, "links", file="out.parquet")
    stored = parquet.read_table(place / "out.parquet").to_pylist()
    assert [{name: str(value) for name, value in row.items()} for row in stored] == rows


def test_one_relation_the_other_side_and_known_edges(place):
    trainer = best(place, "links")
    wanted = trainer.top_links(range(24), 4, relation=1, side="source", with_known=True).ids
    for relation in ("writes to", "1"):
        options = ["--relation", relation, "--side src --with-known --top 4"]
        rows = predicted(place, "links", *options)
        assert [int(row["answer"]) for row in rows] == wanted.flatten().tolist()
        assert {row["relation_name"] for row in rows} == {"writes to"}
    predicted(place, "links", *options, file="out.npy")
    assert np.array_equal(np.load(place / "out.npy"), wanted.numpy())


def test_fewer_answers_have_fewer_rows_and_no_names_no_columns(place):
    rows = predicted(place, "plain", "--top", "100")
    assert list(rows[0]) == ["node", "rank", "answer", "score"]
    assert len(rows) == 24 * 20  # of 24 nodes three are known, and one is the node itself
    found = best(place, "plain").top_links(range(24), 100).ids
    assert [int(row["answer"]) for row in rows] == found[found >= 0].tolist()
    write_top_links(place / "out.csv", best(place, "plain"), [], 2)
    assert (place / "out.csv").read_text().splitlines() == ["node,rank,answer,score"]


def test_the_table_of_a_trainer_is_that_of_the_command(place):
    for run, write in (("links", write_top_links), ("nodes", write_predictions)):
        predicted(place, run)
        write(place / "python.csv", best(place, run))
        assert (place / "python.csv").read_bytes() == (place / "out.csv").read_bytes()
    predicted(place, "nodes", "--nodes", "test")
    test = read_folder(place / "two").test
    write_predictions(str(place / "python.csv"), best(place, "nodes"), test)
    assert (place / "python.csv").read_bytes() == (place / "out.csv").read_bytes()


@pytest.mark.parametrize(
    ("run", "options", "message"),
    [
        ("nodes", "--top 3", "--top is for runs that learned links, but the run in "),
        ("nodes", "--side dst", "--side is for runs that learned links"),
        ("nodes", "--relation 0", "--relation is for runs that learned links"),
        ("nodes", "--with-known", "--with-known is for runs that learned links"),
        ("links", "--nodes test", "--nodes must be all or a file .npy of ids, because the run in "),
        ("links", "--top 0", "--top must be at least 1, got 0"),
        (
            "links",
            "--relation texts",
            "relation must be a number from 0 to 1 or a name, such as 'calls', in data set ",
        ),
        ("links", "--side up", "argument --side: invalid choice: 'up'"),
        ("plain", "--relation 0", "relation must be left out, because the edges of data set "),
    ],
)
def test_what_predict_refuses_of_links(run, options, message, place, tmp_path, cli):
    shown = cli.failure("predict", place / run, "--output", tmp_path / "x.csv", *options.split())
    assert message in shown
    assert not (tmp_path / "x.csv").exists()


def test_directions_without_relations():
    """The decoders that docs/link-prediction.md calls directed are, and the others are not."""
    rows = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    for name in ("dot", "distmult", "complex", "bilinear", "transe", "rotate", "mlp"):
        settings = Settings(task="link", model="none", embedding=8, decoder=name, epochs=1)
        decoder = Trainer(ring(relations=False, features=False), settings).network.decoder
        forth = decoder(rows[:1], rows[1:])
        back = decoder(rows[1:], rows[:1])
        assert torch.allclose(forth, back) == (name in ("dot", "distmult"))
