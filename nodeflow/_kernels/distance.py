"""Sums of absolute values of complex differences between all rows of two tables, and their
gradients.

Tables are transposed, ``[2 * half, rows]``: real parts of ``half`` complex columns, then imaginary
ones. The inner loop runs over rows, so every sum adds its columns in their order.
"""

import numpy as np

from nodeflow._kernels.loops import loop


@loop
def add_moduli(x, y, half, out, first, last):
    """Add to ``out`` ``[n, k]`` the sums for the columns ``first`` to ``last - 1`` of ``x``
    ``[2 * half, n]``.

    ``y`` is ``[2 * half, k]``.
    """
    for i in range(first, last):
        for j in range(half):
            real = x[j, i]
            imaginary = x[half + j, i]
            for k in range(y.shape[1]):
                a = real - y[j, k]
                b = imaginary - y[half + j, k]
                out[i, k] += np.sqrt(a * a + b * b)


@loop
def add_gradients(x, y, half, weights, least, out, first, last):
    """Add to ``out`` ``[2 * half, n]`` the gradients of ``x`` for its complex columns ``first`` to
    ``last - 1``.

    ``weights`` ``[k, n]`` are the gradients of the sums, transposed. ``least`` is the smallest
    normal number. A difference of 0 has no gradient.
    """
    one = x.dtype.type(1)
    for j in range(first, last):
        for k in range(y.shape[1]):
            real = y[j, k]
            imaginary = y[half + j, k]
            for i in range(x.shape[1]):
                a = x[j, i] - real
                b = x[half + j, i] - imaginary
                # finite, also for a difference of 0
                inverse = one / (np.sqrt(a * a + b * b) + least)
                w = weights[k, i]
                out[j, i] += w * (inverse * a)
                out[half + j, i] += w * (inverse * b)
