"""Tensors as plain byte arrays and back, for pickling.

Memory that several tensors share is stored once. Memory that no tensor uses is left out. A tensor
that maps a file read-only is stored as the name of the file.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nodeflow._core.rows.csr import csr_tensor
from nodeflow._core.rows.rows import as_array, from_numpy
from nodeflow._core.runtime.mapped import find_map, part_of_file

Piece = tuple[NDArray[np.uint8], torch.dtype]
"""Bytes, and the type of the numbers in them."""


class Pool:
    """A collection of tensors that stores each piece of shared memory once."""

    def __init__(self) -> None:
        self._spans: dict[tuple[int, torch.dtype], list[list[Any]]] = {}

    def add(self, value: Any) -> Any:
        """Return tensors, in dicts and tuples too, as references for ``restored``, which ``memory``
        completes.
        """
        if type(value) is dict:
            return {name: self.add(part) for name, part in value.items()}
        if type(value) is tuple:
            return tuple(map(self.add, value))
        # rows that are fetched by id pickle themselves
        if not isinstance(value, Tensor):
            return value
        tensor = value.detach()
        # another device has its own way through pickle, which takes the whole storage
        if tensor.device.type != "cpu":
            return tensor.clone()
        if tensor.layout == torch.sparse_csr:
            parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
            return ["csr", self.add(parts), tuple(tensor.shape)]
        tensor = tensor.contiguous().resolve_conj().resolve_neg()
        memory = (tensor.untyped_storage().data_ptr(), tensor.dtype)
        start = tensor.storage_offset()
        # a file that is mapped read-only stays a file: the receiver maps it too
        mapped = find_map(memory[0])
        if mapped is not None:
            return ["file", part_of_file(as_array(tensor), mapped), tensor.dtype]
        # A list, so that ``memory`` can fill in the piece and the place in it later.
        reference = ["strided", memory, start, tuple(tensor.shape)]
        # with the tensor itself: a freed copy's address could be reused
        self._spans.setdefault(memory, []).append(
            [start, start + tensor.numel(), tensor, reference]
        )
        return reference

    def memory(self) -> list[Piece]:
        """Return the pieces as byte arrays. The references that ``add`` returned now point into
        them.
        """
        pieces: list[Piece] = []
        # Tensors that overlap in memory are stored as one piece, from the first number that any of
        # them has to the last. What lies between pieces is in no tensor, and is not stored.
        for (_, dtype), spans in self._spans.items():
            # By their beginning, so that each span either overlaps the group before it or begins
            # a new one.
            spans.sort(key=lambda span: span[0])
            groups: list[list[list[Any]]] = []
            end = -1
            for span in spans:
                if not groups or span[0] >= end:
                    groups.append([])
                groups[-1].append(span)
                end = max(end, span[1])
            for group in groups:
                start = group[0][0]
                stop = max(span[1] for span in group)
                joined = group[0][2].as_strided((stop - start,), (1,), start)
                data = joined.view(torch.uint8).numpy()
                pieces.append((data.copy(), dtype))
                for span in group:
                    span[3][1:3] = len(pieces) - 1, span[0] - start
        return pieces


def restored(memory: list[Piece], reference: Any) -> Any:
    """Return what ``Pool.add`` gave ``reference`` for."""
    if type(reference) is dict:
        return {name: restored(memory, part) for name, part in reference.items()}
    if type(reference) is tuple:
        return tuple(restored(memory, part) for part in reference)
    if not isinstance(reference, list):
        return reference
    if reference[0] == "csr":
        indptr, indices, values = restored(memory, reference[1])
        return csr_tensor(indptr, indices, values, reference[2])
    if reference[0] == "file":
        return from_numpy(reference[1].open(), reference[2])
    _, number, start, shape = reference
    data, dtype = memory[number]
    size = math.prod(shape)
    # torch does not take every empty array for one of another type
    if size == 0:
        return torch.empty(shape, dtype=dtype, device="cpu")
    return from_numpy(data).view(dtype)[start : start + size].view(shape)
