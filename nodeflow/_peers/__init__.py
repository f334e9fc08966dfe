"""The processes that hold a graph together: who owns what, and exchanges that end on all of them or on none.

- ``held``: the processes, and the part of a graph that one of them holds, with an example of the words.
- ``routes``: which entries go to which process, and where their answers are.
"""
