"""The arrays of a history as buffers of a module: in memory or in files, replaced at once, saved
and loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from nodeflow._core.base.checks import Ints
from nodeflow._core.peers.peers import collective_call
from nodeflow._files.store.store import Store
from nodeflow.propagation import Propagation


class KeptRows(nn.Module):
    """The arrays of a ``History``: buffers, which map files where it has a folder.

    A subclass sets the attributes below and registers the buffers: "step", and for every layer i of
    ``widths`` "h_i", "written_i" and, where sums are stored, "agg_h_i".
    """

    step: Tensor
    propagation: Propagation
    widths: dict[int, int]
    _store: Store
    _staged: dict[int, tuple[Ints, Tensor]]

    def flush(self) -> None:
        """Wait until the rows of a history in files are on the disk, so that they outlive a power
        cut.
        """
        self._store.flush()

    def close(self) -> None:
        """Release the folder for other processes. Nothing may be written afterwards."""
        self._store.close()

    @contextmanager
    def renewal(self) -> Iterator[dict[str, Tensor]]:
        """Yield tensors ``h_i`` (and ``agg_h_i``, where sums are stored) for all nodes, to be
        filled within the block.

        At the end of the block they replace the old ones at once, as one commit. If anything
        raises, the old ones stay. Rows that were pushed and not committed are dropped. ``Updater``
        renews a history in this way.
        """
        with self.propagation.graph.peers.together("a renewal of the history"):
            new = self._store.successor()
            yield {key: tensor for key, tensor in new.items() if key.startswith(("h_", "agg_h_"))}
            step = int(self.step) + 1
            new["step"].fill_(step)
            for i in self.widths:
                new[f"written_{i}"].fill_(step)
            self._replace(new)

    @collective_call("clearing the history")
    def clear(self) -> None:
        """Forget everything: all rows are zero, and never written."""
        self._replace(self._store.successor())

    def _replace(self, new: dict[str, Tensor]) -> None:
        """Replace all arrays, on all processes or on none, and drop rows that were pushed."""
        self._store.replace(new)
        self._staged = {}
        self._buffers.update(new)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Change type or device, as ``.to`` does. Files cannot change; stored sums stay float32 at
        least.
        """
        if self._store.folder is not None:
            # try the change on empty views: on whole buffers it would read the files
            for name, buffer in self.named_buffers():
                other = fn(buffer[:0] if buffer.ndim else buffer)
                if other.dtype != buffer.dtype or other.device != buffer.device:
                    raise ValueError(
                        f"a history in files keeps its type and place, but {name} would become "
                        f"{other.dtype} on {other.device}; keep it apart from the module that is "
                        "moved, or make it with folder=None"
                    )
            return self
        wide = {name: buffer for name, buffer in self.named_buffers() if name.startswith("agg_h_")}
        super()._apply(fn, recurse)
        # convert sums from the buffers before, not from values that were rounded to 16 bits
        for name, buffer in wide.items():
            now = getattr(self, name)
            if now.dtype in (torch.float16, torch.bfloat16):
                setattr(self, name, buffer.to(now.device, torch.float32))
        self._store.arrays.update(self.named_buffers())
        return self

    def get_extra_state(self) -> Tensor:
        """Return the hash of the propagation, for ``state_dict``."""
        return torch.tensor(self.propagation.fingerprint)

    def _load_from_state_dict(
        self,
        state: Mapping[str, Any],
        prefix: str,
        meta: object,
        strict: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        """Refuse the state of another history before any row is copied. All arrays are replaced at
        once, or stay.
        """
        # rows of another propagation would be control variates of other sums
        hashed = state.get(prefix + "_extra_state")
        if hashed is not None and int(hashed) != self.propagation.fingerprint:
            raise ValueError(
                "the state is of another history: its graph, edge weights, direction or filter are "
                "others"
            )
        saved = {name: state.get(prefix + name, buffer) for name, buffer in self.named_buffers()}
        for name, buffer in self.named_buffers():
            if saved[name].shape != buffer.shape or saved[name].dtype != buffer.dtype:
                raise ValueError(
                    f"the state is of another history: {name} is {saved[name].dtype} "
                    f"{tuple(saved[name].shape)} there, and {buffer.dtype} {tuple(buffer.shape)} "
                    "here"
                )
        if strict:
            keys = [prefix + name for name in (*saved, "_extra_state")]
            missing += [key for key in keys if key not in state]
            unexpected += [key for key in state if key.startswith(prefix) and key not in keys]
        peers = self.propagation.graph.peers
        with peers.together("loading the history"), torch.no_grad():
            new = self._store.successor()
            for name, rows in new.items():
                rows.copy_(saved[name])
            self._replace(new)
