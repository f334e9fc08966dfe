"""Work shared between the threads that torch keeps for its own operations, or others where these
cannot be used.

After each operation torch's threads spin for some milliseconds while they wait for the next. Other
threads would compete with them for the cores: with two cores, sums right after a matrix product
took as long as on one thread. So the work goes to torch's own threads, through the OpenMP library
that torch has loaded (``test_work_on_torchs_threads_is_work_on_the_very_same_threads``).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from nodeflow import _kernels as kernels
from nodeflow._core.runtime import process
from nodeflow._core.runtime.workers import Workers

_Called = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_forked = False


def run_all(run: Callable[[int], None], count: int, threads: int | None = None) -> None:
    """Call ``run(0)``, ..., ``run(count - 1)``, in this thread and others beside it, and wait for
    all.

    At most ``threads`` of them run at a time; None: as many as torch has. After an error no further
    call is begun, and the error of the lowest number is raised.
    """
    errors: dict[int, BaseException] = {}
    ended: list[None] = []
    # its steps are atomic, and fewer threads than asked for get to the end too
    left = iter(range(count))

    def work(_: int = 0) -> int:
        k = count
        try:
            for k in left:
                run(k)
                if errors:
                    break
        except BaseException as error:  # raised again in the caller's thread
            errors[k] = error
        ended.append(None)
        return 0

    torchs = torch.get_num_threads()
    team = min(count, torchs if threads is None else threads)
    if team <= 1:
        work()
    elif (
        process.torch_threads
        and team <= torchs
        and not _forked
        and (library := _openmp()) is not None
    ):
        # all of torch's threads come, even if some have nothing to do: a smaller team would end
        # those left out
        called = _Called(work)
        plan = (ctypes.c_int64 * (3 + team))(
            _address(called), _address(library.omp_get_thread_num), team
        )
        library.GOMP_parallel(kernels.openmp.member.address, plan, torchs, 0)
        # an interrupt between two lines of ``work`` gets lost in C
        if not errors and len(ended) < sum(plan[3:]):
            raise KeyboardInterrupt
    else:
        workers = Workers(team - 1, "nodeflow")
        try:
            for _ in range(team - 1):
                workers.submit(work)
            work()
        finally:
            workers.stop()
    if errors:
        raise errors[min(errors)]


@cache
def _openmp() -> ctypes.CDLL | None:
    """The OpenMP library of torch; None where it lacks the entry point of GNU's library, which
    LLVM's has too.
    """
    if "parallel backend: OpenMP" not in torch.__config__.parallel_info() or os.name == "nt":
        return None
    # torch makes the symbols of what it is linked with global
    library = ctypes.CDLL(None)
    if not hasattr(library, "GOMP_parallel"):
        return None
    library.GOMP_parallel.argtypes = [
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_uint,
        ctypes.c_uint,
    ]
    library.GOMP_parallel.restype = None
    return library


def _address(function: Any) -> int:
    # ``cast`` would leave a circle of references
    return ctypes.c_void_p.from_buffer(function).value or 0


def _after_fork() -> None:
    global _forked
    # threads do not live on in a forked process, and OpenMP, which torch's own operations use too,
    # waits for them for ever. Whether the parent had started them cannot be told: the child may set
    # more where it had not
    _forked = True
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
