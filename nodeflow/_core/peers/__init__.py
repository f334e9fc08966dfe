"""The processes that hold a graph or train a model together, as a single one of them sees them.

- ``peers``: what any number of processes can do, and a single one, for which every exchange is
  nothing. ``nodeflow._processes`` derives several processes from it.
- ``held_part``: the part of a graph that a process holds, with an example of the words.
- ``routes``: which entries go to which process, and where their answers are.
"""
