"""Decoders whose score is a scalar product of query and row: DotProduct, DistMult, ComplEx, Bilinear."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nodeflow._base.checks import as_count
from nodeflow.nn._conv import draw_glorot
from nodeflow.nn._decoder import Decoder
from nodeflow.ops import CACHED, EdgeDot, Permute, Structure, inverse


class _Product(Decoder):
    """Decoders whose score is the scalar product of query and row."""

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return (query * rows).sum(-1)

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        return query @ table.mT

    def compare_own(self, query: Tensor, table: Tensor, chosen: Tensor) -> Tensor:
        # as along edges from the candidates to the queries: no row is copied
        indptr = chosen.shape[1] * torch.arange(len(chosen) + 1, device=chosen.device)
        edges = Structure(indptr, chosen.flatten(), len(table))
        if query.nbytes > CACHED or table.nbytes <= CACHED:
            return EdgeDot.apply(edges, query, table, None).reshape(chosen.shape)
        # table row by table row: what is read at random, and added to by the gradient, then stays in the cache
        turned, order = edges.transposed()
        scores = EdgeDot.apply(turned, table, query, None)
        return Permute.apply(scores, inverse(order), order).reshape(chosen.shape)


class DotProduct(_Product):
    """The scalar product ``sum_i s_i d_i``; a relation has no effect, and both sides are alike.

    Args:
        width, num_relations, inverse: see ``Decoder``. It has no parameters.

    >>> DotProduct(2)(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([11.])
    """

    def __init__(self, width: int | None = None, num_relations: int | None = None, *, inverse: bool = False) -> None:
        if width is None:
            raise TypeError("DotProduct needs the width of the rows that it compares, as in DotProduct(64)")
        super().__init__(width, num_relations, inverse=inverse)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        return rows.expand(*torch.broadcast_shapes(rows.shape[:-1], relation.shape), self.width)


class DistMult(_Product):
    """``sum_i s_i r_i d_i`` (Yang, Yih, He, Gao, Deng 2015, section 3.1): the same in both directions.

    Args:
        width, num_relations, inverse: see ``Decoder``.

    Parameters: ``relation`` ``[R, width]``, normal with standard deviation ``width ** -0.5``, so that rows with entries
    of variance 1 have scores of variance 1 (the rule of Glorot, Bengio 2010, equation 5).

    >>> DistMult(8, num_relations=4)(torch.ones(5, 8), torch.ones(5, 8), torch.tensor([0, 1, 2, 3, 0])).shape
    torch.Size([5])
    """

    def __init__(self, width: int, num_relations: int | None = None, *, inverse: bool = False) -> None:
        super().__init__(width, num_relations, inverse=inverse)
        self.relation = nn.Parameter(torch.empty(self.num_rows, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new rows of relations."""
        nn.init.normal_(self.relation, std=self.width**-0.5)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        return rows * F.embedding(relation, self.relation).to(rows.dtype)

    def n3(self, src: Tensor, relation: Tensor | int | None, dst: Tensor, *, side: str = "destination") -> Tensor:
        """Return the cubed norms of triples, ``sum_i |s_i|^3 + |r_i|^3 + |d_i|^3``, ``[...]``.

        The N3 regularisation (Lacroix, Usunier, Obozinski 2018, section 4.2) adds their mean over the triples of a
        batch, times a weight, to the loss. Arguments and errors are those of ``score``; numbers are complex in
        ``ComplEx``.

        >>> decoder = ComplEx(2)
        >>> decoder.relation.data[:] = 0
        >>> decoder.n3(torch.tensor([[3.0, 4.0]]), None, torch.zeros(1, 2)).detach()  # |3 + 4i|^3
        tensor([125.])
        """
        self._check(src, "src")
        self._check(dst, "dst")
        middle = F.embedding(self._relations(relation, side, src.device), self.relation).to(src.dtype)
        return sum((self._cubes(rows) for rows in (middle, dst)), self._cubes(src))

    def _cubes(self, rows: Tensor) -> Tensor:
        return rows.abs().pow(3).sum(-1)


class ComplEx(DistMult):
    """``Re(sum_i s_i r_i conj(d_i))`` over complex numbers (Trouillon, Welbl, Riedel, Gaussier, Bouchard 2016, eq. 9).

    A row holds the real parts of ``width / 2`` complex numbers, then their imaginary parts.

    Args:
        width: width of the rows, an even number.
        num_relations, inverse: see ``Decoder``.

    Parameters: ``relation`` ``[R, width]``, normal with standard deviation ``width ** -0.5`` as in ``DistMult``. A
    complex product has twice the terms, so rows with entries of variance 1 have scores of variance 2.

    >>> decoder = ComplEx(8, num_relations=4)
    >>> decoder.score_all(torch.ones(5, 8), 2, torch.ones(7, 8), side="source").shape
    torch.Size([5, 7])
    """

    def __init__(self, width: int, num_relations: int | None = None, *, inverse: bool = False) -> None:
        super().__init__(check_even(width, "ComplEx"), num_relations, inverse=inverse)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        real, imaginary = F.embedding(relation, self.relation).to(rows.dtype).chunk(2, -1)
        return complex_product(rows, real, imaginary, conjugate=side == "source")

    def _cubes(self, rows: Tensor) -> Tensor:
        real, imaginary = rows.chunk(2, -1)
        return (real * real + imaginary * imaginary).pow(1.5).sum(-1)


class Bilinear(_Product):
    """``s' W_r d`` with a matrix per relation (RESCAL: Nickel, Tresp, Kriegel 2011).

    Args:
        width, num_relations, inverse: see ``Decoder``.

    Parameters: ``weight`` ``[R, width, width]``, each matrix as in Glorot, Bengio 2010, equation 16.

    Rows are multiplied with the matrix of their relation, one product per relation that occurs; no matrix is copied.

    >>> Bilinear(8, num_relations=4)(torch.ones(5, 8), torch.ones(5, 8), 3).shape
    torch.Size([5])
    """

    def __init__(self, width: int, num_relations: int | None = None, *, inverse: bool = False) -> None:
        super().__init__(width, num_relations, inverse=inverse)
        self.weight = nn.Parameter(torch.empty(self.num_rows, width, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new matrices."""
        draw_glorot(self)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        weight = self.weight.to(rows.dtype)
        weight = weight if side == "destination" else weight.mT
        if relation.numel() == 1:
            product = rows @ weight[relation.reshape(())]
            return product.expand(*torch.broadcast_shapes(rows.shape[:-1], relation.shape), self.width)
        shape = torch.broadcast_shapes(rows.shape[:-1], relation.shape)
        flat, relation = rows.expand(*shape, self.width).reshape(-1, self.width), relation.expand(shape).flatten()
        order = relation.argsort(stable=True)
        counts = torch.bincount(relation, minlength=self.num_rows).tolist()
        # unbound at once: the gradient of weight[r] alone would be as large as all matrices
        pieces = zip(flat[order].split(counts), weight.unbind(), strict=True)
        products = [piece @ matrix for piece, matrix in pieces if len(piece)]
        place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        grouped = torch.cat(products) if products else flat @ weight[0]  # no rows: the gradient of all matrices is 0
        return grouped[place].reshape(*shape, self.width)


def check_even(width: int, name: str) -> int:
    """Return a width of complex rows; raises ValueError for an odd one."""
    if as_count(width, "width", 2) % 2:
        raise ValueError(f"width must be even, because rows of {name} are complex numbers of two parts, got {width}")
    return width


def complex_product(rows: Tensor, real: Tensor, imaginary: Tensor, conjugate: bool) -> Tensor:
    """Return complex rows times the number, or its conjugate; rows hold real parts, then imaginary ones."""
    a, b = rows.chunk(2, -1)
    c, d = real, -imaginary if conjugate else imaginary
    return torch.cat([a * c - b * d, a * d + b * c], -1)
