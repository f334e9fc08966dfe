"""The rows of a distributed table that one process owns: a table that changes together with those of the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow._disk.store import Change, Shapes, Store
from nodeflow.graph._commit_apart import change_apart, settle_apart
from nodeflow.graph._held import Peers
from nodeflow.random import hash_ids
from nodeflow.storage import EmbeddingTable

_WHAT = "the table"


class OwnedRows(EmbeddingTable):
    """A table of the nodes that this process owns, by their places, whose commits are those of all processes.

    Args:
        peers: the processes.
        nodes: parent ids of the rows, int64 ``[n]``: the initial row of a node depends on its parent id.
        width, options: as for ``EmbeddingTable``.

    Making one is collective, in two exchanges where it has a folder; ``update`` and ``write`` are, in one exchange.
    """

    def __init__(self, peers: Peers, nodes: Ints, width: int, **options: Any) -> None:
        self._peers, self._nodes = peers, nodes
        super().__init__(len(nodes), width, **options)
        if self._store is not None:
            settle_apart(peers, _WHAT, self._store, "version")

    @property
    def exact(self) -> torch.dtype:
        """The type of gradients and of states: float32 at least."""
        return self._exact

    def update(self, ids: Ints, grads: Tensor) -> None:
        """Change rows by the gradients of distinct ids, in one commit of all processes; there may be none here."""
        with self._lock, torch.no_grad():
            self._change(ids, lambda arrays: self._update(arrays, ids, grads))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of a table, and of which nodes it is."""
        return {**super().state_dict(), "nodes": self._part}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take a state of the same nodes; raises ValueError for another."""
        if isinstance(state, Mapping) and state.get("nodes") != self._part:
            raise ValueError(f"the state is of {state.get('nodes', 'a table in one process')}, this is {self._part}")
        super().load_state_dict(state)

    def _initial(self, ids: Ints) -> Tensor:
        return super()._initial(self._nodes[ids])

    def _commit(self, wanted: Mapping[str, Tensor], change: Change) -> None:
        change_apart(self._peers, f"a commit of {_WHAT}", self._store or self._memory, wanted, change)

    def _open(self, folder: Path, shapes: Shapes) -> Store:
        words = {"nodes": "of the nodes of another part"}
        return self._store_in(folder, shapes, {"nodes": self._part}, words, settled=False)

    @property
    def _part(self) -> str:
        return f"part {self._peers.rank} of {self._peers.size}, {hash_ids(np.asarray(self._nodes)):#018x}"
