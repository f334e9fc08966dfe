"""Full passes: a model computed layer by layer over the whole graph, or over what some nodes depend
on.

Rows of layers lie in memory, or in files, for graphs whose rows do not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from nodeflow._core.base.checks import (
    Ints,
    as_count,
    as_flag,
    as_ids,
    check_num_rows,
    check_type,
)
from nodeflow._core.base.progress import progress_bar
from nodeflow._core.base.types import FileLike, IdsLike
from nodeflow._core.rows.rows import Rows, fetch_rows, is_read_only, take_rows, whole_column
from nodeflow._files.disk.arrays import scratch_array
from nodeflow.flow import Flow
from nodeflow.propagation._propagation import Propagation

# rows that are copied at a time
_PIECE = 2**16
# nodes computed at a time with files, where the caller does not say
_CHUNK = 2**16


def check_features(h: object) -> None:
    """Raise TypeError unless ``h`` is a tensor that models take as rows of features."""
    check_type(
        h, "h", Tensor, "a tensor with a row per node, such as graph.ndata['feat'] after it was set"
    )
    assert isinstance(h, Tensor)
    if h.layout not in (torch.strided, torch.sparse_csr):
        raise TypeError(
            f"h must be dense or sparse CSR, got layout {h.layout}: convert with .to_sparse_csr()"
        )


def check_out(out: object, num_rows: int) -> Tensor | None:
    """Return the tensor that takes the outputs, or None."""
    if out is None:
        return None
    check_type(out, "out", Tensor, "a tensor that takes the outputs, such as storage.create makes")
    assert isinstance(out, Tensor)
    if out.layout != torch.strided or out.requires_grad or is_read_only(out):
        raise ValueError(
            "out must be a dense tensor that can be written, but it is sparse, requires a gradient, "
            "or is a file that was opened for reading only"
        )
    check_num_rows(out.shape, "out", num_rows, "node of the outputs")
    return out


class FullPass:
    """Computes a model layer by layer from full neighbourhoods. Arguments as for
    ``FlowModel.inference``.

    ``out`` takes the outputs of a pass over all nodes. Where several processes hold the graph, each
    computes all the nodes that it owns, and ``outputs`` fetches those of ``nodes``.

    With ``folder``, in memory are the rows of ``chunk_size`` nodes and their neighbours only; those
    of layers lie in files, which are gone after the pass. They are computed on the device of the
    model. The rows that enter the first convolution are yielded as they came, without those left
    out that no node needs.
    """

    def __init__(
        self,
        model: Any,
        propagation: Propagation,
        *,
        nodes: IdsLike | None = None,
        chunk_size: int | None = None,
        progress: bool = False,
        folder: FileLike | None = None,
    ) -> None:
        self.model = model
        self.propagation = propagation
        self.progress = as_flag(progress, "progress")
        self.out: Tensor | None = None
        # of the rows, where they are moved
        self.device: torch.device | None = None
        self.folder = None if folder is None else Path(folder)
        # rows of mirrors travel through memory, and columns are fetched by all, whose ranges differ
        # in number
        if folder is not None and propagation.graph.peers.size > 1:
            raise ValueError("folder must be None for a graph that lies on several processes")
        # checked before anything is computed
        self.chunk_size = None if chunk_size is None else as_count(chunk_size, "chunk_size", 1)
        self.nodes: Ints | None = None
        # of every layer the nodes whose rows are computed, ascending; None: all
        self.needed: list[Ints | None] = [None] * (len(model.convs) + 1)
        with propagation.graph.peers.together("outputs of nodes"):
            propagation.plan.check_together(propagation.view.direction)
            if nodes is not None:
                self.nodes = as_ids(nodes, "nodes", propagation.graph.num_nodes)
        self.num_outputs = propagation.plan.num_masters if self.nodes is None else len(self.nodes)
        # a process alone has all rows that the outputs depend on; several compute what they own,
        # for each other too
        if self.nodes is not None and propagation.graph.peers.size == 1:
            # from the outputs back: a layer computes what the next one reads
            wanted = np.unique(self.nodes)
            for i in reversed(range(len(self.needed))):
                self.needed[i] = wanted
                if i:
                    wanted = propagation.needed(wanted)
        if folder is not None:
            self.chunk_size = self.chunk_size or _CHUNK
            # rows of the inputs are found by the ids of their nodes
            self.needed[0] = None
            self.device = next(model.parameters(), torch.empty(0, device="cpu")).device

    def __call__(self, h: Tensor | Rows) -> Iterator[Tensor]:
        """Yield the rows that enter each convolution, before dropout, then the outputs: of the
        nodes needed.
        """
        if not isinstance(h, Rows):
            check_features(h)
        model = self.model
        check_num_rows(h.shape, "h", self.propagation.graph.num_nodes, "node of the graph")
        # parts may be frozen in evaluation mode
        modes = {module: module.training for module in model.modules()}
        model.eval()
        total = sum(len(self._ranges(i)) for i in range(1, len(model.convs) + 1))
        try:
            with progress_bar("full pass", total, shown=self.progress) as bar:
                yield from self._layers(h, bar)
        finally:
            for module, training in modes.items():
                module.training = training

    def _layers(self, h: Tensor | Rows, bar: tqdm[Any]) -> Iterator[Tensor]:
        plan = self.propagation.plan
        jumping = self.model.jumping
        end = len(self.model.convs)
        # with jumping: the rows of every layer, of the nodes wanted
        kept = []
        # rows of mirrors are renewed before every layer but the first, which reads all
        # inputs
        rows = self._inputs(h)
        for i in range(end):
            if i and self.needed[i] is None:
                rows = plan.gathered(rows)
            yield plan.own(rows)
            rows = self._layer(i, rows, bar)
            kept += [] if jumping is None else [self._wanted(i + 1, rows)]
        if jumping is not None:
            rows = self._in_ranges(
                end,
                lambda start, stop: jumping([h[start:stop].to(self.device) for h in kept]),
                last=True,
            )
        yield rows

    def _inputs(self, h: Tensor | Rows) -> Tensor:
        """The rows of the nodes that the first convolution reads."""
        if self.folder is not None:
            # read a range at a time
            return cast(Tensor, h)
        needed = self.needed[0]
        h = self.propagation.graph.held_part.of_all_nodes(h)
        if needed is None:
            rows = whole_column(h)
        else:
            rows = fetch_rows(h, torch.from_numpy(needed))
        return cast(Tensor, self.model.activate(0, rows))

    def _layer(self, i: int, h: Tensor, bar: tqdm[Any]) -> Tensor:
        """The outputs of convolution ``i``, activated as they enter the next one."""
        model = self.model
        last = i == len(model.convs) - 1 and model.jumping is None

        def compute(start: int, stop: int) -> Tensor:
            part: Tensor = model.convolve(i, *self._entering(i, h, start, stop))
            if not last:
                part = model.activate(i + 1, part)
            return part

        return self._in_ranges(i + 1, compute, last=last, bar=bar)

    def _ranges(self, i: int) -> list[tuple[int, int]]:
        """Ranges of the nodes whose rows of layer ``i`` are computed."""
        nodes = self.needed[i]
        return self.propagation.ranges(self.chunk_size, None if nodes is None else len(nodes))

    def _in_ranges(
        self,
        i: int,
        compute: Callable[[int, int], Tensor],
        *,
        last: bool = False,
        bar: tqdm[Any] | None = None,
    ) -> Tensor:
        """Rows for the nodes of layer ``i``, a range at a time; ``last``: they are the outputs."""
        ranges = self._ranges(i)
        out = None
        for start, stop in ranges:
            part = compute(start, stop)
            if out is None:
                out = self._target(part, ranges[-1][1], last=last)
            if out is not part:
                out[start:stop] = part
            if bar is not None:
                bar.update()
        # there is a range, an empty one at least
        assert out is not None
        return out

    def _target(self, part: Tensor, size: int, *, last: bool) -> Tensor:
        """A tensor for the rows of a layer, of which ``part`` are the first."""
        if last and self.out is not None:
            return self._fitting(part)
        if self.folder is not None and not last:
            return scratch_array(self.folder, part.dtype, (size, *part.shape[1:]))
        if len(part) == size:
            return part
        return part.new_empty((size, *part.shape[1:]))

    def outputs(self, rows: Tensor, out: Tensor | None) -> Tensor:
        """Return the outputs of the nodes wanted, in ``out`` where it is given, from the last rows
        of the pass.
        """
        if self.nodes is None:
            return rows
        self.out = out
        peers = self.propagation.graph.peers
        end = len(self.model.convs)
        if out is None or self.needed[end] is None:
            wanted = peers.fetch(
                "outputs",
                self.nodes,
                peers.owners,
                lambda ids: rows[self._rows(end, torch.from_numpy(ids))],
            )
            if out is None:
                return wanted
            return self._fitting(wanted).copy_(wanted)
        self._fitting(rows)
        # outputs may be larger than memory
        for start in range(0, len(self.nodes), _PIECE):
            piece = slice(start, start + _PIECE)
            out[piece] = rows[self._rows(end, torch.from_numpy(self.nodes[piece]))]
        return out

    def _fitting(self, part: Tensor) -> Tensor:
        """The tensor ``out``; raises ValueError unless its rows match ``part``."""
        out = self.out
        assert out is not None
        if out.shape[1:] != part.shape[1:] or out.dtype != part.dtype:
            raise ValueError(
                f"out must be {part.dtype} [{len(out)}, {', '.join(map(str, part.shape[1:]))}], as "
                f"the outputs are, got {out.dtype} {list(out.shape)}"
            )
        return out

    def _entering(self, i: int, h: Tensor, start: int, stop: int) -> tuple[Flow, Tensor]:
        """The flow into a range of nodes, and the rows of its sources."""
        nodes = self.needed[i + 1]
        size = self.propagation.plan.num_masters
        propagation = self.propagation
        # a convolution that multiplies first would multiply the rows of all nodes for every range;
        # gathering the rows of the neighbours saves that, and costs more than it saves where a
        # range has more edges than there are nodes
        many = nodes is None and (
            stop - start == size or propagation.num_edges(start, stop) >= size
        )
        if many and self.folder is None:
            return propagation.flow(start, stop, h.device), h
        if nodes is None:
            places = np.arange(start, stop)
        else:
            places = nodes[start:stop]
        flow = propagation.flow_into(places, h.device if self.device is None else self.device)
        rows = take_rows(h, self._rows(i, flow.src_layer.parent_nid)).to(self.device)
        return flow, rows if i or self.folder is None else self.model.activate(0, rows)

    def _wanted(self, i: int, h: Tensor) -> Tensor:
        """The rows of layer ``i`` for the wanted nodes."""
        nodes = self.needed[-1]
        if nodes is None:
            return h
        places = self._rows(i, torch.from_numpy(nodes))
        return self._in_ranges(
            len(self.model.convs), lambda start, stop: take_rows(h, places[start:stop])
        )

    def _rows(self, i: int, nodes: Tensor) -> Tensor:
        """Positions of nodes among the rows computed for layer ``i``."""
        computed = self.needed[i]
        if computed is None:
            places = self.propagation.graph.held_part.places(nodes.numpy(force=True))
            return torch.from_numpy(places).to(nodes.device)
        return torch.searchsorted(torch.from_numpy(computed).to(nodes.device), nodes)
