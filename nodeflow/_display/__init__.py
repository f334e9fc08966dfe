"""How objects are shown: as HTML in notebooks, and as drawings on matplotlib axes.

Strings, numbers and lists of points come in. No file here knows a graph or a NodeFlow: their rooms describe them.
"""
