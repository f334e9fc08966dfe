"""The task of links: held-out edges are ranked against all nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nodeflow._core.base.checks import Ints, as_ids, as_int, check_one_of
from nodeflow._core.base.types import IdsLike
from nodeflow._core.edges.numbering import Numbering
from nodeflow._core.links import SIDES
from nodeflow._core.random import derive_key
from nodeflow._core.rows.rows import whole_column
from nodeflow._core.schema import REVERSE, Relation
from nodeflow.datasets import Dataset
from nodeflow.flow import Layer, NodeFlow
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.metrics import Metric, TopLinks, rank_links, top_links
from nodeflow.nn import FlowModel, softmax_loss
from nodeflow.sampling import Keys, LinkChunk, LinkSampler
from nodeflow.sampling.base import SamplerBase
from nodeflow.training._answers import AnswerBatch, Answers
from nodeflow.training._choices import ALL_NODES
from nodeflow.training._data import PARTS, split_edges
from nodeflow.training._graph import hash_of, keys_of_types
from nodeflow.training._models import build_decoder, loss_of_pairs
from nodeflow.training._names import Names
from nodeflow.training._network import AnyInputs, LinkNetwork
from nodeflow.training._settings import Settings
from nodeflow.training._task import Batches, OwnParts, Task

METRICS = ("mrr", "mean_rank", "hits@1", "hits@3", "hits@10")


class NodesOnly(SamplerBase):
    """Batches of seeds without flows, for models without message passing."""

    whole_only = False

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, 0)

    def _sample(self, seeds: Ints, keys: Keys) -> NodeFlow:
        count = self.graph.num_nodes
        # repeated ones too: most nodes would be in the batch anyway
        if len(seeds) >= count:
            return NodeFlow(
                [Layer(count, torch.arange(count))],
                [],
                parent=self.graph,
                seed_index=torch.tensor(seeds),
            )
        with Numbering(count) as numbering:
            rows = numbering.extend(seeds.copy())
        layer = Layer(len(numbering.nodes), torch.from_numpy(numbering.nodes))
        return NodeFlow([layer], [], parent=self.graph, seed_index=torch.from_numpy(rows))


class LinkTask(Task):
    """Learn to rank the true end of an edge among all nodes of its type, from rows of nodes and a
    decoder.

    The edges are those of one relation of the schema. Messages go along the training edges and
    those of other relations, and never along the seed edges of the batch or their reverses. In a
    graph without relations and self-loops, a node is no candidate for its own other end. The rows
    of a model of your own have the width ``embedding``.
    """

    network: LinkNetwork

    def __init__(
        self, dataset: Dataset, settings: Settings, device: torch.device, parts: OwnParts
    ) -> None:
        if parts.metrics:
            raise ValueError(
                f"metrics of links are {', '.join(METRICS)}; metrics= is for tasks of nodes"
            )
        self.metrics = {name: Metric(name, _no_function, name != "mean_rank") for name in METRICS}
        metric = settings.run.metric or "mrr"
        check_one_of(metric, "metric of task 'link'", METRICS)
        self.metric = self.metrics[metric]
        links = split_edges(dataset, settings.graph.edge_type, settings.run.target)
        self.target, self.relation, self.triples, graph = links
        schema = graph.schema
        self.ends = {
            "source": schema.ids(self.target[0]),
            "destination": schema.ids(self.target[2]),
        }
        self.candidates = None if len(schema.nodes) == 1 else self.ends
        if not len(self.triples["train"]):
            raise ValueError(f"data set {dataset.name!r} has no training edges")
        edges = torch.cat(list(self.triples.values()))
        self.num_relations = 0
        if self.relation is not None:
            named = Names.of(dataset).categories.get(self.relation) or ()
            self.num_relations = max(int(edges[:, 1].max()) + 1, len(named))
        self.excluded = edges[:0]
        if self.relation is None and not (edges[:, 0] == edges[:, 1]).any():
            # a node is most alike to itself, so it would take the first place of every ranking
            self.excluded = torch.arange(dataset.graph.num_nodes).unsqueeze(1).expand(-1, 2)
        self.known = torch.cat([edges, self.excluded])
        self._loss = parts.loss
        super().__init__(
            dataset,
            graph,
            settings,
            device,
            parts.model,
            settings.model.embedding,
            self.triples["train"][:, [0, -1]].flatten(),
        )

    def make_network(self, inputs: AnyInputs, model: nn.Module | None) -> LinkNetwork:
        width = self.settings.model.embedding
        if model is None:
            width = inputs.width
        self.decoder: Any = build_decoder(self.settings.link, width, self.num_relations)
        return LinkNetwork(inputs, model, self.decoder, self.settings.model.dropout)

    def make_loader(self) -> NodeFlowLoader | None:
        link = self.settings.link
        seed = self.settings.run.seed
        if link.loss in ALL_NODES:
            return None
        train = self.triples["train"]
        sampler: SamplerBase = NodesOnly(self.graph)
        exclude = None
        if self.network.encodes:
            sampler = self.method.sampler(seed)
            hidden = _and_reverses(self.target)
            exclude = [relation for relation in self.graph.schema.relations if relation in hidden]
        # ``negatives`` are those of one side
        num_sides = 1
        if link.corrupt == "both":
            num_sides = 2
        self.links = LinkSampler(
            sampler,
            pairs=train,
            relation=self.relation,
            num_negatives=link.negatives * num_sides,
            negatives=link.negative_law,
            chunk=link.chunk,
            corrupt=link.corrupt,
            filter_known="mark",
            # in the direction of the data set; the edges of ``graph`` go in the direction of
            # messages
            known=train,
            exclude=exclude,
            seed=seed,
        )
        self.links.check_reach(self.trained_nodes)
        seeds = torch.arange(self.links.num_seeds)
        return self.loader_of(
            self.links, seeds, self.settings.sampler.batch_size, seed, shuffle=True
        )

    def make_batches(self, num_rows: int) -> Batches:
        if self.loader is not None:
            return super().make_batches(num_rows)
        return Answers(
            self.graph,
            self.triples["train"],
            self.settings.sampler.batch_size,
            self.settings.run.seed,
            self.peers.rank,
            self.peers.size,
            by_answer=self.settings.link.loss == "one-vs-all",
        )

    # ---- training

    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        h = outputs.float()
        link = self.settings.link
        n3 = link.n3
        if isinstance(batch, AnswerBatch):
            return batch.loss(self.decoder, h, self.settings.loss.label_smoothing, n3)
        positive, negative = self.decoder.score_chunks(h, batch)
        if self._loss is not None:
            loss = self._loss(positive, negative)
        elif link.loss == "softmax":
            loss = softmax_loss(positive, negative, log_proposal=self._log_chance(batch))
        else:
            loss = loss_of_pairs(link, positive, negative)
        if n3:
            cubes = torch.cat([self._cubes(chunk, h) for chunk in batch.chunks])
            loss = loss + n3 * cubes.sum() / max(len(cubes), 1)
        # weight this process's mean so that the mean over processes is the mean over all edges of
        # the step
        if self.peers.size > 1:
            assert self.loader is not None
            loss = loss * (self.size(batch) * self.loader.seed_weight)
        return loss

    def _cubes(self, chunk: LinkChunk, h: Tensor) -> Tensor:
        # faster than indexing
        src = F.embedding(chunk.src, h)
        dst = F.embedding(chunk.dst, h)
        cubes: Tensor = self.decoder.n3(src, chunk.relation, dst, side=chunk.side)
        return cubes.flatten()

    def _log_chance(self, batch: NodeFlow) -> Tensor:
        corrupt = self.settings.link.corrupt
        sizes = {len(ids) for side, ids in self.ends.items() if corrupt in ("both", side)}
        # all have the same chance, so one number serves all, and no table of chances is read
        if self.settings.link.negative_law == "uniform" and len(sizes) == 1:
            return torch.tensor(-math.log(sizes.pop()))
        return self.links.log_proposal(batch)

    def size(self, batch: Any) -> int:
        if isinstance(batch, AnswerBatch):
            return len(batch.node)
        return len(batch.seed_ids)

    def description(self) -> list[str]:
        link = self.settings.link
        parts = "/".join(f"{len(self.triples[part]):,}" for part in PARTS)
        line = "links"
        if len(self.dataset.graph.schema.relations) > 1:
            line += f" of {' '.join(self.target)}"
        line += f": train/val/test {parts} edges"
        if self.num_relations:
            line += f", {self.num_relations} relations"
        line += f", decoder {link.decoder}, loss {link.loss}"
        if self.loader is not None:
            line += "; seeds are the ends of edges and of negatives"
        if not self.network.encodes:
            return [line]
        lines = [*super().description(), line]
        hidden = min(self.settings.sampler.batch_size / len(self.triples["train"]), 1)
        # such a model trains on what is left of the graph, and scores low for no visible reason
        if self.loader is not None and hidden > 0.5:
            lines.append(
                f"no message goes along the edges of a step, {hidden:.0%} of all: a smaller "
                "--batch-size leaves more"
            )
        return lines

    # ---- evaluation

    def rows(self) -> Tensor:
        """Return the rows of all nodes that the decoder compares, ``[num_nodes, width]``, from full
        neighbourhoods.
        """
        if not self.network.encodes:
            x = whole_column(self.network.inputs.everywhere(self.graph))
            return self.network.model(x).float()  # type: ignore[no-any-return]
        model = self.network.model
        if self.method.traits.estimates and isinstance(model, FlowModel):
            return self.full_pass(model)
        everyone = torch.arange(self.graph.num_nodes)
        sampler = self.method.sampler(self.settings.run.seed + 1)
        return self.outputs_of(sampler, everyone, self.settings.model.embedding).to(self.device)

    def top_links(
        self,
        nodes: IdsLike,
        k: int,
        *,
        relation: int | str | None,
        side: str,
        with_known: bool,
    ) -> TopLinks:
        """Return the k best answers for each node, see ``Trainer.top_links``."""
        check_one_of(side, "side", SIDES)
        relations = self.relations(relation)
        possible = self.query_nodes(side)
        ids = torch.from_numpy(as_ids(nodes, "nodes", possible.stop, lower=possible.start))
        # a query for each relation of each node
        queries = ids.repeat_interleave(max(len(relations), 1))
        kinds = None
        if relations:
            kinds = torch.tensor(relations).repeat(len(ids))
        known = self.known
        if with_known:
            known = self.excluded
        rows = self.rows()
        with self.precision.in_float32():
            answers = top_links(
                self.decoder,
                rows,
                queries,
                k,
                relation=kinds,
                side=side,
                known=known,
                candidates=None if self.candidates is None else self.candidates[side],
            )
        if relation is None and relations:
            shape = (len(ids), len(relations), k)
            return TopLinks(answers.ids.view(shape), answers.scores.view(shape))
        return answers

    def query_nodes(self, side: str) -> range:
        """Return the nodes whose links have an end to find on a side."""
        return self.ends["source" if side == "destination" else "destination"]

    @property
    def relation_names(self) -> tuple[str, ...] | None:
        """The name of each relation, or None."""
        if self.relation is None:
            return None
        return self.dataset.category_names.get(self.relation)

    def relations(self, relation: int | str | None) -> list[int]:
        """Return the number of the relation of a number, as text too, or a name; of all for None,
        empty without any.

        Raises ValueError for a relation that is not there.
        """
        if relation is None:
            return list(range(self.num_relations))
        name = self.dataset.name
        if self.relation is None:
            raise ValueError(
                f"relation must be left out, because the edges of data set {name!r} have no "
                "relations"
            )
        names = self.relation_names or ()
        number = -1
        if not isinstance(relation, str):
            number = as_int(relation, "relation")
        elif relation in names:
            number = names.index(relation)
        elif relation.isdecimal():
            number = int(relation)
        if not 0 <= number < self.num_relations:
            example = ""
            if names:
                example = f" or a name, such as {names[0]!r}"
            raise ValueError(
                f"relation must be a number from 0 to {self.num_relations - 1}{example}, in data "
                f"set {name!r}, got {relation!r}"
            )
        return [number]

    def has(self, part: str) -> bool:
        return len(self.triples[part]) > 0

    def evaluate(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        """Return MRR, mean rank and hits of the parts; of the training edges 10,000, always the
        same.
        """
        rows = self.rows()
        scores = {}
        # ranks of millions of training edges would take longer than the training
        for part in parts:
            triples = self.triples[part]
            if part == "train" and len(triples) > 10_000:
                triples = triples[:: len(triples) // 10_000 + 1]
            with self.precision.in_float32():
                ranks = rank_links(
                    self.decoder, rows, triples, known=self.known, candidates=self.candidates
                )
            summary = ranks.summary()
            scores[part] = {name: summary[name] for name in self.metrics}
        return scores

    # ---- state

    def fingerprint(self) -> str:
        graph = self.dataset.graph
        types = keys_of_types(graph)
        columns: list[Any] = [*self.triples.values()]
        if self.graph.peers.size == 1:
            columns += self.features.values()
            # edges of other relations, which are no triples
            if types:
                columns.append(graph.csc()[1])
        return f"{derive_key(*map(hash_of, columns), *types):016x}"

    def names_read(self, known: Names) -> Names:
        """Return names without those of classes, and with those of the relations of links."""
        names = super().names_read(known)
        read = {}
        if self.relation is not None:
            read = {self.relation: known.categories.get(self.relation)}
        return replace(names, classes=[], categories=names.categories | read)

    def network_facts(self) -> dict[str, Any]:
        facts = {"num_relations": self.num_relations, "width": self.decoder.width}
        return {**super().network_facts(), "decoder": facts}


def _and_reverses(relation: Relation) -> set[Relation]:
    """Return a relation, its reverse, and those that the direction of messages made of the two."""
    source, name, target = relation
    opposite = name.removeprefix(REVERSE) if name.startswith(REVERSE) else REVERSE + name
    relations = {relation, (target, opposite, source)}
    # a graph that is reversed puts the prefix before any name, also before that of a reverse
    made = {(target, REVERSE + name, source) for source, name, target in relations}
    return relations | made


def _no_function(outputs: Tensor, targets: Tensor) -> float:
    raise TypeError("metrics of links are ranks, see nodeflow.metrics.rank_links")
