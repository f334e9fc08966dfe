"""What a call of a sampler is given beside its seeds, and the random keys that it draws with."""

from __future__ import annotations

from typing import Any, NamedTuple

from nodeflow._base.checks import Ints


class StepSeeds(NamedTuple):
    """All seeds of a training step, of which one call draws a share; other processes draw the others."""

    ids: Any  # the seeds of the step, ``[S]`` or ``[S, m]``
    times: Any  # a time for each of them, for a sampler that takes times; else None
    rows: Ints  # indices in ``ids`` of the seeds of the call, int64 ``[B]``, ascending


class Call(NamedTuple):
    """The arguments of ``SamplerBase.__call__`` beside the seeds, and the ``step`` that the seeds are a share of.

    Draws then are those of the whole step. None: the seeds are all of it.
    """

    epoch: int = 0
    batch_number: int | None = None
    inputs: Any = None
    times: Any = None
    step: StepSeeds | None = None


class Draw(NamedTuple):
    """The random keys of one call of a sampler.

    ``contexts``: the number that goes into the random key of each context, int64 ``[num_contexts]``; None: its index in
    this call. A share of a step passes the index in the whole step, a sampler whose seeds draw on their own their ids.
    """

    key: int
    epoch_key: int  # all batches of the epoch share it
    batch_number: int | None  # None where a hash of the seeds tells batches apart
    contexts: Ints | None = None


def first_of_epoch(sampler: Any, call: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, with the number 0 of its batch where the sampler needs a number.

    Instead of a sampler it may be a function that calls one.
    """
    return {"batch_number": 0, **call} if getattr(sampler, "numbered", False) else call
