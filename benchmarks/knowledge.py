"""Train links of a knowledge graph by the command's recipe, and by a plain loop; a table of seconds
and of test ranks.

python benchmarks/knowledge.py --data FOLDER [--epochs 3] [--batch-size 1000] [--threads 2]

Both are ComplEx with N3 of the same width and weight, inverse relations, and Adagrad with a rate
that falls to 0 over the epochs; epochs take turns. The plain loop has a softmax over all nodes per
training edge and side, and its own ranks: the test answer among all nodes, without other known
answers. nodeflow asks each query once for all its answers.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from nodeflow.datasets import read_folder
from nodeflow.training import Settings, Trainer


class PlainLoop:
    """ComplEx-N3 in plain torch. Triples are those of both sides, (query node, relation,
    answer).
    """

    def __init__(
        self, num_nodes: int, num_relations: int, settings: Settings, batch_size: int, steps: int
    ) -> None:
        width = settings.model.embedding
        self.n3 = settings.link.n3
        self.batch_size = batch_size
        self.rows = torch.nn.Parameter(1e-3 * torch.randn(num_nodes, width))
        self.relations = torch.nn.Parameter(1e-3 * torch.randn(2 * num_relations, width))
        self.optimizer = torch.optim.Adagrad(
            [self.rows, self.relations], lr=settings.optimizer.lr, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: 1 - step / steps
        )

    def query(self, node: Tensor, relation: Tensor) -> Tensor:
        a, b = node.chunk(2, -1)
        c, d = relation.chunk(2, -1)
        return torch.cat([a * c - b * d, a * d + b * c], -1)

    def epoch(self, triples: Tensor) -> None:
        for batch in triples[torch.randperm(len(triples))].split(self.batch_size):
            node, relation, answer = batch.unbind(1)
            factors = self.rows[node], self.relations[relation], self.rows[answer]
            loss = F.cross_entropy(self.query(*factors[:2]) @ self.rows.T, answer)
            for real, imaginary in (factor.chunk(2, -1) for factor in factors):
                loss = loss + self.n3 * (real**2 + imaginary**2).pow(1.5).sum(-1).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()

    @torch.no_grad()
    def ranks(self, triples: Tensor, known: Tensor) -> Tensor:
        answers = defaultdict(list)
        for node, relation, answer in known.tolist():
            answers[node, relation].append(answer)
        ranks = []
        for batch in triples.split(1000):
            node, relation, answer = batch.unbind(1)
            scores = self.query(self.rows[node], self.relations[relation]) @ self.rows.T
            own = scores.gather(1, answer[:, None])
            for row, (one, kind) in zip(scores, batch[:, :2].tolist(), strict=True):
                row[answers[one, kind]] = -torch.inf
            ranks.append(1 + (scores > own).sum(1) + (scores == own).sum(1) / 2)
        return torch.cat(ranks)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, metavar="FOLDER")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument(
        "--batch-size", type=int, default=1000, help="of the plain loop: edges and sides"
    )
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    dataset = read_folder(options.data, labels=False)
    chosen = Settings(task="link", epochs=options.epochs, patience=0, validate_every=options.epochs)
    trainer = Trainer(dataset, chosen)
    print(
        f"{dataset}; {options.threads} thread(s); {platform.machine()}, {os.cpu_count()} "
        f"cores\n{trainer.recipe}\n"
    )

    task: Any = trainer.task  # that of links
    parts = {part: both_sides(each, task.num_relations) for part, each in task.triples.items()}
    steps = options.epochs * -(-len(parts["train"]) // options.batch_size)
    plain = PlainLoop(
        dataset.graph.num_nodes, task.num_relations, trainer.settings, options.batch_size, steps
    )
    seconds: dict[str, list[float]] = {"nodeflow": [], "plain loop": []}
    for _ in range(options.epochs):
        seconds["nodeflow"].append(trainer.train_epoch().seconds)
        begun = time.perf_counter()
        plain.epoch(parts["train"])
        seconds["plain loop"].append(time.perf_counter() - begun)

    scores = trainer.evaluate("test")
    ranks = plain.ranks(parts["test"], torch.cat(list(parts.values())))
    mrr = {"nodeflow": scores["mrr"], "plain loop": float((1 / ranks).mean())}
    hits = {"nodeflow": scores["hits@10"], "plain loop": float((ranks <= 10).float().mean())}
    print(
        f"| loop | seconds per epoch | least to most | test MRR after {options.epochs} | hits@10 "
        f"|\n{'|---' * 5}|"
    )
    for name, each in seconds.items():
        spread = f"{min(each):.2f} to {max(each):.2f}"
        print(
            f"| {name} | {statistics.median(each):.2f} | {spread} | {mrr[name]:.4f} | "
            f"{hits[name]:.4f} |"
        )


def both_sides(triples: Tensor, num_relations: int) -> Tensor:
    """Return triples, and after them those of the inverse relations."""
    src, relation, dst = triples.unbind(1)
    return torch.cat([triples, torch.stack([dst, relation + num_relations, src], 1)])


if __name__ == "__main__":
    main()
