"""nodeflow on the work of ``link_speed.py``: ``metrics.rank_links`` and a ``training.Trainer``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from link_work import Links, serve

import nodeflow
from nodeflow import Graph, metrics, nn
from nodeflow.datasets import Dataset
from nodeflow.training import Settings, Trainer


def evaluate(links: Links, decoder: str, _: int) -> Callable[[], float]:
    kind = {"distmult": nn.DistMult, "complex": nn.ComplEx}[decoder]
    model = kind(links.nodes.shape[1], len(links.relations))
    with torch.no_grad():
        model.relation.copy_(links.relations)
    # every edge is known, also those of the test split that are not evaluated
    known = [links.train, links.valid]
    return lambda: metrics.rank_links(model, links.nodes, links.test, known=known).mrr


def train(links: Links, decoder: str, batch: int, *, chunk: int) -> Callable[[], float]:
    src, relation, dst = links.train.T
    edata = {"relation": relation.contiguous(), "split": torch.zeros(len(src), dtype=torch.int8)}
    graph = Graph.from_edges(src, dst, num_nodes=len(links.nodes), edata=edata)
    settings = Settings(
        task="link", model="none", decoder=decoder, embedding=links.nodes.shape[1], dropout=0.0, link_loss="logistic",
        negatives=128, chunk=chunk, batch_size=batch, lr=0.01, epochs=1000,
    )  # fmt: skip
    trainer = Trainer(Dataset("knowledge graph", graph, [], [], [], 0), settings)
    return lambda: trainer.train_epoch().loss


if __name__ == "__main__":
    jobs = {
        "evaluate": evaluate,
        "train": partial(train, chunk=1),
        "train-shared": partial(train, chunk=256),
    }
    serve(jobs, f"nodeflow {nodeflow.__version__}")
