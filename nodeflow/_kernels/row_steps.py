"""Steps of optimisers on some rows of a table, in place: the row and its state are read and written
once.

Rows lie at ``places`` of ``rows``, their state at ``ids`` of the arrays of states; gradients are
one per row. All arrays of numbers have one type, which the settings have too.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def sgd(rows, places, grads, lr, decay):
    """Stochastic gradient descent."""
    for i in range(places.shape[0]):
        row = rows[places[i]]
        grad = grads[i]
        for c in range(grad.shape[0]):
            row[c] -= lr * (grad[c] + decay * row[c])


@njit(nogil=True, cache=True, error_model="numpy")
def adagrad(rows, places, sums, ids, grads, lr, eps, decay):
    """Adagrad (Duchi, Hazan, Singer 2011); ``sums`` are the sums of squared gradients."""
    for i in range(places.shape[0]):
        row = rows[places[i]]
        squares = sums[ids[i]]
        grad = grads[i]
        for c in range(grad.shape[0]):
            g = grad[c] + decay * row[c]
            squares[c] += g * g
            row[c] -= lr * (g / (np.sqrt(squares[c]) + eps))


@njit(nogil=True, cache=True, error_model="numpy")
def adam(rows, places, means, squares, ids, grads, size, eps, decay, first, second):
    """Adam (Kingma, Ba 2015); ``size`` is the learning rate with its correction, ``first`` is 1 -
    beta1.
    """
    for i in range(places.shape[0]):
        row = rows[places[i]]
        mean = means[ids[i]]
        square = squares[ids[i]]
        grad = grads[i]
        for c in range(grad.shape[0]):
            g = grad[c] + decay * row[c]
            mean[c] += first * (g - mean[c])
            square[c] += second * (g * g - square[c])
            row[c] -= size * (mean[c] / (np.sqrt(square[c]) + eps))
