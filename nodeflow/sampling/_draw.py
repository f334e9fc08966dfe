"""The loop that draws a batch: from its seeds to its inputs, one flow after another.

Which edges the nodes of a layer get is the only random step: ``choose`` of the sampler says so. The
loop gives the nodes that these edges reach their numbers, and appends a layer and a flow of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow._core.edges.forms import Form
from nodeflow.flow import NodeFlow
from nodeflow.sampling._choice import check_choice, flows_of, layers_of, prefixes
from nodeflow.sampling._distributed import choosing
from nodeflow.sampling._keys import Keys


class Contexts(NamedTuple):
    """Node v in context c has the number ``c * num_nodes + v``; where all are in one context, v."""

    num_nodes: int
    form: Form
    several: bool

    def bound(self, contexts: Ints | None) -> int:
        """Return the number below which all numbers are, for these contexts."""
        if contexts is None:
            return self.num_nodes
        return self.num_nodes * (int(contexts.max(initial=0)) + 1)

    def joined(self, nodes: Ints, contexts: Ints | None) -> Any:
        """Return the numbers of nodes in contexts, in an array of the form, of their own."""
        return self.form.array(
            nodes.copy() if contexts is None else nodes + self.num_nodes * contexts
        )

    def split(self, numbers: Ints) -> tuple[Tensor, Tensor | None]:
        """Return the nodes and contexts of numbers, as tensors."""
        if not self.several:
            return self.form.tensor(numbers), None
        nodes = self.form.tensor(numbers % self.num_nodes)
        return nodes, self.form.tensor(numbers // self.num_nodes)

    def of_sources(self, indptr: Ints, sources: Ints, contexts: Tensor | None) -> Ints:
        """Return the numbers of the sources of edges, whose destinations are in ``contexts``."""
        if contexts is not None:
            starts = self.form.array(contexts) * self.num_nodes
            self.form.add_to_rows(indptr, sources, starts)  # in place: sources are ours
        return sources


def draw_node_flow(sampler: Any, seeds: Ints, keys: Keys, contexts: Ints | None = None) -> NodeFlow:
    """Return the NodeFlow of checked ``seeds``, parent ids ``[num_seeds]``.

    ``contexts``, int64 ``[num_seeds]``: what a seed reaches belongs to its context, and a node in
    two contexts is two rows of a layer. None: all nodes are in one context.
    """
    edges = sampler.reader.edges
    form = edges.form
    ids = Contexts(sampler.graph.num_nodes, form, contexts is not None)
    choices = []
    sources_by_flow = []
    with choosing(sampler) as choose, form.numbering(ids.bound(contexts)) as numbers:
        seed_index = form.tensor(numbers.extend(ids.joined(seeds, contexts)))
        nodes = [ids.split(numbers.nodes)]  # of each layer, with their contexts
        # nodes that drew in a flow nearer to the seeds
        num_drawn = 0
        for i in reversed(range(sampler.num_flows)):
            dst, context = nodes[-1]
            # with reuse only nodes that were reached in the flow before draw: the others have drawn
            if sampler.reuse:
                dst, context = ids.split(numbers.nodes[num_drawn:])
                num_drawn = len(numbers.nodes)

            choice = choose(dst, keys.step(i, context))
            check_choice(sampler.graph, edges, choice, form.array(dst), i)
            # sources are in the context of their destination, whatever the sampler knows of
            # contexts
            sources = ids.of_sources(choice.indptr, choice.take_sources(edges), context)

            if sampler.include_dst:  # a layer holds all nodes so far
                local = numbers.extend(sources)
                reached = numbers.nodes
            else:  # only those that were drawn, sorted
                reached, local = form.distinct(sources)
            choices.append(choice)
            sources_by_flow.append(local)
            nodes.append(ids.split(reached))
    if sampler.reuse:
        layers, flows = prefixes(edges, choices, sources_by_flow, nodes)
    else:
        layers = layers_of(choices, nodes)
        flows = flows_of(edges, choices, sources_by_flow, layers, prefix=sampler.include_dst)
    return NodeFlow._trusted(layers[::-1], flows[::-1], parent=sampler.graph, seed_index=seed_index)
