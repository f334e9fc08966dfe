"""Loops over rows of features: sums, extremes, softmax, gathers.

- ``row_sums``: sums over a flow, forward and backward, of float32 and float64.
- ``full_sums``: sums over a whole graph, also of float16 and bfloat16, which it reads as words (``wide``).
- ``several``: sum, extremes and squared deviations from one reading. ``extremes``, ``softmax``, ``gather``: one each.

A number is always added in the same order, so that ranges of rows or columns, done by threads, change no bit.
"""
