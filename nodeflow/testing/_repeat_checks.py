"""Checks that a batch depends on what it should and on nothing else."""

from __future__ import annotations

import hashlib
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow.flow import NodeFlow
from nodeflow.sampling import Sampler
from nodeflow.testing._assertions import assert_reproducible, same, tensor_as_bytes
from nodeflow.testing._graphs import dense
from nodeflow.testing._run import Skipped
from nodeflow.testing._sampler_case import SamplerCase
from nodeflow.testing._structure_checks import parents

_THREADS = 4


def reproducible(case: SamplerCase) -> None:
    """The same call gives the same batch: again, after other draws, with other global states, of a
    new sampler.
    """
    times = [case.times[seed] for seed in case.seeds if case.times]
    assert_reproducible(case.sampler, case.seeds, times=times or None)
    try:
        again = case.other(case.graph, case.seeds)
    except Skipped as reason:
        raise AssertionError(f"the sampler cannot be made again: {reason}") from None
    same("a new sampler with the same settings", case.call(), case.call(sampler=again.sampler))


def threads(case: SamplerCase) -> None:
    """Batches that threads draw at the same time are those that one thread draws."""
    epochs = range(2 * _THREADS)
    alone = [case.call(epoch=epoch) for epoch in epochs]
    with ThreadPoolExecutor(_THREADS) as pool:
        together = list(pool.map(lambda epoch: case.call(epoch=epoch), epochs))
    for first, again in zip(alone, together, strict=True):
        same("a call from one of several threads", first, again)


def pickles(case: SamplerCase) -> None:
    """A pickled batch is the same batch, and a pickled sampler draws the same."""
    batch = case.call()
    same("pickling a batch", batch, pickle.loads(pickle.dumps(batch)))
    try:
        data = pickle.dumps(case.sampler)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise Skipped(f"the sampler cannot be pickled: {error}") from None
    same("a pickled sampler", batch, case.call(sampler=pickle.loads(data)))


def calls(case: SamplerCase) -> None:
    """A seed draws the same whichever other seeds are in the call, of a sampler that says so
    (``by_row``).
    """
    if not (isinstance(case.sampler, Sampler) and case.sampler.by_row):
        raise Skipped("by_row is False: a draw may depend on the other seeds")
    if case.times:
        raise Skipped("seeds of one time draw together")
    # one batch number for all calls: it is a part of the key of a draw
    whole = _drawn(case.call(batch_number=0))
    for seeds in filter(None, (case.seeds[::-1], case.seeds[:1], case.seeds[1:])):
        drawn = _drawn(case.call(seeds, batch_number=0))
        for seed in seeds:
            edges = whole.get(seed, [])
            others = drawn.get(seed, [])
            assert edges == others, (
                f"seed {seed} draws {edges} in a call with the seeds {case.seeds}, and {others} "
                f"with {seeds}: by_row says that it depends on its own edges alone"
            )


def _drawn(batch: NodeFlow) -> dict[int, list[tuple[int, int]]]:
    """The edge ids and sources of the last flow, by seed."""
    drawn: dict[int, list[tuple[int, int]]] = {}
    flow = batch.flows[-1]
    src, dst = parents(flow)
    for u, v, e in zip(src.tolist(), dst.tolist(), flow.parent_eid.tolist(), strict=True):
        drawn.setdefault(v, []).append((u, e))
    return {seed: sorted(edges) for seed, edges in drawn.items()}


def epochs(case: SamplerCase) -> None:
    """Draws of other epochs and batch numbers are other draws, of a sampler that draws at random."""
    count = 12
    by_epoch = {_fingerprint(case.call(epoch=i)) for i in range(count)}
    others = {_fingerprint(case.call(batch_number=i)) for i in range(count)}
    seeded = {_fingerprint(case.call(sampler=case.reseeded())), _fingerprint(case.call())}
    if len(by_epoch) > 1:
        return
    if len(others) > 1 or len(seeded) > 1:
        raise AssertionError(
            f"{count} epochs have the same draws, but another seed or batch number has others"
        )
    raise Skipped("nothing is random: all draws are the same")


def _fingerprint(batch: NodeFlow) -> str:
    """A hash of the structure of a batch."""
    digest = hashlib.sha256()
    for layer in batch.layers:
        digest.update(layer.parent_nid.numpy().tobytes())
    for flow in batch.flows:
        digest.update(flow.indptr.numpy().tobytes())
        digest.update(flow.indices.numpy().tobytes())
        if flow.has_parent:
            digest.update(flow.parent_eid.numpy().tobytes())
    return digest.hexdigest()


def global_state(case: SamplerCase) -> None:
    """A call leaves the global random states of Python, numpy and torch as they were."""
    before = global_states()
    case.call()
    for name, state in global_states().items():
        assert state == before[name], f"a call changes the global random state of {name}"


def global_states() -> dict[str, object]:
    """Return the global random states of Python, numpy and torch, in a form that can be
    compared.
    """
    _, keys, *numbers = np.random.get_state()  # noqa: NPY002  the global state is what is meant
    return {
        "random": random.getstate(),
        "numpy": (*numbers, np.asarray(keys).tobytes()),
        "torch": torch.get_rng_state().numpy().tobytes(),
    }


def untouched(case: SamplerCase) -> None:
    """A call changes neither the seeds nor the graph and its columns."""
    seeds = torch.tensor(case.seeds, dtype=torch.int64)
    # an array may share its memory with what the sampler makes of it
    array = seeds.clone().numpy()
    before = _bytes_of(case)
    for ids, what in ((seeds, "tensor"), (array, "array")):
        case.call(ids)  # type: ignore[arg-type]
        assert ids.tolist() == case.seeds, (
            f"a call changes the {what} of seeds: {case.seeds} became {ids.tolist()}"
        )
    for name, value in _bytes_of(case).items():
        assert value == before[name], f"a call changes {name} of the graph"


def _bytes_of(case: SamplerCase) -> dict[str, bytes]:
    """The hashes of the structure and the columns of a graph."""
    arrays: dict[str, Any] = dict(
        zip(("indptr", "indices", "edge ids"), case.graph.csc(), strict=True)
    )
    for word, frame in (("ndata", case.graph.ndata), ("edata", case.graph.edata)):
        arrays |= {f"{word}[{name!r}]": column for name, column in dense(frame).items()}
    return {name: tensor_bytes(array) for name, array in arrays.items() if array is not None}


def tensor_bytes(value: Any) -> bytes:
    """Return the hash of the bytes of an array or tensor."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = tensor_as_bytes(value).numpy()
    content = np.ascontiguousarray(value).tobytes()
    return hashlib.sha256(content).digest()
