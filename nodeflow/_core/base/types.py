"""Names for the types that users pass, for use in signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Floats: TypeAlias = NDArray[np.float64]
"""A one-dimensional float64 array."""

Array: TypeAlias = NDArray[Any]
"""An array of any type of number."""

IdsLike: TypeAlias = "Tensor | Array | Sequence[int] | range"
"""Ids of nodes or edges, checked by ``checks.as_ids``."""

KeysLike: TypeAlias = "Tensor | Array | Sequence[Any]"
"""Primary keys of rows: integers, words or dates, also as a column of a pandas data frame."""

SeedsLike: TypeAlias = "IdsLike | Sequence[Sequence[int]] | Mapping[str, IdsLike | MaskLike]"
"""Seeds of a sampler: ids ``[B]``, or ``[B, m]`` such as pairs; a bool mask of all possible seeds;
either by type.
"""

NumbersLike: TypeAlias = "Tensor | Array | Sequence[float]"
"""One number per node, edge or entry: weights, rates, probabilities."""

PerFlow: TypeAlias = "Sequence[int] | Tensor | Array"
"""One whole number per flow, in flow order, as fanouts and layer sizes."""

Fanouts: TypeAlias = "PerFlow | Sequence[int | Mapping[Any, int]]"
"""One fanout per flow, in flow order; each may be a dict by relation, or by edge type."""

NumNeighbors: TypeAlias = "PerFlow | Mapping[Any, PerFlow]"
"""Fanouts in the order of PyTorch Geometric, the seeds' first, or such a list by relation."""

MaskLike: TypeAlias = "Tensor | Array | Sequence[bool]"
"""One bool per edge."""

EdgeFilter: TypeAlias = "MaskLike | str | Callable[..., Any]"
"""Which edges are seen; see ``Sampler`` for the forms."""

ColumnLike: TypeAlias = "Tensor | Array | Any"
"""A column of a frame: a tensor, or an array, pandas Series or scipy sparse matrix that becomes
one.
"""

ColumnsLike: TypeAlias = "Mapping[str, Any]"
"""Columns of a frame by name, each a ``ColumnLike``: a dict, a frame, or a pandas data frame."""

FileLike: TypeAlias = "str | PathLike[str]"
"""The path of a file or folder."""
