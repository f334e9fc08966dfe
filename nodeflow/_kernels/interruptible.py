"""Compiled loops that keep the error of a signal handler, such as the KeyboardInterrupt of Ctrl-C.

numba calls Python functions of its own when it turns the arrays that a loop returns into Python
objects. A signal handler that raises there is overlooked, and Python reports the call as
``SystemError: ... returned a result with an exception set``, whose causes end in the error of the
handler.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.core.registry import CPUDispatcher

from nodeflow._kernels.loop_files import tolerate

_call = CPUDispatcher.__call__


class Loop(CPUDispatcher):
    """A compiled loop whose call raises the error of a signal handler, not a SystemError about
    it.
    """

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the loop."""
        try:
            return _call(self, *args, **named)
        except SystemError as error:
            raised: BaseException | None = error
            while isinstance(raised, SystemError):
                raised = raised.__cause__
            if raised is None:
                raise
            raise raised from None


def make_interruptible(prefix: str) -> None:
    """Make every compiled loop a ``Loop`` in the loaded modules whose names begin with ``prefix``.

    Its files may fail (``loop_files.py``). That one loop calls another does not change: they do so
    compiled.
    """
    # also those that a file of loops has imported itself
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix):
            for value in list(vars(module).values()):
                if type(value) is CPUDispatcher:
                    value.__class__ = Loop
                    tolerate(value)
