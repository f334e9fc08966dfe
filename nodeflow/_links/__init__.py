"""Links of a graph: pairs of nodes or triples with relations, and the questions that they answer.

- ``links``: the class of links, and checks of those that users pass.
- ``queries``: the distinct (node, relation) that are asked about, and known answers grouped by them.
"""
