"""Decoders whose score is minus a distance, and the one that is a network."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nodeflow._base.checks import as_count
from nodeflow.nn._conv import draw_glorot
from nodeflow.nn._decoder import Decoder
from nodeflow.nn._product_decoders import check_even, complex_product
from nodeflow.ops import sum_moduli

_FEW = 8  # queries that meet one table


class TransE(Decoder):
    """``-|s + r - d|`` (Bordes, Usunier, Garcia-Duran, Weston, Yakhnenko 2013, section 2), in the norm L1 or L2.

    Args:
        width, num_relations, inverse: see ``Decoder``.
        norm: 1 or 2.

    Parameters: ``relation`` ``[R, width]``, uniform up to ``6 / sqrt(width)``, then of length 1 (Bordes et al.,
    algorithm 1).

    ``score_all`` by L2 is a matrix product: squares are subtracted, so a distance far below the length of the rows is
    off by up to about 1e-3 of that length in float32. A call is exact.

    >>> TransE(2, norm=2)(torch.zeros(1, 2), torch.zeros(1, 2)).exp()  # the relation has length 1
    tensor([0.3679], grad_fn=<ExpBackward0>)
    """

    def __init__(self, width: int, num_relations: int | None = None, *, inverse: bool = False, norm: int = 1) -> None:
        super().__init__(width, num_relations, inverse=inverse)
        self.norm = _norm(norm)
        self.relation = nn.Parameter(torch.empty(self.num_rows, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new rows of relations."""
        bound = 6 / math.sqrt(self.width)
        nn.init.uniform_(self.relation, -bound, bound)
        with torch.no_grad():
            self.relation.copy_(F.normalize(self.relation, dim=1))

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        step = F.embedding(relation, self.relation).to(rows.dtype)
        return rows + step if side == "destination" else rows - step

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return _length(query - rows, self.norm).neg()

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        return -_distances(query, table, self.norm)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, norm={self.norm}"


class RotatE(Decoder):
    """``-|s o r - d|`` where r turns every complex number by an angle (Sun, Deng, Nie, Tang 2019, equation 3).

    A row holds the real parts of ``width / 2`` complex numbers, then their imaginary parts.

    Args:
        width: width of the rows, an even number.
        num_relations, inverse: see ``Decoder``.
        norm: 1, the sum of the absolute values of the complex numbers, as in the paper's experiments; or 2, the length,
            with a ``score_all`` that is a matrix product, of the precision stated in ``TransE``.

    Parameters: ``angle`` ``[R, width / 2]``, uniform from -pi to pi (Sun et al., section 4.1).

    >>> RotatE(8, num_relations=4).score_all(torch.ones(5, 8), 2, torch.ones(7, 8), side="source").shape
    torch.Size([5, 7])
    """

    def __init__(self, width: int, num_relations: int | None = None, *, inverse: bool = False, norm: int = 1) -> None:
        super().__init__(check_even(width, "RotatE"), num_relations, inverse=inverse)
        self.norm = _norm(norm)
        self.angle = nn.Parameter(torch.empty(self.num_rows, width // 2))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new angles."""
        nn.init.uniform_(self.angle, -math.pi, math.pi)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        angle = F.embedding(relation, self.angle)
        real, imaginary = angle.cos().to(rows.dtype), angle.sin().to(rows.dtype)
        return complex_product(rows, real, imaginary, conjugate=side == "source")

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        difference = query - rows
        if self.norm == 2:
            return _length(difference, 2).neg()
        real, imaginary = difference.chunk(2, -1)
        squares = real * real + imaginary * imaginary
        # the clamp gives a number of 0 a gradient of 0
        return squares.clamp_min(torch.finfo(squares.dtype).tiny).sqrt().sum(-1).neg()

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        if self.norm == 2:
            return -_distances(query, table, 2)
        leading = torch.broadcast_shapes(query.shape[:-2], table.shape[:-2])
        if table.ndim == 2:
            distances = sum_moduli(query.reshape(-1, self.width), table, self._sum_moduli)
            return distances.neg().reshape(*query.shape[:-1], len(table))
        if query.shape[-2] < _FEW or leading.numel() == 0:  # a call per table would cost more than it saves
            return super().compare_all(query, table)
        tables, queries = (x.expand(*leading, -1, -1).flatten(0, -3) for x in (table, query))
        each = [sum_moduli(q, t, self._sum_moduli) for q, t in zip(queries, tables, strict=True)]
        return torch.stack(each).neg().reshape(*leading, query.shape[-2], table.shape[-2])

    def _sum_moduli(self, query: Tensor, table: Tensor) -> Tensor:
        """Distances by torch operations."""
        return -super().compare_all(query, table)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, norm={self.norm}"


class MLPDecoder(Decoder):
    """A network on the rows of both ends and of the relation: ``w' f(... f(W_s s + W_r r + W_d d + b)) + c``.

    The first layer is the sum of a product per end, so a table is multiplied once, not per pair.

    Args:
        width, num_relations, inverse: see ``Decoder``. With one relation there is no row ``r``.
        hidden: width of the layers between; None: ``width``.
        num_layers: linear layers, at least 2.
        dropout: share of the hidden numbers set to 0 in training.

    Parameters: matrices as in Glorot, Bengio 2010, equation 16, biases 0; rows of relations as in ``DistMult``. The
    nonlinearity f is ReLU.

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
        hidden = width if hidden is None else as_count(hidden, "hidden", 1)
        self.relation = nn.Parameter(torch.empty(self.num_rows, width)) if self.num_rows > 1 else None
        self.source = nn.Linear(width, hidden)
        self.destination = nn.Linear(width, hidden, bias=False)
        self.middle = None if self.relation is None else nn.Linear(width, hidden, bias=False)
        widths = [hidden] * (as_count(num_layers, "num_layers", 2) - 1) + [1]
        layers: list[nn.Module] = []
        for a, b in pairwise(widths):
            layers += [nn.ReLU(), nn.Dropout(dropout), nn.Linear(a, b)]
        self.rest = nn.Sequential(*layers)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for layer in self.children():
            draw_glorot(layer)
        if self.relation is not None:
            nn.init.normal_(self.relation, std=self.width**-0.5)

    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        query: Tensor = (self.source if side == "destination" else self.destination)(rows)
        if self.relation is None or self.middle is None:
            return query
        # the rows of all relations are multiplied, which are often fewer than the pairs
        return query + F.embedding(relation, self.middle(self.relation)).to(query.dtype)

    def candidates(self, rows: Tensor, side: str) -> Tensor:
        candidates: Tensor = (self.destination if side == "destination" else self.source)(rows)
        return candidates

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        scores: Tensor = self.rest(query + rows)
        return scores.squeeze(-1)


def _norm(norm: int) -> int:
    if norm not in (1, 2):
        raise ValueError(f"norm must be 1 or 2, got {norm!r}")
    return norm


def _length(rows: Tensor, norm: int) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(rows, norm, -1)
    return length


def _distances(query: Tensor, table: Tensor, norm: int) -> Tensor:
    """Return the distances ``[..., n, K]`` of ``[..., n, d]`` and ``[..., K, d]``."""
    leading = query.shape[:-1]
    if table.ndim == 2:  # one table for all: one product, without copies of the table
        query = query.reshape(-1, query.shape[-1])
    distances = torch.cdist(query, table, p=norm, compute_mode="use_mm_for_euclid_dist")
    return distances.reshape(*leading, table.shape[0]) if table.ndim == 2 else distances
