"""The parent graph, and frames of columns."""

from nodeflow.graph._frame import Frame as Frame
from nodeflow.graph._graph import Graph as Graph
from nodeflow.graph._names import NodeNames as NodeNames

__all__ = ["Frame", "Graph", "NodeNames"]
