"""The processes that hold a graph or train a model together: exchanges that end on all of them or
on none.

- ``peers``: what any number of processes can do, and a single one, for which every exchange is
  nothing.
- ``group``: several processes, over ``exchanges``, which end on all or fail on all. ``packed``
  makes bytes of arrays, ``transport`` moves them, and says which process is missing; ``present``
  finds the processes of torch's default group.
- ``held``: the part of a graph that a process holds, with an example of the words.
- ``routes``: which entries go to which process, and where their answers are.
"""
