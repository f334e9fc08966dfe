"""Orders: which parts are in memory together, state by state, and which state trains each bucket of
edges.

Every order is a pure function of its arguments. A *state* is a set of parts that are resident
together; a *swap* is one part that takes the place of another. Sources: BETA is section 4.1 of
Marius (Mohoney et al. 2021); COMET, and the orders for node classification, are sections 5.1 and
5.2 of MariusGNN (Waleffe et al. 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nodeflow._core.base.checks import Ints, as_count, as_ids, as_int, describe
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import IdsLike
from nodeflow._core.random import Random, derive_key

States = tuple[tuple[int, ...], ...]


class Order(Frozen):
    """The states of an epoch, and the state that trains each bucket of edges.

    ``states[k]`` are the parts that are resident in state k, distinct and as many in every state;
    the part at a place stays there until it is swapped out. ``bucket_state``, int64
    ``[num_parts, num_parts]``, has at ``[i, j]`` the state that trains the edges from part i to
    part j, -1 where no state holds both.

    Args:
        num_parts: number of parts.
        states: the parts of every state, in any order.
        bucket_state: None trains a bucket in the first state that holds both of its parts.

    Raises ValueError for a state with another number of parts than the first, or a part twice, and
    for a ``bucket_state`` that names a state without the two parts; IndexError for a part that does
    not exist.

    >>> order = Order(3, [[0, 1], [2, 1], [2, 0]])
    >>> order.swaps, order.slots, order.bucket_state.tolist()
    (2, 2, [[0, 0, 2], [0, 0, 1], [2, 1, 1]])
    """

    __slots__ = ("bucket_state", "num_parts", "states")
    num_parts: int
    states: States
    bucket_state: Ints

    def __init__(
        self, num_parts: int, states: Iterable[IdsLike], bucket_state: Ints | None = None
    ) -> None:
        count = as_count(num_parts, "num_parts", 1)
        checked = _checked(count, list(states))
        placed = tuple(_placed(checked))
        self._set(num_parts=count, states=placed)
        if bucket_state is None:
            trained = _bucket_states(count, placed)
        else:
            trained = self._fitting(bucket_state)
        self._set(bucket_state=trained)

    @property
    def slots(self) -> int:
        """Number of parts that are resident at a time."""
        return len(self.states[0])

    @property
    def incoming(self) -> tuple[tuple[int, ...], ...]:
        """The parts that every state reads: all of the first state, then those that are swapped
        in.
        """
        incoming = [self.states[0]]
        for before, state in pairwise(self.states):
            places = zip(before, state, strict=True)
            incoming.append(tuple(new for old, new in places if new != old))
        return tuple(incoming)

    @property
    def swaps(self) -> int:
        """Number of parts that take the place of another during the epoch."""
        return sum(map(len, self.incoming[1:]))

    @property
    def most_swapped(self) -> int:
        """The largest number of parts that are swapped at once."""
        return max(map(len, self.incoming[1:]), default=0)

    @property
    def complete(self) -> bool:
        """Whether every bucket of edges is trained."""
        return bool((self.bucket_state >= 0).all())

    def holding(self, part: int) -> list[int]:
        """Return the numbers of the states that hold a part, ascending."""
        return [k for k, state in enumerate(self.states) if part in state]

    def __repr__(self) -> str:
        return (
            f"Order({self.num_parts} parts, {self.slots} slots, {len(self.states)} states, "
            f"{self.swaps} swaps)"
        )

    def _fitting(self, bucket_state: Ints) -> Ints:
        number = np.asarray(bucket_state)
        size = (self.num_parts, self.num_parts)
        if number.shape != size or number.dtype.kind not in "iu":
            raise ValueError(f"bucket_state must be integers {list(size)}, got {describe(number)}")
        for i, j in np.argwhere(number >= 0).tolist():
            k = int(number[i, j])
            if k >= len(self.states) or not {i, j} <= set(self.states[k]):
                raise ValueError(
                    f"bucket_state[{i}, {j}] is {k}, but that state does not hold both of them"
                )
        return number.astype(np.int64)


def beta_order(num_parts: int, slots: int, *, seed: int = 0, epoch: int = 0) -> Order:
    """Return the BETA order: every pair of parts meets, with nearly as few swaps as there can be.

    All slots but the last one hold their parts while the last one goes through all others; then
    those are done, and others take their places. A state differs from the last one by one part.
    Which part is which is random, by seed and epoch. A bucket is trained in the first state that
    holds both of its parts.

    With p parts, c slots and x = floor((p - c) / (c - 1)) there are (p - c) + (x + 1) ((p - c) - x
    (c - 1) / 2) swaps; no order needs fewer than (p (p - 1) / 2 - c (c - 1) / 2) / (c - 1).

    Raises ValueError for more slots than parts, and for less than two slots where there are two
    parts.

    >>> beta_order(8, 4).swaps, beta_order(16, 4).swaps, beta_order(32, 8).swaps
    (9, 42, 78)
    """
    count, size = _slots(num_parts, slots, 2)
    # which part is which changes with the epoch, so that no pair always meets first
    names = _random("names", seed, epoch).permutation(count).numpy()
    return Order(count, [names[list(state)] for state in _beta(count, size)])


def comet_order(num_parts: int, slots: int, *, seed: int = 0, epoch: int = 0) -> Order:
    """Return the COMET order: random groups of parts meet pair by pair, buckets are trained in
    random states.

    The parts are joined to l = 2 ``num_parts / slots`` random groups, anew for every seed and
    epoch. Two groups are resident; BETA orders the groups. A bucket is trained in a random one of
    the states that hold both of its parts, so that states train similar numbers of edges, and edges
    of a state are less alike than with BETA. An epoch reads (2 + (l - 2) (l + 1) / 2) / l times the
    table: 1.75, 3.63, 7.56 times for l = 4, 8, 16.

    Raises ValueError for an odd number of slots, and where ``slots / 2`` does not divide
    ``num_parts``; the message says which numbers of slots there are. All parts in memory are one
    state.

    >>> order = comet_order(8, 4)
    >>> order.swaps, (order.slots + order.swaps) / order.num_parts
    (10, 1.75)
    """
    count, size = _slots(num_parts, slots, 1)
    if size == count:
        return Order(count, [range(count)])
    fitting = [2 * half for half in range(1, count // 2 + 1) if count % half == 0]
    if size not in fitting:
        raise ValueError(
            f"slots must be one of {', '.join(map(str, fitting))} for {count} parts, got {size}"
        )
    names = _random("groups", seed, epoch).permutation(count).numpy()
    # two groups fill the slots, so BETA with two slots orders the pairs of groups
    groups = names.reshape(-1, size // 2)
    states = [groups[list(pair)].ravel() for pair in _beta(len(groups), 2)]
    return Order(count, states, _bucket_states(count, states, _random("buckets", seed, epoch)))


def dispersed_order(num_parts: int, slots: int, *, seed: int = 0, epoch: int = 0) -> Order:
    """Return an order for training nodes in any part: every part is read once, in random order.

    The part that has been resident longest makes room for the next: ``num_parts - slots`` swaps. It
    does not hold every pair of parts, so edges cannot all be seeds.

    Raises ValueError for more slots than parts.

    >>> dispersed_order(8, 4).swaps
    4
    """
    count, size = _slots(num_parts, slots, 1)
    names = _random("names", seed, epoch).permutation(count).tolist()
    return Order(count, [names[k : k + size] for k in range(count - size + 1)])


def sequential_order(
    num_parts: int, slots: int, training: IdsLike, *, seed: int = 0, epoch: int = 0
) -> Order:
    """Return an order of one state: the parts that hold training nodes, and random others beside
    them.

    There are no swaps within an epoch; the others are drawn anew for every epoch.

    Args:
        num_parts, slots: as for the other orders.
        training: the parts that hold training nodes.
        seed, epoch: of the others.

    Raises ValueError for more training parts than slots.

    >>> sequential_order(8, 4, training=[0, 1]).swaps
    0
    """
    count, size = _slots(num_parts, slots, 1)
    trained = np.unique(as_ids(training, "training", count, "part"))
    if len(trained) > size:
        raise ValueError(
            f"slots must be at least the number of parts with training nodes, {len(trained)}, got "
            f"{size}; with method='train-first' write_partitions puts training nodes into few "
            "parts, or take another order"
        )
    shuffled = _random("fill", seed, epoch).permutation(count).numpy()
    others = np.setdiff1d(shuffled, trained, assume_unique=True)
    return Order(count, [np.concatenate([trained, others[: size - len(trained)]])])


class OrderKind(NamedTuple):
    """An order that a ``PartitionBuffer`` takes by name; ``words`` describe it in the help of the
    command.

    With ``of_training``, ``make`` also takes the training parts.
    """

    words: str
    make: Callable[..., Order]
    of_training: bool = False


ORDERS = {
    "comet": OrderKind("random groups", comet_order),
    "beta": OrderKind("fewest swaps for all pairs", beta_order),
    "dispersed": OrderKind("each is read once", dispersed_order),
    "sequential": OrderKind(
        "those with training nodes stay, others beside them", sequential_order, of_training=True
    ),
}


def _beta(count: int, slots: int) -> Iterator[tuple[int, ...]]:
    """The states of BETA for parts 0, 1, ...; each differs from the last one by one part."""
    # All slots but the last stay while the last goes through the parts that wait; each part that
    # leaves the last slot waits in the place of the one that took it.
    resident = list(range(slots))
    waiting = list(range(slots, count))
    yield tuple(resident)
    while waiting:
        for i, part in enumerate(waiting):
            waiting[i] = resident[-1]
            resident[-1] = part
            yield tuple(resident)
        # the first parts have met all others: waiting ones take their slots
        fresh = waiting[: slots - 1]
        waiting = waiting[slots - 1 :]
        for i, part in enumerate(fresh):
            resident[i] = part
            yield tuple(resident)


def _bucket_states(
    count: int, states: Sequence[Sequence[int] | Ints], random: Random | None = None
) -> Ints:
    """For every bucket the first state, or a random one, of those that hold both of its parts; -1
    where none does.
    """
    buckets = [np.ix_(np.array(state), np.array(state)) for state in states]
    chosen = np.full((count, count), -1, np.int64)
    # which of the states that hold a bucket trains it, counted from 0
    drawn = np.zeros((count, count), np.int64)
    if random is not None:
        choices = np.zeros((count, count), np.int64)
        for both in buckets:
            choices[both] += 1
        # a number is drawn for buckets that no state holds too
        choices = np.maximum(choices, 1)
        numbers = random.integers(np.arange(count**2), choices.ravel())
        drawn = numbers.numpy().reshape(count, count)
    for k, both in enumerate(buckets):
        chosen[both] = np.where(drawn[both] == 0, k, chosen[both])
        drawn[both] -= 1
    return chosen


def _placed(states: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """The states with every part at the place where it was before; new ones take the free places in
    order.
    """
    resident = states[0]
    yield tuple(resident)
    for state in states[1:]:
        # a part that stays keeps its slot: only those that come are read
        new = iter([part for part in state if part not in resident])
        resident = [part if part in state else next(new) for part in resident]
        yield tuple(resident)


def _checked(count: int, states: list[IdsLike]) -> list[list[int]]:
    if not states:
        raise ValueError("states must hold at least one state, got none")
    checked = [
        as_ids(state, f"states[{k}]", count, "part").tolist() for k, state in enumerate(states)
    ]
    for k, state in enumerate(checked):
        if len(state) != len(checked[0]) or not state:
            raise ValueError(
                f"states[{k}] must have as many parts as states[0], {len(checked[0])}, got "
                f"{len(state)}"
            )
        twice = [part for part in state if state.count(part) > 1]
        if twice:
            raise ValueError(f"states[{k}] must hold a part once, but it has {twice[0]} twice")
    return checked


def _slots(num_parts: int, slots: int, least: int) -> tuple[int, int]:
    count = as_count(num_parts, "num_parts", 1)
    size = as_count(slots, "slots", min(least, count))
    if size > count:
        raise ValueError(f"slots must be at most the number of parts {count}, got {size}")
    return count, size


def _random(purpose: str, seed: int, epoch: int) -> Random:
    return Random(derive_key(purpose, as_int(seed, "seed"), as_int(epoch, "epoch")))
