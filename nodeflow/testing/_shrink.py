"""Greedy shrinking of a graph on which a check fails, and the code that makes a small graph
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from nodeflow._base.checks import Ints
from nodeflow.graph import Frame, Graph, with_types_of

_T = TypeVar("_T")
LARGEST_SHOWN = 150  # edges of a graph that is printed as code


class Parts(NamedTuple):
    """A graph with the seeds of a call, as they are made smaller.

    ``edges`` are the parent edge ids that stay, ``nodes`` the parent node ids, ``seeds`` seeds of
    the whole graph, ``columns`` the names of the columns.
    """

    nodes: Ints
    edges: Ints
    seeds: list[int]
    columns: list[str]


def shrink(
    parts: Parts, ends: tuple[Tensor, Tensor], fails: Callable[[Parts], bool], trials: int
) -> Parts:
    """Return smaller parts on which ``fails`` is True still: edges, then nodes, then seeds are left
    out greedily.

    Args:
        parts: parts that fail.
        ends: source and destination of every edge of the whole graph.
        fails: whether a check fails on some parts.
        trials: calls of ``fails`` after which the smallest parts so far are returned.
    """
    tried = 0

    def left(items: Sequence[_T], fails_with: Callable[[list[_T]], bool]) -> list[_T]:
        nonlocal tried
        # halves first, then ever smaller pieces, as delta debugging does (Zeller, Hildebrandt 2002)
        kept = list(items)
        size = len(items)
        while size:
            at = 0
            while at < len(kept) and tried < trials:
                tried += 1
                trial = kept[:at] + kept[at + size :]
                if fails_with(trial):
                    kept = trial
                else:
                    at += size
            size //= 2
        return kept

    seeds = left(parts.seeds, lambda s: bool(s) and fails(parts._replace(seeds=s)))
    parts = parts._replace(seeds=seeds)
    # nodes with their edges first: far fewer trials than edge by edge
    nodes = left(parts.nodes.tolist(), lambda n: fails(_among(parts, ends, n)))
    parts = _among(parts, ends, nodes)
    edges = left(parts.edges.tolist(), lambda e: fails(parts._replace(edges=np.array(e, np.int64))))
    parts = parts._replace(edges=np.array(edges, np.int64))
    parts = _among(parts, ends, left(parts.nodes.tolist(), lambda n: fails(_among(parts, ends, n))))
    return parts._replace(columns=left(parts.columns, lambda c: fails(parts._replace(columns=c))))


def _among(parts: Parts, ends: tuple[Tensor, Tensor], nodes: Sequence[int]) -> Parts:
    """The parts with the nodes ``nodes`` alone, the edges among them, and the seeds, which always
    stay.
    """
    stay = np.union1d(np.array(nodes, np.int64), np.array(parts.seeds, np.int64))
    src, dst = (end.numpy()[parts.edges] for end in ends)
    return parts._replace(nodes=stay, edges=parts.edges[np.isin(src, stay) & np.isin(dst, stay)])


def all_parts(graph: Graph, seeds: Sequence[int]) -> Parts:
    """Return the parts of a whole graph."""
    names = list(dict.fromkeys(name for frame in _frames(graph) for name in dense(frame)))
    return Parts(np.arange(graph.num_nodes), np.arange(graph.num_edges), list(seeds), names)


def smaller_graph(graph: Graph, parts: Parts, extra: dict[str, Tensor] | None = None) -> Graph:
    """Return the graph of ``parts``, with its columns and the edge columns ``extra``."""
    src, dst = (np.searchsorted(parts.nodes, end.numpy()[parts.edges]) for end in graph.edges())
    smaller = Graph.from_edges(src, dst, num_nodes=len(parts.nodes))
    smaller = with_types_of(smaller, graph, parts.nodes, parts.edges)
    of_node = torch.from_numpy(parts.nodes)
    of_edge = torch.from_numpy(parts.edges)
    smaller.ndata.update({n: c[of_node] for n, c in dense(graph.ndata).items()})
    smaller.edata.update(
        {n: c[of_edge] for n, c in {**dense(graph.edata), **(extra or {})}.items()}
    )
    for frame in _frames(smaller):
        for name in set(frame) - {*parts.columns, *(extra or {})}:
            del frame[name]
    return smaller


def _frames(graph: Graph) -> list[Frame]:
    """The frames of all edges and nodes, and of each type."""
    return [
        graph.edata,
        graph.ndata,
        *(p.data for p in (*graph.nodes.values(), *graph.relations.values())),
    ]


def dense(frame: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the columns of a frame that are dense tensors."""
    return {n: c for n, c in frame.items() if isinstance(c, Tensor) and c.layout == torch.strided}


def graph_code(graph: Graph) -> str:
    """Return a line of Python that makes a small graph again, with its columns; a large one is only
    described.
    """
    if graph.num_edges > LARGEST_SHOWN or graph.num_nodes > LARGEST_SHOWN:
        return f"graph = ...  # {graph}, as given"
    frames = {"ndata": graph.ndata, "edata": graph.edata}
    words = [f"{word}={_columns(frame)}" for word, frame in frames.items() if dense(frame)]
    src, dst = graph.edges()
    if not graph.schema.has_several:
        arguments = [str(src.tolist()), str(dst.tolist()), f"num_nodes={graph.num_nodes}", *words]
        return f"graph = Graph.from_edges({', '.join(arguments)})"
    nodes = {
        name: _columns(each.data) if dense(each.data) else len(each)
        for name, each in graph.nodes.items()
    }
    edges = []
    for name, part in graph.relations.items():
        pairs = ((src, name[0]), (dst, name[2]))
        ends = [
            str((e[part.ids.start : part.ids.stop] - graph.nodes[of].ids.start).tolist())
            for e, of in pairs
        ]
        edges.append(
            f"{name}: ({', '.join([*ends, _columns(part.data)][: 2 + bool(dense(part.data))])})"
        )
    types = ", ".join(f"{name!r}: {value}" for name, value in nodes.items())
    more = "".join(f"; graph.{word.replace('=', '.update(', 1)})" for word in words)
    return f"graph = Graph.typed({{{types}}}, {{{', '.join(edges)}}}){more}"


def _columns(frame: Mapping[str, Any]) -> str:
    columns = [
        f"{name!r}: torch.tensor({c.tolist()}{_dtype(c)})" for name, c in dense(frame).items()
    ]
    return f"{{{', '.join(columns)}}}"


def _dtype(column: Tensor) -> str:
    usual = column.numel() and column.dtype in (torch.float32, torch.int64, torch.bool)
    return "" if usual else f", dtype={column.dtype}"
