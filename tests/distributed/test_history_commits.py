"""Commits of histories on several ranks: all make one or none does, whatever breaks in between."""

from __future__ import annotations

import itertools
import shutil
import threading
from typing import Any

import pytest
import torch
from _support.history_parts import OWNERS, TWO, WHOLE, copies, everything, filled, history_of
from _support.ranks import Parts, ThreadTransport, run_ranks
from _support.sampler_families import NODES

from nodeflow import History
from nodeflow.distributed import DistributedGraph, PeerError


def second(history: History) -> None:
    for i in history.widths:
        history.write(
            i, range(NODES), torch.full((NODES, history.widths[i]), 2.0, dtype=torch.float64)
        )
    history.commit()


THREAD = threading.local()
"""The rank of the thread that asks, so that one function does something else on each."""


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("fault", ["first", "middle", "last"])
def test_a_rank_that_fails_in_a_commit_leaves_the_old_rows_on_all(files, fault, tmp_path):
    parts = Parts(WHOLE, OWNERS[3][::-1], 3)

    def failing(copied: Any, arrays: Any, changes: Any) -> None:
        names = list(changes)
        upto = {"first": 0, "middle": 2, "last": len(names)}[fault]
        if getattr(THREAD, "fails", False):
            copied(arrays, {name: changes[name] for name in names[:upto]})
            raise MemoryError("a fault of the test")
        copied(arrays, changes)

    def failed(graph: DistributedGraph, rank: int) -> None:
        THREAD.fails = False
        history = filled(graph, folder=tmp_path / str(rank) if files else None)
        before = everything(history)
        THREAD.fails = rank == 1
        error, words = (
            (MemoryError, "a fault")
            if rank == 1
            else (PeerError, "rank 1 failed .* MemoryError: a fault")
        )
        with pytest.raises(error, match=words):
            second(history)
        assert everything(history) == before
        THREAD.fails = False
        second(history)  # and all go on
        assert int(history.step) == 2
        assert history.rows(1, [0, 59]).tolist() == [[2, 2]] * 2

    with copies(failing):
        parts.run(failed)


def test_a_connection_that_breaks_at_the_end_is_decided_when_folders_are_opened_again(
    tmp_path,
):
    """Whatever moments of a commit the folders of two ranks are of: both have it, or neither
    does.
    """
    moments = ["before", "begun", "half", "written", "ended"]

    def keep(rank: int, moment: str) -> None:
        shutil.copytree(
            tmp_path / f"{rank}",
            tmp_path / f"{rank}-{moment}",
            ignore=shutil.ignore_patterns(".lock"),
        )

    def slowly(copied: Any, arrays: Any, changes: Any) -> None:
        if not getattr(THREAD, "keeps", False):
            return copied(arrays, changes)
        rank = THREAD.rank
        names = list(changes)
        keep(rank, "begun")
        copied(arrays, {name: changes[name] for name in names[:2]})
        keep(rank, "half")
        copied(arrays, {name: changes[name] for name in names[2:]})
        return keep(rank, "written")

    def committed(transport: ThreadTransport) -> list[dict[str, Any]]:
        THREAD.rank = transport.rank
        THREAD.keeps = False
        history = filled(TWO.on(transport), folder=tmp_path / f"{transport.rank}")
        keep(transport.rank, "before")
        states = [everything(history)]
        THREAD.keeps = True
        second(history)
        THREAD.keeps = False
        history.close()
        keep(transport.rank, "ended")
        return [*states, everything(history)]

    with copies(slowly):
        old, new = zip(*run_ranks(2, committed), strict=True)
    assert old[0] != new[0]
    for first, other in itertools.product(moments, repeat=2):
        if "ended" in (first, other) and {first, other} & {"before", "begun", "half"}:
            continue  # a commit ends nowhere before all have written
        expected = new if "ended" in (first, other) else old

        def opened(
            transport: ThreadTransport, names: tuple[str, str] = (first, other)
        ) -> dict[str, Any]:
            source = tmp_path / f"{transport.rank}-{names[transport.rank]}"
            folder = tmp_path / f"again-{transport.rank}-{'-'.join(names)}"
            shutil.copytree(source, folder)
            history = history_of(TWO.on(transport), {1: 2, 0: 1}, folder=folder)
            found = everything(history)
            second(history)
            history.close()
            return found

        assert run_ranks(2, opened) == list(expected), (first, other)

    def refused(transport: ThreadTransport) -> None:
        source = tmp_path / f"{transport.rank}-{['ended', 'before'][transport.rank]}"
        with pytest.raises(
            ValueError,
            match=r"folders belong together, must be the same .* step is 2 on rank 0 and 1",
        ):
            history_of(TWO.on(transport), {1: 2, 0: 1}, folder=source)

    run_ranks(2, refused)


def test_ranks_that_cannot_know_the_end_keep_it_open(tmp_path):
    first_is_there = threading.Event()

    def broken(transport: ThreadTransport) -> None:
        history = filled(TWO.on(transport), folder=tmp_path / str(transport.rank))

        begin = transport.begin

        def ending(what: str, *parcels: Any) -> Any:
            if what.startswith("the end of a commit"):
                if transport.rank == 0:
                    first_is_there.set()
                else:
                    first_is_there.wait(60)
                    transport.leave(what)
            return begin(what, *parcels)

        transport.begin = ending  # type: ignore[method-assign]
        with pytest.raises(PeerError, match=r"another rank ended|left an exchange before its end"):
            second(history)
        assert history._store._journal.marked
        with pytest.raises((RuntimeError, PeerError)):
            history.commit()
        history.close()

    run_ranks(2, broken)

    def opened(transport: ThreadTransport) -> None:
        history = history_of(TWO.on(transport), {1: 2, 0: 1}, folder=tmp_path / str(transport.rank))
        assert int(history.step) == 1
        assert history.rows(1, [0, 59]).tolist() == [[1, 1], [0, 0]]

    run_ranks(2, opened)


def test_a_renewal_that_one_rank_has_made_is_made_on_all(tmp_path):
    def renewed(transport: ThreadTransport) -> None:
        folder = tmp_path / str(transport.rank)
        history = filled(TWO.on(transport), folder=folder)
        with pytest.MonkeyPatch.context() as patch, history.renewal() as new:
            for tensor in new.values():
                tensor.fill_(7)
            # killed after all have agreed, and before it replaced its arrays
            if transport.rank == 1:
                killed = tmp_path / "1-killed"
                patch.setattr(history._store, "_replace", lambda _: shutil.copytree(folder, killed))
        history.close()

    def opened(transport: ThreadTransport) -> None:
        folder = tmp_path / ["0", "1-killed"][transport.rank]
        history = history_of(TWO.on(transport), {1: 2, 0: 1}, folder=folder)
        assert (int(history.step), history.rows(1, [0, 59]).tolist()) == (2, [[7, 7]] * 2)
        assert history.age(0, [3]).tolist() == [0]

    run_ranks(2, renewed)
    run_ranks(2, opened)
