"""Small wrong samplers, each with the name of the check that must find its fault; among them
published ones.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nodeflow import (
    Graph,
    LadiesSampler,
    NeighborSampler,
    NodeFlow,
    Sampler,
    TemporalNeighborSampler,
)
from nodeflow.flow import create_node_flow, flow_from_edges
from nodeflow.sampling.base import Choice, SamplerBase, Step


class Plain(Sampler):
    """k of d edges of every destination, by the smallest random numbers; subclasses have one fault
    each.
    """

    def __init__(self, graph: Graph, k: int = 2, num_flows: int = 2, **options: Any) -> None:
        super().__init__(graph, num_flows, **options)
        self.k = k

    def keys(self, edges: Any, step: Step) -> Tensor:
        return step.random.uniform(edges.eid)

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        keep = self.smallest(edges, self.keys(edges, step))
        return edges.select(keep, prob=(self.k / edges.degrees.clamp(min=self.k))[edges.rows][keep])

    def smallest(self, edges: Any, keys: Tensor) -> Tensor:
        order = torch.from_numpy(np.lexsort((keys, edges.rows)))
        place = torch.arange(len(order)) - edges.indptr[:-1].repeat_interleave(edges.degrees)
        return order[place < self.k].sort().values


class WithReplacement(Plain):
    """k draws of every destination, at the places that ``places`` gives for uniform numbers
    ``[num_dst, k]``.
    """

    replace = True

    def places(self, uniform: Tensor, degree: Tensor) -> Tensor:
        return (uniform * degree).long()

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        uniform = torch.stack(
            [step.random.uniform(dst, draw=i) for i in range(self.k)], dim=1
        ).double()
        some = edges.degrees > 0
        places = self.places(uniform[some], edges.degrees[some][:, None])
        chosen = (edges.indptr[:-1][some][:, None] + places).sort(dim=1).values.flatten()
        return edges.select(chosen, prob=(self.k / edges.degrees)[edges.rows][chosen])


class OffByOne(WithReplacement):
    """torch-sparse#385: a number from 0 to d - 1 without the last."""

    def places(self, uniform: Tensor, degree: Tensor) -> Tensor:
        return (uniform * (degree - 1).clamp(min=1)).long()


class FirstNever(WithReplacement):
    """dgl PR#1928: the first neighbour is never drawn."""

    def places(self, uniform: Tensor, degree: Tensor) -> Tensor:
        return 1 - (degree == 1).long() + (uniform * (degree - 1)).long()


class SixteenBits(WithReplacement):
    """pyg-lib: a place is a random number of 16 bits, modulo the degree."""

    def places(self, uniform: Tensor, degree: Tensor) -> Tensor:
        return (
            (uniform * 2**16).long() % degree
            if bool((degree > 2**16).any())
            else (uniform * degree).long()
        )


class SixteenBitsBelow(WithReplacement):
    """pyg-lib 0.8: a place below 2**16 is a random number of 16 bits, modulo the degree."""

    def places(self, uniform: Tensor, degree: Tensor) -> Tensor:
        small = (uniform * 2**16).long() % degree
        return torch.where(degree < 2**16, small, (uniform * degree).long())


class SmallWeights(Plain):
    """Weights in a type whose largest number is smaller than the degrees of hubs."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        keep = step.random.uniform(edges.eid) < self.k / edges.degrees.clamp(min=self.k)[edges.rows]
        weight = (edges.degrees / self.k).clamp(min=1, max=2**10)[edges.rows]
        return edges.select(keep, weight[keep])


class HubRepeats(Plain):
    """pyg-lib: nodes of very many neighbours draw them with replacement."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        if len(edges) > 2**16 and len(dst) == 1:
            places = np.sort(
                (step.random.uniform(torch.arange(self.k)).numpy() * 8).astype(int)
                * (len(edges) // 8)
            )
            return edges.select(places, prob=self.k / len(edges))
        return super().choose(dst, step)


class Future(TemporalNeighborSampler):
    """PyG#7794: beyond the first hop, edges of the future are drawn."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        return edges.select(edges.eid >= 0) if step.flow == 0 else super().choose(dst, step)


class LadiesWithoutWeights(LadiesSampler):
    """The set of LADIES, without its weights."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        return edges.select(np.isin(edges.positions, super().choose(dst, step).positions))


class GlobalNumbers(Plain):
    """Random numbers of numpy's global generator."""

    def keys(self, edges: Any, step: Step) -> Tensor:
        return torch.from_numpy(np.random.random_sample(len(edges)))  # noqa: NPY002


class ByHand(Plain):
    """A choice of sources and ids by hand; ``turn`` changes them."""

    def turn(self, src: Tensor, eid: Tensor) -> tuple[Tensor, Tensor]:
        return src, eid

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        src, eid = self.turn(edges.src, edges.eid)
        return Choice(edges.indptr, src=src, eid=eid)


class WrongIds(ByHand):
    """The ids of the edges are those of their neighbours in the list."""

    def turn(self, src: Tensor, eid: Tensor) -> tuple[Tensor, Tensor]:
        return src, (eid + 1) % self.graph.num_edges


class Reversed(Plain):
    """Out-edges for in-edges."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        from_, to, eid = (part.numpy() for part in self.graph.out_edges(dst))
        row_of = {v: i for i, v in enumerate(dst.tolist())}
        rows = np.array([row_of[v] for v in from_.tolist()], np.int64)
        order = np.argsort(rows, kind="stable")
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=len(dst))))
        return Choice(indptr, src=to[order], eid=eid[order])


class NotInverse(Plain):
    """Weights are the probabilities, not their inverse."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        keep = self.smallest(edges, self.keys(edges, step))
        return edges.select(
            keep, weight=(self.k / edges.degrees.clamp(min=self.k)).float()[edges.rows][keep]
        )


class Repeats(WithReplacement):
    """Draws that say that they are without replacement, and are not."""

    replace = False


class IgnoresFilter(Plain):
    """The edges of the graph in place of the candidates."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        return (
            NeighborSampler(self.graph, [-1]).candidates(dst).select(slice_of_all(self.graph, dst))
        )


def slice_of_all(graph: Graph, dst: Tensor) -> np.ndarray:
    return np.ones(int(graph.in_degrees(dst).sum()), np.bool_)


class Shuffled(Plain):
    """A layer whose new nodes stand in reverse order."""

    def __init__(self, graph: Graph, **options: Any) -> None:
        super().__init__(graph, num_flows=1, **options)

    def _sample(self, *arguments: Any) -> NodeFlow:
        batch = super()._sample(*arguments)
        flow = batch.flows[0]
        size = batch.layer_sizes[1]
        order = torch.cat([torch.arange(size), torch.arange(size, flow.num_src).flip(0)])
        src, dst = flow.edges()
        other = flow_from_edges(
            order[src],
            dst,
            num_src=flow.num_src,
            num_dst=size,
            parent_eid=flow.parent_eid,
            weight=flow.weight,
        )
        ids = [batch.layers[0].parent_nid[order], batch.layers[1].parent_nid]
        return create_node_flow([other], ids, parent=self.graph).with_seeds(
            seed_index=batch.seed_index
        )


class ByPlace(Plain):
    """Random numbers by the place of a destination in the call, which ``by_row`` denies."""

    by_row = True

    def keys(self, edges: Any, step: Step) -> Tensor:
        return step.random.uniform(torch.arange(len(edges)))


class SortsSeeds(Plain):
    """Seeds are sorted in place."""

    def __call__(self, seeds: Any, **options: Any) -> NodeFlow:
        batch = super().__call__(seeds, **options)
        if isinstance(seeds, Tensor):
            seeds.copy_(seeds.sort(descending=True).values)
        return batch


class CountsInGraph(Plain):
    """A column of the graph counts what was drawn."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        choice = super().choose(dst, step)
        self.graph.edata["w"][self.candidates(dst).eid] += 1
        return choice


class ByThread(Plain):
    """Other threads draw otherwise."""

    def keys(self, edges: Any, step: Step) -> Tensor:
        keys = super().keys(edges, step)
        return keys if threading.current_thread() is threading.main_thread() else 1 - keys


class Shares(Plain):
    """Random numbers that are kept in the sampler from one call to the next."""

    def keys(self, edges: Any, step: Step) -> Tensor:
        self.calls = getattr(self, "calls", 0) + 1
        return super().keys(edges, step) + self.calls * 0.37 % 1 * step.random.uniform(
            edges.eid, draw=self.calls % 5
        )


class NoEpoch(Plain):
    """The epoch does not matter."""

    def __call__(self, seeds: Any, **options: Any) -> NodeFlow:
        return super().__call__(seeds, **{**options, "epoch": 0})


class Window(Plain):
    """k edges side by side from a random one on: every edge as often as it should be, pairs not."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        edges = self.candidates(dst)
        degree = edges.degrees[edges.rows]
        place = torch.arange(len(edges)) - edges.indptr[:-1][edges.rows]
        start = (step.random.uniform(dst)[edges.rows] * degree).long()
        keep = (place - start) % degree < self.k
        return edges.select(keep, prob=(self.k / degree.clamp(min=self.k))[keep])


class DropsIsolated(Plain):
    """Seeds without edges are left out."""

    def _sample(self, seeds: Any, *arguments: Any) -> NodeFlow:
        return super()._sample(seeds[self.graph.in_degrees(seeds).numpy() > 0], *arguments)


class DropsRepeated(Plain):
    """Repeated seeds are forgotten."""

    def _sample(self, seeds: Any, *arguments: Any) -> NodeFlow:
        return super()._sample(
            np.unique(seeds, return_index=True)[0] if len(set(seeds)) < len(seeds) else seeds,
            *arguments,
        )


class ForgetsSeed(Plain):
    """The seed does not go into a pickle."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "seed": 99}


class NeedsSeeds(Plain):
    """Fails without seeds."""

    def choose(self, dst: Tensor, step: Step) -> Choice:
        assert int(dst.max()) >= 0
        return super().choose(dst, step)


class OneMore(Plain):
    """A fanout of k draws k + 1."""

    def __init__(self, graph: Graph, fanouts: Any, **options: Any) -> None:
        super().__init__(graph, fanouts[0] + 1, 1, **options)
        self.fanouts = tuple(fanouts)


class WrongTypes(NeighborSampler):
    """One edge more of every type than its fanout says."""

    def read_graph(self) -> None:
        super().read_graph()
        self._counts = [counts + 1 for counts in self._counts]


Make = Callable[[Graph], SamplerBase]
SAMPLERS: dict[str, tuple[Make, str]] = {
    "off by one": (lambda g: OffByOne(g), "marginals"),
    "first never": (lambda g: FirstNever(g), "marginals"),
    "16 bits": (lambda g: SixteenBits(g, k=20), "hubs"),
    "16 bits below": (lambda g: SixteenBitsBelow(g), "hubs"),
    "small weights": (lambda g: SmallWeights(g), "hubs"),
    "hub repeats": (lambda g: HubRepeats(g, k=4), "hubs"),
    "future": (lambda g: Future(g, [2, 2]), "future"),
    "LADIES without weights": (lambda g: LadiesWithoutWeights(g, [6, 5]), "marginals"),
    "global numbers": (lambda g: GlobalNumbers(g), "global state"),
    "wrong ids": (lambda g: WrongIds(g), "edges"),
    "reversed": (lambda g: Reversed(g), "edges"),
    "not inverse": (lambda g: NotInverse(g), "marginals"),
    "repeats": (lambda g: Repeats(g), "repeats"),
    "ignores the filter": (lambda g: IgnoresFilter(g), "excluded"),
    "order": (lambda g: Shuffled(g), "order"),
    "place in the call": (lambda g: ByPlace(g), "calls"),
    "sorts seeds": (lambda g: SortsSeeds(g), "untouched"),
    "writes to the graph": (lambda g: CountsInGraph(g), "untouched"),
    "by thread": (lambda g: ByThread(g), "threads"),
    "state between calls": (lambda g: Shares(g), "reproducible"),
    "epoch ignored": (lambda g: NoEpoch(g), "epochs"),
    "window": (lambda g: Window(g), "pairs"),
    "drops isolated": (lambda g: DropsIsolated(g), "isolated seeds"),
    "drops repeated": (lambda g: DropsRepeated(g), "repeated seeds"),
    "forgets its seed": (lambda g: ForgetsSeed(g), "pickles"),
    "needs seeds": (lambda g: NeedsSeeds(g), "no seeds"),
    "one more": (lambda g: OneMore(g, [2]), "fanouts"),
    "wrong types": (
        lambda g: WrongTypes(g, [{0: 1, 1: 2, 2: 1}], edge_type="type"),
        "fanouts",
    ),
}
