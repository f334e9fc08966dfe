"""The loop that draws a batch: from its seeds to its inputs, one flow after another.

Which edges the nodes of a layer get is the only random step: ``choose`` of the sampler says so. The
loop gives the nodes that these edges reach their numbers, and appends a layer and a flow of them.
"""

from __future__ import annotations

from typing import Any

from nodeflow._core.base.checks import Ints
from nodeflow.flow import NodeFlow
from nodeflow.sampling._choice import check_choice, flows_of, layers_of, prefixes
from nodeflow.sampling._contexts import Contexts
from nodeflow.sampling._distributed import choosing
from nodeflow.sampling._keys import Keys


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
        of_seeds = form.array(ids.joined(seeds, contexts))
        seed_index = form.tensor(numbers.extend(of_seeds))
        nodes = [ids.split(numbers.nodes)]  # of each layer, with their contexts
        num_drawn = 0  # nodes that drew in a flow nearer to the seeds
        for i in reversed(range(sampler.num_flows)):
            dst, context = nodes[-1]
            if sampler.reuse:
                dst, context = ids.split(numbers.nodes[num_drawn:])
                num_drawn = len(numbers.nodes)

            choice = choose(dst, keys.step(i, context))
            check_choice(sampler.graph, edges, choice, form.array(dst), i)
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
