"""The function that the threads of an OpenMP region run: some of them call a function at an
address.
"""

from llvmlite import ir
from numba import cfunc, types
from numba.np.numpy_support import carray

from nodeflow._kernels.instructions import code, intrinsic


@intrinsic
def _called(typingctx, address, number):
    """Call the C function ``int64 f(int64)`` at an address."""
    function = ir.FunctionType(ir.IntType(64), [ir.IntType(64)]).as_pointer()
    write = code(
        lambda builder, at, argument: builder.call(builder.inttoptr(at, function), [argument])
    )
    return types.int64(types.int64, types.int64), write


@cfunc(types.void(types.CPointer(types.int64)), cache=True)
def member(plan):
    """Run a thread's part of ``plan``: the addresses of ``int64 run(int64)`` and
    ``int64 number(int64)``, and a count.

    Each thread calls ``number`` for its own; those below the count call ``run`` with it, the others
    are done at once. Behind the three, a place for each of them says with a 1 that it was called.
    """
    run, number, count = carray(plan, 3)
    mine = _called(number, 0)
    if mine < count:
        carray(plan, 3 + count)[3 + mine] = 1
        _called(run, mine)
