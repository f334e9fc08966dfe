"""Loops that draw edges or nodes; ``sampling/_*.py`` call them.

- ``uniform``: fanouts with and without replacement, also of past edges only. ``bernoulli``: every
  edge by itself.
- ``weighted``: how every row draws in proportion to a column: from an alias table (``alias``), by
  rejection (Sampford's method), or by a pass over its edges (``systematic``).
- One random number per source for all destinations: ``labor`` for LABOR-0, ``labor_importance`` for
  LABOR-i.
- ``layerwise``, ``pps``: one set of sources for a layer; draws from a list with unequal
  probabilities.
- ``walk``: random walks. ``subgraph``: nodes of subgraphs, and all edges
  between given nodes.
- ``negative``: nodes to which a node has no edge.

The arguments have the same names in all files. Rows are those of ``indptr``; row i of a draw has
the edges ``begin[i]`` to ``begin[i] + degree[i] - 1`` in ``indices``, and the random stream of
``ident[i]``. A draw fills ``positions`` (in ``indices``) and ``src`` (the sources there), grouped
by ``out_indptr``. ``left_out`` are positions, ascending, that do not count. A change must leave
``tests/sampling/golden.json`` as it is, unless it is meant to change draws.
``tests/sampling/test_planted.py`` plants faults in these files. To time a change:
``benchmarks/compare.py sample``.
"""
