"""Signs of life of the processes, which tell one that has ended, is stopped, or waits elsewhere from one that is late.

An exchange that breaks off says only that a connection was closed, or that it took too long; without signs
``tests/distributed/test_processes.py test_all_end_with_an_error_that_names_the_one_that_is_missing`` fails.
"""

from __future__ import annotations

import atexit
import json
import linecache
import os
import sys
import threading
import time
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch

from nodeflow._peers.answers import NAME, Answers

PERIOD = 1.0
"""Seconds between two signs of life."""
LOOK = 20.0
"""Seconds after which an exchange that has not ended says who is late, or ends if it is known that none will come."""
_SILENCE = 1.5  # a process without a sign for this many times LOOK is gone; compilation may hold its lock for seconds
_STILL = 0.75  # processes that have all waited for this many times LOOK wait for each other
_IDLE = 0.03, 0.1  # a process that waits uses at most this share of one processor, and once this many seconds
_CHANNELS = 64  # a sign of life lists this many of the newest channels
_TORCH, _OWN = (f"{Path(one).resolve().parent}{os.sep}" for one in (torch.__file__, Path(__file__).parent))
_WAITING = (
    f"{_TORCH}distributed{os.sep}",
    f"{_TORCH}autograd{os.sep}",
    f"{_OWN}_peers{os.sep}",
    f"{_OWN}_runtime{os.sep}",
)
"""Beginnings of the files in which a thread that does no work waits for other processes, or for another thread."""
_ASIDE = (*_WAITING, os.path.realpath(threading.__file__))  # the same for threads beside the main one
_threads = weakref.WeakKeyDictionary[threading.Thread, threading.Event]()


class Sign(NamedTuple):
    """A sign of life.

    Its number; the channels from number ``first`` on, each with the number of its last exchange and what that was of;
    the seconds for which the process has done nothing but wait in the same places; where its main thread is; and how
    its program has ended, if it has.
    """

    beat: int = 0
    first: int = 0
    last: tuple[tuple[int, str], ...] = ()
    still: float = 0.0
    where: str = ""
    end: str = ""

    def exchange(self, channel: int) -> tuple[int, str]:
        """Return the number of the last exchange of a channel, and what it was of; before the first 0."""
        at = channel - self.first
        return self.last[at] if 0 <= at < len(self.last) else (0, "the start")


class Watch:
    """Writes a sign of life into the store of the processes every second, and reads those of the others.

    A thread writes them, so a process whose main thread computes for long lives, and one that is stopped does not.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store, self.rank, self.size = Answers(store, lambda: _SILENCE * LOOK), rank, size
        self._beat, self._last = 0, list[tuple[int, str]]()
        self._still, self._places, self._warned = Still(), dict[int, tuple[int, float]](), False
        self.beat()
        over = threading.Event()
        thread = threading.Thread(target=_beats, args=(weakref.ref(self), over), name=NAME, daemon=True)
        _threads[thread] = over
        thread.start()

    def channel(self) -> int:
        """Return the number of a new channel; the others see that this process has made it."""
        self._last.append((0, "the start"))
        self.store.set(f"channel/{len(self._last) - 1}/{self.rank}", "")
        return len(self._last) - 1

    def have_come(self, channel: int) -> bool:
        """Return whether all processes have made a channel."""
        return bool(self.store.check([f"channel/{channel}/{r}" for r in range(self.size)]))

    def enter(self, channel: int, what: str) -> None:
        self._last[channel] = (self._last[channel][0] + 1, what)

    def beat(self, end: str = "") -> tuple[float, str]:
        """Write a sign of life, with ``end``, how the program has ended, the last; return how long it waits, where."""
        self._beat += 1
        first = max(0, len(self._last) - _CHANNELS)
        still, where = self._still.seconds(tuple(self._last))
        sign = Sign(self._beat, first, tuple(self._last[first:]), still, where, end)
        self.store.set(f"sign/{self.rank}", json.dumps(sign))
        return still, where

    def look(self, channel: int, begun: float) -> tuple[str, str]:
        """Return why the exchange where this process is will not end, "" where it may; and who is late.

        ``begun``: when it began. Signs are noted from the first call on, and judged after ``LOOK``.
        """
        try:
            signs = self._signs()
            late = self._late(channel, signs)
            gone = self._silent(signs) | {r for r in late if signs[r].end}
            # without any, all are in this exchange, whose bytes still travel
            if time.monotonic() - begun < LOOK or not (late or gone):
                return "", ""
            if gone:
                about = self._about_silent(gone, signs, channel)
                return f"{self._here(channel, begun)}; {about}", about
            everywhere = "; ".join(self._about(r, signs[r], channel) for r in late)
            # where each process of the group waits, none will move; one that computes may come
            if all(sign.still >= _STILL * LOOK for sign in signs):
                time.sleep(2.5 * PERIOD)
                if all(sign.still >= _STILL * LOOK for sign in self._signs()):
                    number, what = self._last[channel]
                    return f"all processes wait, this one at exchange {number}, {what}; {everywhere}", everywhere
            return "", everywhere
        except Exception as error:
            return f"{self._here(channel, begun)}; {self._lost(error)}", ""

    def missing(self, channel: int) -> str:
        """Return which process is missing in the exchange where this one is, after some seconds of watching."""
        try:
            self.beat()
            before = self._signs()
            time.sleep(2.5 * PERIOD)
            self.beat()
            after = self._signs()
        except Exception as error:
            return self._lost(error)
        silent = [r for r in self._others() if after[r].end or after[r].beat == before[r].beat]
        late = [r for r in self._late(channel, after) if r not in silent]
        if silent or late:
            return "; ".join(self._about(r, after[r], channel, silent=r in silent) for r in silent or late)
        return "all other processes live and came to this exchange, but a connection broke"

    def attend(self) -> None:
        """Write a sign of life; where the program waits outside of exchanges for one without, warn once."""
        try:
            still, where = self.beat()
            signs = self._signs() if still >= LOOK / 4 and self._beat % 4 == 0 and not _exchanges() else []
            why = self._about_silent(self._silent(signs), signs, 0) if signs else ""
        except Exception as error:
            (still, where), why = self._still.seconds(tuple(self._last)), self._lost(error)
        if why and still >= LOOK and not self._warned and not _exchanges():
            self._warned = True
            words = f"the program of rank {self.rank} has waited {still:.0f} s at {where}; {why}"
            warnings.warn(words, RuntimeWarning, stacklevel=2)

    def _silent(self, signs: list[Sign]) -> set[int]:
        """The processes without a sign of life for long; one that has not begun to write signs may still load."""
        now = time.monotonic()
        for r, sign in enumerate(signs):
            beat, since = self._places.get(r, (-1, now))
            self._places[r] = (beat, since) if beat == sign.beat else (sign.beat, now)
        silence = {r: now - self._places[r][1] for r, sign in enumerate(signs) if sign.beat and not sign.end}
        return {r for r, seconds in silence.items() if r != self.rank and seconds > _SILENCE * LOOK}

    def _about_silent(self, ranks: set[int], signs: list[Sign], channel: int) -> str:
        return "; ".join(self._about(r, signs[r], channel, silent=True) for r in sorted(ranks))

    def _others(self) -> list[int]:
        return [r for r in range(self.size) if r != self.rank]

    def _late(self, channel: int, signs: list[Sign]) -> list[int]:
        """The processes that have not come to the exchange of a channel where this one is."""
        if not self.have_come(channel):
            return [r for r in self._others() if not self.store.check([f"channel/{channel}/{r}"])]
        own = self._last[channel][0]
        return [r for r in self._others() if signs[r].exchange(channel)[0] < own]

    def _about(self, r: int, sign: Sign, channel: int, *, silent: bool = False) -> str:
        number, what = sign.exchange(channel)
        last = f"its last exchange was number {number}, {what}"
        if sign.end:
            return f"rank {r} {sign.end} ({last})"
        if silent:
            return f"rank {r} does not answer: it has ended or is stopped, or the network to it is down ({last})"
        if not sign.beat:
            return f"rank {r} has not begun to use the package"
        does = f"it waits {sign.still:.0f} s" if sign.still >= _STILL * LOOK else "it is"
        own = self._last[channel][0] or "1"
        return f"rank {r} lives, but has not come to exchange {own}: {last}; {does} at {sign.where}"

    def _here(self, channel: int, begun: float) -> str:
        number, what = self._last[channel]
        return f"rank {self.rank} has waited {time.monotonic() - begun:.0f} s at exchange {number}, {what}"

    def _lost(self, error: Exception) -> str:
        ended = f"the store of the processes{self.store.address} has ended ({type(error).__name__})"
        return str(error) if isinstance(error, TimeoutError) else ended

    def _signs(self) -> list[Sign]:
        """The last sign of each process; of one that has written none its number is 0."""
        keys = [f"sign/{r}" for r in range(self.size)]
        return [Sign(*json.loads(self.store.get(key))) if self.store.check([key]) else Sign() for key in keys]


class Still:
    """Measures for how long this process has done nothing but wait: all threads in the same places, and no work."""

    def __init__(self) -> None:
        self._since, self._worked, self._places = time.monotonic(), time.process_time(), list[object]()

    def seconds(self, came: object) -> tuple[float, str]:
        """Return the seconds, and the line of the program where the main thread is; ``came``: any other progress."""
        now, worked = time.monotonic(), time.process_time()
        main = threading.main_thread().ident
        watches = {thread.ident for thread in threading.enumerate() if thread.name.startswith(NAME)}
        stacks = {
            thread: _callers(frame, _WAITING if thread == main else _ASIDE)
            for thread, frame in sys._current_frames().items()  # noqa: SLF001  documented, in spite of its name
            if thread not in watches
        }
        places: list[object] = [
            (thread, id(frame), frame and frame.f_lasti, came) for thread, (frame, _) in stacks.items()
        ]
        share, once = _IDLE  # since the wait began: the share of a single period is mostly that of this function
        busy = worked - self._worked > share * (now - self._since) + once
        if busy or places != self._places or not all(waits for _, waits in stacks.values()):
            self._since, self._worked, self._places = now, worked, places
        return now - self._since, _line(_callers(stacks[main][0], (_TORCH, _OWN))[0] if main in stacks else None)


def _callers(frame: FrameType | None, files: tuple[str, ...]) -> tuple[FrameType | None, bool]:
    """Return the innermost frame that is in none of some files, and whether another one is inside of it."""
    inner = frame
    while frame is not None and os.path.realpath(frame.f_code.co_filename).startswith(files):
        frame = frame.f_back
    return frame, frame is not inner


def _line(frame: FrameType | None) -> str:
    """The line where a frame is, as "file, line 3: text"."""
    if frame is None:
        return "an unknown place"
    file, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, number).strip()
    return f"{file}, line {number}{f': {text}' if text else ''}"


def _beats(watch: weakref.ref[Watch], over: threading.Event) -> None:
    """Write signs until the watch or the store is gone, or the program ends."""
    while True:
        ends, alive = over.wait(PERIOD), watch()
        if alive is None:
            return
        with suppress(Exception):  # the store ends with the processes
            if not ends:
                alive.attend()
                del alive
                continue
            alive.beat(_end())
        return


def _exchanges() -> bool:
    """Whether the main thread is in an exchange, which ends by itself."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
    while frame is not None and not os.path.realpath(frame.f_code.co_filename).startswith(f"{_OWN}_peers"):
        frame = frame.f_back
    return frame is not None


def _end() -> str:
    error = getattr(sys, "last_value", None)
    return f"has ended with {type(error).__name__}: {error}" if error else "has ended its program"


@atexit.register
def _end_threads() -> None:
    """End all threads: one that the interpreter ends while it is inside the store aborts the process."""
    for over in list(_threads.values()):
        over.set()
    for thread in list(_threads):
        thread.join(timeout=10 * PERIOD)  # not for ever: the process that keeps the store may be gone
