"""Task: data, network and batches of a run, and what a trainer asks about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from nodeflow._core.base.checks import blaming, check_type
from nodeflow._core.base.sizes import as_bytes
from nodeflow._core.rows.rows import is_collective, whole_column
from nodeflow._processes.default_group import peers_of
from nodeflow.datasets import Dataset, features_of, is_binary
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader, SentAhead
from nodeflow.metrics import Metric
from nodeflow.nn import FlowModel
from nodeflow.sampling.base import SamplerBase
from nodeflow.storage import Lookahead, mean_bytes
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
from nodeflow.training._first_batch import try_first_batch
from nodeflow.training._graph import (
    cache_features,
    directed,
    hash_of,
    relations_of,
    with_features,
)
from nodeflow.training._models import ModelFacts, build_model, kind_of
from nodeflow.training._names import Names
from nodeflow.training._network import AnyInputs, Network, inputs_of
from nodeflow.training._partitions import PartBatches
from nodeflow.training._precision import Precision
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
        for name in ("loss", "optimizer", "scheduler"):
            check_type(getattr(self, name), name, Callable | None, "a function")
        check_type(self.metrics, "metrics", list | tuple, "a list of nodeflow.metrics.Metric")
        for i, metric in enumerate(self.metrics):
            check_type(metric, f"metrics[{i}]", Metric, "a nodeflow.metrics.Metric")

    def names(self) -> dict[str, str]:
        """Return the names of the parts that are given; for an object, its class name."""
        names = {}
        for name, part in self._asdict().items():
            if part is not None and name != "metrics":
                names[name] = str(getattr(part, "__qualname__", type(part).__qualname__))
        if self.metrics:
            names["metrics"] = ", ".join(metric.name for metric in self.metrics)
        return names


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
    nodes = torch.cat([*dataset.splits.values()])
    if labels.ndim == 2 and is_binary(labels[nodes]):
        return "multilabel"
    return "regression"


def facts_of(dataset: Dataset, settings: Settings, own_parts: Mapping[str, str]) -> dict[str, str]:
    """Return the facts of a run by which its settings are checked; parts of your own take the place
    of settings.
    """
    graph = dataset.graph
    facts = facts_of_graph(graph)
    facts["graph"] = WHOLE if graph.peers.size == 1 else PARTS
    facts["processes"] = ONE if peers_of(graph).size == 1 else SEVERAL
    facts["loss"] = OWN_LOSS if "loss" in own_parts else LOSS
    if settings.run.task == "link":
        column = relation_column(dataset, settings.graph.edge_type)
        facts["relations"] = NO_COLUMN if column is None else COLUMN
    else:
        facts["task"] = task_of(dataset, settings.run.task)
    replaced = {"model": "model", "optimizer": "optimizer", "scheduler": "schedule"}
    return facts | {name: OWN for part, name in replaced.items() if part in own_parts}


class Task(ABC):
    """What a run learns: its graph is read, its network computed, its batches drawn.

    Subclasses set ``metrics`` and ``metric`` and what their ``make_...`` read, then call this,
    which calls ``make_network``, ``make_loader`` and ``make_batches`` once each. ``graph`` has the
    edges of messages, in the direction of the data set; ``width`` is that of the model's outputs;
    ``trained_nodes`` are the seed ids of an epoch, with repeats.

    Attributes:
        dataset, graph: the data set, and the graph along whose edges messages go.
        features: those of each node type that has some, before any are cached; ``FeatureRows`` if
            fetched by id.
        names: the names behind the numbers that the network reads and gives.
        precision: the types in which the network computes.
        weighted: whether the edges of a batch have different estimator weights.
        model_facts: arguments from which the model is made again; None for one of the user's own
            and for none.
        network: the inputs and the model.
        method: the sampler in training.
        edge_columns: names of the edge columns that the network reads.
        loader: the batches of the whole graph that training draws; None where it draws none.
        batches: the batches of training: those of ``loader``, or what reads or replaces them.
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
        trained_nodes: Tensor,
    ) -> None:
        kind = kind_of(settings.model.name)
        own_model = model is not None or kind.own
        encodes = model is not None or settings.model.name != "none"
        storage = settings.storage
        self.settings = settings
        self.device = device
        self.peers = peers_of(dataset.graph)
        self.trained_nodes = trained_nodes
        self.precision = Precision.of(settings, device, own_model=own_model)

        # what is read: the graph, its features, its edge types
        self.dataset = dataset
        names = Names.of(dataset)
        edge_type = settings.graph.edge_type
        messages = directed(graph, settings.graph.direction, edge_type, names.categories)
        messages = with_features(messages, storage.kind, self.precision.features)
        self.method = METHODS[settings.sampler.name](messages, settings.sampler, kind)
        self.graph = self.method.graph
        self.num_added = self.graph.num_edges - graph.num_edges
        self.features = features_of(self.graph)
        read_type = ""
        num_relations = 0
        if kind.traits.typed:
            read_type, num_relations = relations_of(
                self.graph, edge_type, names.categories, reverses=self.num_added > 0
            )
        # before a cache hides them: inputs check the values, and hash them for the fingerprint
        inputs = inputs_of(dataset, settings.model, self.features)
        if storage.kind == "cached":
            cache_features(self.graph, self.method.heat(trained_nodes), storage.memory)

        # what is computed: the network, whose model a history starts with
        has_history = self.method.traits.has_history
        self.weighted = encodes and not has_history and self._has_weights()
        self.model_facts: ModelFacts | None = None
        schema = names.ordered(self.graph.schema)
        if encodes and model is None:
            by_relation = kind.traits.by_schema or (kind.traits.typed and not read_type)
            self.model_facts = ModelFacts(
                inputs.width,
                width,
                weighted=self.weighted,
                history=has_history,
                num_relations=num_relations,
                edge_type=read_type,
                schema=schema.to_json() if by_relation else None,
            )
            model = build_model(settings.model, len(settings.sampler.fanouts), self.model_facts)
        # the history begins with a full pass of the untrained model: before it moves to a device
        if has_history and model is not None:
            x = inputs.everywhere(self.graph)
            self.method.start(model, x if is_collective(x) else whole_column(x).detach())
        self.network = self.make_network(inputs, model).to(device)

        # what is drawn: batches with the columns that the network reads
        # names of the columns of every layer and of edges; a model of the user's own may read all
        self._everywhere = DEGREES * (self.weighted or own_model)
        self.edge_columns = [read_type] * bool(read_type)
        if own_model and not read_type:
            self.edge_columns = list(self.graph.edata)
        self.names = self.names_read(names)
        self.loader = self.make_loader()
        num_rows = 0
        if self.loader is not None and encodes:
            with self.precision.context():
                num_rows = try_first_batch(self.network, self.loader, self.graph, settings, width)
        self.batches = self.make_batches(num_rows)
        if self.peers.size > 1:
            self.check_shared()

    def _has_weights(self) -> bool:
        """Whether the edges of a first batch have different estimator weights."""
        sampler = self.method.sampler(self.settings.run.seed)
        seeds = self.method.seeds(self.trained_nodes, sampler)
        batch = sampler(seeds[: self.method.batch_size], batch_number=0)
        return any(flow.needs_weight for flow in batch.flows)

    def check_shared(self) -> None:
        """Raise ValueError for what several processes cannot share."""
        for name, module in self.network.named_modules():
            if isinstance(module, _BatchNorm) and not isinstance(module, nn.SyncBatchNorm):
                raise ValueError(
                    f"the model has batch normalisation ({name}), which several processes would "
                    "take over their shares; take norm 'layer' or 'none', and another model than "
                    "gin"
                )

    # ---- made once

    @abstractmethod
    def make_network(self, inputs: AnyInputs, model: nn.Module | None) -> Network:
        """Return the network of ``inputs`` and a model."""

    @abstractmethod
    def make_loader(self) -> NodeFlowLoader | None:
        """Return the batches of training as they are drawn from the whole graph; None where none
        are drawn.
        """

    def make_batches(self, num_rows: int) -> Batches:
        """Return the batches of training, which read about ``num_rows`` rows of features each."""
        assert self.loader is not None
        storage = self.settings.storage
        if storage.kind != "lookahead":
            return self.loader
        # the plan takes 8 bytes for each row: no more in all than the rows in memory, but 16
        # batches at least
        foreseen = max(as_bytes(storage.memory, "memory") // (8 * max(num_rows, 1)), 16)
        num_batches = len(self.loader)
        heat = None
        if foreseen < num_batches:
            heat = self.method.heat(self.trained_nodes)
        return Lookahead(
            self.loader,
            storage.memory,
            window=min(num_batches, foreseen),
            epochs=self.settings.run.epochs,
            heat=heat,
        )

    def loader_of(
        self,
        sampler: SamplerBase,
        seeds: Tensor,
        batch_size: int,
        seed: int,
        outputs: Sequence[str] = (),
        **options: Any,
    ) -> NodeFlowLoader:
        """Return this process's batches, with the columns that the network reads.

        The last layer also has the node columns ``outputs``.
        """
        columns = {i: [*self._everywhere] for i in range(sampler.num_flows + 1)}
        if self.network.inputs.features:
            columns[0].append("feat")
        columns[sampler.num_flows] += outputs
        compute = self.settings.compute
        options["ndata"] = columns
        options["edata"] = self.edge_columns
        options["seed"] = seed
        options["num_workers"] = compute.workers
        options["share"] = compute.share
        # rows of a history and of a plan are read when a batch is taken, so that nothing can be
        # copied to a GPU before
        late = self.method.traits.has_history or self.settings.storage.kind == "lookahead"
        make: Callable[..., NodeFlowLoader] = NodeFlowLoader
        if compute.sample_on == "device":
            with blaming("sample_on 'device' is not possible", TypeError):
                sampler = sampler.in_torch(self.device)
            options["device"] = self.device
        elif self.device.type == "cuda" and late:
            options["device"] = self.device
            options["pin_memory"] = True
        elif self.device.type == "cuda":
            make = SentAhead
            options["target"] = self.device
        return make(sampler, seeds, batch_size, **options)

    # ---- facts of the run

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash of the data and its split, to refuse the state of another data set."""

    def _edge_columns_read(self) -> set[str]:
        """Names of the edge columns that network or sampler read, and other options of the
        sampler.
        """
        return {*self.edge_columns, *map(str, self.settings.sampler.options.values())}

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

    def names_read(self, known: Names) -> Names:
        """Return the names of the numbers that the network or the sampler reads, or the network
        gives.
        """
        read = self._edge_columns_read()
        features = {}
        if self.network.inputs.features:
            features = known.features
        nodes = known.nodes
        if not self.network.inputs.learns:
            nodes = known.nodes[:0]
        categories = {name: words for name, words in known.categories.items() if name in read}
        return replace(
            known,
            features=features,
            categories=categories,
            schema=self.graph.schema,
            nodes=nodes,
        )

    def network_facts(self) -> dict[str, Any]:
        """Return the arguments from which the network is made again; the model's are None for one
        of the user's own.
        """
        model = None
        if self.model_facts is not None:
            model = asdict(self.model_facts)
        return {"inputs": self.network.inputs.facts, "model": model}

    def description(self) -> list[str]:
        """Return lines about the task that neither the settings nor the data set show."""
        edges = f"messages along {self.graph.num_edges:,} edges"
        if self.num_added > 0 and self.settings.graph.direction == "both":
            edges += f", {self.num_added:,} of them reverses (--direction in leaves these out)"
        drawn = self.method.sampler(self.settings.run.seed).note().removeprefix("flow order: ")
        return ["; ".join(filter(None, (edges, drawn)))]

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
        if isinstance(self.batches, Lookahead):
            return self.batches.loader.num_batches(epoch)
        return self.batches.num_batches(epoch)

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

    def full_pass(self, model: FlowModel, nodes: Tensor | None = None) -> Tensor:
        """Return the outputs of nodes, or of all, float32: ``model.inference``, which features in a
        file keep there.
        """
        x = self.network.inputs.everywhere(self.graph)
        several = self.graph.peers.size > 1
        # every process computes the rows that it owns, so none may ask for all
        if nodes is None and several:  # without nodes, those that are owned here
            nodes = torch.arange(self.graph.num_nodes)
        options: dict[str, Any] = {"nodes": nodes}
        edges = self.graph.view(weight=self.method.weight)
        if isinstance(x, Tensor):
            x = x.detach().to(self.device)
        elif not several and self.settings.storage.kind != "memory":
            # of a piece of the nodes, the rows of about all their neighbours are in memory
            piece = (1 + self.graph.num_edges / max(self.graph.num_nodes, 1)) * mean_bytes(x)
            memory = as_bytes(self.settings.storage.memory, "memory")
            rows = max(memory / max(piece, 1), 256)
            options["chunk_size"] = int(min(rows, 65_536))
            with TemporaryDirectory(prefix="nodeflow-") as folder:
                return model.inference(edges, x, folder=folder, **options).float()
        return model.inference(edges, x, **options).float()

    def outputs_of(self, sampler: SamplerBase, nodes: Tensor, width: int) -> Tensor:
        """Return the network's outputs of nodes, ``[n, width]`` on the CPU, from batches that are
        always the same.
        """
        batches = self.loader_of(
            sampler,
            nodes,
            self.settings.sampler.batch_size,
            self.settings.run.seed + 1,
            seed_data={"place": torch.arange(len(nodes))},
        )
        # a process may have no batch, and its share still has a type and a width
        places = [torch.zeros(0, dtype=torch.int64)]
        rows = [torch.zeros(0, width)]
        for batch in batches:
            places.append(batch.seed_data["place"].cpu())
            outputs = self.network(batch).float().cpu()
            rows.append(outputs[batch.seed_index.cpu()])
        return self.peers.rows_of_all("outputs", torch.cat(places), torch.cat(rows), len(nodes))
