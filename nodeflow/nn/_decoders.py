"""The decoders: by scalar product DotProduct, DistMult, ComplEx, Bilinear; by distance TransE,
RotatE; and MLPDecoder.

``DECODERS``, at the end, names them for settings, tests and tables.
"""

from __future__ import annotations

import math
from itertools import chain, pairwise
from typing import Final, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nodeflow._core.base.checks import as_count
from nodeflow.nn._conv import check_range, draw_glorot
from nodeflow.nn._decoder_base import Decoder
from nodeflow.ops import CACHED, EdgeDot, Permute, Structure, inverse, sum_moduli

# queries that meet one table
_FEW = 8


class _Product(Decoder):
    """Decoders whose score is the scalar product of query and row."""

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return (query * rows).sum(-1)

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        return query @ table.mT

    def compare_own(self, query: Tensor, table: Tensor, chosen: Tensor) -> Tensor:
        # computed as edges from candidates to queries, which copies no rows
        indptr = chosen.shape[1] * torch.arange(len(chosen) + 1, device=chosen.device)
        places = chosen.flatten()
        # another device checks by itself, and would have to wait
        if places.device.type == "cpu":
            check_range(places, len(table), "chosen", "rows of the table")
        edges = Structure._trusted(indptr, places, len(table))
        if query.nbytes > CACHED or table.nbytes <= CACHED:
            return EdgeDot.apply(edges, query, table, None).reshape(chosen.shape)
        # sorted by table row, so that rows that are read at random, and their gradients, stay in
        # the cache
        turned, order = edges.transposed()
        scores = EdgeDot.apply(turned, table, query, None)
        return Permute.apply(scores, inverse(order), order).reshape(chosen.shape)


class DotProduct(_Product):
    """The scalar product ``sum_i s_i d_i``; a relation has no effect, and both sides are alike. It
    has no parameters.

    >>> DotProduct(2)(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([11.])
    """

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        return rows.expand(*torch.broadcast_shapes(rows.shape[:-1], relation.shape), self.width)


class DistMult(_Product):
    """``sum_i s_i r_i d_i`` (Yang, Yih, He, Gao, Deng 2015, section 3.1): the same in both
    directions.

    Parameters: ``relation`` ``[R, width]``, normal with standard deviation ``width ** -0.5``, so
    that rows with entries of variance 1 have scores of variance 1 (the rule of Glorot, Bengio 2010,
    equation 5).

    >>> DistMult(8, num_relations=4)(torch.ones(5, 8), torch.ones(5, 8), torch.tensor([0, 1, 2, 3, 0])).shape
    torch.Size([5])
    """

    def make_parameters(self) -> None:
        self.relation = nn.Parameter(torch.empty(self.num_rows, self.width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new rows of relations."""
        nn.init.normal_(self.relation, std=self.width**-0.5)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        return rows * F.embedding(relation, self.relation).to(rows.dtype)

    def n3(
        self, src: Tensor, relation: Tensor | int | None, dst: Tensor, *, side: str = "destination"
    ) -> Tensor:
        """Return the cubed norms of triples, ``sum_i |s_i|^3 + |r_i|^3 + |d_i|^3``, ``[...]``.

        The N3 regularisation (Lacroix, Usunier, Obozinski 2018, section 4.2) adds their mean over
        the triples of a batch, times a weight, to the loss. Arguments and errors are those of a
        call; numbers are complex in ``ComplEx``.

        >>> decoder = ComplEx(2)
        >>> decoder.relation.data[:] = 0
        >>> decoder.n3(torch.tensor([[3.0, 4.0]]), None, torch.zeros(1, 2)).detach()  # |3 + 4i|^3
        tensor([125.])
        """
        self._check(src, "src")
        self._check(dst, "dst")
        ids = self._relations(relation, side, src.device)
        middle = F.embedding(ids, self.relation).to(src.dtype)
        return self._cubes(src) + self._cubes(middle) + self._cubes(dst)

    def _cubes(self, rows: Tensor) -> Tensor:
        return rows.abs().pow(3).sum(-1)


class ComplEx(DistMult):
    """``Re(sum_i s_i r_i conj(d_i))`` over complex numbers (Trouillon, Welbl, Riedel, Gaussier,
    Bouchard 2016, eq. 9).

    A row holds the real parts of ``width / 2`` complex numbers, then their imaginary parts.
    Parameters as of ``DistMult``. A complex product has twice the terms, so rows with entries of
    variance 1 have scores of variance 2.

    >>> decoder = ComplEx(8, num_relations=4)
    >>> decoder.score_all(torch.ones(5, 8), 2, torch.ones(7, 8), side="source").shape
    torch.Size([5, 7])
    """

    two_part_rows = True

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        real, imaginary = F.embedding(relation, self.relation).to(rows.dtype).chunk(2, -1)
        return _complex_product(rows, real, imaginary, conjugate=side == "source")

    def _cubes(self, rows: Tensor) -> Tensor:
        real, imaginary = rows.chunk(2, -1)
        return (real * real + imaginary * imaginary).pow(1.5).sum(-1)


class Bilinear(_Product):
    """``s' W_r d`` with a matrix per relation (RESCAL: Nickel, Tresp, Kriegel 2011).

    Parameters: ``weight`` ``[R, width, width]``, each matrix as in Glorot, Bengio 2010, equation
    16.

    Rows are multiplied with the matrix of their relation, one product per relation that occurs; no
    matrix is copied.

    >>> Bilinear(8, num_relations=4)(torch.ones(5, 8), torch.ones(5, 8), 3).shape
    torch.Size([5])
    """

    def make_parameters(self) -> None:
        self.weight = nn.Parameter(torch.empty(self.num_rows, self.width, self.width))
        self.reset_parameters()

    reset_parameters = draw_glorot

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        weight = self.weight.to(rows.dtype)
        if side == "source":
            weight = weight.mT
        shape = torch.broadcast_shapes(rows.shape[:-1], relation.shape)
        if relation.numel() == 1:
            return (rows @ weight[relation.reshape(())]).expand(*shape, self.width)
        flat = rows.expand(*shape, self.width).reshape(-1, self.width)
        relation = relation.expand(shape).flatten()
        order = relation.argsort(stable=True)
        counts = torch.bincount(relation, minlength=self.num_rows).tolist()
        # unbind once: indexing weight[r] would make a gradient as large as all matrices for each r
        pieces = zip(flat[order].split(counts), weight.unbind(), strict=True)
        products = [piece @ matrix for piece, matrix in pieces if len(piece)]
        # no rows: the gradient of all matrices is 0
        if products:
            grouped = torch.cat(products)
        else:
            grouped = flat @ weight[0]
        return grouped[inverse(order)].reshape(*shape, self.width)


class _Distance(Decoder):
    """Decoders whose score is minus a distance in the norm L1 or L2."""

    def __init__(
        self,
        width: int,
        num_relations: int | None = None,
        *,
        inverse: bool = False,
        norm: int = 1,
    ) -> None:
        super().__init__(width, num_relations, inverse=inverse)
        if norm not in (1, 2):
            raise ValueError(f"norm must be 1 or 2, got {norm!r}")
        self.norm = norm

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(query - rows, self.norm, -1)
        return length.neg()

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        if table.ndim > 2:
            return -torch.cdist(query, table, p=self.norm, compute_mode="use_mm_for_euclid_dist")
        # one table for all: one product, without copies of the table
        flat = query.reshape(-1, query.shape[-1])
        distances = torch.cdist(flat, table, p=self.norm, compute_mode="use_mm_for_euclid_dist")
        return -distances.reshape(*query.shape[:-1], len(table))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, norm={self.norm}"


class TransE(_Distance):
    """``-|s + r - d|`` (Bordes, Usunier, Garcia-Duran, Weston, Yakhnenko 2013, section 2), in the
    norm L1 or L2.

    Args:
        width, num_relations, inverse: see ``Decoder``.
        norm: 1 or 2.

    Parameters: ``relation`` ``[R, width]``, uniform up to ``6 / sqrt(width)``, then of length 1
    (Bordes et al., algorithm 1).

    ``score_all`` by L2 is a matrix product: squares are subtracted, so a distance far below the
    length of the rows is off by up to about 1e-3 of that length in float32. A call is exact.

    >>> TransE(2, norm=2)(torch.zeros(1, 2), torch.zeros(1, 2)).exp()  # the relation has length 1
    tensor([0.3679], grad_fn=<ExpBackward0>)
    """

    def make_parameters(self) -> None:
        self.relation = nn.Parameter(torch.empty(self.num_rows, self.width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new rows of relations."""
        # relations begin with length 1, as in algorithm 1 of the paper
        bound = 6 / math.sqrt(self.width)
        nn.init.uniform_(self.relation, -bound, bound)
        with torch.no_grad():
            self.relation.copy_(F.normalize(self.relation, dim=1))

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        step = F.embedding(relation, self.relation).to(rows.dtype)
        if side == "destination":
            return rows + step
        return rows - step


class RotatE(_Distance):
    """``-|s o r - d|`` where r turns every complex number by an angle (Sun, Deng, Nie, Tang 2019,
    equation 3).

    A row holds the real parts of ``width / 2`` complex numbers, then their imaginary parts.

    Args:
        width: width of the rows, an even number.
        num_relations, inverse: see ``Decoder``.
        norm: 1, the sum of the absolute values of the complex numbers, as in the paper's
            experiments; or 2, the length, with a ``score_all`` that is a matrix product, of the
            precision stated in ``TransE``.

    Parameters: ``angle`` ``[R, width / 2]``, uniform from -pi to pi (Sun et al., section 4.1).

    >>> RotatE(8, num_relations=4).score_all(torch.ones(5, 8), 2, torch.ones(7, 8), side="source").shape
    torch.Size([5, 7])
    """

    two_part_rows = True

    def make_parameters(self) -> None:
        self.angle = nn.Parameter(torch.empty(self.num_rows, self.width // 2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new angles."""
        nn.init.uniform_(self.angle, -math.pi, math.pi)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        angle = F.embedding(relation, self.angle)
        real = angle.cos().to(rows.dtype)
        imaginary = angle.sin().to(rows.dtype)
        return _complex_product(rows, real, imaginary, conjugate=side == "source")

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        if self.norm == 2:
            return super().compare(query, rows)
        real, imaginary = (query - rows).chunk(2, -1)
        squares = real * real + imaginary * imaginary
        # the clamp gives a number of 0 a gradient of 0
        # the root of 0 has no gradient
        least = torch.finfo(squares.dtype).tiny
        return -squares.clamp_min(least).sqrt().sum(-1)

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        if self.norm == 2:
            return super().compare_all(query, table)
        leading = torch.broadcast_shapes(query.shape[:-2], table.shape[:-2])
        if table.ndim == 2:
            distances = sum_moduli(query.reshape(-1, self.width), table, self._sum_moduli)
            return distances.neg().reshape(*query.shape[:-1], len(table))
        # a call per table would cost more than it saves
        if query.shape[-2] < _FEW or leading.numel() == 0:
            return Decoder.compare_all(self, query, table)
        tables = table.expand(*leading, -1, -1).flatten(0, -3)
        queries = query.expand(*leading, -1, -1).flatten(0, -3)
        sums = [sum_moduli(q, t, self._sum_moduli) for q, t in zip(queries, tables, strict=True)]
        return torch.stack(sums).neg().reshape(*leading, query.shape[-2], table.shape[-2])

    def _sum_moduli(self, query: Tensor, table: Tensor) -> Tensor:
        return -Decoder.compare_all(self, query, table)


class MLPDecoder(Decoder):
    """A network on the rows of both ends and of the relation.

    The score is ``w' f(... f(W_s s + W_r r + W_d d + b)) + c``. The first layer is the sum of a
    product per end, so a table is multiplied once, not per pair.

    Args:
        width, num_relations, inverse: see ``Decoder``. With one relation there is no row ``r``.
        hidden: width of the layers between; None: ``width``.
        num_layers: linear layers, at least 2.
        dropout: share of the hidden numbers set to 0 in training.

    Parameters: matrices as in Glorot, Bengio 2010, equation 16, biases 0; rows of relations as in
    ``DistMult``. The nonlinearity f is ReLU.

    >>> MLPDecoder(8, num_relations=4, hidden=16)(torch.ones(5, 8), torch.ones(5, 8), 3).shape
    torch.Size([5])
    """

    def __init__(
        self,
        width: int,
        num_relations: int | None = None,
        *,
        inverse: bool = False,
        hidden: int | None = None,
        num_layers: int = 2,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(width, num_relations, inverse=inverse)
        width = self.width
        hidden = as_count(width if hidden is None else hidden, "hidden", 1)
        has_rows = self.num_rows > 1
        self.relation = nn.Parameter(torch.empty(self.num_rows, width)) if has_rows else None
        # the first layer of a network on joined rows, cut into a map per part: candidates
        # are mapped once
        self.source = nn.Linear(width, hidden)
        self.destination = nn.Linear(width, hidden, bias=False)
        self.middle = nn.Linear(width, hidden, bias=False) if has_rows else None
        widths = [hidden] * (as_count(num_layers, "num_layers", 2) - 1) + [1]
        layers = ((nn.ReLU(), nn.Dropout(dropout), nn.Linear(a, b)) for a, b in pairwise(widths))
        self.rest = nn.Sequential(*chain.from_iterable(layers))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for layer in self.children():
            draw_glorot(layer)
        if self.relation is not None:
            nn.init.normal_(self.relation, std=self.width**-0.5)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        opposite = "destination"
        if side == "destination":
            opposite = "source"
        query = self.candidates(rows, opposite)
        if self.relation is None or self.middle is None:
            return query
        # the rows of all relations are multiplied, which are often fewer than the pairs
        return query + F.embedding(relation, self.middle(self.relation)).to(query.dtype)

    def candidates(self, rows: Tensor, side: str) -> Tensor:
        return cast("Tensor", (self.destination if side == "destination" else self.source)(rows))

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        scores: Tensor = self.rest(query + rows)
        return scores.squeeze(-1)


def _complex_product(rows: Tensor, real: Tensor, imaginary: Tensor, conjugate: bool) -> Tensor:
    """Return complex rows times the number, or its conjugate; rows hold real parts, then imaginary
    ones.
    """
    if conjugate:
        imaginary = -imaginary
    a, b = rows.chunk(2, -1)
    return torch.cat([a * real - b * imaginary, a * imaginary + b * real], -1)


DECODERS: Final[dict[str, type[Decoder]]] = {
    "dot": DotProduct,
    "distmult": DistMult,
    "complex": ComplEx,
    "bilinear": Bilinear,
    "transe": TransE,
    "rotate": RotatE,
    "mlp": MLPDecoder,
}
"""Classes of decoders; those with a method ``n3`` have the N3 regularisation."""
