"""EmbeddingTable: rows learned for nodes, in memory or in files, of which a step changes those of its batch."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_count, as_ids, as_int, as_number, check_one_of, check_type, describe
from nodeflow._base.types import FileLike, IdsLike
from nodeflow._disk.store import Change, Shapes, Store, change_rows
from nodeflow._rows.rows import fetch_rows
from nodeflow.random import derive_key
from nodeflow.storage._initial import INITS, initial_rows
from nodeflow.storage._pulls import Pulls, gradients
from nodeflow.storage._row_optimizers import Rows, check_lr, row_optimizer

_LAYOUT = 1  # of the arrays in a folder
_INITIAL = 0x696E697469616C  # makes initial rows independent of the draws of a sampler with the same seed
_TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class EmbeddingTable:
    """Rows learned for nodes, and the state of their optimiser beside them.

    ``pull`` gives the rows of some nodes, which require a gradient; after ``backward``, ``step`` changes these rows,
    and no others. A step is a commit: all of it or nothing.

    Args:
        num_nodes, width: shape of the table.
        optimizer: "adagrad", "sgd" or "adam".
        lr: learning rate. The attribute ``lr`` may be set between steps.
        betas, eps, weight_decay, initial_accumulator_value: as in ``torch.optim``, with its defaults.
        init: "normal" with standard deviation ``scale``, "uniform" from ``-scale`` to ``scale``, or "zeros". The
            initial row of a node is a pure function of ``seed`` and its id. It is made when it is first read, so a
            large table is there at once.
        scale: None: 1 / sqrt(width).
        seed: of the initial rows.
        dtype: type of the rows: torch.float32, float64, bfloat16 or float16. State and steps are float32 at least.
        folder: keep everything in files there, which may be larger than memory. A folder that a table of the same
            shape, type, optimizer, init, scale and seed has left is continued, with the rows of its last whole commit,
            also where the process was killed. One process at a time may use it: ``close`` lets it go. After a power
            cut, rows are those of a whole commit only if ``flush`` was called after it.

    A row that a step does not touch stays as it is, and so does its state. For SGD and Adagrad without weight decay
    this is what ``torch.optim`` does with a dense table. Weight decay acts on the rows of a step only. Adam is
    ``torch.optim.SparseAdam``: the moments of a row change in its own steps, and the bias correction counts the steps
    of the table.

    A table follows the protocol of columns: ``graph.ndata["emb"] = table``. Rows that batches copy in this way have no
    gradient, and are those of the moment when the batch was drawn; ``pull(batch.layers[0].parent_nid)`` gives the
    present ones with a gradient.

    Raises TypeError and ValueError for wrong arguments. For ``folder`` raises ValueError where it holds something else
    or is damaged, BlockingIOError where another process has it, OSError where the disk cannot hold the table.

    >>> table = EmbeddingTable(5, 2, optimizer="sgd", lr=0.5, init="zeros")
    >>> rows = table.pull([3, 0, 3])
    >>> rows.sum().backward()
    >>> table.step()
    >>> table.fetch([0, 1, 3]).tolist(), table.version
    ([[-0.5, -0.5], [0.0, 0.0], [-1.0, -1.0]], 1)
    """

    def __init__(
        self,
        num_nodes: int,
        width: int,
        *,
        optimizer: str = "adagrad",
        lr: float,
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
        self.shape = (as_count(num_nodes, "num_nodes"), as_count(width, "width", 1))
        if dtype not in _TYPES:
            raise ValueError(f"dtype must be torch.float32, float64, bfloat16 or float16, got {describe(dtype)}")
        self.dtype = dtype
        self._optimizer = row_optimizer(optimizer, lr, betas, eps, weight_decay, initial_accumulator_value)
        check_one_of(init, "init", INITS)
        number = 1 / math.sqrt(width) if scale is None else as_number(scale, "scale", least=0)
        self._settings: dict[str, Any] = {
            "optimizer": optimizer,
            "init": init,
            "scale": number,
            "seed": as_int(seed, "seed"),
        }
        self._key = derive_key(_INITIAL, self._settings["seed"])
        shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            "rows": (self.shape, dtype), "written": (self.shape[:1], torch.bool), "version": ((), torch.int64)
        }  # fmt: skip
        self._exact = torch.promote_types(dtype, torch.float32)
        shapes |= dict.fromkeys(self._optimizer.states, (self.shape, self._exact))
        self._store = None if folder is None else self._open(Path(folder), shapes)
        self._memory = {name: torch.zeros(*kind[:1], dtype=kind[1]) for name, kind in shapes.items()} if (
            self._store is None
        ) else {}  # fmt: skip
        self._lock = threading.Lock()  # of the rows: a reader sees whole commits, whatever thread writes them
        self._pulls = Pulls()

    @property
    def lr(self) -> float:
        """The learning rate."""
        return self._optimizer.lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._optimizer.lr = check_lr(value)

    @property
    def version(self) -> int:
        """Number of commits: steps, and calls of ``write``."""
        return int(self._arrays["version"])

    # ---- reading

    def fetch(self, ids: IdsLike, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids`` as they are now, ``[len(ids), width]``, without gradient.

        With ``out``, a tensor of that shape and type, they are written there. Raises IndexError for an id that is no
        row.
        """
        checked = as_ids(ids, "ids", self.shape[0])
        with self._lock, torch.no_grad():
            rows = self._read(checked)
        if out is None:
            return rows
        if out.shape != rows.shape or out.dtype != rows.dtype:
            raise ValueError(f"out must be {rows.dtype} {tuple(rows.shape)}, got {describe(out)}")
        return out.copy_(rows)

    def pull(self, ids: IdsLike, device: torch.device | str | None = None) -> Tensor:
        """Return the rows ``ids`` as a leaf that requires a gradient, ``[len(ids), width]``, for the next ``step``.

        Ids may repeat: each row is read once, and its gradients are added up. There may be several pulls per step.
        With gradients turned off (``torch.no_grad``) the rows require none, and no step waits for them.
        """
        if not torch.is_grad_enabled():
            return self.fetch(ids).to(device)
        return self._pulls.pull(as_ids(ids, "ids", self.shape[0]), self.fetch, device)

    def _read(self, ids: Ints) -> Tensor:
        """Return rows; those that were never written have their initial values."""
        which = torch.from_numpy(ids)
        rows = fetch_rows(self._arrays["rows"], which)
        written = self._arrays["written"].index_select(0, which)
        if not bool(written.all()):
            fresh = ~written
            rows[fresh] = self._initial(ids[fresh.numpy()])
        return rows

    def _initial(self, ids: Ints) -> Tensor:
        settings = self._settings
        new = initial_rows(settings["init"], settings["scale"], self._key, ids, self.shape[1])
        return torch.from_numpy(new).to(self.dtype)

    # ---- writing

    def step(self, *rows: Tensor) -> None:
        """Change the rows that were pulled by their gradients, in one commit, and increase ``version``.

        Args:
            rows: results of ``pull``; none: all pulled since the last step. Those without a gradient are left out.

        Raises ValueError where no row has a gradient, for a gradient that is not finite, and for tensors that were not
        pulled from this table or whose step was made; OSError where the disk is full. Then nothing is written.
        """
        chosen = self._pulls.waiting(rows)
        with torch.no_grad():
            found = gradients(chosen, self._exact)
            if found is None:
                raise ValueError(
                    "no row has a gradient: pull rows, compute a loss of them, call its backward(), and then step()"
                )
            with self._lock:
                self._change(found[0], lambda arrays: self._update(arrays, *found))
        self._pulls.forget(chosen)

    def drop(self, *rows: Tensor) -> None:
        """Let rows that were pulled wait for no step any more; without arguments, all of them.

        Raises ValueError for tensors that were not pulled from this table, or whose step was made.
        """
        self._pulls.forget(self._pulls.waiting(rows))

    def _update(self, arrays: Mapping[str, Tensor], ids: Ints, grads: Tensor) -> None:
        """Change rows and states by gradients, in arrays that a commit has opened."""
        number = int(arrays["version"]) + 1
        arrays["version"].fill_(number)  # first, as settle_apart expects of what counts commits
        which, rows, places = torch.from_numpy(ids), arrays["rows"], ids
        fresh = ids[~arrays["written"].index_select(0, which).numpy()]
        if len(fresh):
            self._begin(arrays, fresh)
        if short := self.dtype != self._exact:
            rows, places = rows.index_select(0, which).to(self._exact), np.arange(len(ids))
        states = {name: arrays[name].numpy() for name in self._optimizer.states}
        step = Rows(rows.numpy(), places, states, ids, grads.contiguous().numpy())
        self._optimizer.update(step, number)
        if short:
            arrays["rows"].index_copy_(0, which, rows.to(self.dtype))

    def _begin(self, arrays: Mapping[str, Tensor], ids: Ints) -> None:
        """Give rows and states their initial values."""
        which = torch.from_numpy(ids)
        arrays["rows"].index_copy_(0, which, self._initial(ids))
        for name, start in self._optimizer.states.items():
            arrays[name].index_fill_(0, which, start)
        arrays["written"].index_fill_(0, which, True)

    def write(self, ids: IdsLike, rows: Tensor) -> None:
        """Set the rows of distinct ids, in one commit; the state of their optimiser stays as it is.

        Raises ValueError for ids that repeat and rows of another shape.
        """
        checked = as_ids(ids, "ids", self.shape[0])
        check_type(rows, "rows", Tensor, "a tensor")
        if rows.shape != (len(checked), self.shape[1]):
            raise ValueError(f"rows must have shape {(len(checked), self.shape[1])}, got {tuple(rows.shape)}")
        found, counts = np.unique(checked, return_counts=True)
        if len(found) < len(checked):
            raise ValueError(f"ids holds {found[counts.argmax()]} {counts.max()} times, but a row is written once")
        which = torch.from_numpy(checked)
        new = rows.detach().to("cpu", self.dtype)

        def change(arrays: Mapping[str, Tensor]) -> None:
            arrays["version"].add_(1)
            self._begin(arrays, checked[~arrays["written"].index_select(0, which).numpy()])
            arrays["rows"].index_copy_(0, which, new)

        with self._lock, torch.no_grad():
            self._change(checked, change)

    def _change(self, ids: Ints, change: Change) -> None:
        """Commit what a function does to the rows ``ids`` of all arrays, and to the version."""
        which = torch.from_numpy(ids)
        wanted = dict.fromkeys(("rows", "written", *self._optimizer.states), which)
        wanted["version"] = torch.zeros(1, dtype=torch.int64)
        self._commit(wanted, change)

    def _commit(self, wanted: Mapping[str, Tensor], change: Change) -> None:
        if self._store is None:
            change_rows(self._memory, wanted, change)
        else:
            self._store.change(wanted, change)

    # ---- state

    def state_dict(self) -> dict[str, Any]:
        """Return the settings, the version, and for a table in memory its tensors, which later steps change.

        The folder of a table in files is its state: a checkpoint is a copy of it, and the version says of which commit.
        """
        state: dict[str, Any] = {"settings": dict(self._settings), "version": self.version}
        return state if self._store is not None else {**state, "arrays": dict(self._memory)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the rows of a state, or for a table in files check that the folder is at its version.

        Raises ValueError for the state of another table or version; then nothing has changed.
        """
        if not isinstance(state, Mapping) or not {"settings", "version"} <= set(state):
            raise ValueError(f"state must be what state_dict returned, got {describe(state)}")
        for name, value in self._settings.items():
            if (stored := state["settings"].get(name)) != value:
                raise ValueError(f"the state is of a table with {name}={stored!r}, this one has {value!r}")
        if ("arrays" in state) != (self._store is None):
            here, there = ("memory", "files") if self._store is None else ("files", "memory")
            raise ValueError(f"the state is of a table in {there}, this one is in {here}")
        if self._store is not None:
            if state["version"] != self.version:
                raise ValueError(
                    f"the state is of version {state['version']} of the table, but {self._store.folder} is at version "
                    f"{self.version}; use a copy of the folder that was made together with the state"
                )
            return
        for name, array in self._memory.items():
            found = state["arrays"].get(name)
            if not isinstance(found, Tensor) or found.shape != array.shape or found.dtype != array.dtype:
                raise ValueError(
                    f"the state is of another table: {name} is {describe(found)} there, and {describe(array)} here"
                )
        with self._lock:
            for name, array in self._memory.items():
                array.copy_(state["arrays"][name])
        self._pulls = Pulls()

    def flush(self) -> None:
        """Wait until the rows of a table in files are on the disk, so that they outlive a power cut."""
        if self._store is not None:
            with self._lock:
                self._store.flush()

    def close(self) -> None:
        """Let another process have the folder. Afterwards nothing may be written."""
        if self._store is not None:
            with self._lock:
                self._store.close()

    @property
    def _arrays(self) -> dict[str, Tensor]:
        return self._memory if self._store is None else self._store.arrays

    def _open(self, folder: Path, shapes: Shapes) -> Store:
        return self._store_in(folder, shapes, {}, {})

    def _store_in(
        self, folder: Path, shapes: Shapes, facts: Mapping[str, Any], words: Mapping[str, str], *, settled: bool = True
    ) -> Store:
        return Store(folder, "embedding table", _LAYOUT, shapes, {**self._settings, **facts}, words, settled=settled)

    def __getstate__(self) -> dict[str, Any]:
        if self._store is not None:
            raise TypeError(
                f"the table in {self._store.folder} belongs to one process and cannot be pickled or copied; "
                "fetch the rows that are needed elsewhere"
            )
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_pulls")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock(), _pulls=Pulls())

    def __repr__(self) -> str:
        where = "" if self._store is None else f", in {self._store.folder}"
        size, kind = " x ".join(map(str, self.shape)), str(self.dtype).removeprefix("torch.")
        return f"EmbeddingTable({size}, {kind}, {self._settings['optimizer']}, lr={self.lr}{where})"
