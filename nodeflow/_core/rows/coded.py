"""Coded rows: rows of a narrow column in a batch, which are unpacked when something reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from nodeflow._core.base.checks import Ints, check_type
from nodeflow._core.base.types import Array
from nodeflow._core.rows.narrow import Coding, NarrowRows
from nodeflow._core.rows.rows import Rows

# bytes of float32 from which on rows stay coded: a small tensor costs less than asking what it is
_LEAST = 2**20
# numbers of a row at least, as the loop over codes takes them
LANES = 16


class CodedRows(NarrowRows):
    """A narrow column whose rows stay codes in a batch until something reads them.

    ``fetch`` returns a tensor that gives what that of a ``NarrowRows`` gives, but is unpacked when
    torch first reads it. Sums and means over the edges of a flow do not: they add up codes where
    they lie. So a model that begins with such a sum, as GraphSAGE and GCN do, never makes the rows
    of its input layer, which saves time and memory. Other models gain nothing, and where a loader
    samples ahead in threads, they wait for what these would have unpacked.

    Codes of int8 in memory stay codes. Other columns, rows of fewer than 16 numbers, and batches of
    less than 1 MiB are plain tensors at once. Sums of codes are equal to those of plain rows up to
    rounding. See "Sums of codes" in docs/storage/rows.md.

    Args:
        rows: a narrow column, as ``narrow`` makes it, or as a graph folder has it.

    Raises TypeError for other columns.

    >>> from nodeflow import Graph, NeighborSampler, storage
    >>> rows = storage.CodedRows(storage.narrow(torch.eye(4, 32)))
    >>> batch = NeighborSampler(Graph.from_edges([0, 1, 2], [1, 2, 3], ndata={"feat": rows}), [-1])([3])
    >>> batch.copy_from_parent(["feat"])
    >>> batch.flows[0].aggregate(batch.inputs["feat"], "mean")[0, :4]
    tensor([0., 0., 1., 0.])
    """

    def __init__(self, rows: NarrowRows) -> None:
        check_type(rows, "rows", NarrowRows, "a narrow column, which storage.narrow makes")
        super().__init__(rows.stored, rows.coding)

    def like(self, rows: Tensor | Rows) -> Tensor | Rows:
        return CodedRows(NarrowRows(rows, self.coding))

    def _read(self, ids: Ints, out: Tensor | None) -> Tensor:
        codes = self.stored
        is_plain = isinstance(codes, Tensor) and codes.dtype == torch.int8 and codes.is_contiguous()
        is_wide = len(self.shape) == 2 and self.shape[1] >= LANES and not len(self.coding.wide)
        is_large = 4 * len(ids) * self.shape[-1] >= _LEAST
        if out is None and is_plain and is_wide and is_large:
            return CodedTensor(cast("Tensor", codes), self.coding, ids)
        return super()._read(ids, out)

    def __reduce__(self) -> tuple[Any, ...]:
        return CodedRows, (NarrowRows(self.stored, self.coding),)


class CodedTensor(Tensor):
    """Rows of a narrow column, float32 ``[len(ids), width]``, which are unpacked when torch first
    reads them.

    Whatever knows nothing of it reads a plain tensor: every operation of torch gets the unpacked
    rows, made once, in its place, but questions about shape, type and the like, and slices and
    selections of rows, which stay coded. What is done to the rows in place, such as
    ``requires_grad_``, is done to the unpacked ones, which everybody sees from then on; but an
    autograd function of a user's own gets this tensor, which is a constant to it.
    """

    codes: Tensor
    coding: Coding
    ids: Ints
    _made: Tensor | None

    @staticmethod
    def __new__(cls, codes: Tensor, coding: Coding, ids: Ints) -> CodedTensor:
        shape = (len(ids), *coding.row)
        cpu = torch.device("cpu")
        # torch has no public name for it
        self = Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32, device=cpu)  # noqa: SLF001
        self.codes = codes
        self.coding = coding
        self.ids = ids
        self._made = None
        return self

    def __init__(self, *_: object) -> None:
        super().__init__()

    @property
    def is_coded(self) -> bool:
        """Whether the rows have not been made."""
        return self._made is None

    def arrays(self) -> tuple[Array, Ints, Array, Array]:
        """Return the codes of the column, one row after another, which of them these are, zero
        points and scales.
        """
        zero, scale = self.coding.table[:2].numpy()
        return self.codes.numpy().reshape(-1), self.ids, zero, scale

    def rows(self) -> Tensor:
        """Return the rows as a plain tensor: always the same one, so that changes in place are
        seen.
        """
        if self._made is None:
            # the rows serve later calls too, which may need gradients
            with torch.inference_mode(mode=False):
                self._made = self.coding.unpack(self.codes, self.ids)
        return self._made

    @classmethod
    def __torch_function__(
        cls,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        if args and is_coded(args[0]):
            # Without this, asking for the shape would come back here without end.
            if func in _FACTS:
                with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 (torch has no public name for it)
                    return func(*args, **(kwargs or {}))
            # a choice of rows is a choice of ids; None where it is something else
            chosen = None
            if func in _CHOICES and not kwargs:
                chosen = _CHOICES[func](*args)
            if chosen is not None:
                return chosen
        return func(*_read(args), **_read(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        func: Any,
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        return func(*_read(args), **_read(kwargs or {}))


def is_coded(rows: object) -> bool:
    """Whether rows are coded, and nothing has read them yet."""
    return isinstance(rows, CodedTensor) and rows.is_coded


def rows_if_made(value: Any) -> Any:
    """Return the plain rows of coded ones that have been read; any other value as it is."""
    if isinstance(value, CodedTensor) and not value.is_coded:
        return value.rows()
    return value


def _read(arguments: Any) -> Any:
    return tree_map_only(CodedTensor, CodedTensor.rows, arguments)


def _sliced(rows: CodedTensor, index: object) -> CodedTensor | None:
    if isinstance(index, slice):
        return CodedTensor(rows.codes, rows.coding, rows.ids[index])
    return None


def _selected(rows: CodedTensor, dim: object, index: object) -> CodedTensor | None:
    if dim == 0 and isinstance(index, Tensor) and index.ndim == 1 and not index.is_floating_point():
        ids = torch.from_numpy(rows.ids).index_select(0, index)
        return CodedTensor(rows.codes, rows.coding, ids.numpy())
    return None


def _same(rows: CodedTensor, to: object) -> CodedTensor | None:
    return rows if to in (torch.float32, "cpu", torch.device("cpu")) else None


_ATTRIBUTES = (
    "device dtype grad_fn is_leaf is_sparse layout ndim requires_grad shape is_cuda is_meta "
    "is_nested"
)
_FACTS = {
    *(getattr(Tensor, name).__get__ for name in _ATTRIBUTES.split()),
    Tensor.dim,
    Tensor.size,
    Tensor.numel,
    Tensor.__len__,
    Tensor.is_complex,
    Tensor.is_floating_point,
}
"""Questions that need no row."""

_CHOICES: dict[Any, Callable[..., CodedTensor | None]] = {
    Tensor.__getitem__: _sliced,
    Tensor.index_select: _selected,
    Tensor.to: _same,
}
"""Operations whose result may stay coded; None: it is made of the rows."""
