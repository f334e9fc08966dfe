"""Settings and fixtures for all tests."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

# threads that wait would keep busy what other tests need
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
import torch
from _support.compile_once import share_compilation
from _support.effort import EXAMPLES
from _support.quick_runs import MOST_CASES, leave_further_cases
from hypothesis import HealthCheck, is_hypothesis_test, settings

from nodeflow import Graph

share_compilation()
with warnings.catch_warnings(action="ignore"):
    # torch warns once in a process that these are in beta, in whichever test is first
    torch.eye(1).to_sparse_csr()
for effort, examples in EXAMPLES.items():
    settings.register_profile(
        effort,
        deadline=None,  # a first call compiles kernels
        print_blob=True,
        max_examples=examples,
        derandomize=bool(os.environ.get("CI")),
        # compiled kernels again: time says nothing about a strategy
        suppress_health_check=[HealthCheck.too_slow],
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="run the files, and the tests of each, in random order",
    )
    parser.addoption(
        "--cases",
        metavar="SEED",
        help=f"draw the cases of tests that have more than {MOST_CASES} by this seed, or 'all' of "
        "them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw the seed of cases, in the first process; the others get it from there."""
    if config.option.cases is None:
        given = getattr(config, "workerinput", {})
        config.option.cases = given.get("cases", str(SystemRandom().randrange(10**6)))
    is_long = config.option.markexpr == "slow" or config.option.cases == "all"
    settings.load_profile("slow" if is_long else "quick")


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_configure_node(node: Any) -> None:
    """Hand the seed of cases to a process that runs tests."""
    node.workerinput["cases"] = node.config.option.cases


def pytest_report_header(config: pytest.Config) -> str:
    return (
        f"order of tests: --shuffle {config.option.shuffle}; cases of tests: --cases "
        f"{config.option.cases}"
    )


@pytest.hookimpl(tryfirst=True)  # before tests that are slow are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave further cases to the slow tests, and shuffle."""
    by_name = config.option.keyword or any("::" in word for word in config.args)
    all_are_slow = config.option.markexpr == "slow"
    if all_are_slow:
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.slow)
    if config.option.cases != "all" and not by_name:
        leave_further_cases(items, config.option.cases, all_are_slow=all_are_slow)
    if config.option.shuffle is not None:
        shuffle(items, config.option.shuffle)


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """Shuffle tests, the same in all processes; those of a file stay together, so that its fixtures
    are made once.
    """
    random = Random(seed)
    files = list(dict.fromkeys(item.path for item in items))
    random.shuffle(files)
    random.shuffle(items)
    place = {file: number for number, file in enumerate(files)}
    items.sort(key=lambda item: place[item.path])


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse names of tests that hold an address: processes that share the tests would not find the
    same ones.
    """
    if " at 0x" in item.nodeid:
        raise pytest.UsageError(
            f"{item.nodeid}: name the cases with ids=, since an address is another in every process"
        )


def pytest_collection_finish() -> None:
    """Leave what importing and collecting made out of later garbage collections, of which some
    tests ask for many.
    """
    gc.collect()
    gc.freeze()


REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data sets, which is kept next to the repository; skips the test where it
    is missing.
    """
    if not REAL_DATA.is_dir():
        pytest.skip("needs real data sets, which are kept outside the repository and are not here")
    return REAL_DATA


@pytest.fixture
def graph() -> Graph:
    """Six nodes: a multi-edge 0 -> 1, a self-loop on 2, node 5 isolated, with a node and an edge
    column.

    =======  ===========
    node     in-edges (edge id: source)
    =======  ===========
    0        6: 4
    1        0: 0, 2: 2, 3: 0
    2        1: 1, 4: 2
    3        5: 1
    4        none
    5        none
    =======  ===========
    """
    src = [0, 1, 2, 0, 2, 1, 4]
    dst = [1, 2, 1, 1, 2, 3, 0]
    ndata = {"feat": torch.arange(12.0).view(6, 2)}
    return Graph.from_edges(src, dst, num_nodes=6, ndata=ndata, edata={"w": torch.arange(7.0)})


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny products are slower on several threads, many times so where the processors are busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = set(threading.enumerate()) - before
    # a finalizer that asks for the current thread at the very end of one leaves a stand-in, which
    # is no thread
    assert [thread for thread in left if not thread.name.startswith("Dummy-")] == []
