"""Trainer: epochs over batches, steps of the optimiser, validation, and the state from which a run
goes on.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor, nn

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import check_one_of, check_type
from nodeflow._core.base.progress import Progress
from nodeflow._core.base.types import IdsLike
from nodeflow._core.peers.peers import collective_call
from nodeflow._core.random import derive_key
from nodeflow._processes.default_group import peers_of
from nodeflow.datasets import Dataset
from nodeflow.flow import NodeFlow
from nodeflow.metrics import Metric, TopLinks
from nodeflow.training._checkpoints import (
    Checkpoints,
    check_same_parts,
    check_same_run,
    load_tensors,
)
from nodeflow.training._data import PARTS, learned_part
from nodeflow.training._links import LinkTask
from nodeflow.training._nodes import Loss, NodeTask
from nodeflow.training._optimizers import make_optimizer, make_scheduler
from nodeflow.training._processes import OwnRandom, find_device
from nodeflow.training._recipes import completed, sizes_of
from nodeflow.training._result import EpochRecord, Result, Stopped, Trace, counts_of, record_of
from nodeflow.training._settings import FREE, Settings
from nodeflow.training._task import OwnParts, Task, facts_of


class Trainer:
    """Trains a network on the batches of a task.

    ``Trainer(dataset, settings).run()`` is all of it. A loop of your own calls ``batches``,
    ``step``, ``validate`` and the like.

    Args:
        dataset: the graph, labels and split.
        settings: see ``Settings``.
        model: called as ``model(batch, h)``; None: the model of the settings.
        loss: ``loss(outputs, labels)`` with a value per row, ``[n]``, or for links a scalar of
            scores, ``loss(positive, negative)`` of ``[n]`` and ``[n, K]``; None: that of the task.
        metrics: of your own, see ``nodeflow.metrics.Metric``, none for links; the first chooses the
            best epoch, unless settings do.
        optimizer: ``optimizer(parameters)``; None: that of the settings.
        scheduler: ``scheduler(optimizer)``, stepped after every step of the optimiser; None: that
            of the settings.
        checkpoints: where and when the state is saved; None: never.

    Settings for a part that you pass yourself are refused. Training leaves torch's global random
    state as it was. Raises ValueError for data, settings and combinations that cannot be trained
    with.

    Attributes:
        task, network, batches: the data and what is learned of them, inputs and model, the batches
            of training.
        optimizer, scheduler, settings, checkpoints: those of the run.
        recipe: the name of the recipe that settings which you did not choose are from; "" for none.
        records, best_epoch: those of the finished epochs, and the number of the best one, 0 before
            the first.
        epoch, batches_done: the numbers of finished epochs, and of batches that the present one has
            had.
        fingerprint: a hash of the data set and its split.
        identity: a hash of settings, data and names of parts of your own, by which the files of a
            run belong together.

    >>> from nodeflow.datasets import debian
    >>> trainer = Trainer(debian(), Settings(fanouts=(5,), hidden=16, epochs=1))
    >>> trainer.task.metric.name, len(trainer.batches)
    ('accuracy', 32)
    """

    @checked
    def __init__(
        self,
        dataset: Dataset,
        settings: Settings | None = None,
        *,
        model: nn.Module | None = None,
        loss: Loss | None = None,
        metrics: Sequence[Metric] = (),
        optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] | None = None,
        scheduler: Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]
        | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        settings = settings or Settings()
        dataset = learned_part(dataset, settings.run.task, settings.run.target)
        self.peers = peers_of(dataset.graph)
        self.device = find_device(settings.compute.device, several=self.peers.size > 1)
        self._random = OwnRandom(settings.run.seed, self.device)
        parts = OwnParts(model, loss, metrics, optimizer, scheduler)
        parts.check()
        self._own_parts = parts.names()
        with self._random.inside(), self.peers.together("a trainer"):
            facts = facts_of(dataset, settings, self._own_parts)
            settings, self.recipe = completed(settings, facts, sizes_of(dataset, settings))
            self.settings = settings
            settings.check(**facts)
            kind = LinkTask if settings.run.task == "link" else NodeTask
            self.task: Task = kind(dataset, settings, self.device, parts)
        self.network = self.task.network
        self.batches = self.task.batches
        self.fingerprint = self.task.fingerprint()
        self.identity = self._identity()
        self._join()
        self._forward: Callable[[Any], Any] = self.network
        if settings.compute.compile:
            self._forward = torch.compile(self.network)
        large = self.task.precision.rows or self.network.inputs.learns
        usual_optimizer = partial(make_optimizer, settings.optimizer, large=large)
        self.optimizer = (optimizer or usual_optimizer)(self.network.parameters())
        check_type(
            self.optimizer, "what optimizer returns", torch.optim.Optimizer, "an optimizer of torch"
        )
        usual_scheduler = partial(
            make_scheduler,
            settings.optimizer,
            epochs=settings.run.epochs,
            num_batches=self.task.num_batches,
        )
        self.scheduler = (scheduler or usual_scheduler)(self.optimizer)
        check_type(
            self.scheduler,
            "what scheduler returns",
            torch.optim.lr_scheduler.LRScheduler,
            "an LRScheduler",
        )
        self.checkpoints = checkpoints
        self.records: list[EpochRecord] = []
        self.trace = Trace()
        self.best_epoch = 0
        self.best_weights = dict[str, Tensor]()
        self._last_weights: dict[str, Tensor] | None = None  # of a network that has the best ones
        self.epoch = 0
        self.batches_done = 0
        # totals of the present epoch by name, see ``record_of``
        self._sums: defaultdict[str, float] = defaultdict(int)
        # batches since the last step of the optimiser, and whether their gradients are means
        self._waiting = 0
        self._averaged = False
        self._stop = False
        self._progress = Progress()

    def _identity(self) -> str:
        """Hash of what makes two runs the same: a longer run is, or one that reads its data from
        elsewhere.
        """
        settings = self._settings_of_all().by_name(read=True)
        facts = (
            {name: value for name, value in settings.items() if name not in FREE},
            self.fingerprint,
            self._own_parts,
            self.task.names.to_json(),
            self.task.hashes_of_edges(),
        )
        text = json.dumps(facts)
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def _join(self) -> None:
        """Raise ValueError unless all processes begin the same run; give all the same weights."""
        weights = self.network.state_dict()
        same: dict[str, Any] = {
            "parts of your own": self._own_parts,
            "the data set": self.fingerprint,
            "the network": {name: tuple(value.shape) for name, value in weights.items()},
            **self._settings_of_all().by_name(),
        }
        self.peers.agree("runs", {name: repr(fact) for name, fact in same.items()})
        self.peers.copy_first("weights", weights.values())

    def __repr__(self) -> str:
        return (
            f"Trainer({type(self.network.model).__name__} for {self.task.metric.name}, "
            f"{self.epoch} of {self.settings.run.epochs} epochs done, {self.batches!r})"
        )

    # ---- the whole run

    @collective_call()
    def run(self, report: Callable[[EpochRecord], None] = lambda _: None) -> Result:
        """Train from the present state to the end; return the result with the weights of the best
        epoch.

        ``report`` is called with the record of every epoch. Raises FloatingPointError when the loss
        becomes infinite or NaN, ``Stopped`` after ``stop``, PeerError where another process has
        raised an error.
        """
        while not self.is_finished:
            report(self.train_epoch())
        return self.result()

    @collective_call()
    def train_epoch(self) -> EpochRecord:
        """Train on the rest of the present epoch, validate, and return its record."""
        epoch = self.epoch + 1
        # ``result`` put the best weights into the network; training goes on with the last ones
        if self._last_weights is not None:
            self.network.load_state_dict(self._last_weights)
            self._last_weights = None
        run = self.settings.run
        with self._random.inside():
            self._train_batches(epoch)
            scores = {}
            if epoch % run.validate_every == 0 or epoch == run.epochs:
                scores = self.validate()
        record = record_of(epoch, self._sums, scores, self.task.metric.name)
        self.records.append(record)
        self._choose(record)
        self.epoch = epoch
        self.batches_done = 0
        self._sums = defaultdict(int)
        if self.checkpoints is not None:
            self.checkpoints.after_epoch(self, epoch)
        return record

    @collective_call()
    def result(self) -> Result:
        """Return the result so far: the network with the weights of the best epoch, measured on all
        parts.

        Training can continue afterwards, from the last weights.
        """
        # kept aside, so that training can go on from them
        if self.best_weights:
            self._last_weights = self._last_weights or self._weights()
            self.network.load_state_dict(self.best_weights)
        with self._random.inside():
            scores = self.scores()
        return Result(
            self.settings,
            self.task,
            self.best_epoch,
            self.task.metric.name,
            self.records,
            scores,
            self.fingerprint,
            self.trace.steps,
            self.identity,
        )

    # ---- parts of a loop of your own

    def loss(self, batch: NodeFlow) -> Tensor:
        """Return the loss of a batch, a scalar with gradients, whose mean over processes is the
        loss of the step.
        """
        with self.task.precision.context():
            outputs = self._forward(batch)
        return self.task.loss(outputs, batch)

    @collective_call()
    def step(self, batch: NodeFlow) -> float:
        """Compute the loss of a batch and its gradients, and step the optimiser; return the loss.

        With ``accumulate`` above 1 the optimiser steps once per ``accumulate`` calls. The loss is
        the mean over all processes. Raises FloatingPointError for one that is infinite or NaN; the
        gradients so far are then gone.
        """
        loss = self.loss(batch)
        accumulate = self.settings.optimizer.accumulate
        is_last = self._waiting + 1 == accumulate
        # processes exchange gradients once for each step of the optimiser, together with the loss
        parameters = self.network.parameters() if is_last else ()
        # one exchange for both: a message costs about the same for any size this small
        with self.peers.averaging(parameters, loss.item()) as means:
            (loss / accumulate).backward()
        value = means[0]
        if not math.isfinite(value):
            self.optimizer.zero_grad()
            self._waiting = 0
            raise FloatingPointError(
                f"the loss became {value} in epoch {self.epoch + 1}; a lower learning rate, or "
                "smaller features, may help"
            )
        self._waiting += 1
        self._averaged = is_last
        if is_last:
            self.update()
        return value

    @collective_call()
    def update(self) -> None:
        """Step the optimiser with the gradients so far, of which processes take the mean, and clear
        them.
        """
        if not self._averaged:
            with self.peers.averaging(self.network.parameters()):
                pass
        if clip := self.settings.optimizer.clip:
            nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        self.optimizer.step()
        self.scheduler.step()
        self.optimizer.zero_grad()
        self._waiting = 0
        self._averaged = False

    def validate(self) -> dict[str, float]:
        """Return the metrics on the validation nodes, on the same draws every time; empty without
        such nodes.
        """
        return self._scores(["val"], full=self.task.validates_fully)["val"]

    def evaluate(self, part: str = "test") -> dict[str, float]:
        """Return the metrics on a part of the split from full neighbourhoods; empty where it has no
        nodes.

        Samplers that estimate no full neighbourhood (random-walk, shadow) are used instead, with
        draws of their own. Raises ValueError for a part that is not "train", "val" or "test".
        """
        check_one_of(part, "part", PARTS)
        return self._scores([part], full=True)[part]

    def scores(self) -> dict[str, dict[str, float]]:
        """Return ``evaluate`` of all parts by name; what they share is computed once."""
        return self._scores(PARTS, full=True)

    @checked
    @collective_call()
    def outputs(self, nodes: Tensor, *, full: bool = True) -> Tensor:
        """Return the outputs of nodes, ``[n, width]``, float32 on the CPU; TypeError for a task of
        links.
        """
        if not isinstance(self.task, NodeTask):
            raise TypeError(
                "outputs are of nodes with labels; the answers of a task of links are those of "
                "top_links"
            )
        with self._evaluating():
            return self.task.outputs(nodes, full=full)

    @checked
    @collective_call()
    def top_links(
        self,
        nodes: IdsLike,
        k: int = 10,
        *,
        relation: int | str | None = None,
        side: str = "destination",
        with_known: bool = False,
    ) -> TopLinks:
        """Return the k nodes that score highest as the other end of every node, and their scores,
        ``[n, k]`` each.

        Args:
            nodes: ids of the nodes that are asked about, ``[n]``.
            k: the number of answers; where a node has fewer, ids are -1 and scores -inf.
            relation: number or name of a relation; None in a graph with relations: all,
                ``[n, relations, k]``.
            side: the end to find: "destination" (targets of edges from the nodes) or "source".
            with_known: keep the edges of the data set among the answers; else those of all parts
                are left out.

        As in the ranking, a node is no answer to itself in a graph without relations and
        self-loops. Raises TypeError for a run that learned labels of nodes, ValueError or
        IndexError for values that are not there.
        """
        if not isinstance(self.task, LinkTask):
            raise TypeError("top_links is for a task of links; a task of nodes has outputs(nodes)")
        with self._evaluating():
            return self.task.top_links(
                nodes, k, relation=relation, side=side, with_known=with_known
            )

    @collective_call()
    def _scores(self, parts: Sequence[str], *, full: bool) -> dict[str, dict[str, float]]:
        present = [part for part in parts if self.task.has(part)]
        with self._evaluating():
            scores = {}
            if present:
                scores = self.task.evaluate(present, full=full)
        # computed on all, so that all choose the same epoch
        scores = self.peers.of_first("scores", lambda: scores)
        return {part: scores.get(part, {}) for part in parts}

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Within the block, the network computes for evaluation, in the precision of the run."""
        training = self.network.training
        self.network.eval()
        try:
            with torch.no_grad(), self.task.precision.context():
                yield
        finally:
            self.network.train(training)

    def stop(self) -> None:
        """Ask a run to stop at the next step; it saves its state, then raises ``Stopped``."""
        self._stop = True

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """Return the whole state between two steps, from which another trainer goes on bit for bit.

        Its tensors are those of this trainer, which change with the next step.
        """
        # all that the next step depends on: a new trainer that loads a state taken after any step
        # gives the same bits as going on without a stop
        of_run = {
            "settings": self._settings_of_all().by_name(read=True),
            "own_parts": self._own_parts,
            "fingerprint": self.fingerprint,
            "identity": self.identity,
            "names": self.task.names.to_json(),
        }
        progress = {
            "epoch": self.epoch,
            "done": self.batches_done,
            "sums": dict(self._sums),
            "records": [asdict(record) for record in self.records],
            "trace": [[*step] for step in self.trace.steps],
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
        }
        return {
            **of_run,
            "network": self._last_weights or dict(self.network.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "task": self.task.method.state_dict(),
            "random": self._random.present(),
            **progress,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from ``state``.

        Raises ValueError for the state of another data set or of other settings, and where parts of
        your own have other names than they had: model, loss, metrics, optimiser, schedule. What
        they compute is not compared.
        """
        names = self.task.names.to_json()
        if state["fingerprint"] != self.fingerprint or state.get("names", names) != names:
            raise ValueError("the state is of another data set, or of a changed one")
        if ("cuda" in state["random"]) != (self.device.type == "cuda"):
            raise ValueError(
                f"the state is of a run on another kind of device than {self.device.type!r}"
            )
        before = Settings(state["settings"])
        check_same_run(before, self._settings_of_all(), self.peers.size)
        check_same_parts(state.get("own_parts", {}), self._own_parts)
        if (epochs := self.settings.run.epochs) < state["epoch"]:
            raise ValueError(
                f"epochs must be at least {state['epoch']}, those of the state, got {epochs}"
            )
        # nothing was changed so far, so a refused state leaves the trainer as it was
        load_tensors(self.network, self.optimizer, state)
        self.identity = state.get("identity", "")
        self._last_weights = None
        self.scheduler.load_state_dict(state["scheduler"])
        self.task.method.load_state_dict(state["task"])
        self._random.states = state["random"]
        self.epoch = state["epoch"]
        self.batches_done = state["done"]
        self._sums = defaultdict(int, state["sums"])
        self.records = [EpochRecord(**record) for record in state["records"]]
        self.trace = Trace(state.get("trace", ()))
        self.best_epoch = state["best_epoch"]
        self.best_weights = dict(state["best_weights"])

    # ---- inside

    def _settings_of_all(self) -> Settings:
        """The settings, with the batch size of a single process that takes the same steps."""
        return self.settings.replace(batch_size=self.settings.sampler.batch_size * self.peers.size)

    def _train_batches(self, epoch: int) -> None:
        self.network.train()
        self.batches.set_epoch(epoch - 1)
        # where a loaded state goes on: the batches of an epoch depend on its number alone
        if self.batches_done:
            self.batches.load_state_dict(
                {**self.batches.state_dict(), "batch_number": self.batches_done}
            )
        total = len(self.batches)
        if self.batches_done == total:
            return
        counts = [self.task.num_batches(number) for number in range(self.settings.run.epochs)]
        with self._progress.bar(counts, epoch, self.batches_done, shown=self.peers.is_first) as bar:
            start = time.perf_counter()
            batch: Any
            for batch in self.batches:
                self._seed_step()
                loss = self.step(batch)
                stop, save = self._count_step(epoch, batch, loss)
                end = time.perf_counter()
                self._sums["seconds"] += end - start
                start = end
                rate = self._sums["seeds"] / max(self._sums["seconds"], 1e-9)
                bar.set_postfix_str(
                    f"loss {loss:.3f}, {rate:,.0f} seeds/s", refresh=self.batches_done == total
                )
                bar.update()
                self._between_steps(stop=stop, save=save)

    def _seed_step(self) -> None:
        """Seed torch anew for each step of several processes, so that a state need not hold the
        generators of the others.
        """
        if self.peers.size == 1:
            return
        key = derive_key(
            "processes",
            self.settings.run.seed,
            self.epoch,
            self.batches_done,
            self.peers.rank,
        )
        torch.manual_seed(key & 2**63 - 1)  # torch takes no larger ones

    def _count_step(self, epoch: int, batch: Any, loss: float) -> tuple[bool, bool]:
        """Add a step to the totals of all processes; return whether all stop, and whether they
        save.
        """
        # before the history takes the rows of this batch: the trace is of what the step has read
        self.trace.add(epoch, self.batches_done, batch, loss)
        ages = self.task.method.after_step(batch)
        self.batches_done += 1
        if self.batches_done == len(self.batches) and self._waiting:
            self.update()
        # one exchange for counts and signals; saving is collective, so the clock of rank 0 decides
        checkpoints = self.checkpoints
        due = checkpoints is not None and self.peers.is_first and checkpoints.is_due
        *counts, stop, save = self.peers.totals(
            "counts of a step",
            *counts_of(batch, self.task.size(batch)),
            int(ages.sum()),
            len(ages),
            int(self._stop),
            int(due),
        )
        for name, count in zip(("nodes", "seeds", "edges", "ages", "rows"), counts, strict=True):
            self._sums[name] += count
        self._sums["loss"] += loss * counts[0]
        return stop > 0, save > 0

    def _between_steps(self, *, stop: bool, save: bool) -> None:
        """Save if due, and stop if requested; never while accumulated gradients wait for a step."""
        if self._waiting:
            return
        if self.checkpoints is not None and (stop or save):
            self.checkpoints.save(self)
        if stop:
            self._stop = False
            # a barrier: if a process left before the state is saved, torchrun would end all
            self.peers.totals("a stop")
            raise Stopped(
                f"stopped in epoch {self.epoch + 1} after batch {self.batches_done} of "
                f"{len(self.batches)}"
            )

    def _choose(self, record: EpochRecord) -> None:
        """Keep the weights of an epoch that is better than all before, or of the last one without
        validation nodes.
        """
        if self.task.has("val"):
            if not record.scores:
                return
            best = math.nan
            if self.best_epoch:
                best = self.records[self.best_epoch - 1].score
            if not math.isnan(best) and not self.task.metric.is_better(record.score, best):
                return
        self.best_epoch = record.epoch
        self.best_weights = self._weights()

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    @property
    def is_finished(self) -> bool:
        """Whether all epochs are done, or so many without a better one that training stops
        early.
        """
        patience = self.settings.run.patience
        stale = bool(patience) and self.best_epoch > 0 and self.epoch - self.best_epoch >= patience
        return stale or self.epoch >= self.settings.run.epochs
