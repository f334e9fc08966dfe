"""Task: data, network and batches of a run, and what a trainer asks about them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from nodeflow._base.checks import blaming, check_type
from nodeflow._base.sizes import as_bytes
from nodeflow._peers.present import peers_of
from nodeflow._rows.base import stored
from nodeflow._rows.coded import is_coded
from nodeflow._rows.rows import is_collective, whole_column
from nodeflow.datasets import Dataset, features_of, is_binary
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader, SentAhead
from nodeflow.metrics import Metric
from nodeflow.nn import FlowModel, IgnoredWeightWarning
from nodeflow.ops import product_type
from nodeflow.sampling.base import SamplerBase
from nodeflow.storage import Cached, CodedRows, Lookahead, NarrowRows, mean_bytes
from nodeflow.training._answers import Answers
from nodeflow.training._choices import (
    COLUMN,
    LOSS,
    NO_COLUMN,
    ONE,
    OWN,
    OWN_LOSS,
    PARTS,
    SEVERAL,
    WHOLE,
)
from nodeflow.training._data import no_labels, relation_column
from nodeflow.training._graph import FeatureRows, directed, hash_of, relations_of, with_features
from nodeflow.training._models import ModelFacts, build_model, kind_of
from nodeflow.training._names import Names
from nodeflow.training._network import Network, inputs_of
from nodeflow.training._partitions import PartBatches
from nodeflow.training._rules import facts_of_graph
from nodeflow.training._samplers import METHODS
from nodeflow.training._settings import Settings
from nodeflow.transform import DEGREES

Batches: TypeAlias = NodeFlowLoader | Lookahead | PartBatches | Answers


class OwnParts(NamedTuple):
    """Parts of a run that are the user's own, see ``Trainer``."""

    model: nn.Module | None
    loss: Callable[[Tensor, Tensor], Tensor] | None
    metrics: Sequence[Metric]
    optimizer: Callable[..., torch.optim.Optimizer] | None
    scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler] | None

    def check(self) -> None:
        """Raise TypeError for a part of another kind."""
        check_type(self.model, "model", nn.Module | None, "a torch.nn.Module")
        check_type(self.loss, "loss", Callable | None, "a function of outputs and targets")
        check_type(self.optimizer, "optimizer", Callable | None, "a function of the parameters")
        check_type(self.scheduler, "scheduler", Callable | None, "a function of the optimizer")
        check_type(self.metrics, "metrics", list | tuple, "a list of nodeflow.metrics.Metric")
        for i, metric in enumerate(self.metrics):
            check_type(
                metric, f"metrics[{i}]", Metric, "a Metric; nodeflow.metrics.named(name) is one"
            )

    def names(self) -> dict[str, str]:
        """Return the names of the parts that are given; for an object, its class name."""
        parts = {
            name: part
            for name, part in self._asdict().items()
            if part is not None and name != "metrics"
        }
        names = {
            name: str(getattr(part, "__qualname__", type(part).__qualname__))
            for name, part in parts.items()
        }
        return names | (
            {"metrics": ", ".join(metric.name for metric in self.metrics)} if self.metrics else {}
        )


def task_of(dataset: Dataset, task: str) -> str:
    """Return the task of nodes, "auto" by the labels of the split; raises ValueError for a data set
    without any.
    """
    if "label" not in dataset.graph.ndata:
        raise ValueError(no_labels(dataset, dataset.target))
    labels = dataset.graph.ndata["label"]
    if task != "auto":
        return task
    if not labels.is_floating_point() and labels.ndim == 1:
        return "classification"
    of_split = labels[torch.cat([*dataset.splits.values()])]
    return "multilabel" if labels.ndim == 2 and is_binary(of_split) else "regression"


def facts_of(dataset: Dataset, settings: Settings, own_parts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a run by which its settings are checked; parts of your own take the place
    of settings.
    """
    facts = facts_of_graph(dataset.graph) | {
        "graph": WHOLE if dataset.graph.peers.size == 1 else PARTS,
        "processes": ONE if peers_of(dataset.graph).size == 1 else SEVERAL,
        "loss": OWN_LOSS if "loss" in own_parts else LOSS,
    }
    if settings.run.task == "link":
        facts["relations"] = (
            NO_COLUMN if relation_column(dataset, settings.graph.edge_type) is None else COLUMN
        )
    else:
        facts["task"] = task_of(dataset, settings.run.task)
    replaced = {"model": "model", "optimizer": "optimizer", "scheduler": "schedule"}
    return facts | {name: OWN for part, name in replaced.items() if part in own_parts}


class Task(ABC):
    """Data, network and batches of a run.

    Subclasses set ``metrics`` and ``metric`` and what their ``make_network`` and ``make_loader``
    read, then call this. ``graph`` has the edges of messages, in the direction of the data set;
    ``width`` is that of the model's outputs.

    Attributes, each made from those before it: own_model: whether the model is of the user's own,
        also by name. multiplies, narrow: whether products are computed, and whether rows lie, in
        bfloat16. dtype: type of the features that enter the network. method, graph: the sampler in
        training, and the graph along whose edges messages go. features: those of each node type
        that has some, before any are cached; ``FeatureRows`` if fetched by id. edge_type: column of
        edge types that the model reads, or empty. weighted: whether the edges of a batch have
        different estimator weights. names: those behind the numbers that the network reads and
        gives. facts: arguments from which the model is made again; None for one of the user's own
        and for none. loader: the batches of the whole graph that training draws; None where it
        draws none.
    """

    metrics: Mapping[str, Metric]
    metric: Metric

    def __init__(
        self,
        dataset: Dataset,
        graph: Graph,
        settings: Settings,
        device: torch.device,
        model: nn.Module | None,
        width: int,
    ) -> None:
        self.dataset = dataset
        self.settings = settings
        self.device = device
        self.peers = peers_of(dataset.graph)
        kind = kind_of(settings.model.name)
        encodes = model is not None or settings.model.name != "none"
        self.own_model = model is not None or kind.own
        # products would round features to bfloat16 in every step; a history, a decoder and other
        # models read float32
        low = settings.compute.precision != "float32"
        self.multiplies = low and product_type(device) == torch.bfloat16
        # elsewhere it is dropout that takes half the time; without it nothing would be gained
        pays = kind.pieces and model is None and settings.model.dropout > 0
        self.narrow = self.multiplies or (
            low and pays and not METHODS[settings.sampler.name].traits.has_history
        )
        plain = not encodes or self.own_model or not self.narrow
        self.dtype = (
            torch.float32
            if plain or METHODS[settings.sampler.name].traits.has_history
            else torch.bfloat16
        )
        self._own_edges = graph.num_edges
        known = Names.of(dataset)
        graph = directed(
            graph, settings.graph.direction, settings.graph.edge_type, known.categories
        )
        self.method = METHODS[settings.sampler.name](
            with_features(graph, settings.storage.kind, self.dtype), settings.sampler, kind
        )
        self.graph = self.method.graph
        self.features = features_of(self.graph)
        ordered = known.ordered(self.graph.schema)
        self.edge_type = ""
        num_relations = 0
        if kind.typed:
            self.edge_type, num_relations = relations_of(
                self.graph,
                settings.graph.edge_type,
                known.categories,
                self.graph.num_edges > self._own_edges,
            )
        self.inputs = inputs_of(dataset, settings.model, self.features)
        if settings.storage.kind == "cached":
            self._cache()
        self.weighted = encodes and not self.method.traits.has_history and self._has_weights()
        self.facts: ModelFacts | None = None
        if encodes and model is None:
            widths = (self.inputs.width, width)
            history = self.method.traits.has_history
            schema = (
                ordered.to_json() if kind.by_schema or (kind.typed and not self.edge_type) else None
            )
            self.facts = ModelFacts(
                *widths, self.weighted, history, num_relations, self.edge_type, schema
            )
            model = build_model(settings.model, len(settings.sampler.fanouts), self.facts)
        if self.method.traits.has_history and model is not None:
            x = self.inputs.everywhere(self.graph)
            self.method.start(model, x if is_collective(x) else whole_column(x).detach())
        self.names = self.names_read(known)
        self.network = self.make_network(model).to(device)
        self.loader = self.make_loader()
        first = (
            0 if self.loader is None or not encodes else self._try_first_batch(self.loader, width)
        )
        self.batches = self.make_batches(first)
        if self.peers.size > 1:
            self._check_shared()

    def _cache(self) -> None:
        """Keep the rows of features in memory that are likely to be read most: whole columns of
        small types first.
        """
        room: int | str = self.settings.storage.memory
        heat = self.method.heat(self.trained_nodes())
        columns = {
            n: (x, mean_bytes(stored(x)))
            for n, x in self.features.items()
            if not isinstance(x, Tensor)
        }
        for name, (rows, size) in sorted(
            columns.items(), key=lambda pair: pair[1][0].shape[0] * pair[1][1]
        ):
            part = self.graph.nodes[name]
            # what is left for a further type
            room = 0 if isinstance(room, int) and room < size else room
            part.data["feat"] = cached = Cached(rows, heat[part.ids.start : part.ids.stop], room)
            room = max(as_bytes(room, "memory", 0) - len(cached.ids) * size, 0)

    def _has_weights(self) -> bool:
        sampler = self.method.sampler(self.settings.run.seed)
        batch = sampler(
            self.method.seeds(self.trained_nodes(), sampler)[: self.method.batch_size],
            batch_number=0,
        )
        return any(flow.needs_weight for flow in batch.flows)

    def _check_shared(self) -> None:
        for name, module in self.network.named_modules():
            if isinstance(module, _BatchNorm) and not isinstance(module, nn.SyncBatchNorm):
                raise ValueError(
                    f"the model has batch normalisation ({name}), which several processes would "
                    "take over their shares; take norm 'layer' or 'none', and another model than "
                    "gin"
                )

    def hashes_of_edges(self) -> dict[str, int]:
        """Return a hash of each edge column that network or sampler read, which fingerprints leave
        out.
        """
        if self.graph.peers.size > 1:
            return {}
        read = self._edge_columns_read()
        return {
            name: hash_of(whole_column(x)) for name, x in self.graph.edata.items() if name in read
        }

    def _edge_columns_read(self) -> set[str]:
        """Return the names of the edge columns that network or sampler read, and of other options
        of the sampler.
        """
        return {*self.edge_columns(), *map(str, self.settings.sampler.options.values())}

    def names_read(self, known: Names) -> Names:
        """Return the names of the numbers that the network or the sampler reads, or the network
        gives.
        """
        read = self._edge_columns_read()
        categories = {name: words for name, words in known.categories.items() if name in read}
        features = known.features if self.inputs.features else {}
        nodes = known.nodes if self.inputs.learns else known.nodes[:0]
        return replace(
            known, features=features, categories=categories, schema=self.graph.schema, nodes=nodes
        )

    def network_facts(self) -> dict[str, Any]:
        """Return the arguments from which the network is made again; the model's are None for one
        of the user's own.
        """
        return {
            "inputs": self.inputs.facts,
            "model": None if self.facts is None else asdict(self.facts),
        }

    def precision(self) -> AbstractContextManager[Any]:
        """Return the context in which the network computes."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.narrow else nullcontext()

    def in_float32(self) -> AbstractContextManager[Any]:
        """Return the context in which a decoder compares, within that of ``precision``."""
        return torch.autocast(self.device.type, enabled=False)

    def precision_in_words(self) -> str:
        """Return what is bfloat16 with the precision "bf16", and why not all is."""
        if self.multiplies:
            return "rows and products in bfloat16"
        rows = "rows in bfloat16, products in float32" if self.narrow else "all in float32"
        return f"{rows}: products in bfloat16 are slower on this processor"

    # ---- made once

    @abstractmethod
    def trained_nodes(self) -> Tensor:
        """Return the seed ids of an epoch, with repeats."""

    @abstractmethod
    def make_network(self, model: nn.Module | None) -> Network:
        """Return the network of ``inputs`` and a model."""

    @abstractmethod
    def make_loader(self) -> NodeFlowLoader | None:
        """Return the batches of training as they are drawn from the whole graph; None where none
        are drawn.
        """

    def make_batches(self, inputs: int) -> Batches:
        """Return the batches of training, which read about as many rows as ``inputs`` each."""
        assert self.loader is not None
        storage = self.settings.storage
        window = len(self.loader)
        if storage.kind != "lookahead":
            return self.loader
        # the plan takes 8 bytes for each row: no more in all than the rows in memory, but 16
        # batches at least
        foreseen = max(as_bytes(storage.memory, "memory") // (8 * max(inputs, 1)), 16)
        heat = None if foreseen >= window else self.method.heat(self.trained_nodes())
        return Lookahead(
            self.loader,
            storage.memory,
            window=min(window, foreseen),
            epochs=self.settings.run.epochs,
            heat=heat,
            pack=storage.pack or None,
            space=storage.space,
        )

    # ---- training

    @abstractmethod
    def loss(self, outputs: Tensor, batch: Any) -> Tensor:
        """Return the loss of a batch, a scalar, whose mean over the processes is the loss of the
        step.
        """

    @abstractmethod
    def size(self, batch: Any) -> int:
        """Return how many items contribute to the loss of a batch."""

    def num_batches(self, epoch: int) -> int:
        """Return the number of batches of an epoch of training, counted from 0."""
        batches = self.batches.loader if isinstance(self.batches, Lookahead) else self.batches
        return batches.num_batches(epoch)

    def description(self) -> list[str]:
        """Return lines about the task that neither the settings nor the data set show."""
        added = self.graph.num_edges - self._own_edges
        edges = f"messages along {self.graph.num_edges:,} edges"
        if added > 0 and self.settings.graph.direction == "both":
            edges += f", {added:,} of them reverses (--direction in leaves these out)"
        drawn = self.method.sampler(self.settings.run.seed).note().removeprefix("flow order: ")
        return ["; ".join(filter(None, (edges, drawn)))]

    # ---- evaluation

    @abstractmethod
    def has(self, part: str) -> bool:
        """Return whether a part of the split, "train", "val" or "test", has anything."""

    @abstractmethod
    def evaluate(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        """Return all metrics of each part, from full neighbourhoods, or from batches that are
        always the same.
        """

    @property
    def validates_fully(self) -> bool:
        """Whether validation uses full neighbourhoods."""
        validate = self.settings.run.validate
        return validate == "full" or (validate == "auto" and self.method.traits.validates_fully)

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of the data and its split, to refuse the state of another data set."""

    # ---- for subclasses

    def full_pass(self, model: FlowModel, nodes: Tensor | None = None) -> Tensor:
        """Return the outputs of nodes, or of all, float32: ``model.inference``, which features in a
        file keep there.
        """
        x = self.inputs.everywhere(self.graph)
        several = self.graph.peers.size > 1
        if nodes is None and several:  # without nodes, those that are owned here
            nodes = torch.arange(self.graph.num_nodes)
        options: dict[str, Any] = {"nodes": nodes, "weight": self.method.weight}
        if isinstance(x, Tensor) or several or self.settings.storage.kind == "memory":
            x = x.detach().to(self.device) if isinstance(x, Tensor) else x
            return model.inference(self.graph, x, **options).float()
        # of a piece of the nodes, the rows of about all their neighbours are in memory
        piece = (1 + self.graph.num_edges / max(self.graph.num_nodes, 1)) * mean_bytes(x)
        memory = as_bytes(self.settings.storage.memory, "memory")
        size = int(min(max(memory / max(piece, 1), 256), 65_536))
        with TemporaryDirectory(prefix="nodeflow-") as folder:
            return model.inference(self.graph, x, folder=folder, chunk_size=size, **options).float()

    def edge_columns(self) -> list[str]:
        """Return the names of the edge columns that the network reads, all for a model of a user's
        own.
        """
        return (
            [self.edge_type] if self.edge_type else list(self.graph.edata) if self.own_model else []
        )

    def batches_of(
        self,
        sampler: SamplerBase,
        seeds: Tensor,
        batch_size: int,
        seed: int,
        last: Sequence[str] = (),
        **options: Any,
    ) -> NodeFlowLoader:
        """Return this process's batches, with the columns that the network reads, and ``last`` in
        the last layer.
        """
        columns = {
            i: list(DEGREES) if self.weighted or self.own_model else []
            for i in range(sampler.num_flows + 1)
        }
        columns[0] += ["feat"] if self.inputs.features else []
        columns[sampler.num_flows] += last
        compute = self.settings.compute
        options |= {
            "ndata": {i: names for i, names in columns.items() if names},
            "edata": self.edge_columns() or None,
        }
        options |= {"seed": seed, "num_workers": compute.workers, "share": compute.share}
        if compute.sample_on == "device":
            with blaming("sample_on 'device' is not possible", TypeError):
                sampler = sampler.in_torch(self.device)
            return NodeFlowLoader(sampler, seeds, batch_size, device=self.device, **options)
        if self.device.type != "cuda":
            return NodeFlowLoader(sampler, seeds, batch_size, **options)
        # a history is read as late as possible, and planned rows are put into batches when they are
        # taken: neither can be sent ahead
        if self.method.traits.has_history or self.settings.storage.kind == "lookahead":
            return NodeFlowLoader(
                sampler, seeds, batch_size, device=self.device, pin_memory=True, **options
            )
        return SentAhead(sampler, seeds, batch_size, target=self.device, **options)

    def outputs_of(self, sampler: SamplerBase, nodes: Tensor, width: int) -> Tensor:
        """Return the network's outputs of nodes, ``[n, width]`` on the CPU, from batches that are
        always the same.
        """
        place = {"place": torch.arange(len(nodes))}
        seed = self.settings.run.seed + 1
        places = [torch.zeros(0, dtype=torch.int64)]
        rows = [torch.zeros(0, width)]
        for batch in self.batches_of(
            sampler, nodes, self.settings.sampler.batch_size, seed, seed_data=place
        ):
            places.append(batch.seed_data["place"].cpu())
            rows.append(self.network(batch).float().cpu()[batch.seed_index.cpu()])
        return self.peers.rows_of_all("outputs", torch.cat(places), torch.cat(rows), len(nodes))

    def _coded_features(self) -> CodedRows | None:
        """Return features whose rows a network may never need, if it begins with sums; None where
        they are needed.
        """
        # what is compiled reads plain rows, and the trial does not compile
        if self.settings.compute.compile:
            return None
        x = self.graph.ndata.get("feat")
        rows = x.rows if isinstance(x, FeatureRows) and x.rows.dtype == x.dtype else x
        return CodedRows(rows) if isinstance(rows, NarrowRows) else None

    def _try_first_batch(self, batches: NodeFlowLoader, width: int) -> int:
        """Return how many rows enter the first batch; raises ValueError where the model is biased
        for it.

        Narrow features stay coded from now on, if the network has read nothing of them but sums.
        """
        state = batches.state_dict()
        training = self.network.training
        with warnings.catch_warnings(), torch.no_grad(), self.precision():
            warnings.simplefilter("error", IgnoredWeightWarning)
            self.network.eval()
            columns = self.graph.ndata
            plain = columns.get("feat")
            coded = self._coded_features()
            if coded is not None:
                columns["feat"] = coded
            batch = next(iter(batches))
            try:
                out = self.network(batch)
            except IgnoredWeightWarning as warning:
                layer = str(warning).partition(" ")[0]
                several = len(self.graph.schema.relations) > 1
                raise ValueError(
                    f"model {self.settings.model.name!r} would be biased with sampler "
                    f"{self.settings.sampler.name!r}, whose edges have different weights: {layer} "
                    f"ignores them. {_without_bias(self.settings, several)}"
                ) from None
            finally:
                self.network.train(training)
                batches.load_state_dict(state)
                # the network reads rows one by one
                if plain is not None and not is_coded(batch.inputs.get("feat")):
                    columns["feat"] = plain
        shape = (batch.layer_sizes[-1], width)
        if not isinstance(out, Tensor) or tuple(out.shape) != shape:
            got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise ValueError(
                f"the model must return one row of {width} outputs per seed, {list(shape)}, got "
                f"{got}"
            )
        return batch.layer_sizes[0]


def _without_bias(settings: Settings, several: bool) -> str:
    """Say what to change where a model ignores the weights of a sampler; ``several``: there are
    several relations.
    """
    if settings.model.options.get("weighted") is False:
        return "Leave out weighted = false of model_options"
    if "prob" in settings.sampler.options:
        return "Use model sage, gcn or gin, or leave out prob of sampler_options"
    # as many of each relation as there are
    if several and METHODS[settings.sampler.name].draws_neighbors:
        return "Use model rgcn, hgt or typed, or sage, gcn or gin"
    return "Use model sage, gcn or gin, or sampler neighbor, labor, bernoulli or shadow"
