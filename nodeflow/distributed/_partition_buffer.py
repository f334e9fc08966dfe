"""PartitionBuffer: the states of an epoch over a graph in a folder, of which a few parts are in
memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import Ints, as_count, as_ids, as_int, check_one_of, describe
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._files.disk.folders import locked
from nodeflow.distributed._buffer_epoch import (
    BufferCounters,
    BufferEpoch,
    BufferState,
    remove_strays,
    seed_states,
)
from nodeflow.distributed._orders import ORDERS, Order
from nodeflow.distributed._partitions import Partitions, chosen_columns
from nodeflow.distributed._slots import EdgeSlots, NodeSlots

OrderLike = str | Order | Sequence[IdsLike] | Callable[[int], Order]


class PartitionBuffer:
    """Iterates over the states of an epoch: some parts of a graph in memory, with an ordinary
    ``Graph`` of them.

    ``for state in buffer`` is one epoch. Every state has ``state.graph``, the edges between its
    parts with rows of nodes in place; ``state.seeds``, its training nodes; and ``state.edges``, its
    edges to train on. Over an epoch every training node comes once, and where the order brings all
    pairs of parts together, every edge too. While the caller computes, a thread writes what has
    changed, reads the next parts and makes the next graph.

    Columns named in ``writable`` are learned rows: what the caller writes into
    ``state.graph.ndata[name]`` goes back to the folder. The end of an epoch commits it, all or
    nothing: one that is left early, fails or is killed leaves the folder as before, and a new
    buffer goes on from there. Only one has the folder, until ``close`` or ``with`` ends.

    Args:
        folder: written by ``write_partitions``.
        slots: number of parts in memory; an order with states of its own says it too.
        order: "comet" (random groups, for edges and nodes), "beta" (fewest swaps for edges),
            "dispersed" (training nodes anywhere, each part read once), "sequential" (the parts with
            training nodes stay, see "train-first" of ``write_partitions``); an ``Order`` or sets of
            parts; or a function from the number of an epoch to an ``Order`` with the same number of
            slots.
        seed: of the orders and of what is trained in which state.
        epoch: number of the first epoch; None: as many as the folder has committed.
        train: training nodes, by parent id; None: those of the folder.
        ndata, edata: names of the columns to hold, also of single types and relations; None: all.
        writable: names of the node columns that are written back.
        prefetch: read in the background; else between the states.
        verify: which files are compared with their checksums, as for ``Partitions.open``.

    ``partitions`` is the folder, as committed last, ``epoch`` the number of the next epoch,
    ``slots`` the number of parts in memory; ``counters`` has what was read, written and waited for.
    In memory are ``slots`` parts and as many as the order swaps at once (at most half of ``slots``,
    or 1), and the edges of two states, at about 16 bytes an edge and twice its columns.

    Raises ValueError for slots that do not go with the order, KeyError for an unknown column,
    BlockingIOError where another buffer writes the folder, and the errors of ``Partitions.open``.

    >>> import tempfile, torch
    >>> from nodeflow import Graph
    >>> from nodeflow.distributed import write_partitions
    >>> ring = Graph.from_edges(range(8), [*range(1, 8), 0], ndata={"x": torch.zeros(8, 2)})
    >>> folder = write_partitions(ring, tempfile.mkdtemp(), 4, train=[0, 5], progress=False).folder
    >>> with PartitionBuffer(folder, 2, order="beta", writable=["x"]) as buffer:
    ...     for state in buffer:
    ...         state.graph.ndata["x"][state.seeds] += 1
    >>> Partitions.open(folder).column("x").fetch(torch.arange(8))[:, 0]
    tensor([1., 0., 0., 0., 0., 1., 0., 0.])
    """

    @checked
    def __init__(
        self,
        folder: FileLike,
        slots: int | None = None,
        *,
        order: OrderLike = "comet",
        seed: int = 0,
        epoch: int | None = None,
        train: IdsLike | None = None,
        ndata: Sequence[str] | None = None,
        edata: Sequence[str] | None = None,
        writable: Sequence[str] = (),
        prefetch: bool = True,
        verify: bool | None = None,
    ) -> None:
        parts = Partitions.open(folder, verify=verify)
        self._ndata = chosen_columns(parts.names("nodes"), ndata, "ndata", "the folder")
        self._edata = chosen_columns(parts.names("edges"), edata, "edata", "the folder")
        self._writable = chosen_columns(self._ndata, writable, "writable", "the buffer")
        self.seed = as_int(seed, "seed")
        self._prefetch = prefetch
        nodes = parts.train
        if train is not None:
            nodes = np.unique(as_ids(train, "train", parts.num_nodes))
        # training nodes as rows of parts: states then find theirs without a table of nodes
        self._train: Ints | None = None
        self._training_parts = np.zeros(0, np.int64)
        if nodes is not None:
            self._train = np.sort(parts.rows[nodes].astype(np.int64))
            self._training_parts = np.unique(self._train // parts.size)
        self.partitions = parts
        self.counters = BufferCounters()
        self._order = self._checked_order(order)
        if slots is None and isinstance(self._order, Order):
            slots = self._order.slots
        if slots is None:
            raise ValueError("give slots: the number of parts in memory")
        self.slots = as_count(slots, "slots", 1)
        self._nodes: NodeSlots | None = None
        self._running: BufferEpoch | None = None
        self.epoch = parts.epoch if epoch is None else as_count(epoch, "epoch")
        self._start = 0  # the state with which the next epoch begins
        # raise errors of orders now, not at the first epoch
        self.order_of(self.epoch)
        self._held = ExitStack()
        self._close = weakref.finalize(self, self._held.close)
        if self._writable:
            self._held.enter_context(locked(parts.folder))
            # as it is now that no other process changes it
            self.partitions = Partitions.open(folder, verify=verify)
            if epoch is None:
                self.epoch = self.partitions.epoch
            remove_strays(self.partitions.folder, self.partitions.manifest)

    @property
    def partition_bytes(self) -> int:
        """Bytes of the node columns of a part; of sparse ones, of the part that has the most."""
        parts = self.partitions
        most = 0
        for key in parts.keys("nodes", self._ndata):
            files = [parts.manifest.arrays[f"{key}/{p}"] for p in range(parts.num_parts)]
            most += max(file.nbytes for file in files)
        return most

    def order_of(self, epoch: int) -> Order:
        """Return the order of an epoch; raises ValueError where the slots do not go with it."""
        count = self.partitions.num_parts
        number = as_count(epoch, "epoch")
        order = self._order
        if isinstance(order, str):
            kind = ORDERS[order]
            training = [self._training_parts] if kind.of_training else []
            return kind.make(count, self.slots, *training, seed=self.seed, epoch=number)
        if not isinstance(order, Order):
            order = order(number)
        if not isinstance(order, Order):
            raise TypeError(f"order must return an Order, got {describe(order)}")
        if (order.num_parts, order.slots) != (count, self.slots):
            raise ValueError(
                f"order must have {count} parts and {self.slots} slots, as the buffer has, got "
                f"{order!r}"
            )
        return order

    def seeds_per_state(self, epoch: int | None = None) -> list[int]:
        """Return for every state of an epoch (None: the next) the number of its training nodes;
        reads no part.

        Raises ValueError where no training nodes were given.
        """
        number = self.epoch if epoch is None else as_count(epoch, "epoch")
        if self._train is None:
            raise ValueError(
                "there are no training nodes; pass train to write_partitions or to PartitionBuffer"
            )
        order = self.order_of(number)
        chosen = seed_states(self.partitions, order, self._train, (self.seed, number))
        counts: list[int] = np.bincount(chosen, minlength=len(order.states)).tolist()
        return counts

    def set_epoch(self, epoch: int, state: int = 0) -> None:
        """Make the next iteration epoch ``epoch`` (counted from 0), from its state ``state``.

        Parts of the states before are not read. An epoch that was left can go on so; a running one
        ends. Raises ValueError for a buffer with writable columns, and for a state that the epoch
        does not have.
        """
        if self._writable:
            raise ValueError(
                "set_epoch is for buffers that write nothing back, and this one writes "
                f"{', '.join(self._writable)}: it goes on with epoch {self.epoch}, after the last "
                "one that was committed"
            )
        number = as_count(epoch, "epoch")
        start = as_count(state, "state")
        if start >= (count := len(self.order_of(number).states)):
            raise ValueError(
                f"state must be below {count}, the number of states of epoch {number}, got {start}"
            )
        if self._running is not None:
            self._running.close()
        self.epoch = number
        self._start = start

    def close(self) -> None:
        """End a running epoch, which is then not committed, and let others write the folder."""
        if self._running is not None:
            self._running.close()
        self._close()

    def __enter__(self) -> PartitionBuffer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[BufferState]:
        if not self._close.alive:
            raise RuntimeError("this PartitionBuffer is closed; make a new one")
        if self._running is not None:
            self._running.close()
        parts = self.partitions
        order = self.order_of(self.epoch)
        start = self._start
        self._start = 0
        # epochs share the memory of the slots
        if self._nodes is None or self._nodes.spare < order.most_swapped:
            self._nodes = NodeSlots(
                parts,
                columns=self._ndata,
                writable=self._writable,
                slots=self.slots,
                spare=order.most_swapped,
            )
        run = BufferEpoch(
            parts=parts,
            order=order,
            nodes=self._nodes,
            edges=EdgeSlots(parts, self._edata),
            counters=self.counters,
            train=self._train,
            key=(self.seed, self.epoch),
            prefetch=self._prefetch,
        )
        self._running = run
        return self._states(run, self.epoch, start)

    def __repr__(self) -> str:
        order = self._order if isinstance(self._order, (str, Order)) else "by a function"
        writable = f", writable: {', '.join(self._writable)}" if self._writable else ""
        return (
            f"PartitionBuffer({self.slots} of {self.partitions.num_parts} parts in memory, "
            f"order {order}, epoch {self.epoch}{writable})"
        )

    def _states(self, run: BufferEpoch, epoch: int, start: int) -> Iterator[BufferState]:
        try:
            yield from run.states(start)
            run.commit()
            if self._writable:
                # the rows are its own
                self.partitions = Partitions.open(self.partitions.folder, verify=False)
            self.epoch = epoch + 1
            self.counters.epochs += 1
        finally:
            run.close()
            if self._running is run:
                self._running = None
                if self._writable:
                    remove_strays(self.partitions.folder, self.partitions.manifest)

    def _checked_order(self, order: OrderLike) -> str | Order | Callable[[int], Order]:
        if isinstance(order, str):
            check_one_of(order, "order", tuple(ORDERS))
            if ORDERS[order].of_training and self._train is None:
                raise ValueError(
                    f"order={order!r} needs training nodes; pass train to write_partitions or here"
                )
            return order
        if callable(order) or isinstance(order, Order):
            return order
        return Order(self.partitions.num_parts, order)
