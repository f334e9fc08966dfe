"""Updater: full passes of the model that recompute the whole history."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nodeflow._core.base.checks import as_count, as_flag, check_type, describe
from nodeflow._core.base.types import FileLike
from nodeflow._core.rows.rows import Rows, first_not_finite, take_rows
from nodeflow.control_variates._history import History

# rows at a time, where the layers lie in files
_CHUNK = 2**16


class Updater:
    """Recomputes the whole history at intervals, by a full pass of the model in training.

    A pass computes the rows of every history layer from full neighbourhoods, without dropout, and
    their sums if the history stores them. They replace all old rows at once when the pass ends. If
    it raises, the old rows stay.

    Args:
        model: a ``FlowModel``; it is run, not copied.
        history: the history that is written. Its propagation says along which edges and with which
            weights.
        x: rows of the input layer for all nodes, ``[num_nodes, in_features]``, as
            ``FlowModel.inference`` takes.
        every: ``step`` runs a pass on the first call and every ``every`` calls from then on; None:
            on the first only.
        chunk_size: number of nodes computed at a time (see ``FlowModel.inference``); None: all at
            once.
        progress: show a bar.
        folder: where the rows of layers lie in files during a pass; None: in memory (see
            ``FlowModel.inference``).

    Where the graph lies on several processes, passes are collective: each process computes the
    nodes that it owns, and ``folder`` is None. ``x`` may be a column of the graph, or rows of all
    nodes.

    Memory: the rows of two layers, what a convolution needs for ``chunk_size`` nodes, and the new
    history beside the old one (in its folder, if it has one). With ``folder``, and a history that
    has a folder too, only what a convolution needs.

    >>> import torch
    >>> from nodeflow import Graph, nn, transform
    >>> graph = transform.add_self_loops(Graph.from_edges([0, 1, 2], [1, 2, 0]))
    >>> graph.edata["p"] = transform.edge_norm(graph)
    >>> model = nn.VRGCN(2, 4, 3, num_layers=2)
    >>> history = History(graph.view(weight="p"), model.history_widths)
    >>> updater = Updater(model, history, torch.ones(3, 2), every=100)
    >>> updater.step()
    True
    >>> history.age(1)
    tensor([0, 0, 0])
    """

    def __init__(
        self,
        model: Any,
        history: History,
        x: Tensor | Rows,
        *,
        every: int | None = None,
        chunk_size: int | None = None,
        progress: bool = False,
        folder: FileLike | None = None,
    ) -> None:
        if not callable(getattr(model, "layers", None)):
            raise TypeError(
                "model must be a nodeflow.nn.FlowModel, or have its layers(), got "
                f"{describe(model)}"
            )
        check_type(history, "history", History, "a History")
        self.model = model
        self.history = history
        self.x = x
        self.every = None if every is None else as_count(every, "every", 1)
        self.chunk_size = None if chunk_size is None else as_count(chunk_size, "chunk_size", 1)
        self.progress = as_flag(progress, "progress")
        self.folder = None if folder is None else Path(folder)
        # as full passes do: see ``FullPass``
        if folder is not None and history.graph.in_parts:
            raise ValueError("folder must be None for a graph that lies on several processes")
        self.calls = 0

    def __repr__(self) -> str:
        when = "when asked"
        if self.every is not None:
            when = f"every {self.every} steps"
        return f"Updater({type(self.model).__name__}, {self.history!r}, {when})"

    def step(self) -> bool:
        """Run a pass if one is due. Return whether one was."""
        due = self.calls % self.every == 0 if self.every else self.calls == 0
        if due:
            self.run()
        self.calls += 1
        return due

    def state_dict(self) -> dict[str, int]:
        """Return the state of the schedule; the history has a state of its own."""
        return {"calls": self.calls}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Load the state of the schedule. Raises ValueError for anything that ``state_dict`` did
        not return.
        """
        if not isinstance(state, Mapping) or set(state) != {"calls"}:
            raise ValueError(f"state must be what state_dict returned, got {describe(state)}")
        self.calls = as_count(state["calls"], "state['calls']")

    def run(self) -> None:
        """Run a pass.

        Raises ValueError if the model's rows do not fit the history or are not finite; the history
        is then unchanged.
        """
        history = self.history
        missing = set(self.history.widths)
        options: dict[str, Any] = {"chunk_size": self.chunk_size, "progress": self.progress}
        # own models may lack it
        if self.folder is not None:
            options["folder"] = self.folder
        # the rows outlive the call: they must be neither inference tensors nor part of the caller's
        # autograd graph
        with (
            torch.inference_mode(mode=False),
            torch.no_grad(),
            history.renewal() as new,
            ExitStack() as stack,
        ):
            passing = iter(self.model.layers(history.propagation, self.x, **options))
            if isinstance(passing, Generator):
                # closing restores the model's training mode now, not when collected
                stack.callback(passing.close)
            # layers above have no history
            for i, h in enumerate(islice(passing, max(history.widths) + 1)):
                if i in missing:
                    self._take(i, h, new)
                    missing.remove(i)
            if missing:
                raise ValueError(
                    f"the model has no layers {sorted(missing)}, which the history has"
                )

    def _take(self, i: int, h: Tensor, new: dict[str, Tensor]) -> None:
        """Copy the rows of a layer into a new history, and sum them up where the history stores
        sums.
        """
        history = self.history
        target = new[f"h_{i}"]
        if h.shape != target.shape:
            raise ValueError(
                f"layer {i} of the history is {tuple(target.shape)}, but the model's rows are "
                f"{tuple(h.shape)}"
            )
        # all at once where the layers lie in memory
        ranges = history.propagation.ranges(
            None if self.folder is None else self.chunk_size or _CHUNK
        )
        for start, stop in ranges:
            is_all = isinstance(h, Tensor) and stop - start == len(target)
            target[start:stop].copy_(
                h if is_all else take_rows(h, torch.arange(start, stop, device="cpu"))
            )
        if first_not_finite(target) is not None:
            raise ValueError(f"the model's rows of layer {i} are not finite in {target.dtype}")
        # sums of the stored rows, rounded to their type, since sums must match the rows that they
        # are used with
        for start, stop in ranges if history.stored else ():
            nodes = None
            if stop - start != len(target):
                nodes = torch.arange(start, stop, device="cpu")
            new[f"agg_h_{i}"][start:stop] = history.propagation(target, nodes)
