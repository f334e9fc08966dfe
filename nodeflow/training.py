"""The main job: train a model on sampled NodeFlows, and measure it on full neighbourhoods."""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from nodeflow._check import as_count
from nodeflow.datasets import Dataset
from nodeflow.graph import Graph
from nodeflow.loader import NodeFlowLoader
from nodeflow.nn import GCN, FlowModel, GraphSAGE
from nodeflow.sampling import NeighborSampler
from nodeflow.transform import add_reverse_edges, is_symmetric, reverse

MODELS: dict[str, type[GraphSAGE] | type[GCN]] = {"sage": GraphSAGE, "gcn": GCN}


@dataclass(frozen=True)
class Settings:
    """What a training run depends on; the same settings give the same result.

    ``fanouts`` are in flow order: the last number belongs to the seeds. ``direction`` is "in", "out", or "both" (the
    reverse of every edge is added where the graph is not symmetric already). ``workers`` changes the speed only.
    """

    model: str = "sage"
    fanouts: tuple[int, ...] = (10, 10)
    batch_size: int = 1024
    hidden: int = 256
    dropout: float = 0.6
    learning_rate: float = 0.003
    epochs: int = 15
    seed: int = 0
    workers: int = 1
    direction: str = "both"

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model must be one of {', '.join(MODELS)}, got {self.model!r}")
        if self.direction not in ("in", "out", "both"):
            raise ValueError(f"direction must be 'in', 'out' or 'both', got {self.direction!r}")
        for name in ("batch_size", "hidden", "epochs"):
            as_count(getattr(self, name), name, 1)
        as_count(self.workers, "workers")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be above 0, got {self.learning_rate}")


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: mean training loss, accuracy on the validation nodes, and sampled seeds and edges per second."""

    epoch: int
    loss: float
    val_accuracy: float
    seconds: float
    seeds_per_second: float
    edges_per_second: float


@dataclass
class Result:
    """A finished run: the model with the weights of its best epoch, the records, and the accuracy on the test nodes."""

    settings: Settings
    model: FlowModel
    test_accuracy: float
    best_epoch: int
    records: list[EpochRecord] = field(default_factory=list)


def check_dataset(dataset: Dataset) -> None:
    """Raise ValueError that says what ``dataset`` lacks for training: features, single labels, training nodes."""
    for column in ("feat", "label"):
        if column not in dataset.graph.ndata:
            what = "features" if column == "feat" else "labels"
            raise ValueError(f"data set {dataset.name!r} has no {what}, so a model cannot be trained on it")
    if dataset.graph.ndata["label"].ndim != 1:
        raise ValueError(f"data set {dataset.name!r} has several labels per node; training takes one label per node")
    if len(dataset.train) == 0:
        raise ValueError(f"data set {dataset.name!r} has no training nodes")


def train(dataset: Dataset, settings: Settings, report: Callable[[EpochRecord], None] = lambda _: None) -> Result:
    """Train a model on sampled NodeFlows of ``dataset``.

    Every epoch goes once over the training nodes in a new order and estimates the accuracy on the validation nodes
    from NodeFlows sampled with the same fanouts. The weights of the epoch with the best accuracy are kept (of the last
    epoch where there are no validation nodes); the accuracy on the test nodes is that of full-neighbourhood inference.

    Args:
        dataset: with features ``feat`` and integer labels ``label``, else ValueError.
        settings: see ``Settings``.
        report: called with every epoch's record as it ends.
    """
    check_dataset(dataset)
    graph = _directed(dataset.graph, settings.direction)
    direction = "out" if settings.direction == "out" else "in"
    torch.manual_seed(settings.seed)
    x, labels = graph.ndata["feat"], graph.ndata["label"]
    model = build_model(settings, int(x.shape[1]), dataset.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)

    def loader(seeds: Tensor, seed: int, shuffle: bool) -> NodeFlowLoader:
        sampler = NeighborSampler(graph, settings.fanouts, direction=direction, seed=seed)
        columns = {0: ["feat"], -1: ["label"]}
        size, workers = settings.batch_size, settings.workers
        return NodeFlowLoader(sampler, seeds, size, shuffle, seed=seed, num_workers=workers, nodes=columns)

    batches = loader(dataset.train, settings.seed, True)
    checks = loader(dataset.val, settings.seed + 1, False)
    result = Result(settings, model, float("nan"), 0)
    best, best_weights = -1.0, {}
    for epoch in range(1, settings.epochs + 1):
        record = _epoch(model, optimizer, batches, checks, epoch)
        result.records.append(record)
        report(record)
        if record.val_accuracy > best or not len(dataset.val):
            best, result.best_epoch = record.val_accuracy, epoch
            best_weights = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best_weights)
    inward = graph if direction == "in" else reverse(graph)
    outputs = model.inference(inward, x).argmax(1)
    if len(dataset.test):
        result.test_accuracy = float((outputs == labels)[dataset.test].double().mean())
    return result


def build_model(settings: Settings, in_features: int, out_features: int) -> FlowModel:
    """Return a new model of ``settings``, one convolution per fanout."""
    layers = len(settings.fanouts)
    return MODELS[settings.model](in_features, settings.hidden, out_features, layers, dropout=settings.dropout)


def _directed(graph: Graph, direction: str) -> Graph:
    return add_reverse_edges(graph) if direction == "both" and not is_symmetric(graph) else graph


def _epoch(
    model: FlowModel, optimizer: torch.optim.Optimizer, batches: NodeFlowLoader, checks: NodeFlowLoader, epoch: int
) -> EpochRecord:
    start, total, seeds, edges = time.perf_counter(), 0.0, 0, 0
    model.train()
    # disable=None: a bar on a terminal only
    with tqdm(batches, desc=f"epoch {epoch}", unit="batch", leave=False, disable=None) as bar:
        for batch in bar:
            loss = cross_entropy(model(batch, batch.ldata[0]["feat"]), batch.ldata[-1]["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * batch.layer_sizes[-1]
            seeds += batch.layer_sizes[-1]
            edges += sum(batch.flow_sizes)
            bar.set_postfix(loss=f"{loss.item():.3f}")
    seconds = time.perf_counter() - start
    return EpochRecord(epoch, total / seeds, _accuracy(model, checks), seconds, seeds / seconds, edges / seconds)


@torch.no_grad()
def _accuracy(model: FlowModel, batches: NodeFlowLoader) -> float:
    model.eval()
    batches.set_epoch(0)  # the same estimate every time, so that epochs compare
    right = [(model(b, b.ldata[0]["feat"]).argmax(1) == b.ldata[-1]["label"]).double() for b in batches]
    return float(torch.cat(right).mean()) if right else float("nan")


def prepare_output(folder: Path) -> None:
    """Make the output folder and try to write there, so that a mistake shows before training; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / ".probe"
    probe.touch()
    probe.unlink()


def save(result: Result, folder: Path) -> list[Path]:
    """Write ``checkpoint.safetensors``, ``log.csv`` and ``result.json`` into ``folder``; returns their paths."""
    checkpoint, log, summary = folder / "checkpoint.safetensors", folder / "log.csv", folder / "result.json"
    first, last = result.model.convs[0], result.model.convs[-1]
    widths = {"in_features": _linear(first).in_features, "out_features": _linear(last).out_features}
    metadata = {"settings": json.dumps(asdict(result.settings)), "widths": json.dumps(widths)}
    save_file({name: value.contiguous() for name, value in result.model.state_dict().items()}, checkpoint, metadata)
    with log.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(EpochRecord.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(record) for record in result.records)
    tested = None if math.isnan(result.test_accuracy) else result.test_accuracy  # JSON knows no NaN
    facts = {"test_accuracy": tested, "best_epoch": result.best_epoch, **asdict(result.settings)}
    summary.write_text(json.dumps(facts, indent=2) + "\n")
    return [checkpoint, log, summary]


def load_model(checkpoint: Path | str) -> FlowModel:
    """Return the model of a checkpoint that ``save`` wrote, in evaluation mode.

    Raises FileNotFoundError for a missing file, ValueError for one that ``save`` did not write.
    """
    path = Path(checkpoint)
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    with safe_open(path, "pt") as file:
        metadata = file.metadata() or {}
    if not {"settings", "widths"} <= metadata.keys():
        raise ValueError(f"{path} is no checkpoint of a training run: it does not say which model it holds")
    options = json.loads(metadata["settings"])
    model = build_model(Settings(**{**options, "fanouts": tuple(options["fanouts"])}), **json.loads(metadata["widths"]))
    model.load_state_dict(load_file(path))
    model.eval()
    return model


def _linear(conv: torch.nn.Module) -> torch.nn.Linear:
    return next(module for module in conv.modules() if isinstance(module, torch.nn.Linear))
