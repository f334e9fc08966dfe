"""The edge arrays and edge columns that samplers read.

- ``stored``: arrays of a graph, checked, narrowed and read-only, and questions about its edges.
- ``edges``: rows of edges along which samplers look up neighbours. ``columns``: edge columns as
  numbers, and filters.
- ``numbering``: local ids for the nodes of a batch.
"""
