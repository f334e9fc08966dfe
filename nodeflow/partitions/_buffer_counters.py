"""What a partition buffer has read, written and waited for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class BufferCounters:
    """What a ``PartitionBuffer`` has read, written and waited for, over all of its epochs.

    ``bytes_read`` are those of node columns: (slots + swaps) times the bytes of a partition in every epoch;
    ``edge_bytes_read`` those of edges and their columns. ``bytes_written`` are those of writable columns.
    ``seconds_filling`` went by before the first state of an epoch and after the last, when there is nothing to compute.
    In between, ``seconds_reading`` are those of reading, writing and making graphs for coming states, and
    ``seconds_waited`` those for which the caller waited. ``states`` counts the states that were given out.
    """

    bytes_read: int = 0
    edge_bytes_read: int = 0
    bytes_written: int = 0
    swaps: int = 0
    states: int = 0
    epochs: int = 0
    seconds_filling: float = 0.0
    seconds_reading: float = 0.0
    seconds_waited: float = 0.0

    @property
    def hidden(self) -> float:
        """The share of ``seconds_reading`` that went by behind the caller's own work; 1 where nothing was read.

        >>> BufferCounters(seconds_reading=4.0, seconds_waited=1.0).hidden
        0.75
        """
        return 1.0 if not self.seconds_reading else max(1 - self.seconds_waited / self.seconds_reading, 0.0)
