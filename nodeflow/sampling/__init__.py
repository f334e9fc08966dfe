"""Samplers, one file per family; base classes and parts of samplers are in
``nodeflow.sampling.base``.

The module is large because it has ten families with probabilities of their own; the other files
serve all of them.

A new family starts as a copy of the nearest one:

- Every row takes the first or last of its edges in some order, without chance: see the strategy
  "recent" of ``_temporal.py``. ``read_graph`` sorts by ``Edges.sorted_by`` (ascending, ties as they
  were); ``draw_rows`` is that of ``_neighbor.py`` (the loops ``uniform.plan`` and
  ``uniform.draw_without``), with as many edges as it takes.
- Every row draws on its own, in a compiled loop: ``RowSampler.draw_rows``. Copy ``_bernoulli.py``
  and its loop, ``_kernels/draw/bernoulli.py``.
- A flow's destinations draw together, or the chosen edges are not in the graph: ``Sampler.choose``.
  Copy ``_random_walk.py``, or for torch operations the example in docs/custom-samplers.md.
- All layers share one subgraph: ``SubgraphSampler.choose_nodes``. Copy ``_cluster.py``.

Probabilities ``min(1, c * score)`` that add up to a size are in ``_pps.py``:
``inclusion_probabilities`` for rows of edges, ``list_probabilities`` for one list of any length.

In the copy:

- ``__init__`` names every argument and keeps it in an attribute of that name. Its signature then
  gives the settings: ``repr``, the comparison of loader states, and attributes that are set once.
- Numbers by relation, such as fanouts, are checked by ``_relations.check_fanouts``, and are
  ``self.kinds.numbers(...)`` of each flow in ``read_graph``; ``rows.kinds`` says which of them is a
  row's.
- ``draws_as`` is a new name: families of equal names share their random numbers.
- ``read_graph`` reads columns and makes tables of them; draws read ``self.reader`` and what
  ``read_graph`` has set. Numbers of the whole graph, such as degrees, are those of
  ``self.reader.edges`` there: after the filter. ``without_edges`` does not change them, so that
  other nodes draw the same.
- ``draw_rows`` gets copies of the rows from which ``without_edges`` leaves edges out. Tables by
  neighbour, or by edge id through ``edges.ids``, hold for the copies too. Tables by position (see
  ``NeighborSampler.draw_rows``) and by ``rows.numbers`` do not; ``rows.ident`` has the numbers in
  the whole graph.
- ``draws_together`` is True where a draw is a set for a layer or a subgraph; rows that draw on
  their own leave it.
- A draw depends on its arguments and on settings only, and changes no attribute: it runs on several
  threads.

``_base``, ``_bound``, ``_sampler``, ``_rows`` and ``_choice`` serve all families; a new one needs
no change there. ``SamplerBase`` in ``_base`` makes the key of a draw; an option of all families is
an argument of it and of ``BoundSampler``, and of every family, which passes it on.
docs/architecture.md lists the rest of a new family: an entry in this file, tests, golden values and
a page.

Names that are imported ``as`` themselves serve rooms above, not users.
"""

from nodeflow.sampling import base
from nodeflow.sampling._bernoulli import BernoulliSampler
from nodeflow.sampling._cluster import (
    ClusterSampler,
    partition,
)
from nodeflow.sampling._distributed import edges_of as edges_of
from nodeflow.sampling._estimate import Estimate
from nodeflow.sampling._fastgcn import FastGCNSampler
from nodeflow.sampling._keys import (
    Call as Call,
    Keys as Keys,
    StepSeeds as StepSeeds,
    first_of_epoch as first_of_epoch,
)
from nodeflow.sampling._labor import LaborSampler
from nodeflow.sampling._layerwise import LadiesSampler, LayerSampler
from nodeflow.sampling._link import LinkSampler
from nodeflow.sampling._link_parts import LinkChunk
from nodeflow.sampling._neighbor import FullSampler, NeighborSampler
from nodeflow.sampling._random_walk import RandomWalkSampler
from nodeflow.sampling._relations import check_fanouts as check_fanouts
from nodeflow.sampling._saint import SaintSampler
from nodeflow.sampling._sampler import Sampler, check_size as check_size, check_sizes as check_sizes
from nodeflow.sampling._shadow import ShadowSampler
from nodeflow.sampling._subgraph import induced
from nodeflow.sampling._temporal import TemporalNeighborSampler

__all__ = [
    "BernoulliSampler",
    "ClusterSampler",
    "Estimate",
    "FastGCNSampler",
    "FullSampler",
    "LaborSampler",
    "LadiesSampler",
    "LayerSampler",
    "LinkChunk",
    "LinkSampler",
    "NeighborSampler",
    "RandomWalkSampler",
    "SaintSampler",
    "Sampler",
    "ShadowSampler",
    "TemporalNeighborSampler",
    "base",
    "induced",
    "partition",
]
