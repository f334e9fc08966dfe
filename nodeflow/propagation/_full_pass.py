"""Full passes: a model computed layer by layer over the whole graph, or over what some nodes depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from nodeflow._base.checks import Ints, as_count, as_ids, check_num_rows, check_type, describe
from nodeflow._base.types import IdsLike
from nodeflow._peers.held import together
from nodeflow._peers.routes import fetch_from_owners
from nodeflow._rows.rows import Rows, fetch_rows, is_read_only, take_rows
from nodeflow.flow import Flow
from nodeflow.propagation._propagation import Propagation

_PIECE = 2**16  # rows that are copied at a time


class LayeredModel(Protocol):
    """A model that a full pass can compute one convolution at a time: every ``nodeflow.nn.FlowModel``."""

    @property
    def convs(self) -> Sized:
        """The convolutions."""

    @property
    def jumping(self) -> Callable[[list[Tensor]], Tensor] | None:
        """Joins the rows of all layers into the outputs; None: the outputs are those of the last convolution."""

    def modules(self) -> Iterator[nn.Module]:
        """Give all modules of the model, itself included."""

    def eval(self) -> object:
        """Turn dropout and the like off."""

    def activate(self, i: int, h: Tensor) -> Tensor:
        """Return the rows that enter convolution ``i``, from the outputs of the one before."""

    def convolve(self, i: int, flow: Flow, h: Tensor) -> Tensor:
        """Return the outputs of convolution ``i``."""

    def layers(
        self, propagation: Propagation, h: Tensor | Rows, *, chunk_size: int | None = None, progress: bool = False
    ) -> Iterable[Tensor]:
        """Yield the rows of all nodes that enter each convolution, then the outputs, without dropout."""


def check_features(h: object) -> None:
    """Raise TypeError unless ``h`` is a tensor that models take as rows of features."""
    if not isinstance(h, Tensor):
        if isinstance(h, str):
            hint = f"pass the rows themselves, such as batch.ldata[0][{h!r}] or graph.ndata[{h!r}]"
        elif isinstance(h, np.ndarray):
            hint = "torch.from_numpy(h) makes one of it"
        else:
            hint = "graph.ndata['feat'] = h makes one of a data frame or a scipy sparse matrix"
        raise TypeError(f"h must be a tensor with a row per node, got {describe(h)}: {hint}")
    if h.layout not in (torch.strided, torch.sparse_csr):
        raise TypeError(f"h must be dense or sparse CSR, got layout {h.layout}: convert with .to_sparse_csr()")


def check_out(out: object, num_rows: int) -> Tensor | None:
    """Return the tensor that takes the outputs, or None; raise TypeError or ValueError for one that cannot."""
    if out is None:
        return None
    check_type(out, "out", Tensor, "a tensor that takes the outputs, such as storage.create makes")
    assert isinstance(out, Tensor)
    if out.layout != torch.strided or out.requires_grad or is_read_only(out):
        what = "a file that was opened for reading only" if is_read_only(out) else "sparse, or requires a gradient"
        raise ValueError(f"out must be a dense tensor that can be written, but it is {what}")
    check_num_rows(out.shape, "out", num_rows, "node of the outputs")
    return out


class FullPass:
    """Computes a model layer by layer from full neighbourhoods. Arguments as for ``FlowModel.inference``.

    ``index``, int64 ``[len(nodes)]``, is the row of each of ``nodes`` in the outputs; None: all, in order. ``out``
    takes the outputs of a pass over all nodes. Where several processes hold the graph, each computes all the nodes that
    it owns, and ``outputs`` fetches those of ``nodes``.
    """

    def __init__(
        self, model: LayeredModel, propagation: Propagation, *, nodes: IdsLike | None = None,
        chunk_size: int | None = None, progress: bool = False, out: Tensor | None = None,
    ) -> None:  # fmt: skip
        self.model, self.propagation, self.progress, self.out = model, propagation, progress, out
        # checked before anything is computed
        self.chunk_size = None if chunk_size is None else as_count(chunk_size, "chunk_size", 1)
        self.index: Tensor | None = None
        self.nodes: Ints | None = None
        # of every layer the nodes whose rows are computed, ascending; None: all
        self.needed: list[Ints | None] = [None] * (len(model.convs) + 1)
        with together(propagation.graph, "outputs of nodes"):
            propagation.plan.check_together(propagation.direction)
            self.nodes = None if nodes is None else as_ids(nodes, "nodes", propagation.graph.num_nodes)
        if self.nodes is not None and propagation.graph.peers.size == 1:
            wanted, index = np.unique(self.nodes, return_inverse=True)
            self.index = torch.from_numpy(index)
            for i in reversed(range(len(self.needed))):
                self.needed[i] = wanted
                wanted = propagation.needed(wanted) if i else wanted

    def __call__(self, h: Tensor | Rows) -> Iterator[Tensor]:
        """Yield the rows that enter each convolution, before dropout, then the outputs: of the nodes needed."""
        if not isinstance(h, Rows):
            check_features(h)
        model = self.model
        check_num_rows(h.shape, "h", self.propagation.graph.num_nodes, "node of the graph")
        modes = {module: module.training for module in model.modules()}  # parts may be frozen in evaluation mode
        model.eval()
        total = sum(len(self._ranges(i)) for i in range(len(model.convs)))
        try:
            with tqdm(total=total, disable=not self.progress, desc="full pass", leave=False) as bar:
                yield from self._layers(h, bar)
        finally:
            for module, training in modes.items():
                module.training = training

    def _layers(self, h: Tensor | Rows, bar: tqdm[Any]) -> Iterator[Tensor]:
        model, needed, plan = self.model, self.needed[0], self.propagation.plan
        kept: list[Tensor] = []  # with jumping: the rows of every layer, of the nodes wanted
        h = plan.fetched(h)
        if not isinstance(h, Tensor):
            h = fetch_rows(h, torch.from_numpy(np.arange(h.shape[0]) if needed is None else needed))
        elif needed is not None:
            h = take_rows(h, torch.from_numpy(needed))
        for i in range(len(model.convs)):
            h = model.activate(i, plan.gathered(h) if i else h)
            yield plan.own(h)
            kept += [] if model.jumping is None or not i else [self._wanted(i, plan.own(h))]
            h = self._layer(i, h, bar)
        if model.jumping is not None:
            h = model.jumping([*kept, model.activate(len(model.convs), h)])
            if self.out is not None:
                h = self._fitting(h).copy_(h)
        yield h

    def _ranges(self, i: int) -> list[tuple[int, int]]:
        """Ranges of the nodes that convolution ``i`` computes."""
        nodes = self.needed[i + 1]
        return self.propagation.ranges(self.chunk_size, None if nodes is None else len(nodes))

    def _layer(self, i: int, h: Tensor, bar: tqdm[Any]) -> Tensor:
        """The outputs of convolution ``i``, a range at a time."""
        ranges = self._ranges(i)
        out: Tensor | None = None
        into_out = self.out is not None and i == len(self.model.convs) - 1 and self.model.jumping is None
        for start, stop in ranges:
            part = self.model.convolve(i, *self._entering(i, h, start, stop))
            if into_out:
                out = self._fitting(part)
                out[start:stop] = part
            elif len(ranges) == 1:
                out = part
            else:
                out = part.new_empty((ranges[-1][1], *part.shape[1:])) if out is None else out
                out[start:stop] = part
            bar.update()
        assert out is not None  # there is a range, an empty one at least
        return out

    @property
    def num_outputs(self) -> int:
        """The number of nodes whose outputs are wanted here."""
        return self.propagation.plan.num_masters if self.nodes is None else len(self.nodes)

    def outputs(self, rows: Tensor, out: Tensor | None) -> Tensor:
        """Return the outputs of the nodes wanted, in ``out`` where it is given, from the last rows of the pass.

        Raises ValueError unless ``out`` takes rows like these.
        """
        if self.nodes is None:
            return rows
        self.out = out
        if self.index is None:
            graph = self.propagation.graph
            peers, places = graph.peers, graph.held.whole.rows_of
            wanted = fetch_from_owners(
                peers, "outputs", self.nodes, peers.owners, lambda ids: rows[torch.from_numpy(places(ids))]
            )
            return wanted if out is None else self._fitting(wanted).copy_(wanted)
        if out is None:
            return rows[self.index]
        self._fitting(rows)
        for start in range(0, len(self.index), _PIECE):
            out[start : start + _PIECE] = rows[self.index[start : start + _PIECE]]
        return out

    def _fitting(self, part: Tensor) -> Tensor:
        """The tensor ``out``; raises ValueError unless it takes rows like those of ``part``."""
        out = self.out
        assert out is not None
        if out.shape[1:] != part.shape[1:] or out.dtype != part.dtype:
            wanted = f"{part.dtype} [{len(out)}, {', '.join(map(str, part.shape[1:]))}]"
            raise ValueError(f"out must be {wanted}, as the outputs are, got {out.dtype} {list(out.shape)}")
        return out

    def _entering(self, i: int, h: Tensor, start: int, stop: int) -> tuple[Flow, Tensor]:
        """The flow into a range of nodes, and the rows of its sources."""
        nodes, size = self.needed[i + 1], self.propagation.plan.num_masters
        # a convolution that multiplies first would multiply the rows of all nodes for every range; gathering the rows
        # of the neighbours saves that, and costs more than it saves where a range has more edges than there are nodes
        if nodes is None and (stop - start == size or self.propagation.num_edges(start, stop) >= size):
            return self.propagation.flow(start, stop, h.device), h
        flow = self.propagation.flow_into(np.arange(start, stop) if nodes is None else nodes[start:stop], h.device)
        return flow, take_rows(h, self._rows(i, flow.src_layer.parent_nid))

    def _wanted(self, i: int, h: Tensor) -> Tensor:
        """The rows of the nodes wanted, of those of layer ``i``."""
        nodes = self.needed[-1]
        return h if nodes is None else take_rows(h, self._rows(i, torch.from_numpy(nodes)))

    def _rows(self, i: int, nodes: Tensor) -> Tensor:
        """Positions of nodes among the rows computed for layer ``i``."""
        held = self.needed[i]
        if held is None:
            places = self.propagation.plan.places(nodes.numpy(force=True))
            return torch.from_numpy(places).to(nodes.device)
        return torch.searchsorted(torch.from_numpy(held).to(nodes.device), nodes)
