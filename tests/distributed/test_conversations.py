"""Questions between ranks are answered whatever each asks and when, in as few exchanges as can be."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from _support.ranks import ThreadTransport, run_ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeflow._peers.group import PeerGroup
from nodeflow._peers.peers import ALONE
from nodeflow.distributed import PeerError

Asks = list[list[bool]]


def question(call: int, sender: int, receiver: int) -> list[np.ndarray]:
    """What a rank asks another one in a call: numbers that no other question has."""
    return [np.arange(3) + 1000 * call + 100 * sender + 10 * receiver, np.array([call], np.uint8)]


def answered(question: list[np.ndarray], call: int, by: int) -> list[list[int]]:
    numbers, asked_in = question
    assert asked_in.tolist() == [call]
    return [(numbers * 2 + by).tolist(), [by]]


def ask(peers: PeerGroup, call: int, asks: Asks, *, last: bool) -> None:
    """Ask those that ``asks`` says, and check the answers."""
    rank = peers.rank
    parcels = [question(call, rank, r) if asks[rank][r] else [] for r in range(peers.size)]

    def answer(*arrays: np.ndarray) -> list[np.ndarray]:
        return [np.array(each) for each in answered(list(arrays), call, rank)]

    found = peers.ask(f"call {call}", parcels, answer, last=last)
    expected = [answered(parcel, call, r) if parcel else [] for r, parcel in enumerate(parcels)]
    assert [[array.tolist() for array in arrays] for arrays in found] == expected


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(2, 4))
def test_every_question_is_answered(data: st.DataObject, size: int) -> None:
    asks = st.lists(st.lists(st.booleans(), min_size=size, max_size=size), min_size=size, max_size=size)
    # also calls that say wrongly that they are the last, and other exchanges in between
    calls = st.lists(st.tuples(asks, st.booleans(), st.sampled_from(["", "", "", "gather", "nested"])), max_size=5)
    conversations = data.draw(st.lists(calls, min_size=1, max_size=3))

    def work(transport: ThreadTransport) -> None:
        peers = PeerGroup(transport.rank, size, lambda: transport)
        for calls in conversations:
            with peers.conversation("talk"):
                for call, (asks, last, other) in enumerate(calls):
                    ask(peers, call, asks, last=last)
                    if other == "gather":
                        assert peers.totals("numbers", peers.rank) == [size * (size - 1) // 2]
                    elif other == "nested":
                        with peers.conversation("another talk"):
                            ask(peers, 7, asks, last=False)
        ask(peers, 0, conversations[0][0][0] if conversations[0] else [[True] * size] * size, last=False)

    run_ranks(size, work)


@pytest.mark.parametrize(
    ("calls", "last", "exchanges"),
    [
        ([], False, 0),
        (["", ""], False, 1),  # all say that they ask nothing
        (["", "01"], True, 2),  # the question, and its answer
        (["", "01"], False, 3),  # and nobody knows that it was the last one
        (["01", "10"], True, 3),  # rank 1 asks at once, and gets its answer when rank 0 has its own
        (["01 10", "01 10"], True, 4),
        (["", "01 10 12 20"], True, 2),
    ],
)
def test_exchanges_of_a_conversation(calls: list[str], last: bool, exchanges: int) -> None:
    def work(transport: ThreadTransport) -> int:
        peers = PeerGroup(transport.rank, 3, lambda: transport)
        with peers.conversation("talk"):
            for call, pairs in enumerate(calls):
                asks = [[f"{sender}{receiver}" in pairs.split() for receiver in range(3)] for sender in range(3)]
                ask(peers, call, asks, last=last and call == len(calls) - 1)
        return peers.counters.exchanges

    assert run_ranks(3, work) == [exchanges] * 3


def test_a_rank_that_is_ahead_waits_with_its_question() -> None:
    # rank 1 asks in the second call about what rank 0 can answer once it has come there
    def work(transport: ThreadTransport) -> list[int]:
        peers, seen = PeerGroup(transport.rank, 2, lambda: transport), list[int]()
        with peers.conversation("talk"):
            for call in range(2):
                asks = transport.rank == (0 if call == 0 else 1)
                parcels = [[np.array([call])] if asks and r != transport.rank else [] for r in range(2)]

                def answer(number: np.ndarray, here: int = call) -> list[np.ndarray]:
                    seen.append(here)
                    return [number + 10]

                found = peers.ask("a call", parcels, answer, last=call == 1)
                assert [array.item() for arrays in found for array in arrays] == [call + 10] * asks
        return seen

    assert run_ranks(2, work) == [[1], [0]]


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(["asking", "answering", "after", "elsewhere", "another call", "more calls"]))
def test_a_failure_reaches_all_and_the_next_conversation_is_right(data: st.DataObject, fault: str) -> None:
    size, where = 3, data.draw(st.integers(0, 2))
    flags = st.lists(st.lists(st.booleans(), min_size=size, max_size=size), min_size=size, max_size=size)
    calls = data.draw(st.lists(flags, min_size=3, max_size=3))
    calls[where][0][1] = True  # rank 1, which fails, is asked there, and asks
    calls[where][1][0] = True

    def fail(*_: Any) -> list[np.ndarray]:
        raise ValueError("bad")

    def work(transport: ThreadTransport) -> None:
        peers = PeerGroup(transport.rank, size, lambda: transport)
        bad = transport.rank == 1
        with (  # noqa: PT012
            pytest.raises((ValueError, PeerError, RuntimeError), match=r"bad|another|else"),
            peers.conversation("talk"),
        ):
            for call, asks in enumerate(calls):
                if bad and call == where and fault == "answering":
                    peers.ask(f"call {call}", [[]] * size, fail)
                elif bad and call == where and fault == "another call":
                    peers.ask("something else", [[np.zeros(1)], [], []], lambda *_: [])
                else:
                    if bad and call == where and fault == "asking":
                        fail()
                    if bad and call == where and fault == "elsewhere":
                        peers.gather("elsewhere", [])
                    ask(peers, call, asks, last=False)
            if bad and fault == "more calls":
                peers.ask("call 3", [[np.zeros(1)], [], []], lambda *_: [])
            if bad and fault == "after":
                fail()
        with peers.conversation("talk"):
            for call, asks in enumerate(calls):
                ask(peers, call, asks, last=call == 2)

    run_ranks(size, work)


def test_an_error_is_told_whoever_asks() -> None:
    # for this the number of exchanges so far must be the same in all processes
    def work(transport: ThreadTransport) -> str:
        peers = PeerGroup(transport.rank, 2, lambda: transport)
        ids = [np.array([5]), np.array([5, 6])][transport.rank]  # rank 0 asks only itself

        def fetched() -> None:
            peers.fetch("rows", ids, lambda ids: ids % 5, lambda ids: torch.zeros(len(ids), 1))

        with pytest.raises((ValueError, PeerError)) as caught, peers.together("three", exchanges=6):  # noqa: PT012
            fetched()
            fetched()
            if transport.rank == 0:
                raise ValueError("bad")
            fetched()
        return str(caught.value)

    first, second = run_ranks(2, work)
    assert first == "bad"
    assert re.match("rank 0 failed while this one was at rows, round 1: ValueError: bad", second)


def test_a_conversation_that_is_interrupted_is_the_last() -> None:
    def work(transport: ThreadTransport) -> None:
        peers = PeerGroup(transport.rank, 2, lambda: transport)
        asks = [[False, True], [True, False]]
        if transport.rank == 0:
            with pytest.raises(KeyboardInterrupt), peers.conversation("talk"):
                raise KeyboardInterrupt
        with pytest.raises(PeerError), peers.conversation("talk"):  # rank 1 is still in the first
            ask(peers, 0, asks, last=True)

    run_ranks(2, work)


def test_one_process_asks_itself() -> None:
    with ALONE.conversation("talk"):
        assert ALONE.ask("a call", [[np.arange(2)]], lambda numbers: [numbers + 1])[0][0].tolist() == [1, 2]
        assert ALONE.ask("a call", [[]], lambda numbers: [numbers + 1]) == [[]]
