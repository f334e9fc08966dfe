"""The processes that hold a graph together: who owns what, and exchanges that end on all of them or on none.

- ``held``: the protocols of a process's part of a graph, and of its peers.
- ``routes``: which entries go to which process, and where their answers are.
- ``fetching``: rows fetched from their owners, and sent there.
"""
