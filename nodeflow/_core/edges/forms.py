"""The two forms of draws: compiled loops on arrays, and operations of torch on tensors of a device.

Edges have a form (``Edges.form``), and everything that is drawn along them runs in it. A sampler
has one body for both. It asks the form for what differs, in three ways:

- an operation on arrays is a method, as ``form.take(values, index)``;
- a draw is a ``TwoForms``, two functions that give the same, bit for bit. ``form.of(UNIFORM)`` is
  ``kernels.uniform``'s in one form and ``nodeflow._core.in_torch.uniform``'s in the other;
- arrays that many draws read are ``Placed``: ``placed.at(form)`` are they where the form draws.

An *array of the form* is a numpy array in the compiled form, and a tensor on the device in the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from nodeflow import _kernels as kernels
from nodeflow._core.base.frozen import Frozen
from nodeflow._core.base.types import Array
from nodeflow._core.edges.numbering import Numbering
from nodeflow._core.in_torch.numbering import TensorNumbering
from nodeflow._core.in_torch.ragged import entries_of, indices_of, spread
from nodeflow._core.rows.rows import from_numpy


class TwoForms(NamedTuple):
    """A loop in both forms: functions with the same arguments and results, in arrays of the
    form.
    """

    compiled: Callable[..., Any]
    in_torch: Callable[..., Any]


class Form(Frozen):
    """What differs between the forms, for all samplers: here compiled loops on numpy arrays."""

    __slots__ = ()
    name: str = "compiled"
    """The name of the form, and where it is: "compiled", or "torch on cuda:0"."""
    device: torch.device = torch.device("cpu")
    """Where batches are made."""

    def __reduce__(self) -> str | tuple[Any, ...]:
        return "COMPILED"  # there is one

    def of(self, loop: TwoForms) -> Callable[..., Any]:
        """Return the function of this form."""
        return loop.compiled

    def array(self, values: Array | Tensor) -> Any:
        """Return an array of the form with these values, which shares their memory where it can."""
        return values.numpy() if isinstance(values, Tensor) else values

    def tensor(self, values: Any) -> Tensor:
        """Return an array of the form as a tensor, in the same memory."""
        return torch.from_numpy(values)

    def placed(self, values: Array | Tensor) -> Tensor:
        """Return values as a tensor where batches are made, which shares their memory where it
        can.
        """
        return self.tensor(self.array(values))

    def joined(self, parts: Sequence[Any]) -> Any:
        """Return arrays one after another."""
        return np.concatenate(parts)

    def take(self, values: Any, index: Any) -> Any:
        """Return the entries of an array at ``index``."""
        return values[index]

    def indices(self, mask: Any) -> Any:
        """Return where a mask is True, ascending."""
        return np.flatnonzero(mask)

    def spread(self, values: Any, indptr: Any, size: int) -> Any:
        """Return the value of each row once for each of its entries, ``[size]``."""
        return np.repeat(values, np.diff(indptr))

    def search(self, ascending: Any, values: Any) -> Any:
        """Return how many of ``ascending`` are below each value."""
        return np.searchsorted(ascending, values)

    def wide(self, ids: Any) -> Any:
        """Return ids as int64, shared where they are."""
        return ids.astype(np.int64, copy=False)

    def numbering(self, num_ids: int) -> Any:
        """Return a ``Numbering`` of ids below ``num_ids``."""
        return Numbering(num_ids)

    def distinct(self, ids: Any) -> tuple[Any, Any]:
        """Return the distinct ids, ascending, and the index of each id among them; ``ids`` may be
        overwritten.
        """
        # numbering first: a sort of the distinct ids alone, which are few
        with Numbering(int(ids.max(initial=0)) + 1) as drawn:
            local = drawn.extend(ids)
            distinct, rank = np.unique(drawn.nodes, return_inverse=True)
        return distinct, rank[local]

    def add_to_rows(self, indptr: Any, entries: Any, values: Any) -> None:
        """Add ``values[i]`` to all entries of row i, in place."""
        kernels.csr.add_to_rows(indptr, entries, values)

    def inverse_rate(self, degree: Any, indptr: Any, size: int) -> Any:
        """Return degree / number of drawn edges of the row, for each of ``size`` drawn edges,
        float64.
        """
        drawn = np.diff(indptr)
        return np.repeat(degree / np.maximum(drawn, 1), drawn)

    def contains(self, ascending: Any, values: Any) -> Any:
        """Return for each of ``values`` whether it is among ``ascending``."""
        if not len(ascending):
            return values != values
        places = self.search(ascending, values).clip(max=len(ascending) - 1)
        return self.take(ascending, places) == values

    def weights(self, numbers: Any, kind: type[np.floating[Any]]) -> Tensor:
        """Return numbers as a tensor of the type ``kind``."""
        return torch.from_numpy(np.asarray(numbers, kind))


class InTorch(Form):
    """The other form, which has every part that differs: operations of torch on tensors of
    ``device``, the CPU too.
    """

    __slots__ = ("device", "name")

    def __init__(self, device: torch.device) -> None:
        self._set(device=device, name=f"torch on {device}")

    def __reduce__(self) -> tuple[Any, ...]:
        return InTorch, (self.device,)

    def check(self) -> None:
        """Raise ValueError for a device without the numbers that batches need."""
        try:
            float(torch.ones((), dtype=torch.float64, device=self.device))
        except (RuntimeError, TypeError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"no draws on the device {self.device}, which has no float64; torch says: {reason}"
            ) from None

    def of(self, loop: TwoForms) -> Callable[..., Any]:
        return loop.in_torch

    def array(self, values: Array | Tensor) -> Any:
        return (values if isinstance(values, Tensor) else from_numpy(values)).to(self.device)

    def tensor(self, values: Any) -> Tensor:
        return cast("Tensor", values)

    def joined(self, parts: Sequence[Any]) -> Any:
        return torch.cat(list(parts))

    def take(self, values: Any, index: Any) -> Any:
        return values.index_select(0, index)

    def indices(self, mask: Any) -> Any:
        return indices_of(mask)

    def spread(self, values: Any, indptr: Any, size: int) -> Any:
        return spread(values, indptr, size)

    def search(self, ascending: Any, values: Any) -> Any:
        return torch.searchsorted(ascending, values)

    def wide(self, ids: Any) -> Any:
        return ids.long()

    def numbering(self, num_ids: int) -> TensorNumbering:
        return TensorNumbering(num_ids, self.device)

    def distinct(self, ids: Any) -> tuple[Any, Any]:
        return torch.unique(ids, return_inverse=True)  # type: ignore[no-any-return]  # waits

    def add_to_rows(self, indptr: Any, entries: Any, values: Any) -> None:
        entries += spread(values, indptr, len(entries))

    def inverse_rate(self, degree: Any, indptr: Any, size: int) -> Any:
        drawn = indptr.diff().clamp(min=1)
        return spread(degree.double().div_(drawn), indptr, size)  # int64 / int64 would be float32

    def weights(self, numbers: Any, kind: type[np.floating[Any]]) -> Tensor:
        return cast("Tensor", numbers.to(torch.float64 if kind is np.float64 else torch.float32))


COMPILED = Form()
"""The default: compiled loops."""

ENTRIES = TwoForms(kernels.csr.csr_rows, entries_of)
"""``(indptr, positions)`` of the entries of some rows, in the order in which the rows are given."""


class Placed:
    """Arrays on the host that draws read, placed once for each form that asks for them."""

    def __init__(self, *arrays: Array) -> None:
        self._arrays = arrays
        self._by_form = dict[str, tuple[Any, ...]]()

    def __reduce__(self) -> tuple[Any, ...]:
        return Placed, self._arrays  # another process places them anew

    def at(self, form: Form) -> tuple[Any, ...]:
        """Return them as arrays of a form."""
        # two threads that race store equal arrays, of which one stays
        if form.name not in self._by_form:
            self._by_form[form.name] = tuple(map(form.array, self._arrays))
        return self._by_form[form.name]


class Arrays(NamedTuple):
    """The arrays of ``Edges`` where its form draws: arrays of the form."""

    indptr: Any
    indices: Any
    edge_ids: Any

    @classmethod
    def of(cls, form: Form, edges: Any) -> Arrays:
        """Place the arrays of ``Edges``; those that lie there already are shared."""
        if edges.edge_ids is None:
            ids = None
        else:
            ids = form.array(edges.edge_ids)
        return cls(form.array(edges.indptr), form.array(edges.indices), ids)
