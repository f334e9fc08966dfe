"""Types of nodes and relations of a graph.

- ``_schema``: ``Schema``, which gives every node type a range of node ids and every relation a range of edge ids.
"""

from nodeflow.schema._schema import Relation as Relation
from nodeflow.schema._schema import Schema

__all__ = ["Schema"]
