"""What a call of a sampler is given beside its seeds, and the random keys that it draws with."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from nodeflow._core.base.checks import Ints, as_int
from nodeflow._core.random import Random, derive_key, hash_ids


class StepSeeds(NamedTuple):
    """All seeds of a training step, of which one call draws a share; other processes draw the
    others.
    """

    ids: Any  # the seeds of the step, ``[S]`` or ``[S, m]``
    times: Any  # a time for each of them, for a sampler that takes times; else None
    rows: Ints  # indices in ``ids`` of the seeds of the call, int64 ``[B]``, ascending


class Call(NamedTuple):
    """The arguments of ``SamplerBase.__call__`` beside the seeds, and the ``step`` that the seeds
    are a share of.

    Draws then are those of the whole step. None: the seeds are all of it.
    """

    epoch: int = 0
    batch_number: int | None = None
    inputs: Any = None
    times: Any = None
    step: StepSeeds | None = None


class Step(NamedTuple):
    """The flow that a sampler chooses edges for, and its random numbers.

    Attributes:
        flow: number of the flow.
        random: random numbers of this flow of this batch.
        batch_random: random numbers that all flows of the batch share.
        epoch_random: random numbers that all batches of the epoch share.
        batch_number: number of the batch; None where a hash of its seeds tells it apart.
        contexts: context of every destination, int64 ``[num_dst]``, in samplers that have contexts,
            else None.
        inputs: the argument ``inputs`` of the call.
        roots: the number that goes into the random key of every destination instead of
            ``contexts``, int64 ``[num_dst]``: the parent id of the seed, in samplers whose seeds
            draw on their own; in a share of a step (see the loader) the number of the context in
            the whole step. None: ``contexts`` goes into it.

    >>> from nodeflow import Graph, Sampler
    >>> class Shows(Sampler):
    ...     def choose(self, dst, step: Step):
    ...         print(f"flow {step.flow} of batch {step.batch_number}")
    ...         return self.candidates(dst).select([])
    >>> batch = Shows(Graph.from_edges([0, 1], [1, 2]), num_flows=2)([2], batch_number=7)
    flow 1 of batch 7
    flow 0 of batch 7
    """

    flow: int
    random: Random
    batch_random: Random
    epoch_random: Random
    batch_number: int | None
    contexts: Tensor | None
    inputs: Any
    roots: Tensor | None = None


class Keys(NamedTuple):
    """The random keys of one call of a sampler, and what its flows may look at beside them."""

    key: int
    epoch_key: int  # all batches of the epoch share it
    batch_number: int | None  # None where a hash of the seeds tells batches apart
    inputs: Any = None  # of the call
    # The number that goes into the random key of each context, int64 ``[num_contexts]``; None: its
    # index in this call. A share of a step passes the index in the whole step, a sampler whose
    # seeds draw on their own their ids.
    contexts: Tensor | None = None

    def step(self, flow: int, contexts: Tensor | None) -> Step:
        """Return the step of a flow whose destinations are in ``contexts``, ``[num_dst]``."""
        roots = None
        # a context is a number in its call; what it stands for decides the draw
        if self.contexts is not None:
            roots = self.contexts[contexts]
        return Step(
            flow=flow,
            random=Random(derive_key(self.key, flow)),
            batch_random=Random(derive_key(self.key, -1)),
            epoch_random=Random(self.epoch_key),
            batch_number=self.batch_number,
            contexts=contexts,
            inputs=self.inputs,
            roots=roots,
        )


def key_of(sampler: Any, *words: int | str) -> int:
    """Return a key of a sampler's name, its seed, and ``words``.

    The name is left out where it is empty, as of neighbour sampling.
    """
    name = (sampler.draws_as,) if sampler.draws_as else ()
    return derive_key(*name, sampler.seed, *words)


def keys_of(sampler: Any, call: Call, identity: tuple[int, ...]) -> Keys:
    """Return the keys of a call; by the hashes in ``identity`` batches without a number differ."""
    epoch = as_int(call.epoch, "epoch")
    # after name, seed and epoch: 0 for batches told apart by a hash, 1 for numbered ones, 2 for
    # the key of an epoch
    if call.batch_number is None:
        key = key_of(sampler, epoch, 0, *identity)
    else:
        key = key_of(sampler, epoch, 1, as_int(call.batch_number, "batch_number"))
    if call.step is not None and sampler.draws_together:
        # with the key of the step, shares would draw alike, and their mean would vary as one
        # share does
        key = derive_key(key, "share", hash_ids(call.step.rows))
    return Keys(key, key_of(sampler, epoch, 2), call.batch_number, call.inputs)


def first_of_epoch(sampler: Any, call: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, with the number 0 of its batch where the sampler needs a
    number.

    Instead of a sampler it may be a function that calls one.
    """
    return {"batch_number": 0, **call} if getattr(sampler, "numbered", False) else call
