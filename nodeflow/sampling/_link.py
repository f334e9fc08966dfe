"""Link prediction: batches whose seeds are edges or pairs, with negatives that replace one of their
ends.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from nodeflow._core.base.checks import (
    Ints,
    as_count,
    as_number,
    check_one_of,
    check_type,
    with_article,
)
from nodeflow._core.base.dates import as_moments
from nodeflow._core.base.types import Array, NumbersLike, SeedsLike
from nodeflow._core.edges.columns import check_edges, edge_integers
from nodeflow._core.links import SIDES, KnownLike, Links, LinksLike, as_known
from nodeflow._core.random import Random, derive_key, hash_ids
from nodeflow._core.rows.rows import fetch_rows
from nodeflow.flow import NodeFlow
from nodeflow.sampling import _link_parts as checks
from nodeflow.sampling._base import SamplerBase
from nodeflow.sampling._keys import Call, Keys, StepSeeds
from nodeflow.sampling._link_parts import MARKS, Exclude, LinkLayout, LinksByName, paired
from nodeflow.sampling._negative import (
    Known,
    Negatives,
    OwnNegatives,
    Pairs,
    as_own,
    check_types,
    degree_weights,
    own_nodes,
    whole_weights,
)
from nodeflow.sampling._sampler import check_draws
from nodeflow.sampling._times import exact


class LinkSampler(SamplerBase):
    """NodeFlows for link prediction: a seed is an edge, and the last layer holds its ends and its
    negatives.

    ``batch = links(edge_ids)`` has ``batch.seed_index``, int64 ``[B, 2 + K]``: row b holds the rows
    of the last layer of (source, destination, negative 1, ..., negative K) of seed edge b, in the
    order given. A repeated edge keeps rows of its own, with negatives of their own. The last layer
    has each of these nodes once, in order of first appearance over the rows of ``seed_index``.
    ``batch.seeds[batch.seed_index]`` are the parent ids; ``batch.seed_ids`` are the edge ids asked
    for, ``[B]``, so ``graph.edata["label"][batch.seed_ids]`` are labels of the seed edges. In a
    graph of several relations, theirs are the column "relation" of ``batch.seed_data``, numbers in
    the order of ``graph.schema.relations``; a batch may mix them. ``batch.chunks`` are the seeds in
    groups that share negatives, for ``Decoder.score_chunks``: groups of ``chunk`` seeds (1 without
    it, and with times, where every seed has rows of its own); per side that is replaced,
    destinations first, a chunk of all whole groups, and one of the seeds left over.

    ``pairs_of(batch)`` gives the pairs to score and their labels. Pairs without negatives need no
    LinkSampler: give them, of shape ``[B, 2]``, to the sampler of nodes or its ``NodeFlowLoader``.

    A negative takes the place of the destination, or with ``corrupt=`` of the source: the pair is
    one to score low. By default it is any node of the same type, so it may by chance be the
    destination, the source, or another out-neighbour.

    Args:
        sampler: makes the NodeFlow of these nodes; any sampler whose seeds are nodes. It draws with
            its own seed.
        num_negatives: negatives per seed edge, K; 0 for none.
        negatives: "uniform" over all nodes; weights of nodes ``[num_nodes]``, or the name of a node
            column of them; or "degree": in proportion to in-degree ** ``power`` (so nodes without
            in-edges are never drawn; the in-degree in the whole graph, of all relations, whatever
            the sampler's direction or filter). Or your own: a matrix of nodes
            ``[num_seeds, num_negatives]``, those of each seed; or a function
            ``(links, num_negatives, random)`` that returns them ``[B, num_negatives]`` for the
            links of a batch, or of a step of several processes: tensors ``links.src``,
            ``links.relation`` (or None) and ``links.dst``, ids of the graph. It takes random
            numbers from ``random``, a ``nodeflow.random.Random`` of this batch, so that its draws
            can be repeated.
        power: above 0; 0.75 is that of Mikolov et al. 2013, section 2.2. Without effect on
            "uniform".
        relation: name of the edge column with the relation of every edge, whole numbers from 0, and
            of the column of ``batch.seed_data``. None: the relations of ``graph.schema``, or none
            where it has only one. With relations ``filter_known`` looks at edges of the seed's
            relation, ``pairs`` and ``known`` are triples ``[n, 3]`` of (source, relation,
            destination), and ``batch.chunks`` have relations.
        pairs: ids ``[n, 2]`` of nodes that are the seeds instead of edges: a seed then is the
            number of a pair, and ``batch.seed_ids`` are numbers of pairs. They need not be edges,
            nor of a relation of ``graph.schema``. A dict ``{"writes": pairs}`` has them by
            relation, in ids within the types of both ends; so may ``known``.
        labels: a number per pair, for ``pairs_of``, of the types that columns have. Columns of
            several go to a loader, as ``seed_data=``.
        corrupt: what a negative takes the place of: "destination", "source", or "both" (negative 1,
            3, ... of the destination, 2, 4, ... of the source).
        birth: for a sampler with times, from which time on each node exists: a number per node, or
            the name of a node column. Negatives exist at the time of their seed. None: by the
            sampler's ``time``, the node's own; where it has none, and edges have times, that of its
            first edge in either direction; without edges it never does.
        chunk: number of consecutive seed edges that share their negatives, so that fewer nodes are
            computed. They need them of one type, and stay on one process where several share a
            step. None is 1.
        exclude: which edges no node of the batch may draw: "self" the seed edges; "reverse" all
            edges between the two ends of a seed edge, in both directions, parallel ones too; where
            ``graph.schema`` has a reverse of the seed's relation, as "rev_writes" is of "writes",
            only those of these two. A list of relations: those of them between the two ends. They
            are left out before the draw, so fanouts stay full. None: none, so a seed edge may be
            part of its own input.
        filter_known: never draw a negative n for a source u when an edge u -> n is known (of the
            seed's relation, with ``relation``), or when n is u. The other nodes keep the exact
            proportions of their probabilities; there are no repeated trials. With ``chunk``, shared
            negatives are known to none of those that share them. "mark": known ones are drawn too,
            and ``batch.chunks`` say which they are.
        known: pairs ``[n, 2]``, or triples with ``relation``, or a list of several such arrays,
            that ``filter_known`` looks at instead of the graph's edges, as in
            ``metrics.rank_links``. None: the edges of the graph.
        seed: any integer; of the negatives only.

    The negatives of row b are a pure function of this sampler's seed, the epoch, the batch and b.
    With ``times=``, one per seed, all 2 + K nodes of a seed are seen at its time. A call raises
    ValueError, with ``filter_known``, for a source that has no negative left.

    On a graph that lies on several processes a batch is the same, bit for bit. Then
    ``filter_known`` needs ``known``, and all processes pass the same tables. ``pairs_of`` and
    ``log_proposal`` ask no other process.

    Settings of the sampler stay its own. Known without ``known`` are all edges of the graph, also
    those that the sampler filters out. A graph without edges has no seeds.

    Cost: that of the sampler for the 2 + K nodes per edge; per negative the logarithm of the number
    of nodes ("degree") and of the source's out-degree (``filter_known``; with ``chunk`` the known
    nodes of a batch are sorted); for ``exclude`` the degrees of the ends. Once, when made: a pass
    over the edges; with "reverse" or ``filter_known`` their ends in sorted order, 8 bytes an edge,
    and 4 (uniform) or 12 (degree) more for ``filter_known``. A graph with edge ids of its own takes
    8 bytes an edge to look up their ends.

    Raises TypeError if ``sampler`` is not a sampler, has seeds that are not nodes, or cannot leave
    edges out for ``exclude``; KeyError for a relation that is not there; ValueError for values
    other than those above.

    >>> from nodeflow import Graph, NeighborSampler
    >>> graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 0])
    >>> links = LinkSampler(NeighborSampler(graph, [2]), num_negatives=2, exclude="reverse", filter_known=True)
    >>> batch = links([3, 0])
    >>> batch.seeds[batch.seed_index][:, :2].tolist(), batch.seed_index.shape, 3 in batch.flows[0].parent_eid
    ([[3, 4], [0, 1]], torch.Size([2, 4]), False)
    """

    draws_as = "link"
    whole_only = False

    def __init__(
        self,
        sampler: SamplerBase,
        *,
        num_negatives: int = 1,
        relation: str | None = None,
        pairs: LinksLike | LinksByName | None = None,
        labels: NumbersLike | None = None,
        negatives: str | NumbersLike | OwnNegatives = "uniform",
        power: float = 0.75,
        chunk: int | None = None,
        exclude: Exclude = None,
        filter_known: bool | str = False,
        known: KnownLike | LinksByName = None,
        corrupt: str = "destination",
        birth: str | NumbersLike | None = None,
        seed: int = 0,
    ) -> None:
        check_type(sampler, "sampler", SamplerBase, "a nodeflow sampler")
        if sampler.seed_kind != "node":
            kind = with_article(sampler.seed_kind)
            raise TypeError(
                f"sampler must take nodes as seeds, but a seed of {type(sampler).__name__} is "
                f"{kind}"
            )
        self.sampler = sampler
        self.form = sampler.form
        super().__init__(sampler.graph, sampler.num_flows, seed=seed)
        with self.graph.peers.together(f"making a {type(self).__name__}"):
            self.numbered = sampler.numbered
            self.takes_times = sampler.takes_times
            self.num_negatives = as_count(num_negatives, "num_negatives")
            check_draws(self.num_negatives, "num_negatives")
            check_one_of(corrupt, "corrupt", (*SIDES, "both"))
            self.corrupt = corrupt
            self.relation = relation
            self._pairs = None if pairs is None else checks.as_pairs(pairs, self.graph, relation)
            self._labels = checks.as_labels(labels, self._pairs)
            has_name = isinstance(negatives, str) or callable(negatives)
            self.negatives = negatives if has_name else "weights"
            self._own = as_own(negatives, (self.num_seeds, self.num_negatives), self.graph)
            drawn_evenly = self._own is not None or self.negatives in ("uniform", "degree")
            self._weights = None if drawn_evenly else checks.node_weights(self.graph, negatives)
            timed = sampler.takes_times and self.num_negatives > 0 and self._own is None
            self._birth_given = birth is not None
            if self._birth_given and not timed:
                raise TypeError(
                    f"birth is for negatives at times, but {type(sampler).__name__} takes no times"
                )
            self._birth = checks.birth_times(sampler, birth) if timed else None
            self.power = as_number(power, "power", above=0)
            self.chunk = None if chunk is None else as_count(chunk, "chunk", 1)
            self.seeds_together = self.chunk or 1
            self.exclude = checks.as_exclude(exclude, sampler, edges=self._pairs is None)
            self.filter_known = checks.as_filter(filter_known, known, self.graph)
            if self._own is not None and (self.seeds_together > 1 or self.filter_known is True):
                raise ValueError(
                    "negatives that are a matrix or a function are not drawn here, so they are "
                    "neither shared by chunk= nor filtered; leave out chunk, and take "
                    "filter_known='mark'"
                )
            schema = self.graph.schema
            # a relation that all edges have says nothing
            related = relation is not None or len(schema.relations) > 1
            if self._pairs is not None:
                related = self._pairs.relation is not None
            self._known = None
            if known is not None:
                links = checks.by_name(known, "known", schema, relation)
                self._known = as_known(links, schema.num_nodes, related, "as the seeds have")
            group = 1 if sampler.takes_times else self.seeds_together
            column = relation or "relation"
            sides = SIDES if corrupt == "both" else (corrupt,)
            self._layout = LinkLayout(sides, column if related else None, group)
            self.bind()

    def read_graph(self) -> None:
        plain = self._layout.relation is None and self._known is None
        # all pairs that are edges, which make look-ups fast. A process that holds a part of the
        # graph does not know them: there the graph is asked
        between = self.exclude not in (None, "self")
        needed = self.graph.peers.size == 1 and (between or (self.filter_known and plain))
        self._joined = Pairs.of(self.graph) if needed else None
        if self.relation is not None:
            column = edge_integers(self.graph, self.relation, "relation")
            rule = f"relation: the edge column {self.relation!r} must hold numbers from 0"
            check_edges(self.graph, column, column < 0, rule)
        links = self._known
        self._negatives = {}
        if self.filter_known and not plain and links is None:
            links = self._links_of_edges(np.arange(self.graph.num_edges))
        for side in self._layout.sides:
            known = None if links is None else Known.of(links, side, self.graph.num_nodes)
            if self.filter_known and plain and self._joined is not None:
                known = self._joined.known(side)
            weights = None
            if self._weights is not None:
                weights = whole_weights(self._weights)
            elif self.negatives == "degree":
                degrees = self.graph.in_degrees()
                if side == "source":
                    degrees = self.graph.out_degrees()
                weights = degree_weights(degrees.numpy(), self.power)
            self._negatives[side] = Negatives(
                self.graph.schema.bounds(),
                weights,
                known,
                self._birth,
                filtered=self.filter_known is True,
            )

    @property
    def num_seeds(self) -> int:
        """Number of edges, or of ``pairs``: a seed is an edge id of the graph, or the number of a
        pair.
        """
        return self.graph.num_edges if self._pairs is None else len(self._pairs.src)

    @property
    def seed_kind(self) -> str:
        """The word for a seed: "edge" or "pair"."""
        return "edge" if self._pairs is None else "pair"

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that determines the draws, except the graph; ``sampler`` as its class and its
        settings.
        """
        settings = super().settings
        settings["sampler"] = (type(self.sampler).__name__, self.sampler.settings)
        tables: dict[str, Array | None] = {"weights": self._weights}
        if not callable(self._own):
            tables["negatives"] = self._own
        if self._birth_given:
            tables["birth"] = self._birth
        for name, links in (("pairs", self._pairs), ("known", self._known)):
            if links is not None:
                tables[name] = np.stack([part for part in links if part is not None], 1)
        for name, array in tables.items():
            if array is not None:
                bits = np.ascontiguousarray(array).view(np.int64).reshape(-1)
                settings[name] = f"{len(array)} rows, {hash_ids(bits):#018x}"
        # what has no effect is not shown
        unused = {
            "power": self._own is not None or self.negatives == "uniform",
            "corrupt": self.corrupt == "destination",
            "relation": self.relation is None,
        }
        return {name: value for name, value in settings.items() if not unused.get(name)}

    def _made_of(self) -> tuple[str, Container[str]]:
        return self.sampler.text(), ("sampler",)

    def in_torch(self, device: torch.device | str = "cpu") -> Self:
        """Return the same with ``sampler.in_torch(device)``; links and negatives are drawn on the
        CPU all the same.
        """
        other = object.__new__(type(self))
        sampler = self.sampler.in_torch(device)
        other.__dict__.update(self.__dict__, sampler=sampler, form=sampler.form)
        return other

    def check_reach(self, nodes: Tensor) -> None:
        self.sampler.check_reach(nodes)

    def complete(self, batch: NodeFlow) -> NodeFlow:
        return self.sampler.complete(batch)

    def draw_batch(self, seeds: SeedsLike, call: Call) -> NodeFlow:
        ids = self._seeds(seeds)[0]
        times = call.times
        number = call.batch_number
        # negatives are drawn for the whole step, since they depend on the rows of the others
        if call.step is not None:
            ids = self._seeds(call.step.ids)[0]
            times = call.step.times
        hashes = [hash_ids(ids)]
        when = None
        if times is not None:
            self.sampler.refuse(times)
            when = as_moments(times, "times", f"seed edge ({len(ids)})", (len(ids),))
            bits = exact(when).view(np.int64)
            hashes.append(hash_ids(bits))
        keys = self._keys_of(call, ids, *hashes[1:])
        # Without a number the sampler of nodes would hash its own seeds, and draw alike for two
        # batches whose edges have the same ends. So it gets a number made of the edges, unless its
        # numbers mean more than "another batch".
        if number is None and not self.sampler.numbered:
            number = derive_key(*hashes) >> 1
        # the call of the sampler of nodes travels as the inputs of the draw
        inputs = call._replace(batch_number=number, times=when)
        return self._sample(ids, keys._replace(inputs=inputs))

    def _sample(self, seeds: Ints, keys: Keys) -> NodeFlow:
        inputs: Call = keys.inputs
        links, negatives = self._drawn(seeds, keys.key, inputs.times)
        sampler: Any = self.sampler
        if self.exclude == "self":
            sampler = sampler.without_edges(seeds)
        elif self.exclude is not None:
            sampler = sampler.without_edges(self._edges_between(links))
        # source, destination, negatives: the columns of ``seed_index``
        nodes = np.concatenate([links.src[:, None], links.dst[:, None], negatives], axis=1)
        # the negatives are those of the whole step; of these, a share takes its rows
        if inputs.step is not None:
            rows = inputs.step.rows
            times = inputs.times
            step = StepSeeds(nodes, times, rows)
            inputs = inputs._replace(times=None if times is None else times[rows], step=step)
            nodes = nodes[rows]
            negatives = negatives[rows]
            seeds = seeds[rows]
            links = links.at(rows)
        batch: NodeFlow = sampler.draw_batch(nodes, inputs)
        batch = batch.with_seeds(
            seed_ids=self.form.placed(seeds.copy()), seed_layout=self._layout.chunks
        )
        if self._layout.relation is not None and links.relation is not None:
            batch.seed_data[self._layout.relation] = self.form.placed(links.relation.copy())
        if self.filter_known == "mark":
            batch.seed_data[MARKS] = self.form.placed(self._marks(links, negatives))
        return batch

    def _drawn(self, seeds: Ints, key: int, times: Array | None) -> tuple[Links, Ints]:
        """The links of seeds, and their negatives ``[B, K]``."""
        links = self._links_of_edges(seeds) if self._pairs is None else self._pairs.at(seeds)
        if self._own is not None:
            random = Random(derive_key(key, "negative"))
            given = own_nodes(self._own, seeds, links, self.num_negatives, random, self.graph)
            check_types(given, links, self.graph, self._layout)
            return links, given
        drawn = np.empty((len(seeds), self.num_negatives), np.int64)
        for side, negatives in self._negatives.items():
            ends, replaced = links.ends(side)
            columns = self._layout.columns(side)
            schema = self.graph.schema
            # sides draw apart; that of destinations has the key that it had before there were two
            words = ["negative", 1] if side == "source" else ["negative"]
            rows = negatives.rows_of(ends, links.relation)
            count = drawn[:, columns].shape[1]
            types = schema.types_of(replaced)
            checks.check_shared(types, self.seeds_together, schema)
            drawn[:, columns], bad = negatives.draw(
                derive_key(key, *words), rows, types, count, self.seeds_together, times
            )
            if bad >= 0:
                kind = list(schema.nodes)[types[bad]]
                when = "" if times is None else f" that exists at time {times[bad]}"
                raise ValueError(
                    f"no negative is left for {self.seed_kind} {seeds[bad]}, from node "
                    f"{ends[bad]}: every {kind}{when} has the chance 0 there, or is known "
                    f"(filter_known={self.filter_known!r}) to it or to a seed that shares its "
                    f"negatives (chunk={self.chunk}); leave the {self.seed_kind} out of the seeds, "
                    "take a smaller chunk, or filter_known='mark'"
                )
        return links, drawn

    def _marks(self, links: Links, drawn: Ints) -> Array:
        """Mark the negatives ``[B, K]`` of links that are known positives."""
        marks = np.empty(drawn.shape, np.bool_)
        size = min(self._layout.chunk, max(len(drawn), 1))
        for side, negatives in self._negatives.items():
            columns = self._layout.columns(side)
            rows = negatives.rows_of(links.ends(side)[0], links.relation)
            marks[:, columns] = negatives.marked(rows, drawn[::size, columns], size)
        return marks

    def pairs_of(self, batch: NodeFlow) -> tuple[Tensor, Tensor]:
        """Return the pairs of a batch of this sampler and their labels: each seed, then its
        negatives.

        The pairs are rows of the last layer, int64 ``[B, 1 + K, 2]`` of (source, destination); the
        labels are ``[B, 1 + K]``: those of the seeds (``labels``, else 1) and 0 for negatives,
        float32 without ``labels``.

        >>> from nodeflow import Graph, NeighborSampler
        >>> links = LinkSampler(NeighborSampler(Graph.from_edges([0, 1], [1, 2]), [1]), num_negatives=2, corrupt="both")
        >>> pairs, labels = links.pairs_of(links([0, 1]))
        >>> pairs.shape, labels.tolist()
        (torch.Size([2, 3, 2]), [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        """
        pairs = paired(batch.seed_index, self.corrupt)
        given = torch.ones(len(pairs), device="cpu")
        if self._labels is not None:
            given = self._labels[batch.seed_ids.cpu()]
        labels = torch.zeros_like(pairs[..., 0], dtype=given.dtype)
        labels[:, 0] = given
        return pairs, labels

    def log_proposal(self, batch: NodeFlow) -> Tensor:
        """Return logarithms of the probabilities with which the negatives of a batch were drawn,
        ``[S * B, k]``.

        The order is that of ``Decoder.score_chunks``: per side that is replaced the B seeds; k
        negatives of the side that has most, where places that the other has not hold 0. For
        ``nn.softmax_loss(log_proposal=)``.

        Raises TypeError for a sampler with times, and for negatives that are a matrix or a
        function.

        >>> from nodeflow import Graph, NeighborSampler
        >>> links = LinkSampler(NeighborSampler(Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0]), [1]), filter_known=True)
        >>> links.log_proposal(links([0])).exp()  # of 4 nodes, the source and its neighbour are left out
        tensor([[0.5000]])
        """
        if self.takes_times or self._own is not None:
            raise TypeError(
                "log_proposal is not there for negatives at times, whose probabilities depend on "
                "the time, nor for negatives of your own"
            )
        ends = batch.seeds[batch.seed_index[:, :2]].numpy(force=True)
        size = len(batch.seed_index)
        column = self._layout.relation
        relation = None if column is None else batch.seed_data[column].numpy(force=True)
        links = Links(ends[:, 0], relation, ends[:, 1])
        size = min(self.seeds_together, max(size, 1))
        drawn = batch.seeds[batch.seed_index[::size, 2:]].numpy(force=True)
        parts = []
        for side, negatives in self._negatives.items():
            near, replaced = links.ends(side)
            rows = negatives.rows_of(near, links.relation)
            types = self.graph.schema.types_of(replaced)
            parts.append(
                negatives.log_chance(rows, types, drawn[:, self._layout.columns(side)], size)
            )
        # an odd number of negatives gives one side more of them
        most = max(part.shape[1] for part in parts)
        wide = np.concatenate([np.pad(part, ((0, 0), (0, most - part.shape[1]))) for part in parts])
        return torch.from_numpy(wide.astype(np.float32)).to(batch.seed_index.device)

    def _links_of_edges(self, ids: Ints) -> Links:
        """Ends and relations of edges, int64; collective."""
        src, dst = self.graph.find_edges(ids)
        relation = None
        if self.relation is not None:
            column = fetch_rows(self.graph.edata[self.relation], torch.from_numpy(ids))
            relation = column.numpy().astype(np.int64)
        elif self._layout.relation is not None:
            relation = self.graph.schema.relations_of(ids)
        return Links(src.numpy(), relation, dst.numpy())

    def _edges_between(self, links: Links) -> Ints:
        """The ids of the edges between the ends of links that ``exclude`` leaves out, some
        repeatedly; collective.
        """
        u = links.src
        v = links.dst
        schema = self.graph.schema
        if self._joined is None:
            # both directions in one question: the processes that hold the edges are asked once
            ends = torch.from_numpy(np.stack([np.concatenate([u, v]), np.concatenate([v, u])]))
            ids = self.graph.edge_ids(*ends, return_uv=True)[2].numpy()
        else:
            ids = self._joined.between(u, v)
        relations = schema.relations_of(ids)
        if isinstance(self.exclude, tuple):
            return ids[np.isin(relations, [schema.number(name) for name in self.exclude])]
        if self.relation is not None or links.relation is None:
            return ids
        # of each pair of ends the edges of the seed's relation and of its reverse; all, if it has
        # none
        src, dst = self.graph.find_edges(ids)
        pairs = (u, v), (src.numpy(), dst.numpy())
        of_links, of_edges = (
            np.minimum(a, b) * schema.num_nodes + np.maximum(a, b) for a, b in pairs
        )
        kinds = schema.reversals()
        of_seeds = kinds[links.relation]
        left_out = np.isin(of_edges, of_links[of_seeds < 0])
        # relations and their reverses have one number: an edge is left out if a seed of its number
        # has the same ends, whatever the directions
        for kind in np.unique(kinds[kinds >= 0]):
            is_near = np.isin(of_edges, of_links[of_seeds == kind])
            left_out |= is_near & (kinds[relations] == kind)
        return ids[left_out]
