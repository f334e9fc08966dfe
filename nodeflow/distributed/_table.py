"""DistributedTable: rows learned for the nodes of a graph that lies on several processes, each with its owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints, as_ids, check_one_of, check_type, describe
from nodeflow._base.types import FileLike, IdsLike
from nodeflow._rows.rows import as_array, from_numpy
from nodeflow.distributed._graph import DistributedGraph
from nodeflow.distributed._owned_rows import OwnedRows
from nodeflow.graph._fetch_apart import fetch_apart
from nodeflow.graph._routes import Routes
from nodeflow.storage._pulls import Pulls, added, check_finite, gradients


class DistributedTable:
    """A ``storage.EmbeddingTable`` with a row per node of a graph that lies on several processes.

    Each process holds the rows of the nodes that it owns, and the state of their optimiser. ``pull`` gives rows of any
    nodes from their owners. In ``step`` gradients go to the owners, which add up those of all processes, in the order
    of their numbers, and take one step with the sum. So rows are those of one table in one process whose batch is all
    of the processes' batches, up to rounding. A step is a commit: all processes make it, or none does.

    Making a table, ``fetch``, ``pull``, ``step`` and ``write`` are *collective*: every process calls them, in the same
    order, each with ids of its own, which may be none.

    Args:
        graph: what ``DistributedGraph.open`` gives.
        width: width of the rows.
        gradients: "sum" adds the gradients of the processes, "mean" divides the sum by their number. A loss of which
            ``DistributedDataParallel`` takes the mean gradient needs "mean".
        optimizer, lr, betas, eps, weight_decay, initial_accumulator_value, init, scale, seed, dtype: as for
            ``storage.EmbeddingTable``, the same on all processes. Initial rows are those of a table of all nodes.
        folder: keep the rows of this process in files there, a folder for each process. After a process was killed,
            the folders of all are opened again together, with the rows of one whole commit.

    The table is a column, ``graph.ndata["emb"] = table``, whose rows have no gradient.

    Raises TypeError and ValueError for wrong arguments, for arguments that differ between processes, and for folders
    that are not of one commit; PeerError where another process raises.

    >>> import tempfile
    >>> from nodeflow import Graph, distributed
    >>> folder = tempfile.mkdtemp()
    >>> ring = Graph.from_edges([0, 1, 2], [1, 2, 0])
    >>> parts = distributed.partition_graph(ring, folder, 1, method="ranges", progress=False)
    >>> graph = DistributedGraph.open(folder)
    >>> table = DistributedTable(graph, 2, optimizer="sgd", lr=0.5, init="zeros")
    >>> rows = table.pull([2, 0, 2])
    >>> rows.sum().backward()
    >>> table.step()
    >>> table.fetch([0, 1, 2]).tolist(), table.version
    ([[-0.5, -0.5], [0.0, 0.0], [-1.0, -1.0]], 1)
    """

    collective = True

    def __init__(
        self,
        graph: DistributedGraph,
        width: int,
        *,
        lr: float,
        optimizer: str = "adagrad",
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
        check_type(graph, "graph", DistributedGraph, "what DistributedGraph.open gives")
        self._peers, self._parts, self._pulls = graph.peers, graph.parts, Pulls()
        options = {
            "optimizer": optimizer, "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "init": init, "scale": scale, "seed": seed,
            "dtype": dtype,
        }  # fmt: skip
        given = {"width": width, "gradients": gradients, **options, "a folder": folder is not None}
        with self._peers.together("making a table", exchanges=2 if folder is None else 3):
            self._peers.agree("arguments of DistributedTable", {name: repr(value) for name, value in given.items()})
            check_one_of(gradients, "gradients", ("sum", "mean"))
            self.gradients = gradients
            self._own = OwnedRows(self._peers, graph.masters.numpy(), width, folder=folder, **options)
            if folder is None:
                self._peers.gather("the end of making a table", [])
        self.shape = (graph.num_nodes, self._own.shape[1])

    @property
    def dtype(self) -> torch.dtype:
        """Type of the rows."""
        return self._own.dtype

    @property
    def lr(self) -> float:
        """The learning rate. It may be set between steps, to the same number on all processes."""
        return self._own.lr

    @lr.setter
    def lr(self, value: float) -> None:
        self._own.lr = value

    @property
    def version(self) -> int:
        """Number of commits: steps, and calls of ``write``."""
        return self._own.version

    def fetch(self, ids: IdsLike, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids`` as they are now, ``[len(ids), width]``, without gradient; collective.

        With ``out``, a tensor of that shape and type, they are written there. Raises IndexError for an id that is no
        row, ValueError for another ``out``.
        """
        with self._peers.together("learned rows", exchanges=2):
            checked = as_ids(ids, "ids", self.shape[0])
            shape = (len(checked), self.shape[1])
            if out is not None and (out.shape != shape or out.dtype != self.dtype):
                raise ValueError(f"out must be {self.dtype} {shape}, got {describe(out)}")
            return fetch_apart(self._peers, "learned rows", checked, self._peers.owners, self._held, out)

    def pull(self, ids: IdsLike, device: torch.device | str | None = None) -> Tensor:
        """Return the rows ``ids`` as a leaf that requires a gradient, ``[len(ids), width]``, for the next ``step``.

        Collective. Ids may repeat: each row travels once, and its gradients are added up. There may be several pulls
        per step. With gradients turned off (``torch.no_grad``) the rows require none, and no step waits for them.
        """
        if not torch.is_grad_enabled():
            return self.fetch(ids).to(device)
        with self._peers.together("learned rows", exchanges=1):  # the fetch within has its own
            checked = as_ids(ids, "ids", self.shape[0])
            return self._pulls.pull(checked, self.fetch, device)

    def step(self, *rows: Tensor) -> None:
        """Change the rows that all processes have pulled by their gradients, in one commit; collective.

        Args:
            rows: results of ``pull`` on this process; none: all pulled since the last step. A process whose rows have
                no gradient takes part with none.

        Raises ValueError, on all processes, where no row of any has a gradient; else as ``EmbeddingTable.step``. Then
        nothing is written on any process. Raises PeerError where another one raises.
        """
        with self._peers.together("a step of a table", exchanges=2), torch.no_grad():
            chosen = self._pulls.waiting(rows)
            found = gradients(chosen, self._own.exact)
            told = [self.version, self.lr, found is not None]
            empty = np.zeros(0, np.int64), torch.zeros(0, self.shape[1], dtype=self._own.exact)
            ids, grads, had = self._owned("gradients of learned rows", *(found or empty), told)
            if not had.any():
                raise ValueError(
                    "no row of any process has a gradient: pull rows, compute a loss of them, call its backward(), and "
                    "then step()"
                )
            distinct, total = added([(part, of) for part, of in zip(ids, grads, strict=True)])
            if self.gradients == "mean":
                total /= self._peers.size
            check_finite(distinct, total)
            self._own.update(self._parts.places(distinct), total)
        self._pulls.forget(chosen)

    def drop(self, *rows: Tensor) -> None:
        """Let rows that were pulled here wait for no step any more; without arguments, all of them.

        Raises ValueError for tensors that were not pulled from this table, or whose step was made.
        """
        self._pulls.forget(self._pulls.waiting(rows))

    def write(self, ids: IdsLike, rows: Tensor) -> None:
        """Set the rows of distinct ids, in one commit; collective. The state of their optimiser stays as it is.

        Where several processes write the same row, that of the first process is taken. Raises ValueError for ids that
        repeat and rows of another shape.
        """
        with self._peers.together("writing learned rows", exchanges=2):
            checked = as_ids(ids, "ids", self.shape[0])
            check_type(rows, "rows", Tensor, "a tensor")
            if rows.shape != (len(checked), self.shape[1]):
                raise ValueError(f"rows must have shape {(len(checked), self.shape[1])}, got {tuple(rows.shape)}")
            if len(np.unique(checked)) < len(checked):
                raise ValueError("ids holds an id twice, but a row is written once")
            new, told = rows.detach().to("cpu", self.dtype), [self.version, self.lr, True]
            asked, parts, _ = self._owned("learned rows that are written", checked, new, told)
            distinct, first = np.unique(np.concatenate(asked), return_index=True)
            self._own.write(self._parts.places(distinct), torch.cat(parts)[torch.from_numpy(first)])

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the rows of this process, as ``EmbeddingTable.state_dict``."""
        return self._own.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the rows of a state of this process; all processes take those of one commit.

        Raises ValueError for the state of another table, part or version; then nothing has changed.
        """
        self._own.load_state_dict(state)
        self._pulls = Pulls()

    def flush(self) -> None:
        """Wait until the rows of this process are on the disk, for a table in files."""
        self._own.flush()

    def close(self) -> None:
        """Let another process have the folder. Afterwards nothing may be written."""
        self._own.close()

    def _held(self, ids: Ints) -> Tensor:
        return self._own.fetch(self._parts.places(ids))

    def _owned(
        self, what: str, ids: Ints, rows: Tensor, told: list[Any]
    ) -> tuple[list[Ints], list[Tensor], np.ndarray[Any, Any]]:
        """Send rows to the owners of their ids; return, by process, the ids and rows that came, and the last of told.

        Raises ValueError, on all processes, where their versions or learning rates differ.
        """
        routes, parcels = Routes(self._peers.owners(ids), self._peers.size), []
        for r in range(self._peers.size):
            own = routes.to(r)
            sent = rows.index_select(0, torch.from_numpy(own)).contiguous()
            parcels.append([np.array(told, np.float64), ids[own], as_array(sent)])
        found = self._peers.exchange(what, parcels)
        facts = np.stack([arrays[0] for arrays in found])
        for k, name in enumerate(("version", "lr")):
            if len(set(facts[:, k])) > 1:
                raise ValueError(f"the {name} of a table must be the same on all processes, got {facts[:, k].tolist()}")
        return [a[1] for a in found], [from_numpy(a[2], rows.dtype) for a in found], facts[:, 2]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a DistributedTable is not pickled or copied: every process makes it itself")

    def __repr__(self) -> str:
        size, kind = " x ".join(map(str, self.shape)), str(self.dtype).removeprefix("torch.")
        return f"DistributedTable({size}, {kind}, {self._own.shape[0]} rows here, lr={self.lr})"
