"""Titles of columns: which two are the ends of edges, in all tables and files."""

from __future__ import annotations

import re
from collections.abc import Sequence

ENDS = ("src", "dst")
RELATIONS = ("relation", "predicate", "rel", "relationid", "edgetype", "relationtype", "reltype")
_SIDES = (
    ENDS,
    ("source", "target"),
    ("source", "destination"),
    ("head", "tail"),
    ("subject", "object"),
    ("from", "to"),
    ("start", "end"),
    ("sender", "receiver"),
    ("citing", "cited"),
    ("follower", "followee"),
    ("parent", "child"),
)
_OF = ("", "id", "nodeid", "node", "idx", "index", "entity", "name", "ip", "user", "userid")
_PAIRS = (
    # alone, "start" and "from" may be times
    *(
        (src + ending, dst + ending)
        for ending in _OF
        for src, dst in _SIDES
        if src + ending not in ("start", "from")
    ),
    ("node1", "node2"),
    ("entity1", "entity2"),
    ("xname", "yname"),
    ("h", "t", "r"),
    ("s", "o", "p"),
    ("id1", "id2"),
    ("from", "to"),
    ("u", "v"),
)
"""Titles of source and destination, as ``plain`` writes them; a third title must be there too. The
first match counts.
"""
_USERS = ("user", "customer", "member", "reviewer", "viewer", "rater", "u")
_ITEMS = (
    "item",
    "movie",
    "product",
    "book",
    "song",
    "track",
    "artist",
    "business",
    "article",
    "asin",
    "i",
)
_KNOWN = "src and dst, source and target, from and to, head and tail, or subject and object"
NODE = re.compile(
    r"(?:.*[\W_])?(?i:id|nodes?|name|vertex|entity|key|index|idx)|.*[a-z]I[dD]|(?i:node(?:id|name))"
)
"""Titles of ids or names of nodes: id, paper_id, paperId, "node name"; ``david`` is a name
itself.
"""


def plain(title: str) -> str:
    """Return a title in small letters, without marks: FromNodeId, "from node id" and from_node_id
    are the same.
    """
    return re.sub(r"[\W_]+", "", title).lower()


def places_of_ends(titles: Sequence[str]) -> tuple[int, int] | None:
    """Return the places of source and destination among titles, None where these name no ends that
    are known.
    """
    # The names that we write ourselves go before all others, as they are.
    titles = titles if {*ENDS} <= {*titles} else list(map(plain, titles))
    present = (pair for pair in _PAIRS if {*pair} <= {*titles})
    return next(((titles.index(src), titles.index(dst)) for src, dst, *_ in present), None)


def two_kinds(where: str, why: str, remedy: str) -> ValueError:
    """Return the ValueError for edges between two kinds of nodes, such as users and items, that
    both count from 1.
    """
    return ValueError(
        f"{where} {why}, and user 1 would be the same node as item 1; give each node an id or a "
        f"name of its own, and {remedy}; or give Graph.typed the nodes of both kinds"
    )


def titled_columns(titles: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the names of columns with titles, of which the ends are src and dst.

    The ends are the first pair of titles that is known, else the only two columns, or the first two
    of more where their titles differ in a number or letter at the end. Raises ValueError for other
    columns, for users and items, and for a title that is there twice.
    """
    known = places_of_ends(titles)
    words = {plain(title).removesuffix("id") for title in titles}
    if known is None and not words.isdisjoint(_USERS) and not words.isdisjoint(_ITEMS):
        raise two_kinds(
            where, f"names nodes of two kinds, {list(titles)}", "name the columns src and dst"
        )
    ends = dict(zip(known or (0, 1), ENDS, strict=True))
    names = [ends.get(place, title) for place, title in enumerate(titles)]
    # protein1 and protein2, node_a and node_b, x0 and x1: the same but for the last letter.
    first, second = (plain(title) for title in [*titles, "", ""][:2])
    are_numbered = first[:-1] == second[:-1] and first[-1:] + second[-1:] in ("12", "01", "ab")
    if (known is None and len(titles) != 2 and not are_numbered) or len({*names}) < len(names):
        raise ValueError(
            f"{where} must name two or more columns, each once, and the ends of edges {_KNOWN}, "
            f"got {list(titles)}; call the columns of the ends src and dst, there or by columns="
        )
    return tuple(names)
