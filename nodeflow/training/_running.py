"""Runs a subcommand of ``nodeflow``; what goes wrong becomes one line on standard error."""

from __future__ import annotations

import argparse
import sys

from nodeflow._processes.transport import PeerError
from nodeflow.training._cli import say
from nodeflow.training._commands import build, compare, evaluate, info, partition, predict
from nodeflow.training._reproduce import reproduce
from nodeflow.training._result import Stopped
from nodeflow.training._train_command import Silent, train

_COMMANDS = {
    run.__name__: run
    for run in (train, evaluate, predict, compare, reproduce, info, build, partition)
}
_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    OSError,
    ImportError,
    RuntimeError,
    MemoryError,
    FloatingPointError,
)
"""Mistakes of users, and failures of machines and other processes; other RuntimeErrors are defects
of this program.
"""


def run(options: argparse.Namespace) -> int:
    """Run the subcommand of parsed options; returns the exit status, see ``_cli.main``."""
    name = f"nodeflow {options.command}"
    try:
        _COMMANDS[options.command](options, say)
    except KeyboardInterrupt as error:
        print("; ".join([f"{name}: interrupted", *map(str, error.args)]), file=sys.stderr)
        return 130
    except Silent as ended:
        return int(ended.args[0])
    except Stopped as stopped:
        print(f"{name}: {stopped}", file=sys.stderr)
        return 143
    except _ERRORS as error:
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        # torch raises RuntimeError when memory is short, PeerError is of another process
        expected = (
            not isinstance(error, RuntimeError) or isinstance(error, PeerError) or "memory" in text
        )
        if options.traceback or not expected:
            raise
        # one line: the further lines of torch's messages are its own call stack
        line = (text.strip() or type(error).__name__).splitlines()[0]
        print(f"{name}: {line}", file=sys.stderr)
        return 2
    return 0
