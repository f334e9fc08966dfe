"""The training loop: train a model on sampled NodeFlows, and measure it on full neighbourhoods."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor
from tqdm import tqdm

from nodeflow.datasets import Dataset
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.nn import FlowModel
from nodeflow.training._methods import METHODS, Method
from nodeflow.training._settings import Settings
from nodeflow.training._tasks import NodeClassification
from nodeflow.transform import add_reverse_edges, is_symmetric


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: mean training loss, accuracy on the validation nodes, and sampled seeds and edges per second.

    ``age`` is the mean age of the history rows that batches read: the number of steps since a row was written, 0 for
    the step just before. None for a sampler without history.
    """

    epoch: int
    loss: float
    val_accuracy: float
    seconds: float
    seeds_per_second: float
    edges_per_second: float
    age: float | None = None


@dataclass
class Result:
    """A finished run: the model with the weights of its best epoch, the records, and the accuracy on the test nodes.

    Accuracies are NaN if there are no nodes to measure them on. ``dataset`` is the data set's name. ``graph`` is the
    graph that the model was trained on, with float32 features and the reverse edges that ``direction="both"`` added;
    None in a result made by hand. With ``direction="out"``, ``inference`` needs ``transform.reverse(graph)``. For
    control variates the graph has the edge column "propagation", to be given as ``weight`` of ``inference``.
    """

    settings: Settings
    model: FlowModel
    test_accuracy: float
    best_epoch: int
    records: list[EpochRecord] = field(default_factory=list)
    dataset: str = ""
    graph: Graph | None = field(default=None, repr=False, compare=False)

    @property
    def best_val_accuracy(self) -> float:
        """The accuracy of the best epoch on the validation nodes."""
        return next((record.val_accuracy for record in self.records if record.epoch == self.best_epoch), math.nan)


def check_dataset(dataset: Dataset) -> None:
    """Raise ValueError if a model cannot be trained on ``dataset``.

    Training needs a row of finite features per node, one label per node of the split, and training nodes.
    """
    for column in ("feat", "label"):
        if column not in dataset.graph.ndata:
            what = "features" if column == "feat" else "labels"
            raise ValueError(f"data set {dataset.name!r} has no {what}, so a model cannot be trained on it")
    features, labels = dataset.graph.ndata["feat"], dataset.graph.ndata["label"]
    if features.ndim != 2:
        raise ValueError(f"data set {dataset.name!r} must have a row of features per node, got {tuple(features.shape)}")
    bad_row = _first_row_that_is_not_finite(features)
    if bad_row is not None:
        raise ValueError(f"the features of data set {dataset.name!r} must be finite, but row {bad_row} has NaN or inf")
    if labels.ndim != 1:
        raise ValueError(f"data set {dataset.name!r} has several labels per node; training takes one label per node")
    if labels.dtype != torch.int64:
        raise ValueError(f"the labels of data set {dataset.name!r} must be int64, got {labels.dtype}")
    if len(dataset.train) == 0:
        raise ValueError(f"data set {dataset.name!r} has no training nodes")
    for part, nodes in dataset.splits.items():
        bad = ((labels[nodes] < 0) | (labels[nodes] >= dataset.num_classes)).nonzero()
        if len(bad):
            node = int(nodes[bad[0, 0]])
            raise ValueError(
                f"the {part} nodes of data set {dataset.name!r} must have labels from 0 to {dataset.num_classes - 1}, "
                f"but node {node} has {int(labels[node])}; take it out of the split"
            )


def _first_row_that_is_not_finite(x: Tensor) -> int | None:
    if x.layout != torch.strided:
        bad = (~torch.isfinite(x.values())).nonzero()
        # the row of a value is the last that begins at it or before
        return int(torch.searchsorted(x.crow_indices(), bad[0, 0], right=True)) - 1 if len(bad) else None
    for start in range(0, len(x), 65_536):  # part by part, for features that are larger than memory
        bad = (~torch.isfinite(x[start : start + 65_536]).all(1)).nonzero()
        if len(bad):
            return start + int(bad[0, 0])
    return None


def train(dataset: Dataset, settings: Settings, report: Callable[[EpochRecord], None] = lambda _: None) -> Result:
    """Train a model on sampled NodeFlows of ``dataset``.

    Every epoch goes once over the training nodes in a new order and estimates the accuracy on the validation nodes
    from NodeFlows sampled with the same fanouts. The weights of the epoch with the best accuracy are kept, or of the
    last epoch if there are no validation nodes. The accuracy on the test nodes is measured on full neighbourhoods.

    Args:
        dataset: with features ``feat`` and integer labels ``label``, else ValueError.
        settings: see ``Settings``.
        report: called with every epoch's record as it ends.

    Training computes in float32 and leaves torch's global random state as it was. Returns a ``Result``. Raises
    FloatingPointError when the loss becomes infinite or NaN.
    """
    check_dataset(dataset)
    with seeded(settings.seed):
        return _train(dataset, settings, report)


def _train(dataset: Dataset, settings: Settings, report: Callable[[EpochRecord], None]) -> Result:
    graph = _in_float32(_directed(dataset.graph, settings.direction))
    model = build_model(settings, int(graph.ndata["feat"].shape[1]), dataset.num_classes)
    method = METHODS[settings.sampler](graph, model, settings.model, settings.fanouts, settings.direction)
    task = NodeClassification()
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)

    def loader(seeds: Tensor, seed: int, shuffle: bool) -> NodeFlowLoader:
        columns = dict(task.columns)
        size, workers = settings.batch_size, settings.workers
        return NodeFlowLoader(method.sampler(seed), seeds, size, shuffle, seed=seed, num_workers=workers, ndata=columns)

    batches = loader(dataset.train, settings.seed, True)
    checks = loader(dataset.val, settings.seed + 1, False)
    result = Result(settings, model, float("nan"), 0, dataset=dataset.name, graph=method.graph)
    best, best_weights = -1.0, {}
    for epoch in range(1, settings.epochs + 1):
        record = _epoch(task, method, optimizer, batches, checks, epoch)
        result.records.append(record)
        report(record)
        if record.val_accuracy > best or not len(dataset.val):
            best, result.best_epoch = record.val_accuracy, epoch
            best_weights = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best_weights)
    if len(dataset.test):
        right = task.right(method.outputs(), graph.ndata["label"])
        result.test_accuracy = float(right[dataset.test].mean())
    return result


def build_model(settings: Settings, in_features: int, out_features: int) -> FlowModel:
    """Return a new model of ``settings``, one convolution per fanout."""
    make, layers = METHODS[settings.sampler].models[settings.model], len(settings.fanouts)
    return make(in_features, settings.hidden, out_features, layers, dropout=settings.dropout)


def _directed(graph: Graph, direction: str) -> Graph:
    return add_reverse_edges(graph) if direction == "both" and not is_symmetric(graph) else graph


def _in_float32(graph: Graph) -> Graph:
    x = graph.ndata["feat"]
    if x.layout != torch.strided or x.dtype == torch.float32:  # products with sparse rows convert their values
        return graph
    indptr, indices, edge_ids = graph.csc()
    columns = {**graph.ndata, "feat": x.to(torch.float32)}
    return Graph(indptr, indices, edge_ids=edge_ids, ndata=columns, edata=graph.edata, copy=False)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within the block, draw weights and dropout from a generator that starts at ``seed``, an int of any size."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed & (2**63 - 1))
        yield


def _epoch(
    task: NodeClassification, method: Method, optimizer: torch.optim.Optimizer, batches: NodeFlowLoader,
    checks: NodeFlowLoader, epoch: int,
) -> EpochRecord:  # fmt: skip
    model = method.model
    start, total, seeds, edges, ages, rows = time.perf_counter(), 0.0, 0, 0, 0, 0
    model.train()
    # disable=None: a bar on a terminal only
    with tqdm(batches, desc=f"epoch {epoch}", unit="batch", leave=False, disable=None) as bar:
        for batch in bar:
            loss = task.loss(task.outputs(model, batch), batch)
            value = loss.item()
            if not math.isfinite(value):
                raise FloatingPointError(
                    f"the loss became {value} in epoch {epoch}; a lower learning rate, or smaller features, may help"
                )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            read = method.after_step(batch)
            ages, rows = ages + int(read.sum()), rows + len(read)
            total += value * batch.layer_sizes[-1]
            seeds += batch.layer_sizes[-1]
            edges += sum(batch.flow_sizes)
            bar.set_postfix(loss=f"{value:.3f}")
    seconds = time.perf_counter() - start
    accuracy, age = _accuracy(task, model, checks), ages / rows if rows else None
    return EpochRecord(epoch, total / seeds, accuracy, seconds, seeds / seconds, edges / seconds, age)


@torch.no_grad()
def _accuracy(task: NodeClassification, model: FlowModel, batches: NodeFlowLoader) -> float:
    model.eval()
    batches.set_epoch(0)  # the same draws every time, so that epochs can be compared
    right = [task.right(task.outputs(model, batch), batch.ldata[-1]["label"]) for batch in batches]
    return float(torch.cat(right).mean()) if right else float("nan")
