"""Loops over rows of features: sums, extremes, softmax, activations.

- ``row_sums``: sums over the edges of a flow or of a whole graph, and their gradients. ``sum_rows``
  makes those of float32 and float64. It reads float16 and bfloat16 as words, which ``simd.load``
  turns into float32, and writes words of bfloat16, rounded once by ``simd.store``.
- ``extremes``: the largest or smallest numbers, sums and squared deviations, from one reading of
  the rows.
- ``softmax``: over the edges of each destination. ``activation``: bias, ReLU and dropout.

``ops/_compiled.py`` and ``propagation/_propagation.py`` call the sums. A change must keep the order
in which a number is added, so that ranges of rows or columns, done by threads, change no bit.
``tests/kernels/test_row_sums.py`` and ``tests/ops/test_native.py`` hold this. Time a change with
``benchmarks/aggregate.py`` (flows) and ``benchmarks/control_variates_speed.py`` (whole graphs).
"""
