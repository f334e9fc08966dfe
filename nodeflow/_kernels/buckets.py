"""Edges in buckets by the partitions of their two ends, and the in-edges of the partitions that are in memory.

Node v is at row ``rows[v]``; partition p has the rows from ``p * size`` on. Bucket ``j * count + i`` holds the edges
from partition i to partition j.
"""

from numba import int64, njit


@njit(nogil=True, cache=True)
def count_edges(indptr, sources, v, first, rows, size, num_parts, counts):
    """Count into ``counts`` the buckets of the in-edges at the positions from ``first`` on, which are ``sources``.

    ``v`` is the destination of the first one.
    """
    for e in range(sources.shape[0]):
        while indptr[v + 1] <= first + e:
            v += 1
        counts[(int64(rows[v]) // size) * num_parts + int64(rows[sources[e]]) // size] += 1


@njit(nogil=True, cache=True)
def scatter_edges(indptr, sources, v, first, rows, size, num_parts, head, src, dst, places):
    """Write the same in-edges into their buckets: ``src`` and ``dst`` get the rows of their ends within the partitions.

    ``head[b]`` is where the next edge of bucket b goes; ``places[e]`` becomes where edge e went.
    """
    for e in range(sources.shape[0]):
        while indptr[v + 1] <= first + e:
            v += 1
        to, come = int64(rows[v]), int64(rows[sources[e]])
        bucket = (to // size) * num_parts + come // size
        place = head[bucket]
        head[bucket] = place + 1
        src[place] = come % size
        dst[place] = to % size
        places[e] = place


@njit(nogil=True, cache=True)
def count_bucket(dst, start, count):
    """Add one to ``count[start + d + 1]`` for every destination d of a bucket."""
    for e in range(dst.shape[0]):
        count[start + dst[e] + 1] += 1


@njit(nogil=True, cache=True)
def place_bucket(src, dst, src_start, dst_start, edge, head, indices, edge_ids):
    """Put the edges of a bucket, whose ids begin with ``edge``, among the in-edges of their destinations.

    ``head[v]`` is where the next in-edge of node v goes.
    """
    for e in range(src.shape[0]):
        v = dst_start + dst[e]
        place = head[v]
        head[v] = place + 1
        indices[place] = src_start + src[e]
        edge_ids[place] = edge + e
