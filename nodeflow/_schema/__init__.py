"""Types of nodes and relations of a graph.

``schema``: ``Schema``, which gives every node type a range of node ids, and every relation a range
of edge ids.
"""
