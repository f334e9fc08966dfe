"""What every room stands on: checks, the process, rows, edges, random numbers, displays.

A file imports from folders and files above its own in this list only (``tests/test_rooms.py``):

- ``base``: checks of arguments and paths, keys of rows, dates as seconds, immutable objects, types.
- ``in_torch``: draws in operations of torch, on any device, bit for bit as the compiled loops.
- ``runtime``: the process: threads, memory that results share, warnings. All mutable state is here.
- ``rows``: rows of dense and sparse columns: gathered, joined, packed for pickling.
- ``display``: the HTML that notebooks show of objects, and drawings on matplotlib axes.
- ``links``: links and known answers: checked, and grouped by what is asked.
- ``random``: the counter-based generator.
- ``peers``: the processes that hold a graph together, and what one of them holds; here a single one.
- ``edges``: the edge arrays and columns that samplers read, and the form in which draws run.
- ``schema``: node types and relations as ranges of ids.
"""
