"""Which rows travel between the owners of nodes and the processes that have edges at them: planned once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_array, check_num_rows
from nodeflow._base.frozen import Frozen
from nodeflow._base.types import MaskLike
from nodeflow._rows.rows import as_array as as_words
from nodeflow._rows.rows import from_numpy
from nodeflow.graph import Graph
from nodeflow.graph._held import Peers
from nodeflow.graph._routes import Routes


class ExchangePlan(Frozen):
    """The exchange of rows between masters and mirrors of a graph that lies on several processes.

    A *mirror* is a node at which this process has edges and that another process owns. Making the plan is collective,
    and tells every owner which of its nodes have mirrors where. From then on rows travel without ids.

    ``nodes``, int64 ``[num_masters + num_mirrors]``, are parent ids: first the nodes that this process owns, then the
    mirrors, each ascending.

    Raises TypeError for a graph that lies on one process.
    """

    __slots__ = ("_asked", "_peers", "_routes", "nodes", "num_masters")
    nodes: Ints
    num_masters: int
    _peers: Peers
    _asked: list[Ints]
    _routes: Routes

    def __init__(self, graph: Graph) -> None:
        peers = graph.peers
        if peers is None:
            raise TypeError("a plan is for a graph that lies on several processes, as DistributedGraph.open gives")
        held: Any = graph.held
        with peers.together("planning exchanges", exchanges=1):
            ends = np.unique(np.concatenate([held.part.rows, held.part.src.astype(np.int64)]))
            owner = peers.owners(ends)
            mirrors, owner = ends[owner != peers.rank], owner[owner != peers.rank]
            routes = Routes(owner, peers.size)
            asked = peers.exchange("ids of mirrors", routes.parcels(mirrors))
        places = [held.parts.places(ids[0]) if ids else np.zeros(0, np.int64) for ids in asked]
        masters = np.array(held.part.masters)
        self._set(
            nodes=np.concatenate([masters, mirrors]), num_masters=len(masters), _peers=peers, _asked=places,
            _routes=routes,
        )  # fmt: skip

    @property
    def num_mirrors(self) -> int:
        """Number of mirrors here."""
        return len(self.nodes) - self.num_masters

    @property
    def partners(self) -> list[int]:
        """Numbers of the processes that rows travel to or from."""
        return [
            r for r in range(self._peers.size)
            if r != self._peers.rank and (len(self._asked[r]) or len(self._routes.to(r)))
        ]  # fmt: skip

    def broadcast(self, rows: Tensor, *, changed: MaskLike | None = None, into: Tensor | None = None) -> Tensor:
        """Return the rows of the mirrors, ``[num_mirrors, ...]``, from those of their masters; collective.

        Gradients do not travel.

        Args:
            rows: the rows of the nodes that this process owns, ``[num_masters, ...]``.
            changed: bool ``[num_masters]``: only these rows travel, on all processes or on none. None: all.
            into: with ``changed``, the rows of the mirrors as they were, which is written to and returned.

        Raises ValueError for arguments that do not fit each other.
        """
        with self._peers.together("rows of mirrors", exchanges=1):
            check_num_rows(rows.shape, "rows", self.num_masters, "node that this process owns")
            mask = self._mask(changed, self.num_masters, "changed")
            if (mask is None) != (into is None):
                raise ValueError("changed and into belong together: rows that did not change must be known already")
            if into is not None:
                check_num_rows(into.shape, "into", self.num_mirrors, "mirror")
            sent = [self._picked(rows, places, mask) for places in self._asked]
            found = self._peers.exchange("rows of mirrors", sent, _kind(rows, mask))
        out = rows.new_empty((self.num_mirrors, *rows.shape[1:])) if into is None else into
        for r, arrays in enumerate(found):
            if arrays:
                at = self._routes.to(r)
                at = at if mask is None else at[np.unpackbits(arrays[1], count=len(at)).astype(np.bool_)]
                out[torch.from_numpy(at)] = from_numpy(arrays[0], rows.dtype).to(rows.device)
        return out

    def reduce(self, rows: Tensor, into: Tensor, *, changed: MaskLike | None = None) -> Tensor:
        """Add the rows of the mirrors of all processes to those of their masters; return ``into``; collective.

        Rows are added in the order of the processes, so that sums are the same in every run.

        Args:
            rows: a row per mirror here, ``[num_mirrors, ...]``.
            into: a row per node that this process owns, ``[num_masters, ...]``, which is written to.
            changed: bool ``[num_mirrors]``: only these rows travel, the others count 0, on all processes or on none.

        Raises ValueError for arguments that do not fit each other.
        """
        with self._peers.together("sums of mirrors", exchanges=1):
            check_num_rows(rows.shape, "rows", self.num_mirrors, "mirror")
            check_num_rows(into.shape, "into", self.num_masters, "node that this process owns")
            mask = self._mask(changed, self.num_mirrors, "changed")
            sent = [self._picked(rows, self._routes.to(r), mask) for r in range(self._peers.size)]
            found = self._peers.exchange("sums of mirrors", sent, _kind(rows, mask))
        for r, arrays in enumerate(found):
            if arrays:
                at = self._asked[r]
                at = at if mask is None else at[np.unpackbits(arrays[1], count=len(at)).astype(np.bool_)]
                # a node has one mirror in a process: no index repeats
                into[torch.from_numpy(at)] += from_numpy(arrays[0], rows.dtype).to(into.device)
        return into

    def _picked(self, rows: Tensor, places: Ints, mask: np.ndarray | None) -> list[Any]:
        """What is sent of ``rows[places]``: the rows, of those that changed, and which they are, a bit each."""
        if not len(places):
            return []
        if mask is None:
            return [as_words(rows[torch.from_numpy(places)].detach().cpu().contiguous())]
        kept = mask[places]
        return [as_words(rows[torch.from_numpy(places[kept])].detach().cpu().contiguous()), np.packbits(kept)]

    def _mask(self, value: MaskLike | None, size: int, name: str) -> np.ndarray | None:
        if value is None:
            return None
        mask = as_array(value, name, "bools")
        if mask.dtype != np.bool_ or mask.shape != (size,):
            raise ValueError(f"{name} must be bools [{size}], got {mask.dtype} {list(mask.shape)}")
        return mask

    def __repr__(self) -> str:
        return f"ExchangePlan({self.num_masters} masters, {self.num_mirrors} mirrors, partners {self.partners})"


def _kind(rows: Tensor, mask: np.ndarray | None) -> str:
    """What all processes must send alike."""
    what = f"{str(rows.dtype).removeprefix('torch.')} {list(rows.shape[1:])}"
    return what if mask is None else f"{what}, those that changed"
