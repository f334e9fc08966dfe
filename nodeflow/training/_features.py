"""Features that stay in a file while a run trains, and hashes of tensors of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from nodeflow._base.types import Array
from nodeflow._rows.rows import as_array, fetch_rows, from_numpy, is_collective
from nodeflow.random import derive_key, hash_ids, hash_pieces
from nodeflow.storage import Rows
from nodeflow.storage._files import opened

if TYPE_CHECKING:
    from nodeflow.graph import Graph

_PIECE = 2**24  # bytes that are read and hashed at a time


class FeatureRows:
    """Features that are fetched by id, in the type that the network reads. It follows the protocol ``Rows``.

    Args:
        rows: where they lie.
        dtype: the type that rows are converted to, one by one, as ``Tensor.to`` converts a whole column.
    """

    def __init__(self, rows: Tensor | Rows, dtype: torch.dtype) -> None:
        self.rows, self.shape, self.dtype = rows, tuple(rows.shape), dtype
        self.collective = is_collective(rows)
        self._digest: int | None = None

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``; with ``out`` they are written there."""
        found = fetch_rows(self.rows, ids).to(self.dtype)
        return found if out is None else out.copy_(found)

    def first_bad(self) -> int | None:
        """Return the first row that has NaN or inf, None where there is none: all are read once, in their order."""
        bad: list[int] = []
        self._digest = hash_of_pieces(self._finite_pieces(bad), math.prod(self.shape) * self.dtype.itemsize)
        return bad[0] if bad else None

    @property
    def digest(self) -> int:
        """``hash_of`` of all rows. They are read once: a file must not change while it is open."""
        if self._digest is None:
            self.first_bad()
        assert self._digest is not None
        return self._digest

    def _finite_pieces(self, bad: list[int]) -> Iterator[Tensor]:
        """Yield the rows piece by piece, up to the first that is not finite, whose number is put into ``bad``."""
        row = math.prod(self.shape[1:]) * max(self.dtype.itemsize, self.rows.dtype.itemsize)
        step = max(_PIECE // max(row, 1) // 8, 1) * 8  # so that each piece but the last is whole 64-bit words
        for start in tqdm(
            range(0, self.shape[0], step), desc="features", unit="piece", leave=False, disable=None, delay=2
        ):
            ids = torch.from_numpy(np.arange(start, min(start + step, self.shape[0])))
            piece = fetch_rows(self.rows, ids)
            wrong = (~torch.isfinite(piece.reshape(len(ids), -1)).all(1)).nonzero()
            if len(wrong):
                bad.append(start + int(wrong[0, 0]))
                return
            yield piece.to(self.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FeatureRows({self.rows!r})"


class Beside:
    """The rows of two columns beside each other, ``Rows``: features that are fetched by id, and learned rows."""

    def __init__(self, left: Rows, right: Tensor) -> None:
        self.left, self.right, self.collective = left, right, is_collective(left)
        self.shape = (right.shape[0], left.shape[1] + right.shape[1])
        self.dtype = torch.promote_types(left.dtype, right.dtype)

    def fetch(self, ids: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the rows ``ids``, int64 ``[k]``, on the CPU; with ``out`` they are written there."""
        found = torch.cat([fetch_rows(self.left, ids).cpu(), fetch_rows(self.right.detach(), ids).cpu()], 1)
        return found if out is None else out.copy_(found)


def rows_in_file(x: Tensor | Rows, storage: str) -> Rows:
    """Return the rows of a column that maps a file, read without the map; ``Rows`` stay as they are.

    Raises ValueError, with the setting ``storage``, for a column that is sparse or lies in memory.
    """
    if not isinstance(x, Tensor):
        return x
    if x.layout != torch.strided:
        raise ValueError(
            f"storage {storage!r} is for dense features, and those of the data set are sparse; it must be 'memory' here"
        )
    found = opened(x)
    if found is None:
        raise ValueError(
            f"storage {storage!r} needs features in a file, and those of the data set are in memory: save it as a "
            "graph folder with Dataset.save(folder) or nodeflow build, and train on the folder"
        )
    return found


def stays_in_file(graph: Graph) -> bool:
    """Return whether the features of a graph can stay in a file."""
    x = graph.ndata.get("feat")
    return x is not None and (not isinstance(x, Tensor) or (x.layout == torch.strided and opened(x) is not None))


def hash_of(values: Tensor | Array | FeatureRows) -> int:
    """Return a hash of the bits of a tensor, an array, or features that are fetched by id."""
    if isinstance(values, FeatureRows):
        return values.digest
    tensor = values if isinstance(values, Tensor) else from_numpy(np.asarray(values))
    return hash_of_pieces([tensor], tensor.nbytes)


def hash_of_pieces(pieces: Iterable[Tensor], size: int) -> int:
    """Return ``hash_of`` of a tensor of ``size`` bytes in pieces; each but the last is whole 64-bit words."""
    rest = np.zeros(0, np.uint8)

    def words() -> Iterator[Array]:
        nonlocal rest
        for piece in pieces:
            bits = as_array(piece.contiguous()).reshape(-1).view(np.uint8)
            whole = len(bits) // 8 * 8
            rest = bits[whole:]
            yield bits[:whole].view(np.int64)

    return derive_key(hash_pieces(words(), size // 8), hash_ids(rest.astype(np.int64)), size)
