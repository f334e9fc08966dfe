"""History: the activations of earlier steps, a row per parent node and layer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.calls import checked
from nodeflow._core.base.checks import (
    Ints,
    as_count,
    as_device,
    as_ids,
    check_one_of,
    check_type,
    describe,
)
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._core.display.columns import column_table
from nodeflow._core.display.html import page
from nodeflow._core.edges.view import EdgeView, as_view, graph_of
from nodeflow._core.peers.peers import collective_call
from nodeflow._core.peers.routes import first_of_each
from nodeflow._core.rows.columns import check_numbers
from nodeflow._core.rows.rows import Rows, fetch_rows, first_not_finite, layout_of
from nodeflow._files.store.files import make_store
from nodeflow._files.store.store import Shapes
from nodeflow.control_variates._kept_rows import KeptRows
from nodeflow.flow import NodeFlow
from nodeflow.graph import Graph
from nodeflow.propagation import Propagation

MISSING = ("zero", "mask", "refuse")
# of the arrays in a folder
_LAYOUT = 2
# batches that read a history before one is missed that writes
_MANY = 200


class History(KeptRows):
    """Activations of earlier steps, and their full-neighbourhood sums, for control variates (Chen,
    Zhu, Song 2018).

    For every history layer i it holds ``h_i``: for each node of the graph, its input row of flow i
    when it was last in layer i of a batch. ``pull`` gives a batch its rows, ``push`` stages new
    ones, ``commit`` writes all of them or none. The *aggregated history* ``agg_h_i`` of a node is
    the sum over all its edges of P times the neighbour's row.

    Args:
        graph: the parent graph, or a view of it (``Graph.view``): the propagation P, see
            ``Propagation``. It is never written to.
        widths: by layer, the width of its rows, as ``{1: 256}``. Layer 0 are the inputs.
        aggregated: "on demand": ``agg_h_i`` is computed when it is pulled, for the nodes of the
            batch, from the present rows. "stored": sums are kept for all nodes,
            ``[num_nodes, width]`` more per layer. Rows then change only when an ``Updater``
            recomputes all of them, since sums must match the rows that they are used with.
        dtype: type of the rows: torch.float32, float64, bfloat16 or float16. Sums are float32 at
            least.
        device: device of the rows. ``.to`` moves them later.
        folder: keep the rows in memory-mapped files there, with the guarantees of
            ``storage.EmbeddingTable`` for its folder. An existing one of a history with the same
            propagation, widths and types is reopened.
        inputs: rows of the input layer for all nodes, finite: dense, sparse CSR, or an object with
            ``shape``, ``dtype`` and ``fetch(ids, out=None)``. They never change, so their sums over
            all neighbours are computed once. Batches get these exact sums as ``agg_h_0``, and a
            model uses them in place of the rows it is given. The sums take as much memory as dense
            inputs, and more than sparse ones. They are no buffer: a checkpoint does not have them.
            ``has_inputs`` says whether there are any.

    It is an ``nn.Module`` whose tensors are buffers. ``state_dict`` has all of them, and a hash of
    the propagation, so that the state of another propagation is refused.

    Where the graph lies on several processes (``DistributedGraph``), each holds the rows of the
    nodes that it owns, in the order of ``graph.masters``, and ``folder`` is its own. All rows of
    nodes come from their owners, and ``commit`` sends new ones there: all processes write, or none
    does. Making a history, reading rows of given nodes, ``pull``, ``commit``, ``renewal``,
    ``clear`` and ``load_state_dict`` are then collective.

    Raises TypeError and ValueError for wrong arguments, and the errors of ``Propagation``; for
    ``folder`` those of ``storage.EmbeddingTable``.

    >>> graph = Graph.from_edges([0, 2, 0, 1], [1, 1, 2, 2], edata={"p": torch.full((4,), 0.5)})
    >>> history = History(graph.view(weight="p"), {1: 1})
    >>> history.write(1, [0, 1, 2], torch.tensor([[0.5], [0.0], [1.0]]))
    >>> history.commit()
    >>> history.aggregated_rows(1, [2, 1]).flatten(), history.age(1, [0, 1])
    (tensor([0.2500, 0.7500]), tensor([0, 0]))
    """

    @checked
    def __init__(
        self,
        graph: Graph | EdgeView,
        widths: Mapping[int, int],
        *,
        aggregated: str = "on demand",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        folder: FileLike | None = None,
        inputs: Tensor | Rows | None = None,
    ) -> None:
        super().__init__()
        with graph_of(graph).peers.together("the arguments of History"):
            view = as_view(graph)
            self.propagation = Propagation(view)
            self.propagation.plan.check_together(view.direction)
            check_type(widths, "widths", Mapping, "a dict from layer to width, as in {1: 256}")
            if not widths:
                raise ValueError(
                    "widths has no layer; a model of one layer whose inputs have exact sums needs "
                    "no history"
                )
            self.widths = {
                as_count(i, "a layer in widths"): as_count(w, f"widths[{i}]", 1)
                for i, w in widths.items()
            }
            check_one_of(aggregated, "aggregated", ("on demand", "stored"))
            self.stored = aggregated == "stored"
            if dtype not in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
                raise ValueError(f"dtype must be a floating type, got {dtype}")
            peers = self.graph.peers
            # commits are exchanged by layer, so all processes must have the same history
            facts = {
                "widths": self.widths,
                **view.settings,
                "dtype": dtype,
                "aggregated": aggregated,
                "a folder": folder is not None,
                "inputs": inputs is not None,
            }
            stated = {name: repr(value) for name, value in facts.items()}
            peers.agree("the arguments of History", stated)
            if device is not None:
                device = as_device(device)
            if folder is not None and device is not None and device.type != "cpu":
                raise ValueError("a history in files lies on the CPU; leave out folder or device")
            if inputs is not None and 0 in self.widths:
                raise ValueError(
                    "layer 0 has a history of its own in widths; leave it out, or leave out inputs"
                )
            self._staged: dict[int, tuple[Ints, Tensor]] = {}
            self._pulls = 0
            self._sum_of_seeds = -1
            self.has_inputs = inputs is not None
            self._sums_of_inputs = None
            if inputs is not None:
                self._sums_of_inputs = sums_of_inputs(self.propagation, inputs)
            words = {"propagation": "of another graph, edge weights, direction or filter"}
            self._store = make_store(
                folder,
                "history",
                self._shapes(dtype),
                peers,
                device,
                version=_LAYOUT,
                facts={"propagation": self.propagation.fingerprint},
                words=words,
                counter="step",
            )
            for name, tensor in self._store.arrays.items():
                self.register_buffer(name, tensor)

    @property
    def view(self) -> EdgeView:
        """The edges of the propagation P, which samplers and passes take in place of a graph."""
        return self.propagation.view

    @property
    def graph(self) -> Graph:
        """The parent graph."""
        return self.propagation.graph

    # ---- reading

    @collective_call("rows of the history")
    def rows(self, layer: int, nodes: IdsLike) -> Tensor:
        """Return the rows of ``nodes`` (parent ids) in a layer, ``[len(nodes), width]``: zeros
        where never written.
        """
        return self._rows("rows", "h", layer, self._ids(nodes))

    @collective_call("ages of the history")
    def age(self, layer: int, nodes: IdsLike | None = None) -> Tensor:
        """Return how many commits ago rows of ``nodes`` (None: all owned here) were written, int64.

        0 is the last commit, -1 means never.
        """
        return self._age(layer, None if nodes is None else self._ids(nodes))

    @collective_call("sums of the history")
    def aggregated_rows(self, layer: int, nodes: IdsLike) -> Tensor:
        """Return the aggregated history of ``nodes``: sums over *all* their edges,
        ``[len(nodes), width]``.
        """
        return self._aggregated(layer, self._ids(nodes))

    @collective_call("the history of a batch")
    def pull(self, batch: NodeFlow, *, missing: str = "zero") -> Tensor:
        """Give a batch its history: for every history layer the columns ``h_i`` of layer i,
        ``agg_h_i`` of layer i + 1.

        Args:
            batch: a NodeFlow of this graph.
            missing: how to treat rows that were never written. "zero" takes zeros: control variates
                are unbiased with any history. "mask" takes zeros too, and adds the bool column
                ``known_i``. "refuse" raises ValueError.

        Returns the mean age of the rows that were ever written, a scalar; NaN where there were
        none. All columns are set, or none. Warns once, with RuntimeWarning, when 200 batches of
        training (with gradients enabled, and each for other seeds than the one before) have read
        rows that were never written, and none was committed.
        """
        layers = [i for i in self.widths if i < batch.num_flows]
        check_one_of(missing, "missing", MISSING)
        self._check_batch(batch)
        columns = []
        ages = []
        for i in layers:
            nodes = self._ids(batch.layers[i].parent_nid)
            age = self._age(i, nodes)
            if missing == "refuse" and bool((age < 0).any()):
                node = int(nodes[(age < 0).numpy(force=True)][0])
                raise ValueError(
                    f"layer {i} of the history has no row yet of node {node}; fill it with an "
                    "Updater, or pull with missing='zero'"
                )
            ages.append(age[age >= 0])
            columns.append((i, f"h_{i}", self._rows("rows", "h", i, nodes)))
            if missing == "mask":
                columns.append((i, f"known_{i}", age >= 0))
            sums = self._aggregated(i, self._ids(batch.layers[i + 1].parent_nid))
            columns.append((i + 1, f"agg_h_{i}", sums))
        if self._sums_of_inputs is not None and batch.num_flows:
            sums = self._fetch(
                "sums of inputs", self._sums_of_inputs, self._ids(batch.layers[1].parent_nid)
            )
            columns.append((1, "agg_h_0", sums))
        if sum(map(len, ages)) < sum(len(batch.layers[i]) for i in layers):
            self._remind(batch)
        # set last: an error above leaves the batch unchanged
        for i, name, column in columns:
            batch.ldata[i][name] = column.to(batch.device)
        if ages:
            return torch.cat(ages).double().mean()
        return torch.tensor(torch.nan, dtype=torch.float64)

    def _remind(self, batch: NodeFlow) -> None:
        """Warn once where batches read rows that are never written: control variates of zeros save
        no variance.
        """
        seeds = int(batch.seeds.sum())
        # an evaluation commits nothing, nor does an experiment, which draws for the same seeds
        # again and again
        self._pulls += torch.is_grad_enabled() and seeds != self._sum_of_seeds
        self._sum_of_seeds = seeds
        if self._pulls == _MANY and not self.stored and int(self.step) <= 1:
            warnings.warn(
                f"{_MANY} batches have read rows that were never written, and none was committed: "
                "call history.commit(batch) after every step, or fill the history with an Updater",
                RuntimeWarning,
                stacklevel=4,
            )

    # ---- writing

    def push(self, batch: NodeFlow, rows: Mapping[int, Tensor] | None = None) -> None:
        """Stage new rows of the nodes of a batch; ``commit`` writes them.

        Args:
            batch: a NodeFlow of this graph.
            rows: for every history layer i that the batch has, a row per node of its layer i, in
                order. None: the columns "h" of these layers, where they have one.

        Raises ValueError for a batch of another graph, widths that differ, numbers that are not
        finite, and a layer that holds a node twice. Then nothing is taken.
        """
        self._check_batch(batch)
        if rows is None:
            rows = {
                i: batch.ldata[i]["h"]
                for i in self.widths
                if i < batch.num_flows and "h" in batch.ldata[i]
            }
            if not rows:
                raise ValueError(
                    "the batch has no column 'h' in any history layer; set them, or pass rows={i: "
                    "...}"
                )
        self._staged |= {
            i: self._checked(
                i, batch.layers[i].parent_nid, new, distinct=batch.layers[i].context is None
            )
            for i, new in rows.items()
        }

    def write(self, layer: int, nodes: IdsLike, rows: Tensor) -> None:
        """Stage new rows ``[len(nodes), width]`` of some nodes; ``commit`` writes them. Raises as
        ``push``.
        """
        self._staged[layer] = self._checked(layer, nodes, rows)

    def _checked(
        self, layer: int, nodes: IdsLike, rows: Tensor, *, distinct: bool = False
    ) -> tuple[Ints, Tensor]:
        """Return ids and a copy of their new rows; ``distinct``: no node occurs twice."""
        ids = self._ids(nodes)
        if not distinct and len(np.unique(ids)) < len(ids):
            raise ValueError(f"layer {layer} holds a node twice, but the history has one row of it")
        if self.stored:
            raise ValueError(
                "a history with aggregated='stored' is written by an Updater only, all of it, "
                "since its sums must be those of its rows; use aggregated='on demand' to push rows"
            )
        target = self._column("h", layer)
        if layer in self._staged:
            raise ValueError(
                f"layer {layer} has rows that wait for a commit; there is one push per commit"
            )
        check_type(rows, f"rows of layer {layer}", Tensor, "a tensor")
        if rows.shape != (len(ids), self.widths[layer]):
            raise ValueError(
                f"rows of layer {layer} must have shape {(len(ids), self.widths[layer])}, got "
                f"{tuple(rows.shape)}"
            )
        new = rows.detach().to(target.device, target.dtype, copy=True)
        if (row := first_not_finite(new)) is not None:
            raise ValueError(
                f"rows of layer {layer} must be finite in {target.dtype}, but row {row} is not"
            )
        return ids, new

    @collective_call("a commit of the history")
    def commit(self, batch: NodeFlow | None = None) -> None:
        """Write all pushed rows. If anything raises, nothing is written. In both cases the pushed
        rows are dropped.

        Args:
            batch: a batch to push first, with its columns "h"; None: none. Raises as ``push``.
        """
        try:
            if batch is not None:
                self.push(batch)
        finally:
            pushed = self._staged
            self._staged = {}
        # the step too, before it is read
        self._store.restore()
        own_step = np.array([int(self.step)])
        # every process sends every layer, if only empty rows: all take part in one exchange of
        # equal parcels
        nothing = np.zeros(0, np.int64)
        columns = [pushed.get(i, (nothing, self._column("h", i)[:0])) for i in self.widths]
        steps, received = self.graph.peers.send("rows that were pushed", own_step, columns)
        if len(set(steps[:, 0])) > 1:
            raise ValueError(
                "the histories of the processes are of different commits: numbers "
                f"{steps[:, 0].tolist()}, by rank; load states, or open folders, that belong "
                "together"
            )
        step = int(own_step[0]) + 1
        device = self.step.device
        changes = {
            "step": (
                torch.zeros(1, dtype=torch.int64, device=device),
                torch.tensor([step], device=device),
            )
        }
        for i, parts in zip(self.widths, received, strict=True):
            # the lowest rank wins where several wrote a node: the result must not depend on
            # arrival order
            ids, rows = first_of_each(parts)
            if len(ids):
                which = torch.from_numpy(self.graph.held_part.whole.rows_of(ids)).to(device)
                changes[f"h_{i}"] = which, rows.to(device)
                changes[f"written_{i}"] = which, torch.full_like(which, step)
        self._store.commit(changes)

    # ---- inside

    def _shapes(self, dtype: torch.dtype) -> Shapes:
        """Return shape and type of every array."""
        size = self.graph.held_part.num_masters
        shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {"step": ((), torch.int64)}
        for i, width in self.widths.items():
            shapes[f"h_{i}"] = ((size, width), dtype)
            shapes[f"written_{i}"] = ((size,), torch.int64)
            if self.stored:
                wide = torch.promote_types(dtype, torch.float32)
                shapes[f"agg_h_{i}"] = ((size, width), wide)
        return shapes

    def _column(self, name: str, layer: int) -> Tensor:
        if layer not in self.widths:
            raise ValueError(
                f"layer {layer} is no layer of this history, which has {sorted(self.widths)}"
            )
        return cast("Tensor", getattr(self, f"{name}_{layer}"))

    def _age(self, layer: int, ids: Ints | None) -> Tensor:
        if ids is None:
            written = self._column("written", layer)
        else:
            written = self._rows("ages", "written", layer, ids)
        return torch.where(written > 0, self.step - written, -1)

    def _aggregated(self, layer: int, ids: Ints) -> Tensor:
        if self.stored:
            return self._rows("sums", "agg_h", layer, ids)
        return self.propagation.sums_at(self._column("h", layer), ids)

    def _rows(self, what: str, name: str, layer: int, ids: Ints) -> Tensor:
        return self._fetch(f"{what} of layer {layer}", self._column(name, layer), ids)

    def _fetch(self, what: str, column: Tensor, ids: Ints) -> Tensor:
        peers = self.graph.peers
        layout = self.graph.held_part.whole

        def held(nodes: Ints) -> Tensor:
            return fetch_rows(column, torch.from_numpy(layout.rows_of(nodes)))

        return peers.fetch(f"{what} of the history", ids, peers.owners, held).to(column.device)

    def _ids(self, nodes: IdsLike) -> Ints:
        return as_ids(nodes, "nodes", self.graph.num_nodes)

    def _check_batch(self, batch: NodeFlow) -> None:
        if batch.parent is not self.graph:
            raise ValueError("the batch belongs to another graph than the history, or to none")

    def _repr_html_(self) -> str:
        # shows this process's buffers only: reads no rows of other processes, and no whole file
        buffers = {name: tensor for name, tensor in self.named_buffers() if name != "step"}
        return page("History", self.extra_repr(), column_table([("", buffers)]))

    def extra_repr(self) -> str:
        where = ""
        if self._store.folder is not None:
            where = f", in {self._store.folder}"
        return (
            f"{self.widths}, {self.graph.num_nodes} nodes, sums "
            f"{'stored' if self.stored else 'on demand'}{where}"
        )


def sums_of_inputs(propagation: Propagation, inputs: Tensor | Rows) -> Tensor:
    """Return the sums of ``inputs`` over all neighbours of the nodes owned here,
    ``[masters, width]``; collective.
    """
    size = propagation.graph.num_nodes
    layouts = (torch.strided, torch.sparse_csr)
    if not isinstance(inputs, Tensor | Rows) or layout_of(inputs) not in layouts:
        raise TypeError(f"inputs must be a dense or sparse CSR tensor, got {describe(inputs)}")
    if len(inputs.shape) != 2 or inputs.shape[0] != size or not inputs.dtype.is_floating_point:
        raise ValueError(
            f"inputs must have a row per node, floats [{size}, width], got {inputs.dtype} "
            f"{tuple(inputs.shape)}"
        )
    check_numbers(inputs.dtype, "inputs")
    if isinstance(inputs, Tensor) and inputs.requires_grad:
        raise ValueError(
            "inputs that are learned change, so their sums do not stay exact: leave out inputs"
        )
    sums = propagation.sums_of_column(inputs)
    if first_not_finite(sums) is not None:
        raise ValueError("inputs must be finite, and their sums too")
    return sums
