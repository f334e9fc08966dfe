"""Several processes that work together: exchanges that end on all of them or on none.

- ``group``: several processes, over ``exchanges``, which end on all or fail on all. ``packed``
  makes bytes of arrays, ``transport`` moves them, and says which process is missing.
- ``default_group``: the processes of torch's default group.

What any number of processes can do, also one, is in ``nodeflow._core.peers``.
"""
