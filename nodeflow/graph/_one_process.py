"""What processes hold of a graph, for one that holds all of it."""

from __future__ import annotations

from typing import Self

from torch import Tensor

from nodeflow._peers.held import Held
from nodeflow._peers.peers import ALONE, Peers


class OneProcess:
    """Base of a graph that one process holds; ``DistributedGraph`` has other answers."""

    __slots__ = ()

    @property
    def peers(self) -> Peers:
        """The processes that hold this graph together: this one alone."""
        return ALONE

    @property
    def held(self) -> Held:
        """The part of the graph that this process holds: all of it."""
        return Held(self)

    @property
    def near(self) -> Self:
        """The graph as samplers read it: this one."""
        return self

    @property
    def masters(self) -> Tensor:
        """Ids of the nodes that this process owns, ascending, int64: all."""
        return self.held.masters
