"""The loop that draws a batch: from its seeds to its inputs, one flow after another.

Which edges the nodes of a layer get is the only random step: ``choose`` of the sampler says so. The
loop gives the nodes that these edges reach their numbers, and appends a layer and a flow of them.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from nodeflow._core.base.checks import Ints
from nodeflow.flow import NodeFlow
from nodeflow.sampling._choice import check_choice, flows_of, prefixes
from nodeflow.sampling._distributed import choosing
from nodeflow.sampling._keys import Keys


def draw_node_flow(sampler: Any, seeds: Ints, keys: Keys, contexts: Ints | None = None) -> NodeFlow:
    """Return the NodeFlow of checked ``seeds``, parent ids ``[num_seeds]``.

    ``contexts``, int64 ``[num_seeds]``: what a seed reaches belongs to its context, and a node in
    two contexts is two rows of a layer. None: all nodes are in one context.
    """
    edges = sampler.reader.edges
    form = edges.form
    size = sampler.graph.num_nodes
    # node v in context c has the number c * size + v; where all are in one context, v
    bound = size
    seeds = seeds.copy()
    if contexts is not None:
        bound *= int(contexts.max(initial=0)) + 1
        seeds += size * contexts

    def split(reached: Ints) -> tuple[Tensor, Tensor | None]:
        if contexts is None:
            return form.tensor(reached), None
        return form.tensor(reached % size), form.tensor(reached // size)

    choices = []
    sources_by_flow = []
    with choosing(sampler) as choose, form.numbering(bound) as numbers:
        seed_index = form.tensor(numbers.extend(form.array(seeds)))
        nodes = [split(numbers.nodes)]  # of each layer, with their contexts
        # nodes that drew in a flow nearer to the seeds
        num_drawn = 0
        for i in reversed(range(sampler.num_flows)):
            dst, context = nodes[-1]
            # with reuse only nodes that were reached in the flow before draw: the others have drawn
            if sampler.reuse:
                dst, context = split(numbers.nodes[num_drawn:])
                num_drawn = len(numbers.nodes)

            choice = choose(dst, keys.step(i, context))
            check_choice(sampler.graph, edges, choice, form.array(dst), i)
            sources = choice.take_sources(edges)
            # sources are in the context of their destination, whatever the sampler knows of
            # contexts; written in place, since they are ours
            if context is not None:
                form.add_to_rows(choice.indptr, sources, form.array(context) * size)

            if sampler.include_dst:  # a layer holds all nodes so far
                sources = numbers.extend(sources)
                reached = numbers.nodes
            else:  # only those that were drawn, sorted
                reached, sources = form.distinct(sources)
            choices.append(choice)
            sources_by_flow.append(sources)
            nodes.append(split(reached))
    if sampler.reuse:
        parts = prefixes(edges, choices, sources_by_flow, nodes)
    else:
        parts = flows_of(edges, choices, sources_by_flow, nodes, prefix=sampler.include_dst)
    return NodeFlow._trusted(
        parts[0][::-1], parts[1][::-1], parent=sampler.graph, seed_index=seed_index
    )
