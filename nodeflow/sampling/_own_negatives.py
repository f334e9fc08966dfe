"""Negatives of the user's choice: a matrix of nodes with a row per seed, or a function of the links of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch

from nodeflow._base.checks import LARGEST, Ints, as_array, as_ids, first_true
from nodeflow._links.links import Links
from nodeflow.graph import Graph
from nodeflow.random import Random
from nodeflow.sampling._link_parts import LinkLayout

OwnNegatives: TypeAlias = "Ints | Callable[[Any, int, Random], Any]"
"""Nodes ``[num_seeds, K]``, or a function of links, K and random numbers that returns nodes ``[B, K]``."""


def as_own(value: object, shape: tuple[int, int], graph: Graph) -> OwnNegatives | None:
    """Return ``negatives`` of a link sampler that are a function or a matrix; None for a law, and for weights."""
    if callable(value):
        return value
    if isinstance(value, str) or as_array(value, "negatives", "numbers").ndim != 2:
        return None
    return _as_nodes(value, shape, "a row per seed, and num_negatives columns,", graph)


def own_nodes(own: OwnNegatives, seeds: Ints, links: Links, count: int, random: Random, graph: Graph) -> Ints:
    """Return the negatives ``[B, count]`` of seeds, which are ``links``."""
    if not callable(own):
        return own[seeds]
    tensors: Any = [None if part is None else torch.from_numpy(part) for part in links]
    chosen = own(Links(*tensors), count, random)
    return _as_nodes(chosen, (len(seeds), count), "a row per link, num_negatives wide,", graph)


def check_types(nodes: Ints, links: Links, graph: Graph, layout: LinkLayout) -> None:
    """Raise ValueError for negatives of another type than the ends that they take the place of."""
    wanted = np.empty(nodes.shape, np.int64)
    for side in layout.sides:
        wanted[:, layout.columns(side)] = graph.schema.types_of(links.ends(side)[1])[:, None]
    types = graph.schema.types_of(nodes.reshape(-1)).reshape(nodes.shape)
    if (at := first_true((types != wanted).reshape(-1))) is not None:
        row, column = divmod(at, nodes.shape[1])
        names = list(graph.schema.nodes)
        raise ValueError(
            f"negatives[{row}, {column}] of the batch is of type {names[types[row, column]]!r}, but the "
            f"{layout.sides[column % len(layout.sides)]} that it replaces is of type {names[wanted[row, column]]!r}"
        )


def _as_nodes(value: Any, shape: tuple[int, int], words: str, graph: Graph) -> Ints:
    array = as_array(value, "negatives")
    if array.shape != shape:
        raise ValueError(f"negatives must have {words} {list(shape)}, got shape {list(array.shape)}")
    nodes = as_ids(array.reshape(-1), "negatives", LARGEST, lower=-LARGEST)
    if (at := first_true((nodes < 0) | (nodes >= graph.num_nodes))) is not None:
        row, column = divmod(at, shape[1])
        raise IndexError(f"negatives[{row}, {column}] is {nodes[at]}, but nodes are 0 to {graph.num_nodes - 1}")
    return nodes.reshape(shape)
