"""Full passes whose layers lie in files, for graphs whose rows do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from nodeflow._base.types import FileLike, IdsLike
from nodeflow._disk.arrays import scratch_array
from nodeflow._rows.rows import Rows, take_rows
from nodeflow.flow import Flow
from nodeflow.propagation._full_pass import FullPass, LayeredModel
from nodeflow.propagation._propagation import Propagation

_CHUNK = 2**16  # nodes computed at a time, where the caller does not say


class FiledPass(FullPass):
    """A full pass that holds the rows of layers in files in ``folder``, which are gone after it.

    In memory are the rows of ``chunk_size`` nodes and their neighbours only. They are computed on the device of the
    model. The rows that enter the first convolution are yielded as they came, without those left out that no node
    needs.
    """

    def __init__(
        self, model: LayeredModel, propagation: Propagation, folder: FileLike, *, nodes: IdsLike | None = None,
        chunk_size: int | None = None, progress: bool = False, out: Tensor | None = None,
    ) -> None:  # fmt: skip
        if propagation.graph.peers.size > 1:
            raise ValueError("folder must be None for a graph that lies on several processes")
        chunk_size = _CHUNK if chunk_size is None else chunk_size
        super().__init__(model, propagation, nodes=nodes, chunk_size=chunk_size, progress=progress, out=out)
        self.folder = Path(folder)
        self.needed[0] = None  # rows of the inputs are found by the ids of their nodes
        parameters = (one for module in model.modules() for one in module.parameters(recurse=False))
        self.device = next((one.device for one in parameters), torch.device("cpu"))

    def _layers(self, h: Tensor | Rows, bar: tqdm[Any]) -> Iterator[Tensor]:
        layers = [cast(Tensor, h)]  # all of them stay, with jumping; they take no memory
        for i in range(len(self.model.convs)):
            yield layers[-1]
            layers.append(self._layer(i, layers[-1], bar))
            if self.model.jumping is None:
                layers.pop(0)
        yield layers[-1] if self.model.jumping is None else self._joined(layers[1:])

    def _layer(self, i: int, h: Tensor, bar: tqdm[Any]) -> Tensor:
        """The outputs of convolution ``i``, activated as they enter the next one, in a file."""
        model, ranges = self.model, self._ranges(i)
        last = i == len(model.convs) - 1 and model.jumping is None
        out: Tensor | None = None
        for start, stop in ranges:
            part = model.convolve(i, *self._entering(i, h, start, stop))
            part = part if last else model.activate(i + 1, part)
            if out is None:
                out = self._target(part, ranges[-1][1], last=last)
            out[start:stop] = part
            bar.update()
        assert out is not None  # there is a range, an empty one at least
        return out

    def _target(self, part: Tensor, size: int, *, last: bool) -> Tensor:
        """A tensor for the rows of a layer, of which ``part`` are some."""
        if last:
            return part.new_empty((size, *part.shape[1:])) if self.out is None else self._fitting(part)
        return scratch_array(self.folder, part.dtype, (size, *part.shape[1:]))

    def _entering(self, i: int, h: Tensor, start: int, stop: int) -> tuple[Flow, Tensor]:
        nodes = self.needed[i + 1]
        flow = self.propagation.flow_into(np.arange(start, stop) if nodes is None else nodes[start:stop], self.device)
        rows = take_rows(h, self._rows(i, flow.src_layer.parent_nid)).to(self.device)
        return flow, rows if i else self.model.activate(0, rows)

    def _joined(self, layers: list[Tensor]) -> Tensor:
        """The outputs from the rows of all layers, a range at a time."""
        jumping, nodes, count = self.model.jumping, self.needed[-1], len(self.model.convs)
        assert jumping is not None
        out: Tensor | None = None
        ranges = self._ranges(count - 1)
        for start, stop in ranges:
            wanted = torch.from_numpy(np.arange(start, stop) if nodes is None else nodes[start:stop])
            rows = [take_rows(h, self._rows(i, wanted)).to(self.device) for i, h in enumerate(layers, start=1)]
            part = jumping(rows)
            if out is None:
                out = self._target(part, ranges[-1][1], last=True)
            out[start:stop] = part
        assert out is not None
        return out
