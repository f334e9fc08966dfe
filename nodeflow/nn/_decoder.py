"""Decoder, the base: scores of pairs of nodes from their rows, and of one node with every row of a table."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from nodeflow._base.checks import as_count, check_one_of, describe
from nodeflow.sampling import LinkChunk

_SLICE = 1 << 22  # numbers of one slice of a comparison that needs a number per pair and column


class Decoder(nn.Module):
    """Base of the decoders: a score for (source, relation, destination), higher for more likely.

    A decoder is ``query``, what one end and a relation ask for, and ``compare``, how well a row answers. So one query
    meets every row of a table by a matrix product or in slices, and no row is copied per pair. Source of this form:
    Lacroix, Usunier, Obozinski 2018 for products.

    Args:
        width: width of the rows of nodes.
        num_relations: number of relations R, ids 0 to R - 1; None: 1, and ``rel`` is left out in calls.
        inverse: ask for a source as for the destination of the inverse relation ``r + R``, which has parameters of its
            own (Lacroix, Usunier, Obozinski 2018, section 3, "reciprocal"). A triple then has a score per ``side``.

    Shapes: rows of nodes ``[..., width]``; relations, integers ``[...]``, that broadcast with them.

    For a decoder of your own write ``query`` and ``compare``; ``compare_all``, ``compare_own`` and ``candidates`` have
    defaults.

    >>> class Cosine(Decoder):
    ...     def query(self, given, rel, side):
    ...         return torch.nn.functional.normalize(given, dim=-1)
    ...     def compare(self, query, rows):
    ...         return (query * torch.nn.functional.normalize(rows, dim=-1)).sum(-1)
    >>> Cosine(3).score_all(torch.ones(2, 3), None, torch.ones(5, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(self, width: int, num_relations: int | None = None, *, inverse: bool = False) -> None:
        super().__init__()
        self.width = as_count(width, "width", 1)
        self.num_relations = 1 if num_relations is None else as_count(num_relations, "num_relations", 1)
        self.inverse = bool(inverse)

    @property
    def num_rows(self) -> int:
        """Relations with parameters of their own: ``num_relations``, or twice as many with ``inverse``."""
        return self.num_relations * (1 + self.inverse)

    def forward(
        self, src: Tensor, dst: Tensor, rel: Tensor | int | None = None, *, side: str = "destination"
    ) -> Tensor:
        """Return the scores of pairs, ``[...]``.

        Args:
            src, dst: rows of the sources and destinations, ``[..., width]``; leading shapes broadcast.
            rel: ids of relations, ``[...]`` or one for all; None only where there is one relation.
            side: "source" asks for the source; it differs from "destination" with ``inverse`` only.

        Raises ValueError for rows of another width, a missing relation or another side; TypeError for rows or
        relations of a wrong type; IndexError for a relation out of range.
        """
        self._check(src, "src")
        self._check(dst, "dst")
        given, rows = (dst, src) if self._turned(side) else (src, dst)
        query = self.query(given, self._relations(rel, side, given.device), "destination")
        return self.compare(query, self.candidates(rows, "destination"))

    def score(self, src: Tensor, rel: Tensor | int | None, dst: Tensor, *, side: str = "destination") -> Tensor:
        """Return the scores of triples, as ``forward`` does, in the order in which triples are written."""
        scores: Tensor = self(src, dst, rel, side=side)
        return scores

    def score_all(self, given: Tensor, rel: Tensor | int | None, table: Tensor, side: str = "destination") -> Tensor:
        """Return the score of every row of a table as the other end, ``[..., n, K]``.

        Args:
            given: rows of the sources, ``[..., n, width]``; of the destinations for ``side="source"``.
            rel: ids of relations, ``[..., n]`` or one for all; None only where there is one relation.
            table: rows of the candidates, ``[..., K, width]``, or ``[K, width]`` for all.
            side: which end the candidates are.

        Raises what a call raises.

        >>> from nodeflow.nn import DistMult
        >>> decoder = DistMult(4, num_relations=3)
        >>> decoder.score_all(torch.ones(2, 4), torch.tensor([2, 0]), torch.ones(7, 4), side="source").shape
        torch.Size([2, 7])
        """
        self._check(given, "given")
        self._check(table, "table")
        if given.ndim < 2 or table.ndim < 2:
            raise ValueError(
                f"given and table must have shapes [..., n, {self.width}] and [..., K, {self.width}], got "
                f"{tuple(given.shape)} and {tuple(table.shape)}; give one row x as x.unsqueeze(0)"
            )
        query, end = self._asked(given, rel, side)
        return self.compare_all(query, self.candidates(table, end))

    def score_chunks(self, h: Tensor, chunks: Iterable[LinkChunk]) -> tuple[Tensor, Tensor]:
        """Return the scores of the seeds of a batch and of their negatives, ``[S * B]`` and ``[S * B, K]``.

        Args:
            h: rows of the nodes of the last layer, ``[batch.layer_sizes[-1], width]``.
            chunks: ``links.chunks_of(batch)``; each chunk's seeds meet its negatives by one ``compare_all``, or where
                every seed has its own by ``compare_own``.

        The B seeds are in their order, once per side that is replaced (S is 2 with ``corrupt="both"``, first
        destinations). Known positives, and places of a side with fewer negatives, have -inf, which losses leave out.

        >>> from nodeflow import Graph, LinkSampler, NeighborSampler
        >>> from nodeflow.nn import DotProduct
        >>> links = LinkSampler(NeighborSampler(Graph.from_edges([0, 1], [1, 2]), [1]), num_negatives=6, chunk=2)
        >>> batch = links([0, 1, 0])
        >>> h = torch.ones(batch.layer_sizes[-1], 4)
        >>> positive, negative = DotProduct(4).score_chunks(h, links.chunks_of(batch))
        >>> positive.shape, negative.shape
        (torch.Size([3]), torch.Size([3, 6]))
        """
        chunks = list(chunks)
        rows = _gather(h, [places for chunk in chunks for places in (chunk.src, chunk.dst, _shared(chunk))])
        positives, found, alone = [h.new_zeros(0)], list[Tensor | None](), list[tuple[Tensor, Tensor, Tensor]]()
        for chunk, src, dst, table in zip(chunks, rows[::3], rows[1::3], rows[2::3], strict=True):
            rel = None if chunk.rel is None else chunk.rel.to(h.device)
            positives.append(self(src, dst, rel, side=chunk.side).flatten())
            query, end = self._asked(dst if chunk.side == "source" else src, rel, chunk.side)
            if len(table):
                found.append(self.compare_all(query, self.candidates(table, end)))
            else:
                found.append(None)
                alone.append((query.squeeze(1), self.candidates(h, end), chunk.negatives))
        own, negatives = iter(self._compare_alone(alone)), [h.new_zeros(0, 0)]
        for chunk, shared in zip(chunks, found, strict=True):
            scores = next(own).unsqueeze(1) if shared is None else shared
            if chunk.known is not None:
                scores = scores.masked_fill(chunk.known.to(h.device), -torch.inf)
            negatives.append(scores.flatten(0, 1))
        most = max(scores.shape[1] for scores in negatives)
        wide = [F.pad(scores, (0, most - scores.shape[1]), value=-torch.inf) for scores in negatives]
        return torch.cat(positives), torch.cat(wide)

    @abstractmethod
    def query(self, given: Tensor, rel: Tensor, side: str) -> Tensor:
        """Return what a row and a relation ask for on a side, ``[..., q]``, from ``[..., width]`` and ``[...]``."""

    @abstractmethod
    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        """Return the scores ``[...]`` of queries with candidates, both ``[..., q]``; leading shapes broadcast."""

    def candidates(self, rows: Tensor, side: str) -> Tensor:
        """Return the candidates ``[..., q]`` of rows ``[..., width]`` that are compared with queries: the rows."""
        return rows

    def compare_all(self, query: Tensor, table: Tensor) -> Tensor:
        """Return the scores ``[..., n, K]`` of queries ``[..., n, q]`` with candidates ``[..., K, q]``.

        By ``compare`` in slices of the table, so that memory for a number per pair and column stays bounded; the
        gradient computes a slice again.
        """
        query, candidates = query.unsqueeze(-2), table.unsqueeze(-3)
        leading = torch.broadcast_shapes(query.shape[:-2], candidates.shape[:-2])
        per_row = max(1, leading.numel() * query.shape[-1])
        slices = candidates.split(max(1, _SLICE // per_row), -2)
        if len(slices) <= 1:
            return self.compare(query, candidates)
        again = torch.is_grad_enabled()
        return torch.cat(
            [
                checkpoint(self.compare, query, s, use_reentrant=False) if again else self.compare(query, s)
                for s in slices
            ],
            -1,
        )

    def compare_own(self, query: Tensor, table: Tensor, chosen: Tensor) -> Tensor:
        """Return the scores ``[n, K]`` of queries ``[n, q]``, each with candidates of its own.

        These are the rows ``chosen`` ``[n, K]`` of a table ``[m, q]``. By ``compare_all``.
        """
        return self.compare_all(query.unsqueeze(1), table[chosen]).squeeze(1)

    def _compare_alone(self, asked: list[tuple[Tensor, Tensor, Tensor]]) -> list[Tensor]:
        """Return ``compare_own`` of each; those of one table and as many candidates, such as two sides, in one call."""
        if any(table is not asked[0][1] or chosen.shape[1] != asked[0][2].shape[1] for _, table, chosen in asked):
            return [self.compare_own(*one) for one in asked]
        if not asked:
            return []
        queries, tables, chosen = zip(*asked, strict=True)
        scores = self.compare_own(torch.cat(queries), tables[0], torch.cat(chosen))
        return list(scores.split([len(query) for query in queries]))

    def extra_repr(self) -> str:
        """Return the settings, for ``repr``."""
        return f"{self.width}, num_relations={self.num_relations}" + (", inverse=True" if self.inverse else "")

    def _turned(self, side: str) -> bool:
        """Whether the source is asked for as the destination of an inverse relation."""
        check_one_of(side, "side", ("destination", "source"))
        return self.inverse and side == "source"

    def _asked(self, given: Tensor, rel: Tensor | int | None, side: str) -> tuple[Tensor, str]:
        """Return the queries of rows for a side, and the side whose candidates answer them."""
        end = "destination" if self._turned(side) else side
        return self.query(given, self._relations(rel, side, given.device), end), end

    def _check(self, rows: Tensor, name: str) -> None:
        if not isinstance(rows, Tensor) or not rows.is_floating_point():
            raise TypeError(f"{name} must be a floating-point tensor of rows of nodes, got {describe(rows)}")
        if rows.ndim == 0 or rows.shape[-1] != self.width:
            raise ValueError(f"{name} must have rows of width {self.width}, got shape {tuple(rows.shape)}")

    def _relations(self, rel: Tensor | int | None, side: str, device: torch.device) -> Tensor:
        """Return checked relations as int64, those of the inverse where they are asked for."""
        if rel is None:
            if self.num_relations > 1:
                raise ValueError(
                    f"rel is missing: {type(self).__name__} has {self.num_relations} relations, so every pair needs "
                    "the id of one"
                )
            rel = 0
        ids = torch.as_tensor(rel, device=device)
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise TypeError(f"rel must hold integer ids of relations, got {describe(rel)}")
        if ids.numel():
            low, high = (int(end) for end in ids.aminmax())
            if low < 0 or high >= self.num_relations:
                raise IndexError(
                    f"rel holds relation {low if low < 0 else high}, but {type(self).__name__} has relations 0 to "
                    f"{self.num_relations - 1}; for another number pass num_relations="
                )
        ids = ids.to(torch.int64)
        return ids + self.num_relations if self._turned(side) else ids


def _shared(chunk: LinkChunk) -> Tensor:
    """Return the negatives that seeds of a chunk share; none where every seed has its own."""
    return chunk.negatives if chunk.src.shape[1] > 1 else chunk.negatives[:0]


def _gather(h: Tensor, places: Sequence[Tensor]) -> list[Tensor]:
    """Return the rows of ``h`` at each of several places.

    Together, since the gradient of each gather is as large as ``h``; by embedding, which is several times faster than
    indexing.
    """
    if not places:
        return []
    parts = F.embedding(torch.cat([ids.flatten() for ids in places]), h).split([ids.numel() for ids in places])
    return [part.view(*ids.shape, h.shape[1]) for part, ids in zip(parts, places, strict=True)]
