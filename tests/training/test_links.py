"""The task of links: data and split, batches, losses, evaluation, and what cannot be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from _support.run_files import options
from _support.training_tools import FAST, check_goes_on, without
from torch import Tensor

from nodeflow import Graph
from nodeflow.datasets import Dataset
from nodeflow.flow import Layer, NodeFlow
from nodeflow.metrics import rank_links
from nodeflow.nn import DECODERS, ComplEx, GraphSAGE
from nodeflow.training import Inputs, Trainer, _choices, _links, load_model, save

LINKS = FAST.replace(
    task="link",
    model="none",
    embedding=16,
    negatives=20,
    chunk=16,
    dropout=0.0,
    lr=0.05,
    direction="both",
    epochs=4,
)


def wheel(*, relations: bool = True, split: bool = True, features: bool = False) -> Dataset:
    """60 nodes; relation r joins node v to v + 1 + 2 r: what was held out follows from the other
    edges.
    """
    node = np.arange(60)
    src = np.tile(node, 3)
    relation = np.repeat([0, 1, 2], 60)
    dst = (src + 1 + 2 * relation) % 60
    part = np.random.default_rng(2).permutation(np.repeat([0, 1, 2], [140, 20, 20]))
    edata: dict[str, Any] = {}
    if relations:
        edata["relation"] = relation.astype(np.int16)
    if split:
        edata["split"] = part.astype(np.int8)
    angle = 2 * np.pi * node / 60
    waves = [np.cos(k * angle) for k in (1, 2, 3, 5)] + [np.sin(k * angle) for k in (1, 2, 3, 5)]
    ndata = {"feat": np.stack(waves, 1).astype(np.float32)} if features else {}
    return Dataset(
        "wheel", Graph.from_edges(src, dst, num_nodes=60, ndata=ndata, edata=edata), [], [], [], 0
    )


def test_training_edges_and_their_reverses_keep_their_columns():
    """Samplers draw by them, and models of one's own read them."""
    data = wheel(relations=False)
    src, dst = data.graph.edges()
    data.graph.edata["weight"] = (1 + src * 61 % 7 + dst).float()
    trainer = Trainer(
        data,
        LINKS.replace(model="sage", fanouts=(2,), sampler_options={"prob": "weight"}, epochs=1),
    )
    graph = trainer.task.graph
    assert set(graph.edata) == {"weight"}
    u, v = graph.edges()
    count = len(trainer.task.triples["train"])
    assert graph.num_edges == 2 * count
    expected = torch.where(torch.arange(2 * count) < count, 1 + u * 61 % 7 + v, 1 + v * 61 % 7 + u)
    assert torch.equal(graph.edata["weight"], expected.float())
    assert trainer.task.weighted
    assert math.isfinite(trainer.run().records[0].loss)

    class Reads(GraphSAGE):
        def forward(self, batch: Any, h: torch.Tensor) -> torch.Tensor:
            seen.extend(flow.data["weight"] for flow in batch.flows)
            return super().forward(batch, h)

    seen: list[torch.Tensor] = []
    settings = without(
        LINKS.replace(model="sage", inputs="embedding", fanouts=(2,), epochs=1), "dropout"
    )
    Trainer(
        data,
        settings,
        model=Reads(settings.model.embedding, 8, settings.model.embedding, num_layers=1),
    ).run()
    assert len(torch.cat(seen)) > 0


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("loss", ["softmax", "one-vs-all"])
def test_every_decoder_trains_without_an_encoder(decoder, loss):
    result = Trainer(wheel(), LINKS.replace(decoder=decoder, link_loss=loss)).run()
    assert result.metric == "mrr"
    assert result.records[-1].loss < result.records[0].loss
    assert set(result.scores["test"]) == {"mrr", "mean_rank", "hits@1", "hits@3", "hits@10"}


def test_every_loss_of_pairs_is_another_one():
    losses = {}
    for loss in _choices.LOSSES_OF_PAIRS:
        margin = {"margin": 2.0} if loss in ("margin", "self-adversarial") else {}
        settings = LINKS.replace(link_loss=loss, epochs=1, **margin)
        losses[loss] = Trainer(wheel(), settings).run().records[0].loss
    assert len(set(losses.values())) == len(losses), losses


@pytest.mark.parametrize("loss", [*_choices.LOSSES_OF_PAIRS, *_choices.ALL_NODES])
@pytest.mark.parametrize("inverse", [False, True])
def test_every_loss_trains(loss, inverse):
    margin = {"margin": 2.0} if loss in ("margin", "self-adversarial") else {}
    trainer = Trainer(
        wheel(), LINKS.replace(decoder="complex", link_loss=loss, inverse=inverse, **margin)
    )
    result = trainer.run()
    assert result.records[-1].loss < result.records[0].loss
    assert trainer.task.network.decoder.num_rows == (6 if inverse else 3)


@pytest.mark.parametrize("model", ["sage", "gcn", "rgcn", "gat", "gin"])
def test_every_encoder_trains(model):
    settings = LINKS.replace(model=model, epochs=2, inputs="both", fanouts=(3, 3))
    result = Trainer(wheel(features=True), settings).run()
    assert all(math.isfinite(record.loss) for record in result.records)
    assert result.records[0].edges_per_second > 0


@pytest.mark.slow
def test_it_learns():
    """ComplEx can turn by an angle per relation; at random the mean of 1 / rank is about 0.08."""
    settings = LINKS.replace(
        decoder="complex", link_loss="one-vs-all", embedding=32, epochs=60, batch_size=40
    )
    result = Trainer(wheel(), settings).run()
    assert result.scores["train"]["mrr"] > 0.9
    sampled = settings.replace(link_loss="softmax", negatives=60)
    assert Trainer(wheel(), sampled).run().scores["train"]["mrr"] > 0.9


@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_the_softmax_over_drawn_negatives_estimates_that_over_all_nodes(direction):
    """Only the other true answers are left out, whatever way messages go: rows of the first node
    have many.
    """
    data = wheel()
    hub = torch.where(torch.as_tensor(data.graph.edata["relation"]) == 1, 0, data.graph.edges()[0])
    graph = Graph.from_edges(hub, data.graph.edges()[1], num_nodes=60, edata=data.graph.edata)
    settings = LINKS.replace(
        link_loss="softmax",
        negatives=4000,
        chunk=140,
        batch_size=140,
        direction=direction,
        embedding=64,
    )
    trainer = Trainer(replace(data, graph=graph), settings)
    task = trainer.task
    with torch.no_grad():
        task.network.inputs.table.mul_(4)  # type: ignore[union-attr]  # so that leaving out an answer changes the sum
    batch = next(iter(trainer.batches))
    rows = task.network(batch)
    estimated = task.loss(rows, batch).item()
    table = task.rows().detach()
    losses = []
    known = {(int(s), int(r), int(o)) for s, r, o in task.triples["train"]}
    for s, r, o in known:
        for side, given, true in (("destination", s, o), ("source", o, s)):
            scores = (
                task.decoder.score_all(table[[given]], torch.tensor([r]), table, side=side)[0]
                .detach()
                .double()
            )
            triples = [
                ((given, r, v) if side == "destination" else (v, r, given)) for v in range(60)
            ]
            others = [v for v in range(60) if triples[v] not in known and v != given]
            losses.append(
                float(torch.cat([scores[[true]], scores[others]]).logsumexp(0) - scores[true])
            )
    assert estimated == pytest.approx(np.mean(losses), rel=0.01)


@pytest.mark.parametrize("loss", ["softmax", "one-vs-all"])
@pytest.mark.parametrize("corrupt", ["source", "both"])
def test_the_n3_regularisation_is_the_mean_of_cubed_norms(loss, corrupt):
    sides = {"corrupt": corrupt} if loss == "softmax" else {}
    settings = LINKS.replace(
        decoder="complex", link_loss=loss, inverse=True, batch_size=1000, **sides
    )
    losses = []
    for n3 in (0.0, 0.5):
        trainer = Trainer(wheel(), settings.replace(n3=n3))
        batch = next(iter(trainer.batches))
        losses.append(trainer.loss(batch).item())
    task: Any = trainer.task
    rows = task.rows().detach()
    ends = ["source"] if loss == "softmax" and corrupt == "source" else ["destination", "source"]
    s, r, o = task.triples["train"].T
    wanted = torch.cat(
        [task.decoder.n3(rows[s], r, rows[o], side=side).detach() for side in ends]
    ).mean()
    assert losses[1] - losses[0] == pytest.approx(0.5 * wanted.item(), rel=1e-4)


# data


def test_the_split_is_the_column_or_a_random_one():
    task = Trainer(wheel(), LINKS).task
    assert [len(task.triples[part]) for part in ("train", "val", "test")] == [140, 20, 20]
    assert task.graph.num_edges == 280  # messages go along training edges, in both directions
    assert task.graph.edata["relation"].unique().tolist() == [0, 1, 2, 3, 4, 5]
    random = [Trainer(wheel(split=False), LINKS.replace(seed=seed)).task.triples for seed in (0, 1)]
    assert [len(random[0][part]) for part in ("train", "val", "test")] == [144, 18, 18]
    assert all(torch.equal(random[0][part], random[1][part]) for part in random[0])
    assert torch.equal(
        torch.cat(list(random[0].values())).unique(dim=0),
        torch.cat(list(task.triples.values())).unique(dim=0),
    )


def test_the_fingerprint_is_of_triples_split_and_features():
    made = [wheel(features=True) for _ in range(4)]
    made[1].graph.ndata["feat"] = made[1].graph.ndata["feat"] + 1
    made[2].graph.edata["split"] = made[2].graph.edata["split"].flip(0)
    made[3].graph.edata["relation"] = made[3].graph.edata["relation"].flip(0)
    settings = LINKS.replace(inputs="both")
    prints = [Trainer(data, settings).task.fingerprint() for data in (*made, wheel(features=True))]
    assert len(set(prints)) == 4
    assert prints[0] == prints[4]


def test_graphs_without_relations():
    result = Trainer(wheel(relations=False), LINKS.replace(decoder="dot")).run()
    assert result.task.triples["train"].shape == (140, 2)
    assert result.scores["val"]["mrr"] > 0
    known = {tuple(pair) for pair in result.task.known.tolist()}
    assert {(v, v) for v in range(60)} <= known  # no node is a candidate for itself
    assert not any(s == o for s, _, o in Trainer(wheel(), LINKS).task.known.tolist())
    with pytest.raises(ValueError, match="inverse relations need an edge column of relations"):
        Trainer(wheel(relations=False), LINKS.replace(inverse=True))


def test_messages_never_go_along_the_seed_edges():
    trainer = Trainer(wheel(features=True), LINKS.replace(model="sage", fanouts=(-1, -1)))
    for batch in trainer.batches:
        asked = {
            tuple(sorted(pair))
            for pair in trainer.task.triples["train"][batch.seed_ids][:, [0, 2]].tolist()
        }
        for i in range(2):
            src, dst = batch.flows[i].edges()
            ends = batch.layers[i].parent_nid[src], batch.layers[i + 1].parent_nid[dst]
            assert not asked & {tuple(sorted(pair)) for pair in torch.stack(ends, 1).tolist()}


@pytest.mark.parametrize(("size", "told"), [(70, False), (140, True)])
def test_a_step_that_hides_most_edges_is_told(size, told):
    settings = LINKS.replace(model="sage", fanouts=(2, 2), batch_size=size)
    lines = Trainer(wheel(features=True), settings).task.description()
    words = "no message goes along the edges of a step, 100% of all: a smaller --batch-size"
    assert any(words in line for line in lines) is told


@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_ranks_are_those_of_the_rows_of_all_nodes(direction):
    trainer = Trainer(
        wheel(features=True), LINKS.replace(model="sage", direction=direction, epochs=1)
    )
    trainer.run()
    task = trainer.task
    table = task.network.model.inference(task.graph, task.graph.ndata["feat"])
    triples = torch.cat([task.triples[part] for part in ("train", "val", "test")])
    wanted = rank_links(task.decoder, table, task.triples["test"], known=triples)
    assert trainer.evaluate("test")["mrr"] == wanted.mrr
    ranks = rank_links(task.decoder, task.rows(), task.triples["test"], known=task.known).ranks
    assert torch.equal(ranks, wanted.ranks)


# batches


def test_of_many_training_edges_some_are_ranked(ranked):
    src, dst = torch.randint(20, (2, 12_000), generator=torch.Generator().manual_seed(0))
    edata = {"split": (torch.arange(12_000) < 10).to(torch.int8)}
    task = Trainer(
        Dataset("many", Graph.from_edges(src, dst, edata=edata), [], [], [], 0), LINKS
    ).task
    task.evaluate(["train", "val"], full=True)
    assert [links for links, _ in ranked] == [5_995, 10]


def test_seeds_alone():
    graph = wheel().graph
    batch = _links.NodesOnly(graph)([[5, 3], [3, 8]])
    assert batch.num_flows == 0
    assert batch.seeds.tolist() == [5, 3, 8]
    assert batch.seed_index.tolist() == [[0, 1], [1, 2]]
    batch.validate()
    many = _links.NodesOnly(graph)([5, 3] * graph.num_nodes)
    assert many.seeds.tolist() == [*range(graph.num_nodes)]
    assert many.seed_index.tolist() == [5, 3] * graph.num_nodes
    many.validate()


def test_learned_rows_of_all_nodes_are_the_table_itself():
    graph = wheel().graph
    inputs = Inputs(wheel().graph.num_nodes, 0, 4)
    whole = _links.NodesOnly(graph)([0] * graph.num_nodes)
    assert inputs(whole) is inputs.table
    for order in (torch.arange(graph.num_nodes).flip(0), torch.arange(graph.num_nodes - 1)):
        batch = NodeFlow([Layer(len(order), order)], [], parent=graph)
        assert torch.equal(inputs(batch), inputs.table[order])


# runs


@pytest.mark.parametrize("loss", ["softmax", "one-vs-all"])
def test_a_run_goes_on_bit_for_bit(loss, tmp_path):
    settings = LINKS.replace(link_loss=loss, dropout=0.2, epochs=2)
    check_goes_on(wheel, settings, [4], tmp_path)


@pytest.mark.parametrize("model", ["none", "sage"])
def test_a_saved_network_comes_back(model, tmp_path):
    result = Trainer(
        wheel(), LINKS.replace(model=model, decoder="complex", epochs=1, inverse=True)
    ).run()
    loaded = load_model(save(result, tmp_path)[0])
    assert isinstance(loaded.decoder, ComplEx)
    weights = result.network.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in loaded.state_dict().items())


def test_a_model_and_a_loss_of_ones_own():
    def loss(positive: Tensor, negative: Tensor) -> Tensor:
        return (negative.logsumexp(1) - positive).mean()

    model = GraphSAGE(16, 8, 16, num_layers=2)
    result = Trainer(
        wheel(), without(LINKS.replace(model="sage"), "dropout"), model=model, loss=loss
    ).run()
    assert result.records[-1].loss < result.records[0].loss


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"metric": "accuracy"},
            "metric of task 'link' must be 'mrr', 'mean_rank', .* got 'accuracy'",
        ),
        (
            {"edge_type": "kind"},
            "edge_type='kind' is no edge column; the graph has relation, split",
        ),
        (
            {"sampler": "saint", "model": "sage"},
            "sampler 'saint' does not go with task 'link': seeds must be nodes",
        ),
        (
            {"model": "sage", "link_loss": "one-vs-all"},
            "'one-vs-all' does not go with model 'sage': .* needs model 'none'",
        ),
        (
            {"model": "gat", "sampler": "fastgcn"},
            "model 'gat' would be biased with sampler 'fastgcn'",
        ),
        ({"decoder": "complex", "embedding": 7}, "even"),
        ({"decoder_options": {"depth": 3}}, "decoder 'distmult' cannot be made: "),
        ({"task": "auto", "model": "sage"}, "data set 'wheel' has no labels"),
    ],
    ids=str,
)
def test_what_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        Trainer(wheel(), LINKS.replace(**change))


def test_masks_are_the_split_of_edges():
    data = wheel()
    split = data.graph.edata.pop("split")
    masks = {
        f"{part}_mask": split == number for number, part in enumerate(("train", "valid", "test"))
    }
    data.graph.edata.update(masks)
    by_masks, by_numbers = (Trainer(each, LINKS).task.triples for each in (data, wheel()))
    assert all(torch.equal(by_masks[part], by_numbers[part]) for part in by_numbers)
    data.graph.edata["valid_mask"] = masks["valid_mask"] & False
    with pytest.raises(ValueError, match=f"edge {int(split.eq(1).nonzero()[0])} is in none; give"):
        Trainer(data, LINKS)


CHANGES: list[dict[str, Any]] = [
    {"decoder": "complex"},
    {"decoder": "mlp", "decoder_options": {"hidden": 7}},
    {"inverse": True},
    {"link_loss": "logistic"},
    {"negatives": 21},
    {"negative_law": "degree"},
    {"chunk": 15},
    {"corrupt": "source"},
    {"link_loss": "margin", "margin": 3.0},
    {"link_loss": "self-adversarial", "temperature": 0.5},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_another_setting_gives_another_result(change):
    first = next(iter(change))
    plain = LINKS.replace(**{first: change[first]}) if len(change) > 1 else LINKS
    losses = [
        Trainer(wheel(), settings).run().records[-1].loss
        for settings in (plain, LINKS.replace(**change))
    ]
    assert losses[0] != losses[1]


def test_every_setting_of_links_is_tried():
    mine = {name for name, (group, *_) in options().items() if group == "link"} - {"n3"}
    assert {name for change in CHANGES for name in change} == mine
