"""NodeFlowLoader: a NodeFlow for every batch of seeds, sampled ahead on threads."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from nodeflow._core.base.checks import as_count, as_device, as_flag, as_int, check_type
from nodeflow._core.base.habits import taught
from nodeflow._core.base.types import Array, ColumnsLike, NumbersLike, SeedsLike
from nodeflow._core.random import hash_ids
from nodeflow._core.rows.rows import take_rows
from nodeflow._core.runtime.workers import Workers
from nodeflow.flow import NamesLike, NodeFlow, empty_node_flow
from nodeflow.loader._checks import (
    check_inputs,
    check_process,
    check_settings,
    hash_times,
    repeats,
    samplers_with_state,
    settings_of_sampler,
    transformed,
)
from nodeflow.loader._epochs import Epochs, Pass
from nodeflow.loader._order import LocalShuffle, order_of
from nodeflow.loader._shares import Owner, Share, as_facts, join, shares_of, sharing
from nodeflow.loader._table import SeedTable, as_table
from nodeflow.loader._workers import Timed, Timings, TogetherOnRequest, draw_ahead
from nodeflow.sampling import Call, StepSeeds
from nodeflow.sampling.base import SamplerBase

# settings that a state leaves out where they have these values
_DEFAULTS = {"share": "even", **dict.fromkeys(("times_hash", "weights_hash", "groups_hash", "mix"))}


@taught
class NodeFlowLoader(Epochs):
    """Iterates over the NodeFlows of batches of seeds; every iteration is one epoch.

    The batches are the same, bit for bit, for any number of workers. These are threads of this
    process: compiled samplers run in parallel with the training step, and nothing is copied. They
    end when the iteration ends or is left early; with ``prefetch=0`` there are none. A child
    process made by ``fork`` begins iterations of its own, with one thread of torch; an iteration
    that its parent has begun cannot go on there: RuntimeError.

    Args:
        sampler: makes a NodeFlow of the seeds of a batch.
        seeds: parent ids; repeats allowed. With shape ``[P, m]``, such as pairs of nodes, rows stay
            together: a batch has ``batch_size`` rows, and its ``seed_index`` has shape
            ``[batch_size, m]``. A bool mask selects among all possible seeds. "all", or for seeds
            that are not nodes None: all possible seeds, such as all links. A ``SeedTable`` brings
            its times and columns along.
        batch_size: number of seeds per batch, or of rows of seeds.
        shuffle: whether every epoch has a new random order of the seeds; else the order is the
            given one. A ``LocalShuffle``: a random order in which near seeds stay together.
        drop_last: whether to leave out a last batch that is smaller than the others.
        seed: random seed of the order; the draws depend on the seed of the sampler.
        num_workers: number of threads that sample ahead. 0: the caller's thread samples a batch
            when it is asked for.
        prefetch: number of batches that every worker may be ahead. 0 turns background sampling off:
            ``num_workers`` batches are sampled in parallel while the caller waits, on its own
            thread and those of torch. This suits training steps that use all cores.
        weights: a number per seed, or row of seeds, finite and at least 0. Every epoch then draws
            as many seeds as there are, with replacement, each in proportion to its weight; their
            order is random, whatever ``shuffle`` (see ``balanced_weights``). None: every epoch has
            every seed once.
        times: a time for every seed, for samplers that need one (``TemporalNeighborSampler``).
        inputs: passed to every draw, as in ``sampler(seeds, inputs=...)``; a score of
            ``LayerSampler`` sees them as ``step.inputs``. A tensor or array with a row per node,
            ``[num_nodes, ...]``, that stays as it is while the loader is in use; or a function
            ``inputs(seeds)``. The thread of the iterating caller calls it for every batch, in
            order, with the seeds of the batch in the shape in which they were given.
        inputs_ahead: ``inputs(seeds)`` of batch k is called when the caller asks for batch k -
            ``inputs_ahead``, whatever the number of workers. With 0 it is called after the training
            step of batch k - 1, and no batch is drawn ahead. With more, workers draw that many
            batches ahead, and the function must return values that nobody changes later.
        ndata, edata: columns copied from the parent's frames to every batch, chosen as in
            ``NodeFlow.copy_from_parent``: ``{0: ["feat"], -1: ["label"]}`` copies the features of
            the input layer and the labels of the seeds, ``["year"]`` a column of every layer. None:
            no columns.
        seed_data: columns with a row per seed, or row of seeds, by name: targets of pairs, labels
            of repeated seeds. The rows of a batch are its frame ``seed_data``, in the order of its
            ``seed_index``. The columns are not copied: do not write to them while batches are
            drawn. ``{"index": torch.arange(len(seeds))}`` gives every seed its index in ``seeds``.
        transform: a function of a NodeFlow that returns a NodeFlow: the same one with columns
            added, or another. It is called for every batch in order, on the thread of the iterating
            caller, when the batch is taken: after ``sampler.complete``, before the move to
            ``device``. Workers do not run it, so it may read what the training step has just
            written. It is not part of ``state_dict``.
        device: device to which the batches are moved; None leaves them on the CPU.
        pin_memory: whether to put the batches in page-locked memory, so that copies to a GPU
            overlap with computation.
        rank, world_size: number of this process and of all that share every step, to be given
            together. None: those of the graph where it lies on several processes, else of torch's
            default group, else 0 of 1. Step k has the seeds of batch k of one process with
            ``batch_size * world_size``; every process takes its share of them.
        share: "even": consecutive seeds, as many in every process (at most one more). "owned": each
            process has the nodes or edges that it holds, where the graph lies on several. Else the
            rank that owns each seed: an integer per possible seed (per node, or per edge, pair or
            part for such seeds), or a function from ids (numpy int64) to ranks. A row of several
            nodes belongs to the owner of the first. A share may be empty: the batch then has no
            seeds.

    To resume after an interruption, take ``state_dict()`` between two batches, and pass it to
    ``load_state_dict`` of a loader with the same arguments: it goes on with the next batch, bit for
    bit. A new loader begins with epoch 0. A loader that is made anew for every epoch therefore
    repeats epoch 0, unless ``set_epoch`` is called.

    The state of a sampler with methods ``state_dict()`` and ``load_state_dict(state)``, also of one
    that another wraps, is part of the loader's. Workers draw while it changes, so draws must read
    it from ``inputs`` alone (docs/loader.md has an example). With ``inputs_ahead`` above 0, inputs
    of batches that the caller has not got yet are part of it.

    An iteration begins on all processes that share steps together: they compare its epoch and their
    arguments. With a ``rank`` and ``world_size`` that are not those of torch's default group, such
    as 0 and 1 for an evaluation on one process, nothing is compared.

    With several processes, ``batch_size`` is that of one, ``len`` the number of steps, the same in
    all, and ``inputs``, ``transform`` and columns see the process's own seeds. ``state_dict`` is
    that of all: another number of processes goes on with it where ``batch_size * world_size`` is
    the same (docs/loader.md says which draws stay the same).

    ``timings`` has the seconds of sampling, fetching columns and waiting by batch, of the newest
    iteration so far.

    Raises TypeError, ValueError or IndexError for wrong arguments, ValueError for processes that
    differ, and TypeError when ``transform`` returns anything but a NodeFlow. An exception in a
    worker reaches the caller with its type and message.

    >>> from nodeflow import Graph, NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> loader = NodeFlowLoader(NeighborSampler(graph, [1]), [0, 1, 2], batch_size=2)
    >>> [batch.seeds.tolist() for batch in loader]
    [[0, 1], [2]]
    """

    batch_sampler = None
    """That of a torch ``DataLoader``, of which there is none: Lightning asks every loader with a
    ``sampler`` for it.
    """

    def __init__(
        self,
        sampler: SamplerBase,
        seeds: SeedTable | SeedsLike | str | None = None,
        batch_size: int = 1024,
        shuffle: bool | LocalShuffle = False,
        drop_last: bool = False,
        seed: int = 0,
        num_workers: int = 0,
        prefetch: int = 2,
        *,
        weights: NumbersLike | None = None,
        times: NumbersLike | None = None,
        inputs: Tensor | Array | Callable[[Tensor], Any] | None = None,
        inputs_ahead: int = 0,
        ndata: NamesLike = None,
        edata: NamesLike = None,
        seed_data: ColumnsLike | None = None,
        transform: Callable[[NodeFlow], NodeFlow] | None = None,
        device: torch.device | str | None = None,
        pin_memory: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        share: str | Owner = "even",
    ) -> None:
        super().__init__()
        check_type(sampler, "sampler", SamplerBase, "a nodeflow Sampler")
        self.sampler = sampler

        # input: the seeds of an epoch, and what else a draw reads
        table = as_table(seeds, sampler, times, seed_data)
        self.seeds = table.seeds
        self.times = table.time
        self.seed_data = table.data
        if sampler.seed_kind == "node":
            sampler.check_reach(self.seeds.flatten())
        self.batch_size = as_count(batch_size, "batch_size", 1)
        if sampler.most_seeds is not None and self.batch_size > sampler.most_seeds:
            raise ValueError(
                f"batch_size must be at most {sampler.most_seeds} for {type(sampler).__name__}, "
                f"got {self.batch_size}"
            )
        self.shuffle = shuffle
        self.drop_last = as_flag(drop_last, "drop_last")
        self.seed = as_int(seed, "seed")
        self._order = order_of(self.seeds, sampler, shuffle, weights)
        self.share = share if isinstance(share, str) else "owned"
        self._shares = shares_of(sampler, self.seeds, self.batch_size, share, (rank, world_size))
        self.rank = self._shares.rank
        self.world_size = self._shares.world_size
        self.inputs = inputs
        self.inputs_ahead = as_count(inputs_ahead, "inputs_ahead")
        check_inputs(inputs, self.inputs_ahead, sampler.graph.num_nodes)
        self._inputs: dict[int, Any] = {}  # by number, of batches that the caller has not got yet

        # sampler: the threads that draw
        self.num_workers = as_count(num_workers, "num_workers")
        self.prefetch = as_count(prefetch, "prefetch")
        # batches that may be equal are told apart by their numbers, others by their seeds: the same
        # in any loader
        self._numbered = sampler.numbered or self._order.repeats or repeats(self.seeds.numpy())
        self._drawing = False
        self.timings = Timings()

        # columns; an empty batch, so that a wrong one raises now and not with the first batch
        self.ndata = ndata
        self.edata = edata
        empty_node_flow(sampler.graph, sampler.num_flows).copy_from_parent(ndata, edata)

        # transform, and the place of the batch
        check_type(transform, "transform", Callable | None, "a function of a NodeFlow")
        self.transform = transform
        self.device = None if device is None else as_device(device)
        self.pin_memory = as_flag(pin_memory, "pin_memory")

        # last, when all settings are there to be compared with those of other processes; for the
        # thread that draws ahead, None where it needs no other process
        self._channel = join(
            sampler.graph.peers, self._shares, self.settings, (self.num_workers, self.prefetch)
        )

    def num_batches(self, epoch: int = 0) -> int:
        """Return the number of batches in an epoch, the same in all: of steps, with several
        processes.
        """
        return self._shares.num_steps(len(self.seeds), self.drop_last)

    @property
    def seed_weight(self) -> float:
        """Weight of every seed of the last batch in the mean over the seeds of its step: world_size
        / their number.

        A sum of losses over the batch's seeds times this weight has gradients whose mean over all
        processes, as ``DistributedDataParallel`` takes it, is the gradient of the mean over the
        step. Raises RuntimeError before the first batch.

        >>> from nodeflow import Graph, NeighborSampler
        >>> sampler = NeighborSampler(Graph.from_edges([0], [1]), [1])
        >>> loader = NodeFlowLoader(sampler, [0, 1, 0], batch_size=1, rank=1, world_size=2)
        >>> [(batch.seeds.tolist(), loader.seed_weight) for batch in loader]  # two seeds, then one, which is rank 0's
        [([1], 1.0), ([], 2.0)]
        """
        return self._shares.seed_weight(len(self.seeds), self._next - 1)

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self._inputs = {}

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, the number of the next batch, the settings, and the state of a sampler
        that has one.

        The values are numbers and strings. Two entries hold values of the user's:
        ``sampler_state``, made by samplers with state, and ``inputs``, made by the function
        ``inputs`` with ``inputs_ahead`` above 0.
        """
        state = super().state_dict()
        if stateful := samplers_with_state(self.sampler):
            states = {name: sampler.state_dict() for name, sampler in stateful.items()}
            state["sampler_state"] = states
        if self._inputs:
            state["inputs"] = dict(self._inputs)
            if self.world_size > 1:
                state["inputs_of"] = [self.rank, self.world_size]
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        for name, sampler in samplers_with_state(self.sampler).items():
            sampler.load_state_dict(state["sampler_state"][name])
        self._inputs = dict(state.get("inputs", {}))

    def check_state(self, state: Mapping[str, Any]) -> None:
        check_settings(_DEFAULTS | self.settings(), _DEFAULTS | dict(state))
        check_process(state, self.rank, self.world_size)
        needed = sorted(samplers_with_state(self.sampler))
        stored = sorted(state.get("sampler_state", {}))
        if needed != stored:
            raise ValueError(
                f"the state holds the state of samplers {stored}, this one needs {needed}"
            )

    def settings(self) -> dict[str, Any]:
        sampler = self.sampler
        seeds = self.seeds
        settings: dict[str, Any] = {
            "batch_size": self._shares.step_size,
            **self._order.facts,
            "drop_last": int(self.drop_last),
            "seed": self.seed,
            "num_seeds": len(seeds),
            "seeds_hash": hash_ids(seeds.flatten().numpy()),
            "shape": list(seeds.shape[1:]),
        }
        # a function cannot be compared: that there is one, and how far ahead it is called, can
        settings["inputs_ahead"] = self.inputs_ahead if callable(self.inputs) else None
        settings["sampler"] = settings_of_sampler(type(sampler).__name__, sampler.settings)
        # states of loaders without them have no such entries
        if self.share != _DEFAULTS["share"]:
            settings["share"] = self.share
        if self.times is not None:
            settings["times_hash"] = hash_times(self.times)
        return settings

    def draws(self, epoch: int, start: int = 0) -> Iterator[NodeFlow]:
        """Iterate over the NodeFlows of an epoch, from batch ``start``, without columns, transform
        or move to a device.

        They are those that an iteration of that epoch gives, drawn in the caller's thread. The
        position of the loader stays. Use it to look ahead. Raises TypeError where draws depend on
        more than their number: where ``inputs`` is a function, or the sampler has state.

        >>> from nodeflow import Graph, NeighborSampler
        >>> loader = NodeFlowLoader(NeighborSampler(Graph.from_edges([0], [1]), [1]), [0, 1], batch_size=1)
        >>> [batch.seeds.tolist() for batch in loader.draws(3)]
        [[0], [1]]
        """
        if callable(self.inputs) or samplers_with_state(self.sampler):
            raise TypeError(
                "batches cannot be drawn ahead: inputs is a function, or the sampler has state, so "
                "they depend on the steps before"
            )
        order = self._order.positions(self.seed, as_count(epoch, "epoch"))
        for number in range(as_count(start, "start"), len(self)):
            with self.sampler.graph.peers.together("a batch"):
                batch = self._sample(self._shares.of(order, number), epoch, number, self.inputs)
            yield batch

    def __iter__(self) -> Iterator[NodeFlow]:
        return self.iterate(self.ndata)

    def iterate(
        self, ndata: NamesLike, fill: Callable[[NodeFlow], None] | None = None
    ) -> Generator[NodeFlow]:
        """Iterate as ``iter(loader)`` does, but copy the node columns ``ndata``, and call ``fill``
        with every batch.

        ``fill`` is called in the caller's thread, batch after batch, before ``transform``; it sets
        further columns.
        """
        # raises ValueError, on all processes that share the steps, unless all begin the same one
        start = {"epoch": self.next_epoch, "first batch": self._next * self._goes_on}
        sharing(self.sampler.graph, self._shares).agree(
            "iterations of NodeFlowLoader",
            lambda: as_facts({**start, **self.settings()}, self._shares),
        )
        # a copy: an older iteration keeps the inputs that were made for it
        self._inputs = dict(self._inputs) if self._goes_on else {}
        self.timings = Timings()
        return self._iterate(self.begin(), self._inputs, ndata, fill)

    # ---- a batch: input, sampler, columns, transform

    def _iterate(
        self,
        current: Pass,
        inputs: dict[int, Any],
        ndata: NamesLike,
        fill: Callable[[NodeFlow], None] | None,
    ) -> Generator[NodeFlow]:
        """Yield the batches of an iteration, whose prepared ``inputs`` are by number."""
        timings = self.timings
        requested = perf_counter()
        with closing(self._batches(current, inputs, ndata)) as batches:
            for number, (drawn, sampling, fetching) in enumerate(batches, current.start):
                inputs.pop(number, None)
                self.reached(current, number + 1)
                begun = perf_counter()
                if fill is not None:
                    fill(drawn)
                batch = self.sampler.complete(drawn)
                filled = perf_counter() - begun
                if self.transform is not None:
                    batch = transformed(self.transform, batch)
                if self.device is not None:
                    batch = batch.to(self.device, non_blocking=self.pin_memory)
                timings.add((sampling, fetching + filled), perf_counter() - requested)
                yield batch
                requested = perf_counter()

    def _batches(self, current: Pass, inputs: dict[int, Any], ndata: NamesLike) -> Generator[Timed]:
        """Yield batches as they are drawn, ahead on threads or when the caller asks."""
        order = self._order.positions(self.seed, current.epoch)

        # in the caller's thread, batch after batch: ``inputs`` may read what a step has changed
        def prepare(number: int) -> Callable[[], Timed]:
            share = self._shares.of(order, number)
            values = self.inputs
            if callable(values):
                if number not in inputs:
                    inputs[number] = values(self.seeds[share.ours])
                values = inputs[number]
            return partial(self._draw, share, current.epoch, number, values, ndata)

        lead = self.num_workers * self.prefetch
        workers: Workers | TogetherOnRequest
        if lead:
            # threads, not processes: compiled samplers leave the interpreter lock, and nothing is
            # copied
            workers = Workers(self.num_workers, "nodeflow-loader")
        else:
            together = max(self.num_workers, 1)
            lead = together - 1
            workers = TogetherOnRequest(together)
        if callable(self.inputs):
            lead = self.inputs_ahead
        # other processes wait for the draws that were begun together
        joint = self._channel is not None
        numbers = range(current.start, len(self))
        batches = draw_ahead(workers, prepare, numbers, lead, finish=joint)
        return self._alone(batches) if joint else batches

    def _alone(self, batches: Generator[Timed]) -> Generator[Timed]:
        """Yield batches drawn through a channel that only one thread may use; other processes wait
        for these draws.
        """
        # two threads in one channel would answer each other
        if self._drawing:
            raise RuntimeError(
                "an iteration of this loader draws ahead together with other processes; end it "
                "before the next one begins, or pass num_workers=0"
            )
        self._drawing = True
        try:
            yield from batches
        finally:
            batches.close()
            self._drawing = False

    def _draw(self, share: Share, epoch: int, number: int, inputs: Any, ndata: NamesLike) -> Timed:
        """Return a batch with its columns, in any thread."""
        # the thread that draws ahead has a channel of its own to the other processes
        peers = self.sampler.graph.peers
        with peers.using(self._channel), peers.together("a batch"):
            begun = perf_counter()
            batch = self._sample(share, epoch, number, inputs)
            drawn = perf_counter()
            if ndata is not None or self.edata is not None:
                batch.copy_from_parent(ndata, self.edata)
            for name, column in self.seed_data.items():
                batch.seed_data[name] = take_rows(column, share.ours)
            if self.pin_memory:
                batch = batch.pin_memory()
            return batch, drawn - begun, perf_counter() - drawn

    def _sample(self, share: Share, epoch: int, number: int, inputs: Any) -> NodeFlow:
        """Return the NodeFlow of this process's seeds of a step."""
        times = self._times_of(share.ours)
        step = None
        if share.rows is not None:
            step = StepSeeds(self.seeds[share.step], self._times_of(share.step), share.rows)
        call = Call(epoch, number if self._numbered else None, inputs, times, step)
        return self.sampler.draw_batch(self.seeds[share.ours], call)

    def _times_of(self, rows: Tensor) -> Tensor | None:
        return None if self.times is None else self.times[rows]

    def __repr__(self) -> str:
        share = ""
        if self.world_size > 1:
            share = f" for process {self.rank} of {self.world_size}"
        return (
            f"NodeFlowLoader({len(self.seeds)} seeds in {len(self)} batches of "
            f"{self.batch_size}{share}, {self.sampler.text()})"
        )
