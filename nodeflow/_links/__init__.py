"""Links of a graph: pairs of nodes or triples with relations, and the questions that they
answer.
"""
