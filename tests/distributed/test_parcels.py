"""Parcels of exchanges travel with the first message where their size was foreseen, and arrive in any case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _support.ranks import ThreadTransport, run_ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeflow._peers.group import PeerGroup
from nodeflow._peers.peers import Peers
from nodeflow.distributed import PeerError

SIZES = st.sampled_from([0, 1, 31, 32, 33, 200, 240, 241, 5000, 130_000, 140_000])


def parcel(step: int, sender: int, receiver: int, size: int) -> list[np.ndarray]:
    """What a rank sends to another one in a step: bytes that no other parcel has; of no bytes, nothing."""
    return [np.random.default_rng([step, sender, receiver]).integers(0, 256, size, np.uint8)] if size else []


def peers_of(transport: ThreadTransport) -> PeerGroup:
    return PeerGroup(transport.rank, transport.size, lambda: transport)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 3))
def test_parcels_of_any_sizes_arrive_also_after_errors(data: st.DataObject, size: int) -> None:
    whole = st.lists(st.lists(SIZES, min_size=size, max_size=size), min_size=size, max_size=size)
    happens = st.sampled_from(["well"] * 8 + ["fails", "strays"])
    steps = data.draw(st.lists(st.tuples(st.sampled_from("AB"), whole, happens), min_size=1, max_size=12))

    def work(transport: ThreadTransport) -> None:
        peers, rank = peers_of(transport), transport.rank
        for number, (what, sizes, event) in enumerate(steps):
            parcels = [parcel(number, rank, r, sizes[rank][r]) for r in range(size)]
            if event == "well":
                for sender, came in enumerate(peers.exchange(what, parcels)):
                    assert list(map(list, came)) == list(map(list, parcel(number, sender, rank, sizes[sender][rank])))
                continue
            with pytest.raises((ValueError, PeerError), match=r"bad|another exchange"), peers.together(what):  # noqa: PT012
                if event == "fails" and rank == 1:
                    raise ValueError("bad")
                peers.exchange("elsewhere" if rank == 1 else what, parcels)

    run_ranks(size, work)


def messages(sizes: list[list[int]]) -> list[int]:
    """The messages of each step, of two exchanges: rank 0 sends as many bytes as ``sizes`` says, rank 1 always 9."""

    def work(transport: ThreadTransport) -> list[int]:
        peers: Peers = peers_of(transport)
        sent, send = list[int](), transport.send

        def counted(*arguments: Any) -> Any:
            sent[-1] += 1
            return send(*arguments)

        transport.send = counted  # type: ignore[method-assign]
        for number, of_step in enumerate(sizes):
            sent.append(0)
            for what, size in zip("AB", of_step, strict=True):
                own = 9 if transport.rank else size
                peers.exchange(what, [parcel(number, transport.rank, r, own) for r in range(2)])
        return sent

    first, second = run_ranks(2, work)
    assert first == second
    return first


def test_a_repeated_step_has_one_message_per_exchange() -> None:
    # the step is known once it has followed itself: sizes may then grow by a quarter, and fall to anything
    assert messages([[5000, 900], [5100, 900], [5200, 1100], [6400, 100], [4000, 0]]) == [4, 4, 2, 2, 2]


def test_what_is_much_larger_than_before_or_large_takes_a_second_message() -> None:
    assert messages([[5000, 9]] * 3 + [[9000, 9], [9000, 9]]) == [3, 3, 2, 3, 2]
    assert messages([[2**17, 9]] * 4) == [3, 3, 3, 3]


def test_exchanges_after_an_error_are_learnt_anew() -> None:
    def work(transport: ThreadTransport) -> None:
        peers, expected = peers_of(transport), transport.expected
        for _ in range(3):
            peers.gather("A", [np.zeros(5000)])
        assert expected.next.sent == expected.next.received
        assert expected.next.sent[1 - transport.rank] > 40_000
        with pytest.raises((ValueError, PeerError)), peers.together("A"):  # noqa: PT012
            if transport.rank == 0:
                raise ValueError
            peers.gather("A", [np.zeros(5000)])
        assert max(expected.next.sent + expected.next.received) < 1000

    run_ranks(2, work)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("message", [1, 2])
def test_an_exchange_that_is_left_before_its_end_is_the_last(error: type[BaseException], message: int) -> None:
    # but one that fails with its first message, before it has begun, is told to the others: they go on together
    told = message == 1 and error is MemoryError

    def work(transport: ThreadTransport) -> None:
        peers, sent, send = peers_of(transport), list[int](), transport.send

        def failing(*arguments: Any) -> Any:
            sent.append(1)
            if len(sent) == message and transport.rank == 0:
                raise error
            return send(*arguments)

        transport.send = failing  # type: ignore[method-assign]
        with pytest.raises((error, PeerError)), peers.together("rows"):
            peers.gather("rows", [np.zeros(500)])
        if told:
            assert peers.totals("what comes next", 1) == [2]
        else:
            assert peers.broken
            with pytest.raises(PeerError):
                peers.totals("what comes next", 1)

    run_ranks(2, work)
