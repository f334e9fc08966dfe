"""Ranks of answers: how many scores of a query exceed the answer's score, and how many equal it.

Query i has the row ``scores[i * width : (i + 1) * width]``, with a score for each candidate. Its
answers are the columns ``answers[answer_ptr[i] : answer_ptr[i + 1]]``; its known positives,
distinct, are in ``known`` likewise.
"""

from nodeflow._kernels.loops import loop
from nodeflow._kernels.simd import LANES, add, load, splat, total, where_above, where_equal

# scores between two additions to the counts: counts in vectors of float32 stay exact
_BLOCK = 2**16


@loop
def is_row_of_numbers(scores, begin, width):
    """Whether no score of a row is NaN."""
    end = begin + width
    count = 0
    zero = splat(scores.dtype.type(0))
    one = splat(scores.dtype.type(1))
    c = begin
    while c + LANES <= end:
        stop = min(c + _BLOCK, end)
        some = zero
        while c + LANES <= stop:
            row = load(scores, c, LANES)
            some = where_equal(row, row, add(some, one), some)
            c += LANES
        count += int(total(some))
    while c < end:
        count += scores[c] == scores[c]
        c += 1
    return count == width


@loop
def count_above(scores, width, answer_ptr, answers, known_ptr, known, above, equal, first, last):
    """Fill ``above`` and ``equal`` for the answers of the queries ``first`` to ``last - 1``.

    Known positives count in neither; the answer itself, known or not, counts in ``equal``. Returns
    -1, or the first query with a score that is NaN.
    """
    zero = splat(scores.dtype.type(0))
    one = splat(scores.dtype.type(1))
    for i in range(first, last):
        begin = i * width
        end = (i + 1) * width
        if not is_row_of_numbers(scores, begin, width):
            return i
        for a in range(answer_ptr[i], answer_ptr[i + 1]):
            column = answers[a]
            bound = scores[begin + column]
            bounds = splat(bound)
            more = 0
            same = 0
            c = begin
            while c + LANES <= end:
                stop = min(c + _BLOCK, end)
                some = zero
                ties = zero
                while c + LANES <= stop:
                    row = load(scores, c, LANES)
                    some = where_above(row, bounds, add(some, one), some)
                    ties = where_equal(row, bounds, add(ties, one), ties)
                    c += LANES
                more += int(total(some))
                same += int(total(ties))
            while c < end:
                more += scores[c] > bound
                same += scores[c] == bound
                c += 1
            for k in range(known_ptr[i], known_ptr[i + 1]):
                if known[k] != column:
                    score = scores[begin + known[k]]
                    more -= score > bound
                    same -= score == bound
            above[a] = more
            equal[a] = same
    return -1
