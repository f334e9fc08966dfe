"""Counters of what a process has exchanged."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Counters:
    """What one process has sent to the others and received from them.

    Attributes:
        exchanges: number of exchanges.
        messages: number of parcels with something in them that were sent to another process.
        bytes_sent, bytes_received: bytes of the parcels. Threads that exchange at the same time may lose counts.
        by_kind: the bytes sent, by what was exchanged.
        seconds: time spent in exchanges, in all threads; that for which other processes were waited for is part of it.
    """

    exchanges: int = 0
    messages: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
