"""A history that lies on several processes: each holds the rows of the nodes that it owns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from nodeflow._disk.store import Changes, Store, copy_rows
from nodeflow._rows.rows import as_array, fetch_rows, from_numpy
from nodeflow.graph._commit_apart import change_apart, settle_apart
from nodeflow.graph._fetch_apart import fetch_apart
from nodeflow.graph._held import Peers
from nodeflow.graph._routes import Routes
from nodeflow.propagation import PartPropagation

_WHAT = "the history"
Pushed = Mapping[int, tuple[Tensor, Tensor]]
"""By layer, ids of nodes and their new rows."""


class Apart:
    """How the rows of a history travel to and from their owners. All calls are collective.

    Args:
        peers: the processes.
        propagation: that of the history.
    """

    def __init__(self, peers: Peers, propagation: PartPropagation) -> None:
        self.peers = peers
        self.num_rows = propagation.plan.num_masters
        self._places = propagation.graph.held.parts.places  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: object) -> Apart:
        return self  # copies of a history exchange with the same processes

    def fetch(self, what: str, column: Tensor, nodes: Tensor) -> Tensor:
        """Return the rows of ``nodes``, parent ids, of which ``column`` has those owned here; in two exchanges."""
        found = fetch_apart(
            self.peers, f"{what} of {_WHAT}", nodes.cpu().numpy(), self.peers.owners,
            lambda ids: fetch_rows(column, torch.from_numpy(self._places(ids))),
        )  # fmt: skip
        return found.to(nodes.device)

    def owned(self, step: int, pushed: Pushed, columns: Mapping[int, Tensor]) -> Pushed:
        """Send pushed rows to the owners of their nodes; return those that belong here, by their places; one exchange.

        Args:
            step: the number of the last commit, which must be the same on all processes.
            pushed: the rows pushed here, by parent id.
            columns: by layer, the rows held here.

        Where several processes have pushed rows of a node, those of the first one are taken, whatever came first.
        Raises ValueError, on all processes, where their steps differ.
        """
        peers, parcels = self.peers, [[np.array([step])] for _ in range(self.peers.size)]
        for i, column in columns.items():
            ids, rows = pushed.get(i, (torch.zeros(0, dtype=torch.int64), column[:0]))
            nodes = ids.cpu().numpy()
            routes = Routes(peers.owners(nodes), peers.size)
            for r, parcel in enumerate(parcels):
                own = routes.to(r)
                parcel += [nodes[own], as_array(rows.cpu()[torch.from_numpy(own)].contiguous())]
        found = peers.exchange("rows that were pushed", parcels)
        steps = [int(arrays[0][0]) for arrays in found]
        if len(set(steps)) > 1:
            raise ValueError(
                f"the histories of the processes are of different commits: numbers {steps}, by rank; load states, or "
                "open folders, that belong together"
            )
        received: dict[int, tuple[Tensor, Tensor]] = {}
        for k, (i, column) in enumerate(columns.items()):
            told = np.concatenate([arrays[1 + 2 * k] for arrays in found])
            distinct, first = np.unique(told, return_index=True)  # the first of them comes from the lowest rank
            if len(distinct):
                rows = torch.cat([from_numpy(arrays[2 + 2 * k], column.dtype) for arrays in found])
                received[i] = torch.from_numpy(self._places(distinct)), rows[torch.from_numpy(first)]
        return received

    def write(self, place: Store | Mapping[str, Tensor], changes: Changes) -> None:
        """Write rows, on all processes or on none; in one exchange."""
        ids = {name: which for name, (which, _) in changes.items()}
        change_apart(self.peers, f"a commit of {_WHAT}", place, ids, lambda arrays: copy_rows(arrays, changes))

    def agree(self, facts: Mapping[str, object]) -> None:
        """Raise ValueError, on all processes, unless all make a history of the same facts; in one exchange."""
        self.peers.agree("the arguments of History", {name: repr(value) for name, value in facts.items()})

    def settle(self, store: Store) -> None:
        """End alike what was interrupted in folders; in two exchanges."""
        settle_apart(self.peers, _WHAT, store, "step")

    def wait(self, what: str) -> None:
        """Wait until all processes have come here; in one exchange."""
        self.peers.gather(f"{what} of {_WHAT}", [])
