"""State of the process: threads, locks, reused memory, memory outside the heap, maps of files,
living graphs.

Every mutable variable of the package that all threads share is in this room
(``tests/core/runtime/test_state.py``), except caches of pure functions (``functools.cache``). Two
optimisations outlive a single call; each can be switched off, by a user with a problem and by
tests. The environment variable is read once, when nodeflow is imported; "0", "false", "no" and
"off" turn the optimisation off.

==========================  =========================  ================================================================
environment variable        variable in ``process``    what it turns off
==========================  =========================  ================================================================
``NODEFLOW_REUSE_BUFFERS``  ``reuse_buffers``          memory that one result or batch leaves to a later one
``NODEFLOW_TORCH_THREADS``  ``torch_threads``          work on the threads of torch's OpenMP library
==========================  =========================  ================================================================

Results are the same with and without them.
"""
