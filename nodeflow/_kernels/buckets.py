"""Edges in groups of a graph that is cut; in-edges of the parts in memory, from the buckets between
two each.
"""

from nodeflow._kernels.loops import loop


@loop
def place_edges(
    owner, src, dst, kind, from_source, from_destination, last, edges, rows, group, place, starts
):
    """Write the group of every edge, its place in it, and whether the group comes to another
    destination with it.

    The group is ``from_source[owner[src]] + from_destination[owner[dst]] + kind``. ``edges`` and
    ``rows`` count the edges and the destinations of each group, of which ``last`` is the last one.
    Returns the number of edges between two parts.
    """
    cut = 0
    for e in range(src.shape[0]):
        p = owner[src[e]]
        q = owner[dst[e]]
        g = from_source[p] + from_destination[q] + kind[e]
        cut += p != q
        group[e] = g
        place[e] = edges[g]
        edges[g] += 1
        starts[e] = last[g] != dst[e]
        rows[g] += starts[e]
        last[g] = dst[e]
    return cut


@loop
def count_bucket(dst, start, count):
    """Add one to ``count[start + d + 1]`` for every destination d of a bucket."""
    for e in range(dst.shape[0]):
        count[start + dst[e] + 1] += 1


@loop
def place_bucket(src, dst, src_start, dst_start, edge, head, indices, edge_ids):
    """Put the edges of a bucket, whose ids begin with ``edge``, among the in-edges of their
    destinations.

    ``head[v]`` is where the next in-edge of node v goes.
    """
    for e in range(src.shape[0]):
        v = dst_start + dst[e]
        place = head[v]
        head[v] = place + 1
        indices[place] = src_start + src[e]
        edge_ids[place] = edge + e
