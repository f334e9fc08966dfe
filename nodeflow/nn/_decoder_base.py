"""Decoder, the base: scores of pairs of nodes from their rows, and of one node with every row of a
table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nodeflow._core.base.calls import Explained
from nodeflow._core.base.checks import as_count, check_one_of, describe
from nodeflow._core.links import SIDES
from nodeflow.flow import NodeFlow
from nodeflow.nn._conv import check_range

# numbers of one slice of a comparison that needs a number per pair and column
_SLICE = 1 << 22


class Decoder(nn.Module, metaclass=Explained):
    """Base of the decoders: a score for (source, relation, destination), higher for more likely.

    A decoder has two parts: ``query`` combines one end with a relation, ``compare`` scores a
    candidate for it. So a query is scored against every row of a table by a matrix product or in
    slices, and no row is copied per pair. Source of this form: Lacroix, Usunier, Obozinski 2018 for
    products.

    Args:
        width: width of the rows of nodes.
        num_relations: number of relations R, ids 0 to R - 1; None: 1, and ``relation`` is left out
            in calls.
        inverse: ask for a source as for the destination of the inverse relation ``r + R``, which
            has parameters of its own (Lacroix, Usunier, Obozinski 2018, section 3, "reciprocal"). A
            triple then has a score per ``side``.

    Shapes: rows of nodes ``[..., width]``; relations, integers ``[...]``, that broadcast with them.

    A decoder of your own defines ``query`` and ``compare``; the rest has defaults.

    >>> class Cosine(Decoder):
    ...     def query(self, rows, relation, side):
    ...         return torch.nn.functional.normalize(rows, dim=-1)
    ...     def compare(self, query, rows):
    ...         return (query * torch.nn.functional.normalize(rows, dim=-1)).sum(-1)
    >>> Cosine(3).score_all(torch.ones(2, 3), None, torch.ones(5, 3)).shape
    torch.Size([2, 5])
    """

    two_part_rows: ClassVar[bool] = False
    """Whether rows are complex numbers, real parts first, so that their width is even."""

    def __init__(
        self, width: int, num_relations: int | None = None, *, inverse: bool = False
    ) -> None:
        super().__init__()
        self.width = as_count(width, "width", 1 + self.two_part_rows)
        if self.two_part_rows and width % 2:
            raise ValueError(
                f"width must be even, because rows of {type(self).__name__} are complex numbers of "
                f"two parts, got {width}"
            )
        self.num_relations = 1
        if num_relations is not None:
            self.num_relations = as_count(num_relations, "num_relations", 1)
        self.inverse = bool(inverse)
        self.make_parameters()

    def make_parameters(self) -> None:
        """Make the parameters, if there are any, and draw them: the last step of ``__init__``."""

    @property
    def num_rows(self) -> int:
        """Relations with parameters of their own: ``num_relations``, or twice as many with
        ``inverse``.
        """
        return self.num_relations * (1 + self.inverse)

    def forward(
        self,
        src: Tensor,
        dst: Tensor,
        relation: Tensor | int | None = None,
        *,
        side: str = "destination",
    ) -> Tensor:
        """Return the scores of pairs, ``[...]``.

        Args:
            src, dst: rows of the sources and destinations, ``[..., width]``; leading shapes
                broadcast.
            relation: ids of relations, ``[...]`` or one for all; None only where there is one
                relation.
            side: "source" asks for the source; it differs from "destination" with ``inverse`` only.

        Raises ValueError for rows of another width, a missing relation or another side; TypeError
        for rows or relations of a wrong type; IndexError for a relation out of range.
        """
        self._check(src, "src")
        self._check(dst, "dst")
        if self._is_inverse(side):
            src, dst = dst, src
        query = self.query(src, self._relations(relation, side, src.device), "destination")
        return self.compare(query, self.candidates(dst, "destination"))

    def score_all(
        self, rows: Tensor, relation: Tensor | int | None, table: Tensor, side: str = "destination"
    ) -> Tensor:
        """Return the score of every row of a table as the other end, ``[..., n, K]``.

        Args:
            rows: rows of the sources, ``[..., n, width]``; of the destinations for
                ``side="source"``.
            relation: ids of relations, ``[..., n]`` or one for all; None only where there is one
                relation.
            table: rows of the candidates, ``[..., K, width]``, or ``[K, width]`` for all.
            side: which end the candidates are.

        Raises what a call raises.
        """
        self._check(rows, "rows")
        self._check(table, "table")
        if rows.ndim < 2 or table.ndim < 2:
            raise ValueError(
                f"rows and table must have shapes [..., n, {self.width}] and [..., K, "
                f"{self.width}], got {tuple(rows.shape)} and {tuple(table.shape)}; give one row x "
                "as x.unsqueeze(0)"
            )
        query, answers = self._query_for(rows, relation, side)
        return self.compare_all(query, self.candidates(table, answers))

    def score_chunks(self, h: Tensor, batch: NodeFlow) -> tuple[Tensor, Tensor]:
        """Return the scores of the seeds of a batch and of their negatives, ``[S * B]`` and
        ``[S * B, K]``.

        Args:
            h: rows of the nodes of the last layer, ``[batch.layer_sizes[-1], width]``.
            batch: a batch of a ``LinkSampler``. The seeds of each of its ``chunks`` meet the
                negatives that they share by one ``compare_all``, or where every seed has its own by
                ``compare_own``.

        The B seeds are in their order, once per side that is replaced (S is 2 with
        ``corrupt="both"``, first destinations). Known positives, and places of a side with fewer
        negatives, have -inf, which losses leave out.

        >>> from nodeflow import Graph, LinkSampler, NeighborSampler
        >>> from nodeflow.nn import DotProduct
        >>> graph = Graph.from_edges([0, 1], [1, 2])
        >>> batch = LinkSampler(NeighborSampler(graph, [1]), num_negatives=6, chunk=2)([0, 1, 0])
        >>> [scores.shape for scores in DotProduct(4).score_chunks(torch.ones(batch.layer_sizes[-1], 4), batch)]
        [torch.Size([3]), torch.Size([3, 6])]
        """
        chunks = batch.chunks
        places = []
        for chunk in chunks:
            # none where every seed has negatives of its own
            is_shared = chunk.src.shape[1] > 1
            places += [chunk.src, chunk.dst, chunk.negatives if is_shared else chunk.negatives[:0]]
        # one gather for all chunks, whose gradient is one matrix
        rows = _gather(h, places)
        positives = [h.new_zeros(0)]
        shared = list[Tensor | None]()
        single = list[tuple[Tensor, Tensor, Tensor]]()
        for chunk, src, dst, table in zip(chunks, rows[::3], rows[1::3], rows[2::3], strict=True):
            positives.append(self(src, dst, chunk.relation, side=chunk.side).flatten())
            near = src
            if chunk.side == "source":
                near = dst
            query, answers = self._query_for(near, chunk.relation, chunk.side)
            if len(table):
                shared.append(self.compare_all(query, self.candidates(table, answers)))
            else:
                shared.append(None)
                single.append((query.squeeze(1), self.candidates(h, answers), chunk.negatives))
        single_scores = iter(self._compare_single(single))
        negatives = [h.new_zeros(0, 0)]
        for chunk, together in zip(chunks, shared, strict=True):
            scores = next(single_scores).unsqueeze(1) if together is None else together
            if chunk.known is not None:
                scores = scores.masked_fill(chunk.known.to(h.device), -torch.inf)
            negatives.append(scores.flatten(0, 1))
        # chunks have different numbers of negatives; losses leave out what has the score
        # -inf
        most = max(scores.shape[1] for scores in negatives)
        wide = [
            F.pad(scores, (0, most - scores.shape[1]), value=-torch.inf) for scores in negatives
        ]
        return torch.cat(positives), torch.cat(wide)

    @abstractmethod
    def query(self, rows: Tensor, relation: Tensor, side: str) -> Tensor:
        """Return the queries ``[..., q]`` of rows ``[..., width]`` and relations ``[...]`` for a
        side.
        """

    @abstractmethod
    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        """Return the scores ``[...]`` of queries with candidates, both ``[..., q]``; leading shapes
        broadcast.
        """

    def candidates(self, rows: Tensor, side: str) -> Tensor:
        """Return the candidates ``[..., q]`` of rows ``[..., width]`` that are compared with
        queries: the rows.
        """
        return rows

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        """Return the scores ``[..., n, K]`` of queries ``[..., n, q]`` with candidates
        ``[..., K, q]``.

        By ``compare`` in slices of the table, so that memory for a number per pair and column stays
        bounded; the gradient computes a slice again.
        """
        query = query.unsqueeze(-2)
        candidates = table.unsqueeze(-3)
        leading = torch.broadcast_shapes(query.shape[:-2], candidates.shape[:-2])
        per_row = max(1, leading.numel() * query.shape[-1])
        # slices bound the memory; a checkpoint computes a slice again for its gradient
        slices = candidates.split(max(1, _SLICE // per_row), -2)
        if len(slices) <= 1:
            return self.compare(query, candidates)
        if not torch.is_grad_enabled():
            return torch.cat([self.compare(query, rows) for rows in slices], -1)
        scores = [checkpoint(self.compare, query, rows, use_reentrant=False) for rows in slices]
        return torch.cat(scores, -1)

    def compare_own(self, query: Tensor, table: Tensor, chosen: Tensor) -> Tensor:
        """Return the scores ``[n, K]`` of queries ``[n, q]`` with the rows ``chosen`` ``[n, K]`` of
        a table.
        """
        return self.compare_all(query.unsqueeze(1), table[chosen]).squeeze(1)

    def _compare_single(self, parts: list[tuple[Tensor, Tensor, Tensor]]) -> list[Tensor]:
        """Return ``compare_own`` of each; one call for those with the same table and number of
        candidates.
        """
        if any(
            table is not parts[0][1] or chosen.shape[1] != parts[0][2].shape[1]
            for _, table, chosen in parts
        ):
            return [self.compare_own(*part) for part in parts]
        if not parts:
            return []
        # one call for all where they share a table, as one gather is faster than several
        queries, tables, chosen = zip(*parts, strict=True)
        scores = self.compare_own(torch.cat(queries), tables[0], torch.cat(chosen))
        return list(scores.split([len(query) for query in queries]))

    def extra_repr(self) -> str:
        words = f"{self.width}, num_relations={self.num_relations}"
        return words + ", inverse=True" * self.inverse

    def _is_inverse(self, side: str) -> bool:
        check_one_of(side, "side", SIDES)
        return self.inverse and side == "source"

    def _query_for(
        self, rows: Tensor, relation: Tensor | int | None, side: str
    ) -> tuple[Tensor, str]:
        """Return the queries of rows for a side, and the side whose candidates answer them."""
        answers = side
        if self._is_inverse(side):
            answers = "destination"
        return self.query(rows, self._relations(relation, side, rows.device), answers), answers

    def _check(self, rows: Tensor, name: str) -> None:
        if not isinstance(rows, Tensor) or not rows.is_floating_point():
            raise TypeError(
                f"{name} must be a floating-point tensor of rows of nodes, got {describe(rows)}"
            )
        if rows.ndim == 0 or rows.shape[-1] != self.width:
            raise ValueError(
                f"{name} must have rows of width {self.width}, got shape {tuple(rows.shape)}"
            )

    def _relations(self, relation: Tensor | int | None, side: str, device: torch.device) -> Tensor:
        """Return checked relations as int64, those of the inverse where they are asked for."""
        if relation is None:
            if self.num_relations > 1:
                raise ValueError(
                    f"relation is missing: {type(self).__name__} has {self.num_relations} "
                    "relations, so every pair needs the id of one"
                )
            relation = 0
        ids = torch.as_tensor(relation, device=device)
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise TypeError(
                f"relation must hold integer ids of relations, got {describe(relation)}"
            )
        words = f"the relations of {type(self).__name__} (num_relations=)"
        check_range(ids, self.num_relations, "relation", words)
        ids = ids.to(torch.int64)
        if self._is_inverse(side):
            return ids + self.num_relations
        return ids


def _gather(h: Tensor, places: Sequence[Tensor]) -> list[Tensor]:
    """Return the rows of ``h`` at each of one or more places.

    Together, since the gradient of each gather is as large as ``h``; by embedding, which is several
    times faster than indexing.
    """
    every = torch.cat([ids.flatten() for ids in places])
    parts = F.embedding(every, h).split([ids.numel() for ids in places])
    return [part.view(*ids.shape, h.shape[1]) for part, ids in zip(parts, places, strict=True)]
