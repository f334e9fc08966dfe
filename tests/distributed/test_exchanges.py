"""Exchanges between ranks bring what was sent, whatever its size, and an error of one rank to all
in its operation.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from _support.ranks import ThreadTransport, group, run_ranks
from hypothesis import given, settings, strategies as st

from nodeflow import Graph
from nodeflow._processes import exchanges as moves, packed
from nodeflow.distributed import PeerError

SIZES = st.sampled_from([0, 1, 31, 32, 33, 500, 512, 513, 5000, 130_000, 140_000])


class Schedule:
    """Operations of several ranks, with a number of exchanges each, of which some fail on some
    ranks.

    ``fails[rank, operation]`` is the exchange before which it fails there; the number of exchanges:
    after the last one.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.size = rng.randint(2, 4)
        self.counts = [rng.randint(0, 3) for _ in range(rng.randint(1, 12))]
        self.lengths = [
            [rng.choice([0, 10, 900, 9000]) for _ in range(count)] for count in self.counts
        ]
        self.fails = {
            (rank, number): rng.randint(0, count)
            for rank in range(self.size)
            for number, count in enumerate(self.counts)
            if rng.random() < 0.25
        }

    def run(self, transport: ThreadTransport) -> list[str]:
        """Make all operations as one of the ranks; return how each of them ended."""
        exchanges = moves.Exchanges(transport)
        ends = []
        for number in range(len(self.counts)):
            try:
                with exchanges.inside(f"operation {number % 3}"):
                    self._exchange(exchanges, transport.rank, number)
                ends.append("well")
            except IndexError:
                ends.append("failed here")
            except PeerError:
                ends.append("failed elsewhere")
        return ends

    def _exchange(self, exchanges: moves.Exchanges, rank: int, number: int) -> None:
        for k, length in enumerate(self.lengths[number]):
            if self.fails.get((rank, number)) == k:
                raise IndexError(f"rank {rank}, operation {number}, exchange {k}")
            parcel = np.full(length, rank, np.uint8)
            received = exchanges.meet(f"exchange {k % 2}", [parcel] * self.size).parcels
            for sender, came in enumerate(received):
                assert came.tolist() == [sender] * length
        if self.fails.get((rank, number)) == self.counts[number]:
            raise IndexError(f"rank {rank}, operation {number}, at the end")

    def expected(self, rank: int) -> list[str]:
        """What fails before its last exchange somewhere is an error on all; what fails later is one
        there alone.
        """
        ends = []
        for number, count in enumerate(self.counts):
            here = self.fails.get((rank, number), count + 1)
            first = min(self.fails.get((other, number), count + 1) for other in range(self.size))
            if here == first or (here == count and first >= count):
                ends.append("well" if here > count else "failed here")
            else:
                ends.append("failed elsewhere" if first < count else "well")
        return ends


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 40))]
)
def test_an_error_is_raised_on_all_that_have_exchanges_before_them(block):
    """Nobody waits for ever, and what is exchanged afterwards is right."""
    for seed in range(50 * block, 50 * (block + 1)):
        schedule = Schedule(seed)
        ends = run_ranks(schedule.size, schedule.run)
        assert ends == [schedule.expected(rank) for rank in range(schedule.size)], seed


def parcel(step: int, sender: int, receiver: int, size: int) -> list[np.ndarray]:
    """What a rank sends to another one in a step: bytes that no other parcel has; of no bytes,
    nothing.
    """
    return (
        [np.random.default_rng([step, sender, receiver]).integers(0, 256, size, np.uint8)]
        if size
        else []
    )


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(2, 3))
def test_parcels_of_any_sizes_arrive_also_after_errors(data, size):
    whole = st.lists(st.lists(SIZES, min_size=size, max_size=size), min_size=size, max_size=size)
    happens = st.sampled_from(["well"] * 8 + ["fails", "strays"])
    steps = data.draw(
        st.lists(st.tuples(st.sampled_from("AB"), whole, happens), min_size=1, max_size=12)
    )

    def work(transport: ThreadTransport) -> None:
        peers = group(transport)
        rank = transport.rank
        for number, (what, sizes, event) in enumerate(steps):
            parcels = [parcel(number, rank, r, sizes[rank][r]) for r in range(size)]
            if event == "well":
                for sender, came in enumerate(peers.exchange(what, parcels)):
                    assert list(map(list, came)) == list(
                        map(list, parcel(number, sender, rank, sizes[sender][rank]))
                    )
                continue
            with (  # noqa: PT012
                pytest.raises((ValueError, PeerError), match=r"bad|another exchange"),
                peers.together(what),
            ):
                if event == "fails" and rank == 1:
                    raise ValueError("bad")
                peers.exchange("elsewhere" if rank == 1 else what, parcels)

    run_ranks(size, work)


def messages(sizes: list[list[int]]) -> list[int]:
    """The messages of each step, of two exchanges: rank 0 sends as many bytes as ``sizes`` says,
    rank 1 always 9.
    """

    def work(transport: ThreadTransport) -> list[int]:
        peers = group(transport)
        sent = list[int]()
        begin = transport.begin

        def counted(*arguments: Any) -> Any:
            sent[-1] += 1
            return begin(*arguments)

        transport.begin = counted  # type: ignore[method-assign]
        for number, of_step in enumerate(sizes):
            sent.append(0)
            for what, size in zip("AB", of_step, strict=True):
                own = 9 if transport.rank else size
                peers.exchange(what, [parcel(number, transport.rank, r, own) for r in range(2)])
        return sent

    first, second = run_ranks(2, work)
    assert first == second
    return first


def test_a_repeated_step_has_one_message_per_exchange():
    # the step is known once it has followed itself: sizes may then grow by a quarter, and fall to
    # anything
    assert messages([[5000, 900], [5100, 900], [5200, 1100], [6400, 100], [4000, 0]]) == [
        4,
        4,
        2,
        2,
        2,
    ]


def test_what_is_much_larger_than_before_or_large_takes_a_second_message():
    assert messages([[5000, 9]] * 3 + [[9000, 9], [9000, 9]]) == [3, 3, 2, 3, 2]
    assert messages([[2**17, 9]] * 4) == [3, 3, 3, 3]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("message", [1, 2])
def test_an_exchange_that_is_left_before_its_end_is_the_last(error, message):
    # but one that fails before its first message has begun is told to the others: they go on
    # together
    def work(transport: ThreadTransport) -> None:
        peers = group(transport)
        begin = transport.begin
        begun = 0

        def failing(*arguments: Any) -> Any:
            nonlocal begun
            begun += 1
            if begun == message and transport.rank == 0:
                raise error
            return begin(*arguments)

        transport.begin = failing  # type: ignore[method-assign]
        with pytest.raises((error, PeerError)), peers.together("rows"):
            peers.gather("rows", [np.zeros(500)])
        if message == 1:
            assert peers.totals("what comes next", 1) == [2]
        else:
            assert peers.broken
            with pytest.raises(PeerError):
                peers.totals("what comes next", 1)

    run_ranks(2, work)


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, ValueError])
def test_whatever_ends_an_operation_between_two_exchanges_ends_it_on_all(
    error,
):
    def work(transport: ThreadTransport) -> None:
        peers = group(transport)
        with pytest.raises(error if transport.rank == 1 else PeerError), peers.together("a batch"):  # noqa: PT012
            peers.totals("first", 1)
            if transport.rank == 1:
                raise error
            peers.totals("second", 1)
        assert peers.totals("what comes next", 1) == [3]

    run_ranks(3, work)


def test_ranks_in_operations_of_different_numbers_are_told_and_agree_again():
    def work(transport: ThreadTransport) -> None:
        peers = group(transport)
        if transport.rank == 1:
            with peers.together("what the others do not do"):
                pass
        with pytest.raises(
            PeerError, match=r"is at another exchange: rows \(operation [12]\) there, rows \("
        ):
            peers.totals("rows", 1)
        assert peers.totals("rows", 1) == [2]

    run_ranks(2, work)


Asks = list[list[bool]]


def question(call: int, sender: int, receiver: int) -> list[np.ndarray]:
    """What a rank asks another one: numbers that no other question has."""
    return [np.arange(3) + 1000 * call + 100 * sender + 10 * receiver, np.array([call], np.uint8)]


def answered(question: list[np.ndarray], by: int) -> list[list[int]]:
    numbers, call = question
    return [(numbers * 2 + by).tolist(), call.tolist()]


def dialogue(peers: Any, calls: list[Asks], *, says_last: bool = True) -> None:
    """Ask in each call those that it says, whichever calls the others have come to, and check the
    answers.
    """
    rank = peers.rank

    def answer(*arrays: np.ndarray) -> list[np.ndarray]:
        return [np.array(numbers) for numbers in answered(list(arrays), rank)]

    with peers.answering("talk", answer) as ask:
        for call, asks in enumerate(calls):
            parcels = [question(call, rank, r) if asks[rank][r] else [] for r in range(peers.size)]
            expected = [answered(parcel, r) if parcel else [] for r, parcel in enumerate(parcels)]
            last = says_last and call == len(calls) - 1 and any(map(any, [asks[rank]]))
            found = ask(parcels, last=last)
            assert [[array.tolist() for array in arrays] for arrays in found] == expected


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(2, 4))
def test_every_question_is_answered(data, size):
    asks = st.lists(
        st.lists(st.booleans(), min_size=size, max_size=size), min_size=size, max_size=size
    )
    calls = st.tuples(st.lists(asks, max_size=4), st.booleans())
    dialogues = data.draw(st.lists(calls, min_size=1, max_size=3))

    def work(transport: ThreadTransport) -> None:
        peers = group(transport)
        for calls, says_last in dialogues:
            dialogue(peers, calls, says_last=says_last)
            assert peers.totals("numbers", peers.rank) == [size * (size - 1) // 2]

    run_ranks(size, work)


@pytest.mark.parametrize(
    ("calls", "exchanges"),
    [
        ([], 1),  # all say that they ask nothing
        (["", ""], 1),
        (["", "01"], 2),  # a question, of which it is known that it is the last, and its answer
        (["01", ""], 3),  # and one in which all say that they ask no more
        (["01", "10"], 3),  # rank 0 then says so beside its answer
        (["01 10", "01 10"], 4),
        (["", "01 10 12 20"], 2),
    ],
)
def test_exchanges_of_questions(calls, exchanges):
    def work(transport: ThreadTransport) -> int:
        peers = group(transport)
        pairs = [
            [[f"{a}{b}" in call.split() for b in range(3)] for a in range(3)] for call in calls
        ]
        dialogue(peers, pairs)
        return peers.counters.exchanges

    assert run_ranks(3, work) == [exchanges] * 3


@pytest.mark.parametrize("fault", ["asking", "answering", "after"])
def test_a_failure_among_questions_reaches_all_and_the_next_are_right(fault):
    def work(transport: ThreadTransport) -> None:
        peers = group(transport)
        bad = transport.rank == 1

        def answer(number: np.ndarray) -> list[np.ndarray]:
            if bad and fault == "answering":
                raise ValueError("bad")
            return [number + 10]

        with (  # noqa: PT012
            pytest.raises((ValueError, PeerError), match="bad"),
            peers.answering("talk", answer) as ask,
        ):
            if bad and fault == "asking":
                raise ValueError("bad")
            parcels = [
                [np.arange(2)] if rank == 1 and transport.rank == 0 else [] for rank in range(3)
            ]
            ask(parcels, last=False)
            if bad and fault == "after":
                raise ValueError("bad")
        dialogue(peers, [[[True] * 3] * 3])

    run_ranks(3, work)


def test_one_process_asks_itself():
    alone = Graph.from_edges([0], [0]).peers
    with alone.answering("talk", lambda numbers: [numbers + 1]) as ask:
        assert ask([[np.arange(2)]], last=True)[0][0].tolist() == [1, 2]
        assert ask([[]], last=False) == [[]]


@pytest.mark.parametrize(
    "kind", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16"]
)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 1, 2), (0, 4)])
def test_arrays_travel_as_they_are(kind, shape):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(kind)
    transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
    for sent, came in zip(
        [array, transposed, array],
        packed.unpack(packed.pack([array, transposed, array])),
        strict=True,
    ):
        assert (came.dtype, came.shape) == (sent.dtype, sent.shape)
        assert came.tobytes() == sent.tobytes()
        assert came.flags.writeable
    assert packed.unpack(packed.pack([])) == []
