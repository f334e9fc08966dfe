"""EmbeddingTable: rows learned for nodes, in memory, in files or on several processes; a step
changes some of them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import (
    Ints,
    as_count,
    as_ids,
    as_int,
    as_number,
    check_one_of,
    check_type,
    describe,
)
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._core.peers.held_part import GraphOfPeers, WholeIds
from nodeflow._core.peers.peers import ALONE, Peers, collective_call
from nodeflow._core.peers.routes import first_of_each
from nodeflow._core.random import derive_key, hash_ids
from nodeflow._core.rows.base import RowsBase
from nodeflow._core.rows.rows import fetch_rows
from nodeflow._files.store.files import make_store
from nodeflow._files.store.store import Shapes
from nodeflow.storage._pulls import Pulls, added, check_finite, gradients
from nodeflow.storage._row_optimizers import INITS, RowOptimizer, initial_rows

_LAYOUT = 1  # of the arrays in a folder
_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class EmbeddingTable(RowsBase):
    """Rows learned for nodes, and the state of their optimiser beside them.

    ``pull`` gives the rows of some nodes, which require a gradient; after ``backward``, ``step``
    changes these rows, and no others. A step is a commit: all of it or nothing.

    Args:
        nodes: the number of rows, or a graph with a row per node. If the graph lies on several
            processes, each holds the rows of the nodes that it owns, and the state of their
            optimiser.
        width: width of the rows.
        gradients: of several processes: "sum" adds their gradients, "mean" divides the sum by their
            number. A loss of which ``DistributedDataParallel`` takes the mean gradient needs
            "mean".
        optimizer: "adagrad", "sgd" or "adam".
        lr: learning rate. The attribute ``lr`` may be set between steps.
        betas, eps, weight_decay, initial_accumulator_value: as in ``torch.optim``, with its
            defaults.
        init: "normal" with standard deviation ``scale``, "uniform" from ``-scale`` to ``scale``, or
            "zeros". The initial row of a node is a pure function of ``seed`` and its id. It is made
            when first read, so making a large table takes no time.
        scale: None: 1 / sqrt(width).
        seed: of the initial rows.
        dtype: type of the rows: torch.float32, float64, bfloat16 or float16. State and steps are
            float32 at least.
        folder: keep everything in files there, which may be larger than memory. An existing folder
            of a table with the same shape, type, optimizer, init, scale and seed is reopened at its
            last complete commit, even if the process was killed. One process at a time may use it;
            ``close`` releases it. After a power cut, rows are those of a complete commit only if
            ``flush`` was called after it. Several processes have a folder each; after one was
            killed, all are reopened together, at the same complete commit.

    On several processes making a table, ``fetch``, ``pull``, ``step`` and ``write`` are
    *collective*: every process calls them, in the same order, each with ids of its own, which may
    be none. Rows are those of one table in one process whose batch is all of the processes'
    batches, up to rounding: owners add gradients in the order of ranks.

    A step leaves all other rows and their states unchanged. For SGD and Adagrad without weight
    decay this is what ``torch.optim`` does with a dense table. Weight decay acts on the rows of a
    step only. Adam is ``torch.optim.SparseAdam``: the moments of a row change in its own steps, and
    the bias correction counts the steps of the table.

    A table follows the protocol of columns: ``graph.ndata["emb"] = table``. Rows that batches copy
    in this way have no gradient, and their values date from the draw of the batch;
    ``pull(batch.layers[0].parent_nid)`` gives the current rows, with a gradient.

    Raises TypeError and ValueError for wrong arguments, and for arguments that differ between
    processes; PeerError if another process raises. For ``folder`` raises ValueError if it holds
    something else or is damaged, BlockingIOError if another process uses it, OSError if the disk
    cannot hold the table.

    >>> table = EmbeddingTable(5, 2, optimizer="sgd", lr=0.5, init="zeros")
    >>> rows = table.pull([3, 0, 3])
    >>> rows.sum().backward()
    >>> table.step()
    >>> table.fetch([0, 1, 3]).tolist(), table.version
    ([[-0.5, -0.5], [0.0, 0.0], [-1.0, -1.0]], 1)
    """

    _kind = "node"

    def __init__(
        self,
        nodes: int | GraphOfPeers,
        width: int,
        *,
        optimizer: str = "adagrad",
        lr: float,
        gradients: str = "sum",
        betas: tuple[float, float] | None = None,
        eps: float | None = None,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        init: str = "normal",
        scale: float | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        folder: FileLike | None = None,
    ) -> None:
        self.peers: Peers = ALONE
        self._local = WholeIds(0)
        self._part = {}
        if isinstance(nodes, int) or not hasattr(nodes, "peers"):
            num_rows = num_held = as_count(nodes, "nodes")
        else:
            self.peers = nodes.peers
            self._local = nodes.held_part.whole
            num_rows = nodes.num_nodes
            num_held = nodes.held_part.num_masters
            if self.peers.size > 1:
                hashed = hash_ids(nodes.held_part.masters.numpy())
                part = f"part {self.peers.rank} of {self.peers.size}, {hashed:#018x}"
                self._part = {"nodes": part}
        adam = optimizer, lr, betas, eps, weight_decay, initial_accumulator_value
        # Processes are compared before any check that could raise on one of them alone.
        options = {
            "optimizer": adam,
            "width": width,
            "gradients": gradients,
            "init": init,
            "scale": scale,
            "seed": seed,
            "dtype": dtype,
            "a folder": folder is not None,
        }
        self.collective = self.peers.size > 1
        with self.peers.together("making a table"):
            self.peers.agree(
                "arguments of EmbeddingTable",
                {name: repr(value) for name, value in options.items()},
            )
            self.shape = (num_rows, as_count(width, "width", 1))
            if dtype not in _TYPES:
                raise ValueError(
                    "dtype must be torch.float32, float64, bfloat16 or float16, got "
                    f"{describe(dtype)}"
                )
            check_one_of(gradients, "gradients", ("sum", "mean"))
            self.dtype = dtype
            self.gradients = gradients
            self._optimizer = RowOptimizer(*adam)
            check_one_of(init, "init", INITS)
            number = 1 / math.sqrt(width)
            if scale is not None:
                number = as_number(scale, "scale", least=0)
            self._settings: dict[str, Any] = {"optimizer": optimizer, "init": init, "scale": number}
            self._settings["seed"] = as_int(seed, "seed")
            self._key = derive_key("initial", self._settings["seed"])
            self._exact = torch.promote_types(dtype, torch.float32)
            self._store = make_store(
                folder,
                "embedding table",
                self._shapes(num_held),
                self.peers,
                version=_LAYOUT,
                facts={**self._settings, **self._part},
                words={"nodes": "of the nodes of another part"},
                counter="version",
            )
        # held while rows are read or committed, so that a reader in another thread sees complete
        # commits only
        self._lock = threading.Lock()
        self._pulls = Pulls()

    def _shapes(self, num_rows: int) -> Shapes:
        """Return shape and type of every array."""
        size = (num_rows, self.shape[1])
        return {
            "rows": (size, self.dtype),
            "written": ((num_rows,), torch.bool),
            "version": ((), torch.int64),
            **dict.fromkeys(self._optimizer.states, (size, self._exact)),
        }

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self._optimizer.lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._optimizer.lr = as_number(value, "lr", least=0)

    @property
    def version(self) -> int:
        """Number of commits: steps, and calls of ``write``."""
        return int(self._store.arrays["version"])

    # ---- reading

    @collective_call("learned rows")
    def fetch(self, ids: IdsLike, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids`` as they are now, ``[len(ids), width]``, without gradient; see
        ``RowsBase.fetch``.
        """
        return super().fetch(ids, out)

    @collective_call("learned rows")
    def pull(self, ids: IdsLike, device: torch.device | str | None = None) -> Tensor:
        """Return the rows ``ids`` as a leaf that requires a gradient, ``[len(ids), width]``, for
        the next ``step``.

        Ids may repeat: each row is read once, and its gradients are added up. There may be several
        pulls per step. With gradients turned off (``torch.no_grad``) the rows require none, and no
        step waits for them.
        """
        # Nothing waits for a step that will not come, as in validation.
        if not torch.is_grad_enabled():
            return self.fetch(ids).to(device)
        return self._pulls.pull(as_ids(ids, "ids", self.shape[0]), self.fetch, device)

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        return self.peers.fetch("learned rows", ids, self.peers.owners, self._held)

    def _held(self, ids: Ints) -> Tensor:
        """Return local rows by parent id; rows that were never written have their initial
        values.
        """
        which = torch.from_numpy(self._local.rows_of(ids))
        arrays = self._store.arrays
        with self._lock, torch.no_grad():
            rows = fetch_rows(arrays["rows"], which)
            # Initial rows are made when they are read: a large table takes no time to make.
            written = arrays["written"].index_select(0, which)
            if not bool(written.all()):
                fresh = ~written
                rows[fresh] = self._initial(ids[fresh.numpy()])
        return rows

    def _initial(self, ids: Ints) -> Tensor:
        settings = self._settings
        new = initial_rows(settings["init"], settings["scale"], self._key, ids, self.shape[1])
        return torch.from_numpy(new).to(self.dtype)

    # ---- writing

    @collective_call("a step of a table")
    @torch.no_grad()
    def step(self, *rows: Tensor) -> None:
        """Change the rows that were pulled by their gradients, in one commit, and increase
        ``version``.

        Args:
            rows: results of ``pull``; none: all pulled since the last step. Those without a
                gradient are left out.

        Raises ValueError where no row has a gradient (on any process), for a gradient that is not
        finite, and for tensors that were not pulled from this table or whose step was made; OSError
        where the disk is full. Then nothing is written.
        """
        chosen = self._pulls.waiting(rows)
        summed = gradients(chosen, self._exact)
        # a process without gradients joins the exchange too: it may own rows that others have
        # gradients of
        none = (np.zeros(0, np.int64), torch.zeros(0, self.shape[1], dtype=self._exact))
        ids, grads = summed or none
        title = "gradients of learned rows"
        parts, active = self._to_owners(title, ids, grads, active=summed is not None)
        if not active:
            raise ValueError(
                "no row has a gradient: pull rows, compute a loss of them, call its "
                "backward(), and then step()"
            )
        if self.collective:
            ids, grads = added(parts)
            if self.gradients == "mean":
                grads = grads / self.peers.size
            check_finite(ids, grads)
        self._change(ids, lambda arrays, places: self._update(arrays, ids, places, grads))
        self._pulls.forget(chosen)

    def drop(self, *rows: Tensor) -> None:
        """Discard pulled rows without a step; without arguments, all of them. Raises ValueError as
        ``step``.
        """
        self._pulls.forget(self._pulls.waiting(rows))

    @collective_call("writing learned rows")
    @torch.no_grad()
    def write(self, ids: IdsLike, rows: Tensor) -> None:
        """Set the rows of distinct ids, in one commit; the state of their optimiser stays as it is.

        If several processes write the same row, the lowest rank wins. Raises ValueError for
        repeated ids and rows of another shape.
        """
        checked = as_ids(ids, "ids", self.shape[0])
        check_type(rows, "rows", Tensor, "a tensor")
        if rows.shape != (len(checked), self.shape[1]):
            raise ValueError(
                f"rows must have shape {(len(checked), self.shape[1])}, got {tuple(rows.shape)}"
            )
        # Which of two rows would stay depends on the order of writing, so neither is written.
        distinct, counts = np.unique(checked, return_counts=True)
        if len(distinct) < len(checked):
            node = distinct[counts.argmax()]
            most = counts.max()
            raise ValueError(f"ids holds {node} {most} times, but a row is written once")
        new = rows.detach().to("cpu", self.dtype)
        parts, _ = self._to_owners("learned rows that are written", checked, new, active=True)
        nodes, values = first_of_each(parts)

        def change(arrays: Mapping[str, Tensor], places: Ints) -> None:
            self._begin(arrays, nodes, places)
            arrays["rows"].index_copy_(0, torch.from_numpy(places), values)

        self._change(nodes, change)

    def _to_owners(
        self, title: str, ids: Ints, rows: Tensor, *, active: bool
    ) -> tuple[list[tuple[Ints, Tensor]], bool]:
        """Send rows to the owners of their ids; return the rows received, and whether any process
        is active.

        Raises ValueError, on all processes, where their versions or learning rates differ.
        """
        # the general path would make a small step a tenth slower
        if not self.collective:
            return [(ids, rows)], active
        stated = np.array([self.version, self.lr, active], np.float64)
        facts, (parts,) = self.peers.send(title, stated, [(ids, rows)])
        for k, name in enumerate(("version", "lr")):
            if len(set(facts[:, k])) > 1:
                raise ValueError(
                    f"the {name} of a table must be the same on all processes, got "
                    f"{facts[:, k].tolist()}"
                )
        return parts, bool(facts[:, 2].any())

    def _change(self, ids: Ints, change: Callable[[Mapping[str, Tensor], Ints], None]) -> None:
        """Apply a function to local rows of all arrays, by their places, in one commit."""
        places = self._local.rows_of(ids)
        which = torch.from_numpy(places)
        wanted = {"version": torch.zeros(1, dtype=torch.int64)}
        wanted |= dict.fromkeys(("rows", "written", *self._optimizer.states), which)

        def counted(arrays: Mapping[str, Tensor]) -> None:
            # before other changes: stores of several processes expect the counter first
            arrays["version"].add_(1)
            change(arrays, places)

        with self._lock:
            self._store.change(wanted, counted)

    def _update(self, arrays: Mapping[str, Tensor], ids: Ints, places: Ints, grads: Tensor) -> None:
        """Change rows and states by gradients, in arrays that a commit has opened."""
        which = torch.from_numpy(places)
        rows = arrays["rows"]
        rows_at = places
        self._begin(arrays, ids, places)
        # update 16-bit rows in a wider copy, so that a step rounds them once
        if short := self.dtype != self._exact:
            rows = rows.index_select(0, which).to(self._exact)
            rows_at = np.arange(len(places))
        states = {name: arrays[name].numpy() for name in self._optimizer.states}
        numbers = grads.contiguous().numpy()
        step = int(arrays["version"])
        self._optimizer.update(rows.numpy(), rows_at, states, places, numbers, step)
        if short:
            arrays["rows"].index_copy_(0, which, rows.to(self.dtype))

    def _begin(self, arrays: Mapping[str, Tensor], ids: Ints, places: Ints) -> None:
        """Give rows and states that were never written their initial values."""
        fresh = np.flatnonzero(~arrays["written"].numpy()[places])
        if not len(fresh):
            return
        which = torch.from_numpy(places[fresh])
        arrays["rows"].index_copy_(0, which, self._initial(ids[fresh]))
        for name, start in self._optimizer.states.items():
            arrays[name].index_fill_(0, which, start)
        arrays["written"][which] = True

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """Return the settings, the version, and for a table in memory its tensors, which later
        steps change.

        The state of a table in files is its folder: a checkpoint is a copy of it, and the version
        names the commit. Each process has a state of its own rows.
        """
        state = {"settings": dict(self._settings), "version": self.version, **self._part}
        if self._store.folder is None:
            state["arrays"] = dict(self._store.arrays)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the rows of a state, or for a table in files check that the folder is at its
        version.

        All processes load states of the same commit. Raises ValueError for the state of another
        table, part or version; the table is then unchanged.
        """
        if not isinstance(state, Mapping) or not {"settings", "version"} <= set(state):
            raise ValueError(f"state must be what state_dict returned, got {describe(state)}")
        undivided = "a table in one process"
        there = state.get("nodes", undivided)
        here = self._part.get("nodes", undivided)
        if there != here:
            raise ValueError(f"the state is of {there}, this is {here}")
        for name, value in self._settings.items():
            if (stored := state["settings"].get(name)) != value:
                raise ValueError(
                    f"the state is of a table with {name}={stored!r}, this one has {value!r}"
                )
        folder = self._store.folder
        in_memory = "arrays" in state
        if in_memory != (folder is None):
            places = ("files", "memory")
            if in_memory:
                places = ("memory", "files")
            raise ValueError(f"the state is of a table in {places[0]}, this one is in {places[1]}")
        if in_memory:
            self._load_arrays(state["arrays"])
        elif state["version"] != self.version:
            raise ValueError(
                f"the state is of version {state['version']} of the table, but {folder} is at "
                f"version {self.version}; use a copy of the folder that was made together with "
                "the state"
            )

    def _load_arrays(self, saved: Mapping[str, Any]) -> None:
        """Copy the arrays of a state, all of them or none."""
        arrays = self._store.arrays
        for name, array in arrays.items():
            other = saved.get(name)
            kind = (array.shape, array.dtype)
            if not isinstance(other, Tensor) or (other.shape, other.dtype) != kind:
                raise ValueError(
                    f"the state is of another table: {name} is {describe(other)} there, and "
                    f"{describe(array)} here"
                )
        with self._lock:
            for name, array in arrays.items():
                array.copy_(saved[name])
        self._pulls = Pulls()

    def flush(self) -> None:
        """Wait until the rows of a table in files are on the disk, so that they outlive a power
        cut.
        """
        with self._lock:
            self._store.flush()

    def close(self) -> None:
        """Release the folder for other processes, with checksums of its files. Nothing may be
        written afterwards.
        """
        with self._lock:
            self._store.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.collective:
            raise TypeError(
                "a table on several processes is not pickled or copied: every process makes it "
                "itself"
            )
        state = dict(vars(self))
        # Neither a lock nor rows that wait for a step mean anything in another process.
        del state["_lock"], state["_pulls"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock(), _pulls=Pulls())

    def _details(self) -> str:
        words = f"{self._settings['optimizer']}, lr={self.lr}"
        if self.collective:
            words += f", {len(self._store.arrays['written'])} rows here"
        if self._store.folder is not None:
            words += f", in {self._store.folder}"
        return words
