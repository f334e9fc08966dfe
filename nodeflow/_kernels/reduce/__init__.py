"""Loops over rows of features: sums, extremes, softmax, gathers.

- ``row_sums``: sums over the edges of a flow or of a whole graph, and their gradients. One function makes the sums of
  float32 and float64, and of float16 and bfloat16 from words, which ``simd.load`` turns into float32.
- ``several``: sum, extremes and squared deviations from one reading. ``extremes``, ``softmax``, ``gather``: one each.

A number is always added in the same order, so that ranges of rows or columns, done by threads, change no bit.
"""
