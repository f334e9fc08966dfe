"""Work shared between threads: all of it is done, once, on torch's threads or on others, and errors
arrive.
"""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from nodeflow import Graph, NeighborSampler, NodeFlowLoader
from nodeflow._core.runtime import threads

needs_openmp = pytest.mark.skipif(
    threads._openmp() is None, reason="torch has no OpenMP library of GNU's kind here"
)


@pytest.fixture(params=[pytest.param("torch's", marks=needs_openmp), "others"])
def kind(request):
    if request.param == "others":
        request.getfixturevalue("without_torchs_threads")
    return request.param


@pytest.fixture(autouse=True)
def _as_many_threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_everything_is_done_once(kind, size, count):
    torch.set_num_threads(size)
    done = []
    threads.run_all(done.append, count)
    assert sorted(done) == list(range(count))


def test_so_many_run_at_a_time(kind):
    for torchs, asked, expected in ((3, None, 3), (3, 2, 2), (1, None, 1), (1, 4, 4), (2, 4, 4)):
        torch.set_num_threads(torchs)
        lock = threading.Lock()
        running = [0]
        most = [0]
        seen = set()
        # which as many must reach, each in a thread of its own
        all_at_once = threading.Barrier(expected, timeout=600)

        def run(
            number: int, lock=lock, running=running, most=most, seen=seen, barrier=all_at_once
        ) -> None:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
                seen.add(threading.get_ident())
            if number < barrier.parties:
                barrier.wait()
            with lock:
                running[0] -= 1

        threads.run_all(run, 12, asked)
        assert most[0] == len(seen) == expected
        assert threading.get_ident() in seen


@needs_openmp
def test_work_on_torchs_threads_is_work_on_the_very_same_threads():
    torch.set_num_threads(2)
    seen: list[set[int]] = []
    for _ in range(5):
        ids: set[int] = set()
        both = threading.Barrier(2, timeout=600)
        threads.run_all(
            lambda _, ids=ids, both=both: (ids.add(threading.get_native_id()), both.wait()), 2
        )
        torch.ones(2**20).add_(1)  # an operation on two threads
        seen.append(ids)
    assert len(seen[0]) == 2
    assert all(ids == seen[0] for ids in seen)


def test_inside_of_itself(kind):
    torch.set_num_threads(3)
    done = []
    threads.run_all(lambda k: threads.run_all(lambda m: done.append((k, m)), 4), 5)
    assert sorted(done) == [(k, m) for k in range(5) for m in range(4)]


def test_from_several_threads_at_once(kind):
    torch.set_num_threads(2)
    done = []

    def many(k: int) -> None:
        for _ in range(50):
            threads.run_all(lambda m: done.append((k, m)), 3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(many, range(4)))
    assert len(done) == 4 * 50 * 3


def test_an_error_is_raised_and_ends_the_work(kind):
    torch.set_num_threads(2)
    begun = []

    def run(k: int) -> None:
        begun.append(k)
        if k in (3, 4):
            raise KeyError(k)

    for _ in range(3):
        begun.clear()
        with pytest.raises(KeyError, match=r"3|4"):
            threads.run_all(run, 1000)
        assert len(begun) < 1000
    with pytest.raises(KeyboardInterrupt):
        threads.run_all(lambda k: (_ for _ in ()).throw(KeyboardInterrupt), 2)


def test_other_builds_of_torch_have_no_library_of_threads(monkeypatch):
    find = threads._openmp.__wrapped__
    with monkeypatch.context() as patch:
        patch.setattr(threads.ctypes, "CDLL", lambda _: object())
        assert find() is None
    # in a process that has the library
    monkeypatch.setattr(
        torch.__config__, "parallel_info", lambda: "ATen parallel backend: native thread pool"
    )
    assert find() is None


@needs_openmp
def test_an_interrupt_that_is_lost_in_c_is_raised(monkeypatch):
    """Python ends a callback that is interrupted before its first line, says so and goes on."""
    torch.set_num_threads(2)
    called = threads._Called
    monkeypatch.setattr(threads, "_Called", lambda work: called(lambda number: 0))
    with pytest.raises(KeyboardInterrupt):
        threads.run_all(lambda k: None, 4)


def test_what_the_work_held_is_free_afterwards_without_collecting_circles(kind):
    class Held:
        pass

    torch.set_num_threads(2)
    held = Held()
    gone = weakref.ref(held)
    gc.collect()
    gc.disable()
    try:
        threads.run_all(lambda _, held=held: None, 4)
        del held
        assert gone() is None
    finally:
        gc.enable()


IN_A_CHILD = """
import os, signal, sys
import torch
from nodeflow import Graph, NeighborSampler, NodeFlowLoader

torch.set_num_threads(2)
matrix = torch.ones(1000, 1000)
matrix @ matrix  # on the threads of torch alone
loader = NodeFlowLoader(NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), [1]), "all", 1, num_workers=workers)
opened = iter(loader)
next(opened)
child = os.fork()
if child == 0:
    signal.alarm(20)  # ends a child that waits for ever
    matrix @ matrix
    assert len(list(loader)) == 3
    try:
        print(len(list(opened)))
    except RuntimeError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert len(list(opened)) == 2
"""


@pytest.mark.cases(1)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts no processes by fork")
@pytest.mark.parametrize(
    ("workers", "words"), [(0, "2\n"), (1, "the threads .* were made in another process, .* make")]
)
def test_a_child_made_by_fork_goes_on_without_the_threads_of_its_parent(workers, words):
    code = f"workers = {workers}\n{IN_A_CHILD}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(words, done.stdout)


AFTER_A_FORK = """
import os, signal, sys
import torch
from nodeflow import Graph
from nodeflow._core.runtime.threads import run_all
from nodeflow.propagation import Propagation

torch.set_num_threads(2)
graph = Graph.from_edges(torch.arange(4000), torch.arange(4000).roll(1))
x, weight = torch.ones(4000, 64), torch.ones(64, 64, requires_grad=True)

def work():
    done = []
    run_all(done.append, 5)
    total = Propagation(graph)(x)
    (total @ weight).sum().backward()
    return float(total.sum()) == 4000 * 64 and sorted(done) == [0, 1, 2, 3, 4]

assert work()
child = os.fork()
if child == 0:
    signal.alarm(30)  # ends a child that waits for ever
    os._exit(0 if work() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system starts no processes by fork")
def test_sums_and_a_backward_pass_in_a_child_made_by_fork_after_both_ran():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AFTER_A_FORK], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_main_thread_uses_no_condition_of_the_standard_library(
    monkeypatch, without_torchs_threads
):
    """They are Python code: an interrupt within them leaves a lock taken, and a thread waits for
    ever.
    """
    entered = threading.Condition.__enter__
    main = threading.get_ident()

    def enter(condition: threading.Condition) -> bool:
        assert threading.get_ident() != main
        return entered(condition)

    sampler = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 0]), [1])
    # compiles its loops, which the tests do under a file's lock
    list(NodeFlowLoader(sampler, range(3), 1))
    monkeypatch.setattr(threading.Condition, "__enter__", enter)
    assert len(list(NodeFlowLoader(sampler, range(3), 1, num_workers=2, prefetch=2))) == 3
    done: list[int] = []
    threads.run_all(done.append, 5, 3)
    assert sorted(done) == [0, 1, 2, 3, 4]
