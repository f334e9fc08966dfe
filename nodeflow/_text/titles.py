"""Titles of columns: which two are the ends of edges, in all tables and files."""

from __future__ import annotations

import re
from collections.abc import Sequence

ENDS = ("src", "dst")
RELATIONS = ("relation", "predicate", "rel", "relationid", "edgetype", "relationtype", "reltype")
_PAIRS = (
    ENDS,
    ("source", "target"),
    ("source", "destination"),
    ("head", "tail"),
    ("subject", "object"),
    ("sourceid", "targetid"),
    ("sourceid", "destinationid"),
    ("srcid", "dstid"),
    ("headid", "tailid"),
    ("subjectid", "objectid"),
    ("fromnodeid", "tonodeid"),
    ("fromnode", "tonode"),
    ("fromid", "toid"),
    ("startid", "endid"),
    ("startnode", "endnode"),
    ("node1", "node2"),
    ("sourcenode", "targetnode"),
    ("sourcenode", "destinationnode"),
    ("srcnode", "dstnode"),
    ("srcidx", "dstidx"),
    ("startnodeid", "endnodeid"),
    ("entity1", "entity2"),
    ("headentity", "tailentity"),
    ("xname", "yname"),
    ("srcip", "dstip"),
    ("sourceip", "destinationip"),
    ("sender", "receiver"),
    ("citing", "cited"),
    ("parent", "child"),
    ("h", "t", "r"),
    ("s", "o", "p"),
    ("id1", "id2"),
    ("from", "to"),
    ("u", "v"),
)
"""Titles of sources and destinations, as ``plain`` writes them, and what must be beside them; the first one counts."""
_NO_ENDS = {
    *RELATIONS,
    *("id", "edgeid", "index", "weight", "time", "timestamp", "ts", "date", "type", "label", "rating", "value", "year"),
}
_USERS = ("user", "customer", "member", "reviewer", "viewer", "rater", "u")
_ITEMS = ("item", "movie", "product", "book", "song", "track", "artist", "business", "article", "asin", "i")
_KNOWN = "src and dst, source and target, from and to, head and tail, or subject and object"


def plain(title: str) -> str:
    """Return a title in small letters, without marks: FromNodeId, "from node id" and from_node_id are the same."""
    return re.sub(r"[\W_]+", "", title).lower()


def places_of_ends(titles: Sequence[str]) -> tuple[int, int] | None:
    """Return the places of source and destination among titles, None where these name no ends that are known."""
    titles = titles if {*ENDS} <= {*titles} else list(map(plain, titles))
    present = (pair for pair in _PAIRS if {*pair} <= {*titles})
    return next(((titles.index(src), titles.index(dst)) for src, dst, *_ in present), None)


def titled_columns(titles: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the names of columns with titles, of which the ends are src and dst.

    The ends are the first pair of titles that is known, else the first two columns. Raises ValueError where these have
    titles of something else, such as an id or a weight, or of users and items, and for a title that is there twice.
    """
    places = places_of_ends(titles) or (0, 1)
    names = list(titles)
    if len(titles) >= 2:
        names[places[0]], names[places[1]] = ENDS
    if len(titles) < 2 or len(set(names)) < len(names):
        raise ValueError(
            f"{where} must name two or more columns, each once, and must name source and destination src and dst, or "
            f"have them first, got {list(titles)}"
        )
    first, second = (plain(title).removesuffix("id") for title in titles[:2])
    if places_of_ends(titles) is None and first in _USERS and second in _ITEMS:
        raise ValueError(
            f"{where} names nodes of two kinds, {titles[0]!r} and {titles[1]!r}, and user 1 would be the same node as "
            "item 1; give each node an id or a name of its own, and name the columns src and dst"
        )
    strange = [title for title in titles[:2] if plain(title) in _NO_ENDS and titles.count(title) == 1]
    if places_of_ends(titles) is None and len(titles) > 2 and strange:
        raise ValueError(
            f"{where} must name the ends of edges {_KNOWN}, or have them first, but {strange[0]!r} is among the first "
            f"two of {list(titles)}"
        )
    return tuple(names)
